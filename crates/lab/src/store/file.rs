//! The file of a record: an envelope, then lines of its kind, each written to disk before the next measurement. So a
//! record is complete up to the moment at which the measurement ended.

use super::RECORD;
use crate::bounded_file;
use crate::error::{Error, Result};
use model::kind::{Envelope, Extent, Kind, Misplaced, Recorded, SCHEMA};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The key of the first line.
pub(super) const ENVELOPE: &str = "envelope";

/// A record that is being written.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    path: PathBuf,
    /// Length of the complete lines.
    length: u64,
}

impl RecordFile {
    /// Makes an empty file in `folder`, which must not contain a record.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(folder: &Path) -> Result<Self> {
        let path = folder.join(RECORD);
        let file = File::create_new(&path).map_err(|error| Error::record(&path, "creating the record", error))?;
        Ok(Self { file, path, length: 0 })
    }

    /// Removes it, unless another file lies at its path.
    pub(super) fn remove(&self) {
        let of = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        if self.file.metadata().is_ok_and(|own| fs::symlink_metadata(&self.path).is_ok_and(|it| of(it) == of(own))) {
            // An error cannot be reported from here.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Adds a line of the record's kind under its key, and writes it to disk if it is `synced`. Otherwise the kernel decides when that is,
    /// because a sync would disturb what is being measured: the line outlives this process, but not a crash of the machine.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, key: &str, body: &impl Serialize, synced: bool) -> Result<()> {
        let failed = |error| Error::record(&self.path, "saving the record", error);
        let text = line(key, body).map_err(failed)?;
        let written = self.file.write_all(&text).and_then(|()| if synced { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // Cut off an incomplete line, which would damage the next one. If even this fails, the reader leaves it
            // out.
            let _ = self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)));
            return Err(failed(error));
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

/// `{"KEY": BODY}` and a newline.
pub(super) fn line(key: &str, body: &impl Serialize) -> io::Result<Vec<u8>> {
    use serde::ser::{SerializeMap, Serializer};
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut text);
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(key, body)?;
    map.end()?;
    text.push(b'\n');
    Ok(text)
}

/// The file of the record at `path`, a folder or a file.
fn file_at(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(RECORD) } else { path.to_owned() }
}

/// A record as far as it could be read.
#[derive(Debug)]
struct Loaded<R> {
    path: PathBuf,
    record: R,
    /// Number of the last line that was used.
    last_line: usize,
    /// Whether an incomplete line follows.
    is_cut: bool,
}

/// The first line of the record at `path`, its folder or its file.
///
/// # Errors
/// When there is none.
pub fn envelope_at(path: &Path) -> Result<Envelope> {
    let path = file_at(path);
    let text = text_of(&path, GIVE_ANY)?;
    let first = lines(&text).next();
    let envelope = first.map_or(Err(format!("is empty; {GIVE_ANY}")), |(_, line)| envelope(line, GIVE_ANY));
    envelope.map_err(|why| Error::Refused(format!("{}: {why}", path.display())))
}

/// The fix when there is no record at all.
const GIVE_ANY: &str = "give the folder of a saved run or comparison";

/// Loads a record of one kind from its folder or its file.
///
/// # Errors
/// When there is none, or it was measured with another version of the method.
pub fn load<R: Recorded>(path: &Path) -> Result<R> {
    Ok(read::<R>(path, false)?.record)
}

/// Loads a record to be shown. If it ends early, the second value says where, and what is missing.
///
/// # Errors
/// As [`load`], and if it ends before anything was measured.
pub fn load_to_show<R: Recorded>(path: &Path) -> Result<(R, Option<String>)> {
    let Loaded { path, record, last_line, is_cut, .. } = read::<R>(path, false)?;
    let Extent { has_end, parts, noun } = record.extent();
    if has_end && !is_cut {
        return Ok((record, None));
    }
    let path = path.display();
    let place = if is_cut { format!("in line {}", last_line + 1) } else { format!("after line {last_line}") };
    if parts == 0 {
        return Err(Error::Refused(format!(
            "{path}: ends early, {place}: it contains no complete {noun}, so there is nothing to show; measure again"
        )));
    }
    let end = if has_end { "what follows" } else { "its end" };
    let note = format!(
        "{path}: ends early, {place}: {end} is missing, because iotoll was killed, still measures, or the file was cut; shown are the \
         {noun} that are complete: {parts}"
    );
    Ok((record, Some(note)))
}

/// Loads an earlier record to compare with, of any version of the method.
///
/// # Errors
/// When there is none of this kind.
pub fn load_earlier<R: Recorded>(path: &Path) -> Result<R> {
    Ok(read::<R>(path, true)?.record)
}

fn read<R: Recorded>(path: &Path, any_method: bool) -> Result<Loaded<R>> {
    let path = file_at(path);
    let mend = format!("give the folder of {} that was saved ({})", R::KIND.noun, R::KIND.made_by);
    let refused = |why: String| Error::Refused(format!("{}: {why}", path.display()));
    let text = text_of(&path, &mend)?;
    let mut lines = lines(&text).peekable();
    let (_, first) = lines.next().ok_or_else(|| refused(format!("is empty; {mend}")))?;
    let envelope = envelope(first, &mend).map_err(refused)?;
    is_wanted(&envelope, R::KIND, any_method).map_err(|why| refused(format!("{why}; {mend}")))?;
    let damaged =
        |number: usize, how: String| refused(format!("line {number}: {how}; remove it and all lines after it"));
    let (mut bodies, mut numbers, mut is_cut) = (Vec::new(), Vec::new(), false);
    while let Some((number, line)) = lines.next() {
        match serde_json::from_slice::<R::Line>(line) {
            Ok(body) => bodies.push(body),
            // The measurement ended while this line was being written.
            Err(_) if lines.peek().is_none() && !bodies.is_empty() => {
                is_cut = true;
                break;
            }
            Err(error) if bodies.is_empty() && error.is_eof() && lines.peek().is_none() => {
                let why = format!(
                    "ends early, in line {number}, which is its first with a measurement, so there is nothing to show"
                );
                return Err(refused(format!("{why}; {mend}")));
            }
            Err(error) if bodies.is_empty() => {
                return Err(refused(format!("line {number}: is damaged: {}; {mend}", excerpt(&error))));
            }
            Err(error) => return Err(damaged(number, format!("is damaged: {}", excerpt(&error)))),
        }
        numbers.push(number);
    }
    let record = R::assemble(envelope, bodies).map_err(|Misplaced { line, why }| match numbers.get(line) {
        Some(number) if line > 0 => damaged(*number, why),
        number => refused(format!("line {}: {why}; {mend}", number.copied().unwrap_or(numbers.len() + 2))),
    })?;
    let last_line = numbers.last().copied().unwrap_or(1);
    Ok(Loaded { path, record, last_line, is_cut })
}

fn text_of(path: &Path, mend: &str) -> Result<Vec<u8>> {
    /// Bytes of a record: more than weeks of one measurement.
    const LONGEST: u64 = 4 << 30;
    let text = bounded_file::read(path, LONGEST);
    text.map_err(|error| Error::Refused(format!("{}: reading the record: {error}; {mend}", path.display())))
}

/// The lines that are not empty, with their numbers from 1.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (1..).zip(text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)).filter(|(_, line)| !line.is_empty())
}

/// The first line, for parsing.
#[derive(Deserialize)]
struct EnvelopeLine {
    envelope: Envelope,
}

/// What quotes a record, which may have been damaged in any way: its begin, and its end, which says where.
fn excerpt(what: &dyn std::fmt::Display) -> String {
    const MOST: usize = 240;
    let text: Vec<char> = what.to_string().chars().collect();
    match text.split_at_checked(MOST) {
        Some((begin, rest)) if rest.len() > MOST => {
            begin.iter().chain(&['…']).chain(&rest[rest.len() - MOST / 4..]).collect()
        }
        _ => text.into_iter().collect(),
    }
}

/// The envelope in the first line, or why there is none.
fn envelope(line: &[u8], mend: &str) -> std::result::Result<Envelope, String> {
    let value: serde_json::Value = serde_json::from_slice(line)
        .map_err(|error| format!("line 1: is not a record: {}; {mend}", excerpt(&error)))?;
    let first = value.get(ENVELOPE).ok_or_else(|| format!("line 1: is not the envelope of a record; {mend}"))?;
    let schema = first.get("schema").and_then(serde_json::Value::as_str).unwrap_or("nothing");
    if schema != SCHEMA {
        let version = first.get("iotoll_version").map_or_else(String::new, |version| format!(", of iotoll {version}"));
        return Err(format!("its schema is '{}'{}, not {SCHEMA}; {mend}", excerpt(&schema), excerpt(&version)));
    }
    let EnvelopeLine { envelope } =
        serde_json::from_value(value).map_err(|error| format!("line 1: is damaged: {}; {mend}", excerpt(&error)))?;
    Ok(envelope)
}

/// Whether a record is of this kind and of an accepted version of the method.
fn is_wanted(envelope: &Envelope, kind: Kind, any_method: bool) -> std::result::Result<(), String> {
    if envelope.kind != kind.name {
        return Err(format!("is a record of kind '{}', not of {}", excerpt(&envelope.kind), kind.noun));
    }
    if !any_method && envelope.method_version != kind.method_version {
        let (then, now, version) = (envelope.method_version, kind.method_version, excerpt(&envelope.iotoll_version));
        return Err(format!("was measured by method {then}, this is method {now}; show it with iotoll {version}"));
    }
    Ok(())
}
