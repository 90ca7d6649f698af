//! The series of a recording as files for other programs: CSV, and the two text files of FTQ.

use anyhow::Context;
use model::ftq::FtqRecord;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// All columns.
pub const CSV: &str = "series.csv";
/// Start of each interval between two readings, in nanoseconds.
pub const TIMES: &str = "ftq_times.dat";
/// What the worker did in it.
pub const COUNTS: &str = "ftq_counts.dat";

/// Writes the files of a recording into `folder`, each complete or not at all.
///
/// # Errors
/// When one cannot be written.
pub fn write(folder: &Path, record: &FtqRecord) -> anyhow::Result<()> {
    save(folder, CSV, |file| write_csv(file, &columns(record)))?;
    save(folder, TIMES, |file| write_times(file, record))?;
    save(folder, COUNTS, |file| write_counts(file, record))
}

/// Writes a file under another name, and renames it.
fn save(folder: &Path, name: &str, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
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
    /// A missing one could not be read.
    values: Vec<Option<Value>>,
}

#[derive(Clone, Copy)]
enum Value {
    Whole(u64),
    Number(f64),
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
            column.push(Some(Value::Whole(value)));
        }
        before = Some((time, amount));
    }
    let named = [("time_ns".to_owned(), at), ("span_quanta".to_owned(), span)];
    let named = named.into_iter().chain([(format!("done_{unit}"), done), (format!("total_{unit}"), total)]);
    let mut columns: Vec<Column> = named.map(|(name, values)| Column { name, values }).collect();
    let mut taken: BTreeSet<String> = columns.iter().map(|column| column.name.clone()).collect();
    for (index, probe) in record.header.probes.iter().enumerate() {
        let column = record.chunks.iter().filter_map(|chunk| chunk.probes.get(index)).flatten();
        let name = unique(&column_name(&probe.name, &probe.unit), &mut taken);
        columns.push(Column { name, values: column.map(|value| value.map(Value::Number)).collect() });
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

/// Writes the columns as CSV, a row for each reading. A missing value is an empty cell.
fn write_csv(mut file: impl Write, columns: &[Column]) -> io::Result<()> {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    writeln!(file, "{}", names.join(","))?;
    let rows = columns.iter().map(|column| column.values.len()).min().unwrap_or(0);
    for row in 0..rows {
        for (place, column) in columns.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match column.values.get(row).copied().flatten() {
                Some(Value::Whole(value)) => write!(file, "{comma}{value}")?,
                Some(Value::Number(value)) => write!(file, "{comma}{value}")?,
                None => write!(file, "{comma}")?,
            }
        }
        writeln!(file)?;
    }
    Ok(())
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
