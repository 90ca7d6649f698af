//! `--stored` and `--fail-on`: an earlier record, and limits of what changed since or of what is measured. Both are read before the
//! measurement, so that what does not fit is refused at once.

use crate::arguments::Earlier;
use crate::failure::BadInput;
use model::kind::{self, Recorded};
use model::limit::Limit;
use model::stored::Stored;
use std::path::Path;

/// The limits of a measurement of `plan`.
pub fn limits<R: Recorded>(earlier: &Earlier, plan: &R::Plan) -> anyhow::Result<Vec<Limit>> {
    let limits = kind::limits::<R>(&earlier.fail_on, plan, earlier.stored.is_some());
    Ok(limits.map_err(|why| BadInput(format!("--fail-on {why}")))?)
}

/// The record at `path`, if one was given and a measurement of `plan` can be compared with it.
pub fn load<R: Recorded>(path: Option<&Path>, plan: &R::Plan) -> anyhow::Result<Option<Stored<R>>> {
    let Some(path) = path else { return Ok(None) };
    let refused = |why: String| BadInput(format!("--stored {why}"));
    let record: R = lab::store::load_earlier(path).map_err(|error| refused(error.to_string()))?;
    record.fits(plan).map_err(|why| refused(format!("{}: {why}", path.display())))?;
    Ok(Some(Stored::new(path.display().to_string(), record.trimmed())))
}
