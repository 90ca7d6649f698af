//! A comparison beside an earlier one of the same baseline: how much of the distance to what was stored is the change, and
//! how much is everything else.
//!
//! B now ÷ A stored = (B now ÷ A now) × (A now ÷ A stored). The first factor is the comparison's own change, measured side
//! by side; the second is called environment and was not. It is all that changed between the two sessions, whether iotoll
//! can name it or not, and its interval holds only what varied within each of them.

mod machine;
#[cfg(test)]
mod tests;
mod work;

use super::finding::{AgainstStored, CompareFinding, StoredFinding, UnpairedChange};
use super::record::CompareRecord;
use super::study::tally::{Choice, Tally};
use super::study::{answers, counted, study};
use crate::experiment::{Case, Cell, Experiment, Metric};
use crate::few::few;
use crate::record::Meter;
use crate::stats::{Estimate, LogLevel, log_level};
use crate::warning::{Code, Warning, gravest_first};
use std::collections::BTreeMap;

/// An earlier comparison.
#[derive(Clone, Debug)]
pub struct Stored {
    from: String,
    record: CompareRecord,
}

/// Why a comparison cannot stand beside a stored one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Nothing was measured.
    #[error("it holds no complete round")]
    NoRounds,
    /// The baselines have no cell in common.
    #[error("its baseline was measured at {stored}, today's is at {now}; sweep at least one of its cells")]
    NoCell {
        /// Cells of the stored record, in words.
        stored: String,
        /// Today's.
        now: String,
    },
}

impl Stored {
    /// A record, and the path that it was read from.
    pub fn new(from: impl Into<String>, mut record: CompareRecord) -> Self {
        // They are most of a record, nothing here looks at them, and it waits in memory while the other is measured.
        record.rounds.iter_mut().for_each(|round| round.latencies = Vec::new());
        Self { from: from.into(), record }
    }

    /// Whether an experiment can stand beside it.
    ///
    /// # Errors
    /// When there is nothing that both have.
    pub fn fits(&self, experiment: &Experiment) -> Result<(), Mismatch> {
        if self.record.rounds.is_empty() {
            return Err(Mismatch::NoRounds);
        }
        let then = &self.record.header.experiment;
        let known = |cell: &Cell| baseline(then, &cell.values).is_some();
        if experiment.cells.iter().any(known) {
            return Ok(());
        }
        Err(Mismatch::NoCell { stored: labels(&then.cells), now: labels(&experiment.cells) })
    }
}

/// Cells in words.
fn labels(cells: &[Cell]) -> String {
    let label = |cell: &Cell| if cell.values.is_empty() { "no point of a sweep".to_owned() } else { cell.to_string() };
    few(&cells.iter().map(label).collect::<Vec<_>>(), ", ")
}

/// Works out everything that can be known from a record, beside a stored one where there is one.
pub fn study_against(record: &CompareRecord, stored: Option<&Stored>) -> CompareFinding {
    let mut finding = study(record);
    if let Some(stored) = stored {
        stand_beside(&mut finding, record, stored);
    }
    finding
}

fn stand_beside(finding: &mut CompareFinding, record: &CompareRecord, stored: &Stored) {
    let now = Session::of(record);
    // Two meters have two ideas of a cycle: both sessions are read by the one that speaks now, or not at all.
    let then = Session::by(&stored.record, now.tally.meter);
    let arms = &record.header.experiment.arms;
    // What was withheld for being of two regimes is not to be had beside another session either.
    let answers = now.answers && then.answers;
    for cell in finding.cells.iter_mut().filter(|_| answers) {
        let Some(arm) = arms.iter().position(|arm| arm.name == cell.arm) else { continue };
        for metric in Metric::ALL {
            if let Some(found) = cell.metrics.get_mut(metric.name()) {
                found.stored = against(&now, &then, metric, &cell.cell, arm);
            }
        }
    }
    finding.stored = Some(StoredFinding {
        from: stored.from.clone(),
        started_unix_seconds: stored.record.header.started_unix_seconds,
        differs: machine::differences(&stored.record, record),
    });
    finding.warnings.extend(warnings(&stored.record, record));
    gravest_first(&mut finding.warnings);
}

/// One side of the comparison over time.
struct Session<'a> {
    experiment: &'a Experiment,
    tally: Tally,
    /// Whether one regime answers.
    answers: bool,
}

impl<'a> Session<'a> {
    /// As the study reads it.
    fn of(record: &'a CompareRecord) -> Self {
        Self { experiment: &record.header.experiment, tally: Tally::of(counted(record)), answers: answers(record) }
    }

    /// By a meter of somebody else's choice.
    fn by(record: &'a CompareRecord, meter: Option<Meter>) -> Self {
        let mut tally = Tally::new(&record.header, Choice::Fixed(meter));
        counted(record).rounds.iter().for_each(|round| tally.add(round));
        Self { experiment: &record.header.experiment, tally, answers: answers(record) }
    }

    /// The level of an arm at a point of the sweep; `None` where it was not measured, and for percentiles, which are no
    /// ratio of sums.
    fn level(&self, metric: Metric, cell: &BTreeMap<String, String>, arm: usize) -> Option<LogLevel> {
        let case = case(self.experiment, cell, arm)?;
        log_level(&self.tally.pairs(metric, case)?)
    }
}

/// The place of an arm at a point of the sweep.
fn case(experiment: &Experiment, cell: &BTreeMap<String, String>, arm: usize) -> Option<usize> {
    let is_there =
        |case: &Case| case.arm == arm && experiment.cells.get(case.cell).is_some_and(|known| known.values == *cell);
    experiment.cases.iter().position(is_there)
}

/// The baseline's case at a point of the sweep.
fn baseline<'a>(experiment: &'a Experiment, cell: &BTreeMap<String, String>) -> Option<&'a Case> {
    experiment.cases.get(case(experiment, cell, 0)?)
}

fn against(
    now: &Session,
    then: &Session,
    metric: Metric,
    cell: &BTreeMap<String, String>,
    arm: usize,
) -> Option<AgainstStored> {
    let stored = then.level(metric, cell, 0)?;
    let (baseline, candidate) = (now.level(metric, cell, 0)?, now.level(metric, cell, arm)?);
    let change = |Estimate { value, low, high }: Estimate| UnpairedChange { change: value, low, high };
    Some(AgainstStored {
        baseline: stored.log.exp(),
        environment: change(baseline.since(&stored)),
        total: change(candidate.since(&stored)),
    })
}

/// What would make another thing of the environment than it is called.
fn warnings(then: &CompareRecord, now: &CompareRecord) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (before, today) = (then.header.method_version, now.header.method_version);
    if before != today {
        let message = format!(
            "the stored record is of method {before} and this one of method {today}: a number may have changed its meaning in \
             between, and that would be in the environment; CHANGELOG.md lists such changes"
        );
        warnings.push(Warning::new(Code::StoredMethodDiffers, message));
    }
    let differing = work::differences(&then.header, &now.header);
    if !differing.is_empty() {
        let message = format!(
            "the stored baseline did not do the same work as today's: {}; what that changes is in the environment",
            differing.join(", ")
        );
        warnings.push(Warning::new(Code::StoredWorkDiffers, message));
    }
    warnings
}
