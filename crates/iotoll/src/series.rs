//! The series of a recording as a file for other programs: CSV.

use anyhow::Context;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use verbs::ftq::FtqRecord;

/// All columns.
pub const CSV: &str = "series.csv";

/// Writes the series of a recording into `folder`, complete or not at all: under another name, which is then changed.
///
/// # Errors
/// When it cannot be written.
pub fn write(folder: &Path, record: &FtqRecord) -> anyhow::Result<()> {
    let (path, partial) = (folder.join(CSV), folder.join(format!("{CSV}.partial")));
    let written = || -> anyhow::Result<()> {
        let mut file = BufWriter::new(lab::store::create_afresh(&partial)?);
        write_csv(&mut file, record)?;
        file.flush()?;
        Ok(fs::rename(&partial, &path)?)
    };
    written()
        .with_context(|| format!("{}: writing the series; choose another folder, or free some space", path.display()))
        .inspect_err(|_| {
            let _ = fs::remove_file(&partial);
        })
}

/// A row for each reading: time, quanta since the reading before, what the worker did since then and in all, and the probes as the
/// kernel gave them (counters are cumulative). A missing value is an empty cell.
fn write_csv(file: &mut BufWriter<File>, record: &FtqRecord) -> io::Result<()> {
    let quantum = record.header.plan.quantum.0.max(1);
    let unit = plain(&record.header.unit);
    let mut names =
        ["time_ns".to_owned(), "span_quanta".to_owned(), format!("done_{unit}"), format!("total_{unit}")].to_vec();
    let mut taken: BTreeSet<String> = names.iter().cloned().collect();
    names.extend(record.header.probes.iter().map(|probe| unique(&column_name(&probe.name, &probe.unit), &mut taken)));
    writeln!(file, "{}", names.join(","))?;
    let mut before = None;
    for chunk in &record.chunks {
        for (row, (time, total)) in chunk.at.iter().map(|at| at.0).zip(&chunk.amount).enumerate() {
            // A reading belongs to the deadline before it.
            let (span, done) = before.map_or((0, 0), |(earlier, had): (u64, u64)| {
                (time / quantum - earlier / quantum, total.saturating_sub(had))
            });
            before = Some((time, *total));
            write!(file, "{time},{span},{done},{total}")?;
            for column in &chunk.probes {
                match column.get(row).copied().flatten() {
                    Some(value) => write!(file, ",{value}")?,
                    None => write!(file, ",")?,
                }
            }
            writeln!(file)?;
        }
    }
    Ok(())
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
