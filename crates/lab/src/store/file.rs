//! A record's file: an envelope, then lines of its kind, each on disk before the next is measured. So a record is complete up
//! to the moment at which something ended it.

use super::RECORD;
use crate::error::{Error, Result};
use model::kind::{Envelope, Kind, Misplaced, Recorded, SCHEMA};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The key of the first line.
const ENVELOPE: &str = "envelope";

/// A record that is being written.
pub struct RecordFile {
    file: File,
    path: PathBuf,
    /// Of complete lines.
    length: u64,
}

impl RecordFile {
    /// Makes an empty file in `folder`, which must not hold a record.
    ///
    /// # Errors
    /// When it cannot be made, or another process has it.
    pub fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(RECORD);
        let file = File::create_new(&path).map_err(|error| Error::record(&path, "creating the record", error))?;
        lock(&file, &path)?;
        Ok(Self { file, path, length: 0 })
    }

    /// Goes on with the record at `path`, its folder or its file: with what is in it already, without a last line that was cut
    /// off. The file is left as it is where `check` refuses the record.
    ///
    /// # Errors
    /// When there is no record of this kind, another process has it, or `check` refuses it.
    pub fn resume<R: Recorded>(path: &Path, check: impl FnOnce(&R) -> Result<()>) -> Result<(Self, R)> {
        // Whoever has the record changes it, so it is read when nobody else has it. What cannot be opened says why below.
        let opened = File::options().read(true).write(true).open(file_at(path));
        if let Ok(file) = &opened {
            lock(file, path)?;
        }
        let Loaded { path, record, length } = read::<R>(path, Method::This)?;
        check(&record)?;
        let failed = |error| Error::record(&path, "going on with the record", error);
        let file = opened.map_err(failed)?;
        let length = cut(&file, length).map_err(failed)?;
        Ok((Self { file, path, length }, record))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the first line.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn begin(&mut self, envelope: &Envelope) -> Result<()> {
        self.append(ENVELOPE, envelope)
    }

    /// Adds a line of the record's kind, under the key that says what it is.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn append(&mut self, key: &str, body: &impl Serialize) -> Result<()> {
        let failed = |error| Error::record(&self.path, "saving the record", error);
        let mut text = Vec::new();
        line(&mut text, key, body).map_err(failed)?;
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

/// `{"KEY": BODY}` and a newline.
pub(super) fn line(mut writer: impl Write, key: &str, body: &impl Serialize) -> io::Result<()> {
    use serde::ser::{SerializeMap, Serializer};
    let mut serializer = serde_json::Serializer::new(&mut writer);
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(key, body)?;
    map.end()?;
    writer.write_all(b"\n")
}

/// A whole record of one measurement that is over: its envelope, and a line under `key`.
pub(super) fn write_whole(
    writer: &mut impl Write,
    envelope: &Envelope,
    key: &str,
    body: &impl Serialize,
) -> io::Result<()> {
    line(&mut *writer, ENVELOPE, envelope)?;
    line(writer, key, body)
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
    if path.is_dir() { path.join(RECORD) } else { path.to_owned() }
}

/// Of which versions of the method a record may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    /// This program's.
    This,
    /// Any: the finding says so beside the numbers.
    Any,
}

/// A record as far as it could be read.
#[derive(Debug)]
struct Loaded<R> {
    /// Its file.
    path: PathBuf,
    record: R,
    /// Of the lines that are in the record, in bytes.
    length: u64,
}

/// The kind of the record at `path`, its folder or its file.
///
/// # Errors
/// When there is none, or a newer program wrote it.
pub fn kind_at(path: &Path) -> Result<Kind> {
    let path = file_at(path);
    let text = text_of(&path, GIVE_ANY)?;
    let refused = |why: String| Error::Refused(format!("{}: {why}", path.display()));
    let envelope =
        lines(&text).next().map_or(Err(format!("is empty; {GIVE_ANY}")), |(_, line, _)| envelope(line, GIVE_ANY));
    let envelope = envelope.map_err(refused)?;
    Kind::named(&envelope.kind).ok_or_else(|| {
        refused(format!(
            "is of kind '{}', which iotoll {} made and this one does not know",
            envelope.kind, envelope.iotoll_version
        ))
    })
}

/// What to give where there is no record at all.
const GIVE_ANY: &str = "give the folder of a saved run or comparison";

/// Loads a record of one kind from its folder or its file.
///
/// # Errors
/// When there is none, or it was measured by another version of the method.
pub fn load<R: Recorded>(path: &Path) -> Result<R> {
    Ok(read::<R>(path, Method::This)?.record)
}

/// Loads an earlier record that another one is to stand beside, of whichever version of the method.
///
/// # Errors
/// When there is none of this kind.
pub fn load_earlier<R: Recorded>(path: &Path) -> Result<R> {
    Ok(read::<R>(path, Method::Any)?.record)
}

fn read<R: Recorded>(path: &Path, method: Method) -> Result<Loaded<R>> {
    let path = file_at(path);
    let mend = format!("give the folder of {} that was saved ({})", R::KIND.noun(), R::KIND.made_by());
    let refused = |why: String| Error::Refused(format!("{}: {why}", path.display()));
    let text = text_of(&path, &mend)?;
    let mut lines = lines(&text).peekable();
    let (_, first, mut length) = lines.next().ok_or_else(|| refused(format!("is empty; {mend}")))?;
    let envelope = envelope(first, &mend).map_err(refused)?;
    is_wanted(&envelope, R::KIND, method).map_err(|why| refused(format!("{why}; {mend}")))?;
    let damaged = |number: usize, how: String| refused(format!("line {number}: {how}; remove it and all after it"));
    let (mut bodies, mut numbers) = (Vec::new(), Vec::new());
    while let Some((number, line, end)) = lines.next() {
        match serde_json::from_slice::<R::Line>(line) {
            Ok(body) => bodies.push(body),
            // Measuring was cut off while this line was being written.
            Err(_) if lines.peek().is_none() && !bodies.is_empty() => break,
            Err(error) if bodies.is_empty() => {
                return Err(refused(format!("line {number}: is damaged: {error}; {mend}")));
            }
            Err(error) => return Err(damaged(number, format!("is damaged: {error}"))),
        }
        numbers.push(number);
        length = end;
    }
    let record = R::assemble(envelope, bodies).map_err(|Misplaced { line, why }| match numbers.get(line) {
        Some(number) if line > 0 => damaged(*number, why),
        number => refused(format!("line {}: {why}; {mend}", number.copied().unwrap_or(numbers.len() + 2))),
    })?;
    Ok(Loaded { path, record, length: length as u64 })
}

fn text_of(path: &Path, mend: &str) -> Result<Vec<u8>> {
    let text = only_files(path).and_then(|()| fs::read(path));
    text.map_err(|error| Error::Refused(format!("{}: reading the record: {error}; {mend}", path.display())))
}

/// A pipe would be waited for, and a device never ends.
fn only_files(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() { Ok(()) } else { Err(io::Error::other("it is no file")) }
}

/// The lines that hold something: number (from 1), bytes, and where they end.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8], usize)> {
    let mut end = 0;
    let lines = text.split_inclusive(|byte| *byte == b'\n').zip(1..).map(move |(line, number)| {
        end += line.len();
        (number, line.trim_ascii(), end)
    });
    lines.filter(|(_, line, _)| !line.is_empty())
}

/// The first line as it is read.
#[derive(Deserialize)]
struct EnvelopeLine {
    envelope: Envelope,
}

/// The first line, or why it is none.
fn envelope(line: &[u8], mend: &str) -> std::result::Result<Envelope, String> {
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|error| format!("line 1: is not a record: {error}; {mend}"))?;
    let first = value.get(ENVELOPE).ok_or_else(|| format!("line 1: is not the envelope of a record; {mend}"))?;
    let schema = first.get("schema").and_then(serde_json::Value::as_str).unwrap_or("nothing");
    if schema != SCHEMA {
        return Err(format!("its schema is '{schema}', not {SCHEMA}; {mend}"));
    }
    let EnvelopeLine { envelope } =
        serde_json::from_value(value).map_err(|error| format!("line 1: is damaged: {error}; {mend}"))?;
    Ok(envelope)
}

/// Whether a record is of this kind, and of a version of the method that is wanted.
fn is_wanted(envelope: &Envelope, kind: Kind, method: Method) -> std::result::Result<(), String> {
    if envelope.kind != kind.name() {
        let noun = Kind::named(&envelope.kind).map_or("something else", Kind::noun);
        return Err(format!("is the record of {noun}, not of {}", kind.noun()));
    }
    if method == Method::This && envelope.method_version != kind.method_version() {
        let (then, now, version) = (envelope.method_version, kind.method_version(), &envelope.iotoll_version);
        return Err(format!("was measured by method {then}, this is method {now}; show it with iotoll {version}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
