//! The kinds of records as this program handles them: each read, studied and shown by the same code.

use crate::arguments::Earlier;
use crate::{failure, measure};
use model::blast::BlastRecord;
use model::comparison::CompareRecord;
use model::envelope::Kind;
use model::ftq::FtqRecord;
use model::guest::GuestRecord;
use model::history::Observation;
use model::kind::Recorded;
use model::record::Record;
use report::Finding;
use std::path::Path;
use std::process::ExitCode;

/// What a saved record says.
pub struct Studied {
    /// Where the record ends early, and what is missing.
    pub cut_off: Option<String>,
    /// Its numbers.
    pub finding: Box<dyn Finding>,
    /// How the verb would have ended, if it is asked for by limits.
    pub judged: Option<ExitCode>,
}

/// A kind of records.
pub struct Row {
    /// Which.
    pub kind: Kind,
    /// Reads a record and studies it, compared with an earlier one if there is one. Limits replace those of the record.
    pub study: fn(&Path, &Earlier) -> anyhow::Result<Studied>,
    /// What the record at a path says of each metric.
    pub observe: fn(&Path) -> anyhow::Result<Observation>,
}

/// Every kind.
pub static KINDS: [Row; 5] =
    [row::<Record>(), row::<CompareRecord>(), row::<GuestRecord>(), row::<FtqRecord>(), row::<BlastRecord>()];

const fn row<R>() -> Row
where
    R: Recorded,
    R::Finding: Finding + 'static,
{
    Row { kind: R::KIND, study: study::<R>, observe: observe::<R> }
}

/// Reads the record at `path`, of whatever kind it is, and studies it.
///
/// # Errors
/// When it cannot be read, or the stored record does not fit.
pub fn study_at(path: &Path, earlier: &Earlier) -> anyhow::Result<Studied> {
    (row_at(path)?.study)(path, earlier)
}

/// Reads the record at `path`, of whatever kind and version of the method it is, for a history.
///
/// # Errors
/// When it cannot be read.
pub fn observe_at(path: &Path) -> anyhow::Result<Observation> {
    (row_at(path)?.observe)(path)
}

fn row_at(path: &Path) -> anyhow::Result<&'static Row> {
    let kind = lab::store::kind_at(path)?;
    // Unreachable fallback: a test checks that every kind has a row.
    let [first, ..] = &KINDS;
    Ok(KINDS.iter().find(|row| row.kind == kind).unwrap_or(first))
}

fn observe<R: Recorded>(path: &Path) -> anyhow::Result<Observation> {
    let record: R = lab::store::load_earlier(path)?;
    Ok(model::history::observe(path.display().to_string(), record))
}

fn study<R: Recorded>(path: &Path, earlier: &Earlier) -> anyhow::Result<Studied>
where
    R::Finding: Finding + 'static,
{
    let (mut record, cut_off): (R, _) = lab::store::load_to_show(path)?;
    let limits = measure::limits::<R>(earlier, record.plan())?;
    let stored = measure::stored(earlier.stored.as_deref(), record.plan())?;
    let is_judged = !limits.is_empty();
    if is_judged {
        *record.limits_mut() = limits;
    }
    let finding = record.study(stored.as_ref());
    let judged = is_judged.then(|| failure::of_finding(&finding));
    Ok(Studied { cut_off, finding: Box::new(finding), judged })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row() {
        assert_eq!(KINDS.iter().map(|row| row.kind).collect::<Vec<_>>(), Kind::all().collect::<Vec<_>>());
    }
}
