//! Writes a table as Parquet, column by column, with the host and the plan as metadata.

use super::table::{Column, Table, Values};
use model::ftq::FtqRecord;
use parquet::basic::{Encoding, Repetition, Type as Physical};
use parquet::data_type::{DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group: readers load one at a time.
const GROUP: usize = 1 << 20;

/// Writes the file.
///
/// # Errors
/// When it cannot be written.
pub fn write(file: impl Write + Send, table: &Table, record: &FtqRecord) -> anyhow::Result<()> {
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("recording").with_fields(fields).build()?);
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("iotoll {}", record.header.envelope.iotoll_version))
        .set_key_value_metadata(Some(metadata(record)?));
    for column in table.columns.iter().filter(|column| matches!(column.values, Values::Whole(_))) {
        // Times and totals only grow: their differences take a fraction of the space.
        let path = ColumnPath::from(column.name.as_str());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    for begin in (0..rows(table)).step_by(GROUP) {
        let mut group = writer.next_row_group()?;
        for column in &table.columns {
            if let Some(mut out) = group.next_column()? {
                write_column(&mut out, column, begin)?;
                out.close()?;
            }
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn field(column: &Column) -> parquet::errors::Result<Arc<Type>> {
    let (physical, repetition) = match column.values {
        Values::Whole(_) => (Physical::INT64, Repetition::REQUIRED),
        Values::Number(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
    };
    let field = Type::primitive_type_builder(&column.name, physical).with_repetition(repetition).build()?;
    Ok(Arc::new(field))
}

fn rows(table: &Table) -> usize {
    let length = |column: &Column| match &column.values {
        Values::Whole(values) => values.len(),
        Values::Number(values) => values.len(),
    };
    table.columns.iter().map(length).min().unwrap_or(0)
}

/// Writes the rows of one group.
fn write_column(out: &mut SerializedColumnWriter, column: &Column, begin: usize) -> parquet::errors::Result<()> {
    match &column.values {
        Values::Whole(values) => {
            let values: Vec<i64> = values.iter().skip(begin).take(GROUP).copied().collect();
            out.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Values::Number(values) => {
            let rows = || values.iter().skip(begin).take(GROUP);
            // 1 is a value, 0 a missing one.
            let levels: Vec<i16> = rows().map(|value| i16::from(value.is_some())).collect();
            let present: Vec<f64> = rows().flatten().copied().collect();
            out.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
        }
    }
    Ok(())
}

/// What a reader must know to use the series.
fn metadata(record: &FtqRecord) -> serde_json::Result<Vec<KeyValue>> {
    let header = &record.header;
    let probes = serde_json::to_string(&header.probes)?;
    let pair = |key: &str, value: String| KeyValue { key: format!("iotoll.{key}"), value: Some(value) };
    Ok(vec![
        pair("host", serde_json::to_string(&header.host)?),
        pair("plan", serde_json::to_string(&header.plan)?),
        pair("worker", header.worker.clone()),
        pair("counted_by", header.counted_by.clone()),
        pair("quantum_ns", header.plan.quantum.0.to_string()),
        pair("started_unix_seconds", header.envelope.started_unix_seconds.to_string()),
        pair("method_version", header.envelope.method_version.to_string()),
        pair("probes", probes),
    ])
}
