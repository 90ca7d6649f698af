//! The record of a comparison: a line for the header, a line for each round, a line for the end.
//!
//! Each line is on disk before the next round begins, so a record is complete up to the moment at which something
//! ended it.

use crate::error::{Error, Result};
use model::comparison::boots;
use model::comparison::record::{BootRecord, CompareRecord, End, Header, RoundRecord, SCHEMA};
use model::experiment::BootPlan;
use model::record::METHOD_VERSION;
use model::unit::Nanos;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The record's file within its folder.
const ROUNDS: &str = "rounds.jsonl";

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
        let file = File::create_new(&path).map_err(|error| Error::file(&path, "creating the record", error))?;
        Ok(Self { file, path, length: 0 })
    }

    /// Goes on with the record in `folder`: what is in it already, without a last line that was cut off.
    ///
    /// # Errors
    /// When there is none, or it has an end.
    pub fn resume(folder: &Path) -> Result<(Self, CompareRecord)> {
        let path = folder.join(ROUNDS);
        let record = load_rounds(&path)?;
        // Before the file is touched. What was written by hand into the header goes no further than a file of TOML would.
        let experiment = &record.header.experiment;
        let (budget, patience) = (experiment.rules.budget_seconds, experiment.rules.patience());
        let sound = experiment.boots.as_ref().is_some_and(|plan| BootPlan::BOOTS.contains(&plan.each))
            && [budget, patience].iter().all(|seconds| (0.0..=1e6).contains(seconds));
        if !sound {
            let why = "no arm of this comparison is a boot, or its header was changed, so it cannot be gone on with";
            return Err(Error::Refused(format!("{}: {why}; begin it anew", folder.display())));
        }
        if record.end.is_some() {
            let shown = folder.display();
            return Err(Error::Refused(format!(
                "{shown}: this experiment is complete; show it: iotoll report {shown}"
            )));
        }
        let failed = |error| Error::file(&path, "going on with the record", error);
        let text = fs::read(&path).map_err(failed)?;
        let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline as u64 + 1);
        let mut file = File::options().write(true).open(&path).map_err(failed)?;
        file.set_len(complete).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        Ok((Self { file, path, length: complete }, record))
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
        let failed = |error| Error::file(&self.path, "saving the record", error);
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

/// Loads the record of a comparison from its folder or its file.
///
/// # Errors
/// When there is none, or it was written by another version of the method.
pub fn load_rounds(path: &Path) -> Result<CompareRecord> {
    read(path, Method::This)
}

/// Of which versions of the method a record may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// This program's.
    This,
    /// Any: whoever asks says so beside the numbers.
    Any,
}

pub(super) fn read(path: &Path, method: Method) -> Result<CompareRecord> {
    let path = if path.is_dir() { path.join(ROUNDS) } else { path.to_owned() };
    let refused = |why: String| Error::Refused(format!("{}: {why}", path.display()));
    let text = fs::read(&path).map_err(|error| refused(format!("reading the record: {error}")))?;
    let mut record: Option<CompareRecord> = None;
    // Boots of the round that is not complete yet.
    let mut booted = Vec::new();
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    known_version(lines.first().copied().unwrap_or_default(), method).map_err(refused)?;
    for (number, line) in lines.iter().enumerate() {
        let parsed = serde_json::from_slice::<Line<Header, RoundRecord, BootLine<BootRecord, RoundRecord>, End>>(line);
        match (parsed, &mut record) {
            (Ok(Line::Header(header)), None) => {
                record = Some(CompareRecord { header, rounds: Vec::new(), boots: Vec::new(), end: None });
            }
            (Ok(Line::Round(round)), Some(record)) => record.rounds.push(round),
            (Ok(Line::Boot(BootLine { boot, round })), Some(record)) => {
                record.boots.push(boot);
                booted.push(round);
                if booted.len() >= record.header.experiment.arms.len() {
                    let begin = record.rounds.last().map_or(Nanos(0), |round| round.end_nanos);
                    record.rounds.push(boots::round(std::mem::take(&mut booted), begin));
                }
            }
            (Ok(Line::End(end)), Some(record)) => record.end = Some(end),
            // Measuring was cut off while this line was being written.
            (Err(_), Some(_)) if number + 1 == lines.len() => {}
            (Err(error), _) => return Err(refused(format!("line {}: is damaged: {error}", number + 1))),
            (Ok(_), _) => return Err(refused(format!("line {}: is out of place", number + 1))),
        }
    }
    record.ok_or_else(|| refused("is empty".to_owned()))
}

/// Whether the first line is a header of a version that is wanted, before it is read as one.
fn known_version(line: &[u8], method: Method) -> std::result::Result<(), String> {
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|error| format!("line 1: is not a record: {error}"))?;
    let header = value.get("header").ok_or("line 1: is not the header of a comparison")?;
    let text = |name: &str| header.get(name).and_then(serde_json::Value::as_str).unwrap_or("nothing").to_owned();
    if text("schema") != SCHEMA {
        return Err(format!("its schema is '{}', not {SCHEMA}", text("schema")));
    }
    match header.get("method_version").and_then(serde_json::Value::as_u64) {
        Some(version) if version == u64::from(METHOD_VERSION) || method == Method::Any => Ok(()),
        version => Err(format!(
            "was measured by method {}, this is method {METHOD_VERSION}; render it with iotoll {}",
            version.map_or("?".to_owned(), |version| version.to_string()),
            text("iotoll_version")
        )),
    }
}
