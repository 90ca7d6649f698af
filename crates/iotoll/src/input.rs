//! Reads the text files that the command line names.

use crate::failure::BadInput;
use anyhow::Context;
use std::io::ErrorKind;
use std::path::Path;

/// Text of a job file named on the command line.
pub fn read(path: &Path) -> anyhow::Result<String> {
    read_text(path, "the job file", "JOB.fio")
}

/// Text of a file named on the command line. `what` names the file in an error, `place` says what to give instead.
pub fn read_text(path: &Path, what: &str, place: &str) -> anyhow::Result<String> {
    let unreadable = |error: std::io::Error| {
        let shown = path.display().to_string();
        let option = if shown.contains('=') { "; an option begins with --" } else { "" };
        BadInput(match error.kind() {
            ErrorKind::NotFound => format!("{shown}: there is no such file; check the name of {what}{option}"),
            _ => format!("{shown}: reading {what}: {error}; give {place}"),
        })
    };
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes)
        .ok()
        .with_context(|| BadInput(format!("{}: not UTF-8 text; save it as UTF-8", path.display())))
}
