//! The series of a recording as files for other programs: Parquet, and the two text files of FTQ (Sottile and Minnich).
//!
//! Their scripts expect a number a line, a line for each interval of one length. A late reading makes a longer one, which the
//! times show.

mod parquet;
mod table;

use anyhow::Context;
use model::ftq::FtqRecord;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use table::{Table, Values};

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
    let table = Table::of(record);
    save(folder, PARQUET, |file| parquet::write(file, &table, record))?;
    let numbers = |column: &str| {
        let found = table.columns.iter().find(|found| found.name.starts_with(column)).map(|found| &found.values);
        if let Some(Values::Whole(numbers)) = found { numbers.as_slice() } else { &[] }
    };
    // Each interval begins at a reading and ends at the next one, which says what was done in it.
    let begins = numbers("time_").split_last().map_or(&[][..], |(_, begins)| begins);
    let counts = numbers("done_").split_first().map_or(&[][..], |(_, counts)| counts);
    for (name, numbers) in [(TIMES, begins), (COUNTS, counts)] {
        save(folder, name, |file| Ok(numbers.iter().try_for_each(|number| writeln!(file, "{number}"))?))?;
    }
    Ok(())
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
