//! The record of a comparison: a line for the header, a line for each round, a line for the end.
//!
//! Each line is on disk before the next round begins, so a record is complete up to the moment at which something
//! ended it.

use crate::error::{Error, Result};
use model::comparison::boots;
use model::comparison::record::{BootRecord, CompareRecord, End, Header, RoundRecord, SCHEMA};
use model::record::METHOD_VERSION;
use model::unit::Nanos;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The record's file within its folder.
const ROUNDS: &str = "rounds.jsonl";

/// What to give where there is nothing to go on with.
const BEGUN: &str = "give the folder in which an experiment of boots keeps its record";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<H, R, B, E> {
    Header(H),
    Round(R),
    Boot(B),
    End(E),
}

/// One boot, and what was measured in it.
#[derive(Serialize, Deserialize)]
struct BootLine<B, R> {
    boot: B,
    round: R,
}

/// A record that is being written.
pub struct RoundsFile {
    file: File,
    path: PathBuf,
    /// Of complete lines.
    length: u64,
}

impl RoundsFile {
    /// Whether `path` is the record of a comparison, or a folder that holds one.
    pub fn is_at(path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == ROUNDS) || path.join(ROUNDS).exists()
    }

    /// Begins a record in `folder`, which must not hold one.
    pub fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(ROUNDS);
        let file = File::create_new(&path).map_err(|error| Error::record(&path, "creating the record", error))?;
        lock(&file, &path)?;
        Ok(Self { file, path, length: 0 })
    }

    /// Goes on with the record at `path`, its folder or its file: what is in it already, without a last line that was cut
    /// off.
    ///
    /// # Errors
    /// When there is none, or it cannot be gone on with.
    pub fn resume(path: &Path) -> Result<(Self, CompareRecord)> {
        let shown = path.display();
        // Whoever has the record changes it, so it is read when nobody else has it. What cannot be opened says why below.
        let opened = File::options().read(true).write(true).open(file_at(path));
        if let Ok(file) = &opened {
            lock(file, path)?;
        }
        let Accepted { path, record, length } = read(path, Method::This, BEGUN)?;
        // Before the file is touched.
        let refused = |why: String| Err(Error::Refused(format!("{shown}: {why}")));
        if record.end.is_some() {
            return refused(format!("this experiment is complete; show it: iotoll report {shown}"));
        }
        let experiment = &record.header.experiment;
        let Some(plan) = &experiment.boots else {
            return refused(format!(
                "no arm of this comparison is a boot, so it cannot be gone on with; show it: iotoll report {shown}"
            ));
        };
        // What was written by hand into the header goes no further than a file of TOML would.
        if let Err(why) = plan.check().and_then(|()| experiment.rules.check()) {
            return refused(format!("its header was changed: {why}; begin it anew"));
        }
        let failed = |error| Error::record(&path, "going on with the record", error);
        let file = opened.map_err(failed)?;
        let length = cut(&file, length).map_err(failed)?;
        Ok((Self { file, path, length }, record))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the header.
    pub fn header(&mut self, header: &Header) -> Result<()> {
        self.line(&Line::<_, (), (), ()>::Header(header))
    }

    /// Adds a round.
    pub fn round(&mut self, round: &RoundRecord) -> Result<()> {
        self.line(&Line::<(), _, (), ()>::Round(round))
    }

    /// Adds a boot.
    pub fn boot(&mut self, boot: &BootRecord, round: &RoundRecord) -> Result<()> {
        self.line(&Line::<(), (), _, ()>::Boot(BootLine { boot, round }))
    }

    /// Adds the end.
    pub fn end(&mut self, end: &End) -> Result<()> {
        self.line(&Line::<(), (), (), _>::End(end))
    }

    fn line(&mut self, line: &impl Serialize) -> Result<()> {
        let failed = |error| Error::record(&self.path, "saving the record", error);
        let mut text = serde_json::to_vec(line).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line, where there was no room for more, would spoil the one after it. Where even this fails, it
            // is left out when it is read again.
            let _ = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)));
            return Err(failed(error));
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

/// Takes the record for this process alone, until the file is closed.
fn lock(file: &File, path: &Path) -> Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Error::Refused(format!(
            "{}: another iotoll is measuring this experiment; wait until it has ended",
            path.display()
        ))),
        // A file system without locks is no reason not to measure.
        _ => Ok(()),
    }
}

/// Leaves of a file what was read of it, ended so that a line can follow: the length that this makes.
fn cut(mut file: &File, length: u64) -> io::Result<u64> {
    file.set_len(length)?;
    let mut last = [0];
    file.seek(SeekFrom::Start(length.saturating_sub(1)))?;
    file.read_exact(&mut last)?;
    // Cut off between a line and its end, or ended by somebody's editor.
    let end: &[u8] = if last == *b"\n" { b"" } else { b"\n" };
    file.write_all(end)?;
    Ok(length + end.len() as u64)
}

/// Where the record at `path` is, a folder that holds one or its file.
fn file_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(ROUNDS) } else { path.to_owned() }
}

/// Loads the record of a comparison from its folder or its file.
///
/// # Errors
/// When there is none, or it was written by another version of the method.
pub fn load_rounds(path: &Path) -> Result<CompareRecord> {
    Ok(read(path, Method::This, "give the folder of a saved comparison")?.record)
}

/// Of which versions of the method a record may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// This program's.
    This,
    /// Any: whoever asks says so beside the numbers.
    Any,
}

/// A record as far as it could be read.
#[derive(Debug)]
pub(super) struct Accepted {
    /// Its file.
    path: PathBuf,
    pub record: CompareRecord,
    /// Of the lines that are in the record, in bytes.
    length: u64,
}

/// Reads a record from its folder or its file. `mend` says what to give where there is none.
pub(super) fn read(path: &Path, method: Method, mend: &str) -> Result<Accepted> {
    let path = file_at(path);
    let refused = |why: String| Error::Refused(format!("{}: {why}", path.display()));
    let text = super::only_files(&path).and_then(|()| fs::read(&path));
    let text = text.map_err(|error| refused(format!("reading the record: {error}; {mend}")))?;
    let mut lines = lines(&text).peekable();
    let (_, first, mut length) = lines.next().ok_or_else(|| refused(format!("is empty; {mend}")))?;
    known_version(first, method, mend).map_err(refused)?;
    let damaged = |number: usize, how: String| refused(format!("line {number}: {how}; remove it and all after it"));
    let HeaderLine { header } =
        serde_json::from_slice(first).map_err(|error| refused(format!("line 1: is damaged: {error}; {mend}")))?;
    let mut record = CompareRecord { header, rounds: Vec::new(), boots: Vec::new(), end: None };
    // Boots of the round that is not complete yet.
    let mut booted = Vec::new();
    while let Some((number, line, end)) = lines.next() {
        match serde_json::from_slice::<AnyLine>(line) {
            Ok(Line::Round(round)) => record.rounds.push(round),
            Ok(Line::Boot(BootLine { boot, round })) => {
                record.boots.push(boot);
                booted.push(round);
                if booted.len() >= record.header.experiment.arms.len() {
                    let begin = record.rounds.last().map_or(Nanos(0), |round| round.end_nanos);
                    record.rounds.push(boots::round(std::mem::take(&mut booted), begin));
                }
            }
            Ok(Line::End(end)) => record.end = Some(end),
            Ok(Line::Header(_)) => return Err(damaged(number, "is a second header".to_owned())),
            // Measuring was cut off while this line was being written.
            Err(_) if lines.peek().is_none() => break,
            Err(error) => return Err(damaged(number, format!("is damaged: {error}"))),
        }
        length = end;
    }
    Ok(Accepted { path, record, length: length as u64 })
}

/// The first line as it is read.
#[derive(Deserialize)]
struct HeaderLine {
    header: Header,
}

/// The others.
type AnyLine = Line<Header, RoundRecord, BootLine<BootRecord, RoundRecord>, End>;

/// The lines that hold something: number (from 1), bytes, and where they end.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8], usize)> {
    let mut end = 0;
    let lines = text.split_inclusive(|byte| *byte == b'\n').zip(1..).map(move |(line, number)| {
        end += line.len();
        (number, line.trim_ascii(), end)
    });
    lines.filter(|(_, line, _)| !line.is_empty())
}

/// Whether the first line is a header of a version that is wanted, before it is read as one.
fn known_version(line: &[u8], method: Method, mend: &str) -> std::result::Result<(), String> {
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|error| format!("line 1: is not a record: {error}; {mend}"))?;
    let header = value.get("header").ok_or_else(|| format!("line 1: is not the header of a comparison; {mend}"))?;
    let text = |name: &str| header.get(name).and_then(serde_json::Value::as_str).unwrap_or("nothing").to_owned();
    if text("schema") != SCHEMA {
        return Err(format!("its schema is '{}', not {SCHEMA}; {mend}", text("schema")));
    }
    match header.get("method_version").and_then(serde_json::Value::as_u64) {
        Some(version) if version == u64::from(METHOD_VERSION) || method == Method::Any => Ok(()),
        version => Err(format!(
            "was measured by method {}, this is method {METHOD_VERSION}; use iotoll {}",
            version.map_or("?".to_owned(), |version| version.to_string()),
            text("iotoll_version")
        )),
    }
}

#[cfg(test)]
mod tests;
