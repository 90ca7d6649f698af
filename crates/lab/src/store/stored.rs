//! The record of an earlier comparison, to stand beside a new one.

use super::RECORD;
use super::rounds::{Method, RoundsFile, read};
use crate::error::{Error, Result};
use model::comparison::CompareRecord;
use std::path::Path;

/// What to give in place of what is no comparison.
const MEND: &str = "give the folder of an earlier iotoll compare";

/// Loads the record of an earlier comparison from its folder or its file, of whichever version of the method.
///
/// # Errors
/// When there is none, or it is that of a run.
pub fn load_stored(path: &Path) -> Result<CompareRecord> {
    let refused = |what: String| Error::Refused(format!("--stored {what}"));
    let is_run = path.join(RECORD).exists() || path.file_name().is_some_and(|name| name == RECORD);
    if is_run && !RoundsFile::is_at(path) {
        let path = path.display();
        return Err(refused(format!("{path}: is the record of a run, which has no baseline; {MEND}")));
    }
    let read = read(path, Method::Any, MEND).map_err(|error| refused(error.to_string()))?;
    Ok(read.record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_no_comparison_is_refused_in_words() {
        let directory = tempfile::tempdir().unwrap();
        let says = |path: &Path| load_stored(path).unwrap_err().to_string();
        let missing = says(&directory.path().join("nowhere"));
        assert!(missing.starts_with("--stored ") && missing.contains("reading the record"), "{missing}");
        assert!(missing.ends_with("give the folder of an earlier iotoll compare"), "{missing}");
        fs::write(directory.path().join(RECORD), "{}").unwrap();
        assert!(says(directory.path()).contains("is the record of a run"));
        assert!(says(&directory.path().join(RECORD)).contains("is the record of a run"));
        fs::write(directory.path().join("rounds.jsonl"), "{\"header\":{\"schema\":\"x\"}}\n").unwrap();
        assert!(says(directory.path()).contains("its schema is 'x'"));
    }
}
