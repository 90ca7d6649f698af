//! Reads the text files that the command line names, and keeps what was read for the record: with it a report can be measured again.

use crate::failure::BadInput;
use anyhow::Context;
use lab::bounded_file;
use model::kind::CommandLine;
use model::origin::{Input, LONGEST_TEXT};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// The files and environment variables that define what is measured, as they are read.
#[derive(Debug, Default)]
pub struct Inputs {
    files: RefCell<Vec<Input>>,
    variables: RefCell<BTreeMap<String, String>>,
}

impl Inputs {
    /// Text of a job file named on the command line.
    pub fn job_file(&self, path: &Path) -> anyhow::Result<String> {
        self.text(path, "the job file", "JOB.fio")
    }

    /// Text of an experiment file named on the command line.
    pub fn experiment_file(&self, path: &Path) -> anyhow::Result<String> {
        self.text(path, "the experiment file", "EXPERIMENT.toml")
    }

    fn text(&self, path: &Path, what: &str, place: &str) -> anyhow::Result<String> {
        // An experiment that compares parses its job once for each arm.
        if let Some(known) = self.files.borrow().iter().find(|input| Path::new(&input.name) == path)
            && let Some(text) = &known.text
        {
            return Ok(text.clone());
        }
        let text = read_text(path, what, place)?;
        self.add(path, &text);
        Ok(text)
    }

    fn add(&self, path: &Path, text: &str) {
        let mut files = self.files.borrow_mut();
        if files.iter().all(|input| Path::new(&input.name) != path) {
            files.push(Input::new(path.display().to_string(), text));
        }
    }

    /// An environment variable that a file or an option refers to.
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = std::env::var(name).ok()?;
        self.variables.borrow_mut().insert(name.to_owned(), value.clone());
        Some(value)
    }

    /// The job files that a command of fio reads. A word that is no file, or no text, is fio's own business.
    pub fn note_command(&self, command: &[String]) {
        let Some((program, words)) = command.split_first() else { return };
        if program.rsplit('/').next() != Some("fio") {
            return;
        }
        for path in words.iter().filter(|word| !word.starts_with('-')).map(Path::new) {
            // A pipe is fio's to read.
            let is_file = std::fs::metadata(path).is_ok_and(|file| file.is_file());
            let bytes = is_file.then(|| bounded_file::read(path, LONGEST_TEXT as u64).ok()).flatten();
            if let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                self.add(path, &text);
            }
        }
    }

    /// The command line with all of that.
    pub fn command_line(self, words: &[String]) -> CommandLine {
        let (inputs, variables) = (self.files.into_inner(), self.variables.into_inner());
        CommandLine { words: words.to_vec(), inputs, variables, ..CommandLine::default() }
    }
}

/// The name of a job file that is read from standard input, as in fio.
pub const STANDARD_INPUT: &str = "-";

/// Bytes of a file or of standard input. No job is longer; a program that never stops writing must not fill the memory.
const LONGEST: u64 = 16 << 20;

/// Whether a name is that of an experiment file.
pub fn is_toml(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "toml")
}

/// What a file or standard input contains.
pub fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    match path == Path::new(STANDARD_INPUT) {
        true => bounded_file::at_most(std::io::stdin().lock(), LONGEST),
        false => bounded_file::read(path, LONGEST),
    }
}

/// Text of a file named on the command line. `what` names the file in an error, `place` says what to give instead.
fn read_text(path: &Path, what: &str, place: &str) -> anyhow::Result<String> {
    let unreadable = |error: std::io::Error| {
        let shown = path.display().to_string();
        let option = if shown.contains('=') { "; an option begins with --" } else { "" };
        BadInput(match error.kind() {
            ErrorKind::NotFound => format!("{shown}: there is no such file; check the name of {what}{option}"),
            _ => format!("{shown}: reading {what}: {error}; give {place}"),
        })
    };
    String::from_utf8(bytes_of(path).map_err(unreadable)?)
        .ok()
        .with_context(|| BadInput(format!("{}: not UTF-8 text; save it as UTF-8", path.display())))
}
