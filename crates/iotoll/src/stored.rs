//! `--stored`: an earlier comparison, read before anything is measured, so that one that does not fit is refused at once.

use crate::failure::BadInput;
use model::comparison::Stored;
use model::experiment::Experiment;
use std::path::Path;

/// The record at `path`, if one was given, as far as an experiment can stand beside it.
pub fn load(path: Option<&Path>, experiment: &Experiment) -> anyhow::Result<Option<Stored>> {
    let Some(path) = path else { return Ok(None) };
    let stored = Stored::new(path.display().to_string(), lab::store::load_stored(path)?);
    match stored.fits(experiment) {
        Ok(()) => Ok(Some(stored)),
        Err(mismatch) => {
            let mend = "give the folder of an earlier comparison with the same baseline";
            Err(BadInput(format!("--stored {}: {mismatch}; {mend}", path.display())).into())
        }
    }
}
