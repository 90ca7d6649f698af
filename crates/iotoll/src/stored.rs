//! `--stored`: an earlier record, read before anything is measured, so that one that does not fit is refused at once.

use crate::failure::BadInput;
use model::kind::Recorded;
use model::stored::Stored;
use std::path::Path;

/// The record at `path`, if one was given, as far as a measurement of `plan` can stand beside it.
pub fn load<R: Recorded>(path: Option<&Path>, plan: &R::Plan) -> anyhow::Result<Option<Stored<R>>> {
    let Some(path) = path else { return Ok(None) };
    let refused = |why: String| BadInput(format!("--stored {why}"));
    let record = lab::store::load_earlier(path).map_err(|error| refused(error.to_string()))?;
    let stored = Stored::new(path.display().to_string(), record);
    stored.fits(plan).map_err(|why| refused(format!("{}: {why}", path.display())))?;
    Ok(Some(stored))
}
