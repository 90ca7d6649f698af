//! `--stored`: an earlier record. It is read before the measurement, so that one that does not fit is refused at once.

use crate::failure::BadInput;
use model::kind::Recorded;
use model::stored::Stored;
use std::path::Path;

/// The record at `path`, if one was given and a measurement of `plan` can be compared with it.
pub fn load<R: Recorded>(path: Option<&Path>, plan: &R::Plan) -> anyhow::Result<Option<Stored<R>>> {
    let Some(path) = path else { return Ok(None) };
    let refused = |why: String| BadInput(format!("--stored {why}"));
    let record: R = lab::store::load_earlier(path).map_err(|error| refused(error.to_string()))?;
    record.fits(plan).map_err(|why| refused(format!("{}: {why}", path.display())))?;
    Ok(Some(Stored::new(path.display().to_string(), record.trimmed())))
}
