//! The series of a recording as files for other programs: Parquet, and the two text files of FTQ.

use anyhow::Context;
use model::ftq::FtqRecord;
use parquet::basic::{Encoding, Repetition, Type as Physical};
use parquet::data_type::{DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// All columns, with the host and the plan.
pub const PARQUET: &str = "series.parquet";
/// Start of each interval between two readings, in nanoseconds.
pub const TIMES: &str = "ftq_times.dat";
/// What the worker did in it.
pub const COUNTS: &str = "ftq_counts.dat";

/// Writes the files of a recording into `folder`, each complete or not at all.
///
/// # Errors
/// When one cannot be written.
pub fn write(folder: &Path, record: &FtqRecord) -> anyhow::Result<()> {
    save(folder, PARQUET, |file| write_parquet(file, &columns(record), record))?;
    save(folder, TIMES, |file| Ok(write_times(file, record)?))?;
    save(folder, COUNTS, |file| Ok(write_counts(file, record)?))
}

/// Writes a file under another name, and renames it.
fn save(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (path, partial) = (folder.join(name), folder.join(format!("{name}.partial")));
    let written = || -> anyhow::Result<()> {
        let mut file = BufWriter::new(lab::store::create_afresh(&partial)?);
        write(&mut file)?;
        file.flush()?;
        Ok(fs::rename(&partial, &path)?)
    };
    written()
        .with_context(|| format!("{}: writing the series; choose another folder, or free some space", path.display()))
        .inspect_err(|_| {
            let _ = fs::remove_file(&partial);
        })
}

/// The start of each interval, in nanoseconds since the recording began. FTQ's scripts (Sottile and Minnich) expect one number a line, and
/// intervals of one length; a late reading makes a longer one, which the times show.
fn write_times(mut file: impl Write, record: &FtqRecord) -> io::Result<()> {
    let at: Vec<u64> = record.chunks.iter().flat_map(|chunk| chunk.at.iter().map(|at| at.0)).collect();
    let (_, starts) = at.split_last().unwrap_or((&0, &[]));
    starts.iter().try_for_each(|at| writeln!(file, "{at}"))
}

/// The worker's amount in each interval.
fn write_counts(mut file: impl Write, record: &FtqRecord) -> io::Result<()> {
    let amounts: Vec<u64> = record.chunks.iter().flat_map(|chunk| chunk.amount.iter().copied()).collect();
    amounts.windows(2).try_for_each(|pair| match pair {
        [before, after] => writeln!(file, "{}", after.saturating_sub(*before)),
        _ => Ok(()),
    })
}

/// A column; all are equally long.
struct Column {
    /// With its unit at the end.
    name: String,
    values: Values,
}

/// The values of a column.
enum Values {
    Whole(Vec<i64>),
    /// A missing one could not be read.
    Number(Vec<Option<f64>>),
}

/// The columns of a recording: time, quanta since the reading before, what the worker did since then and in all, and the
/// probes as the kernel gave them (counters are cumulative).
fn columns(record: &FtqRecord) -> Vec<Column> {
    let rows =
        || record.chunks.iter().flat_map(|chunk| chunk.at.iter().map(|at| at.0).zip(chunk.amount.iter().copied()));
    let quantum = record.header.plan.quantum.0.max(1);
    let unit = plain(&record.header.unit);
    let (mut at, mut span, mut done, mut total) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut before = None;
    for (time, amount) in rows() {
        // A reading belongs to the deadline before it.
        let (quanta, more) = before.map_or((0, 0), |(earlier, had): (u64, u64)| {
            (time / quantum - earlier / quantum, amount.saturating_sub(had))
        });
        for (column, value) in [(&mut at, time), (&mut span, quanta), (&mut done, more), (&mut total, amount)] {
            column.push(i64::try_from(value).unwrap_or(i64::MAX));
        }
        before = Some((time, amount));
    }
    let named = [("time_ns".to_owned(), at), ("span_quanta".to_owned(), span)];
    let named = named.into_iter().chain([(format!("done_{unit}"), done), (format!("total_{unit}"), total)]);
    let mut columns: Vec<Column> = named.map(|(name, values)| Column { name, values: Values::Whole(values) }).collect();
    let mut taken: BTreeSet<String> = columns.iter().map(|column| column.name.clone()).collect();
    for (index, probe) in record.header.probes.iter().enumerate() {
        let column = record.chunks.iter().filter_map(|chunk| chunk.probes.get(index)).flatten();
        let name = unique(&column_name(&probe.name, &probe.unit), &mut taken);
        columns.push(Column { name, values: Values::Number(column.copied().collect()) });
    }
    columns
}

/// `net.eth0.rx_bytes` in bytes is `net_eth0_rx_bytes`, `dirty` in pages is `dirty_pages`: a name that SQL and Python take
/// without quotes, with the unit at its end.
fn column_name(name: &str, unit: &str) -> String {
    let (name, unit) = (plain(name), plain(unit));
    if unit.is_empty() || name == unit || name.ends_with(&format!("_{unit}")) { name } else { format!("{name}_{unit}") }
}

fn plain(text: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let text: String = text.chars().map(word).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) { format!("_{text}") } else { text }
}

fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = |number: u32| if number == 1 { name.to_owned() } else { format!("{name}_{number}") };
    let free = (1..).map(numbered).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

/// Rows of a row group: readers load one at a time.
const GROUP: usize = 1 << 20;

/// Writes the columns one by one, with the host and the plan as metadata.
fn write_parquet(file: impl Write + Send, columns: &[Column], record: &FtqRecord) -> anyhow::Result<()> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("recording").with_fields(fields).build()?);
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("iotoll {}", record.header.envelope.iotoll_version))
        .set_key_value_metadata(Some(metadata(record)?));
    for column in columns.iter().filter(|column| matches!(column.values, Values::Whole(_))) {
        // Times and totals only grow: their differences take a fraction of the space.
        let path = ColumnPath::from(column.name.as_str());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    for begin in (0..rows(columns)).step_by(GROUP) {
        let mut group = writer.next_row_group()?;
        for column in columns {
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

fn rows(columns: &[Column]) -> usize {
    let length = |column: &Column| match &column.values {
        Values::Whole(values) => values.len(),
        Values::Number(values) => values.len(),
    };
    columns.iter().map(length).min().unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_in_their_unit() {
        assert_eq!(column_name("dirty", "pages"), "dirty_pages");
        assert_eq!(column_name("net.eth0.rx_bytes", "bytes"), "net_eth0_rx_bytes");
        assert_eq!(column_name("gauge:file:/x:([0-9]+)", ""), "gauge_file__x___0_9___");
        assert_eq!(column_name("9p", "I/Os"), "_9p_i_os");
        let mut taken = BTreeSet::new();
        assert_eq!([unique("a", &mut taken), unique("a", &mut taken)], ["a", "a_2"]);
    }
}
