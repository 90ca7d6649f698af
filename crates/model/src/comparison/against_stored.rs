//! A comparison beside an earlier one of the same baseline: how much of the distance to what was stored is the change, and
//! how much is everything else.
//!
//! B now ÷ A stored = (B now ÷ A now) × (A now ÷ A stored). The first factor is the comparison's own change, measured side
//! by side; the second is called environment and was not. It is all that changed between the two sessions, whether iotoll
//! can name it or not, and its interval holds only what varied within each of them.

#[cfg(test)]
mod tests;

use super::finding::{AgainstStored, CompareFinding};
use super::record::{CompareRecord, Header, Schedule};
use super::study::round_sums::{Choice, ComparisonSums};
use super::study::{answers, counted, study};
use crate::elided_list::elided_list;
use crate::experiment::{ArmPlan, Case, Cell, Experiment, Metric, Work};
use crate::record::Meter;
use crate::stats::{Estimate, LogLevel, log_level};
use crate::stored::machine::Machine;
use crate::stored::{Stored, UnpairedChange, warnings, work};
use crate::warning::gravest_first;
use std::collections::BTreeMap;

/// Whether an experiment can stand beside an earlier comparison.
///
/// # Errors
/// When there is nothing that both have: why.
pub(crate) fn fits(record: &CompareRecord, experiment: &Experiment) -> Result<(), String> {
    if record.rounds.is_empty() {
        return Err("it holds no complete round".to_owned());
    }
    let then = &record.header.experiment;
    let known = |cell: &Cell| baseline(then, &cell.values).is_some();
    if experiment.cells.iter().any(known) {
        return Ok(());
    }
    let (stored, now) = (labels(&then.cells), labels(&experiment.cells));
    Err(format!("its baseline was measured at {stored}, today's is at {now}; sweep at least one of its cells"))
}

/// Cells in words.
fn labels(cells: &[Cell]) -> String {
    let label = |cell: &Cell| if cell.values.is_empty() { "no point of a sweep".to_owned() } else { cell.to_string() };
    elided_list(&cells.iter().map(label).collect::<Vec<_>>(), ", ")
}

/// Works out everything that can be known from a record, beside a stored one where there is one.
pub fn study_against(record: &CompareRecord, stored: Option<&Stored<CompareRecord>>) -> CompareFinding {
    let mut finding = study(record);
    if let Some(stored) = stored {
        stand_beside(&mut finding, record, stored);
    }
    finding
}

fn stand_beside(finding: &mut CompareFinding, record: &CompareRecord, stored: &Stored<CompareRecord>) {
    let now = Session::of(record);
    // Two meters have two ideas of a cycle: both sessions are read by the one that speaks now, or not at all.
    let then = Session::by(&stored.record, now.sums.meter);
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
    let (then, now) = (&stored.record, record);
    finding.stored = Some(stored.finding(&then.header.envelope, machine(then).differences(&machine(now))));
    let differing = differing_work(&then.header, &now.header);
    finding.warnings.extend(warnings(&then.header.envelope, &now.header.envelope, &differing));
    gravest_first(&mut finding.warnings);
}

/// One side of the comparison over time.
struct Session<'a> {
    experiment: &'a Experiment,
    sums: ComparisonSums,
    /// Whether one regime answers.
    answers: bool,
}

impl<'a> Session<'a> {
    /// As the study reads it.
    fn of(record: &'a CompareRecord) -> Self {
        Self {
            experiment: &record.header.experiment,
            sums: ComparisonSums::of(counted(record)),
            answers: answers(record),
        }
    }

    /// By a meter of somebody else's choice.
    fn by(record: &'a CompareRecord, meter: Option<Meter>) -> Self {
        let mut sums = ComparisonSums::new(&record.header, Choice::Fixed(meter));
        counted(record).rounds.iter().for_each(|round| sums.add(round));
        Self { experiment: &record.header.experiment, sums, answers: answers(record) }
    }

    /// The level of an arm at a point of the sweep; `None` where it was not measured, and for percentiles, which are no
    /// ratio of sums.
    fn level(&self, metric: Metric, cell: &BTreeMap<String, String>, arm: usize) -> Option<LogLevel> {
        let case = case(self.experiment, cell, arm)?;
        log_level(&self.sums.pairs(metric, case)?)
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

/// Where a baseline ran, and every time that its speed was looked at.
fn machine(record: &CompareRecord) -> Machine<'_> {
    // Where arms are boots, the header's machine may have been booted into any of them.
    let boots: Vec<_> = record.boots.iter().filter(|boot| boot.arm == 0).collect();
    let header = &record.header;
    let (host, canaries) = match boots.first() {
        Some(first) => (&first.host, boots.iter().map(|boot| &boot.canaries).collect()),
        None => {
            let ends = std::iter::once(&header.canaries).chain(record.end.as_ref().map(|end| &end.canaries));
            (&header.host, ends.collect())
        }
    };
    Machine { host, canaries, iotoll_version: &header.envelope.iotoll_version }
}

/// Every difference in what the baselines do at the points that both were measured at.
fn differing_work(then: &Header, now: &Header) -> Vec<String> {
    let mut found = Vec::new();
    for cell in &now.experiment.cells {
        let cases = baseline(&then.experiment, &cell.values).zip(baseline(&now.experiment, &cell.values));
        // What all cells differ in is said once.
        for difference in cases.map(|(then, now)| of_work(&then.work, &now.work)).unwrap_or_default() {
            if !found.contains(&difference) {
                found.push(difference);
            }
        }
    }
    if let (Some(before), Some(today)) = (then.experiment.arms.first(), now.experiment.arms.first()) {
        found.extend(work::differs("under", surroundings(before), surroundings(today)));
    }
    found.extend(work::differs("measured in", schedule(then.schedule), schedule(now.schedule)));
    work::named(found)
}

/// What is switched for a baseline.
fn surroundings(arm: &ArmPlan) -> String {
    let settings = arm.settings.iter().map(ToString::to_string);
    let all: Vec<String> = settings.chain(arm.setup.clone()).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(" ") }
}

/// In how large pieces it was measured. Not how long a slice is: that follows from how fast the machine was.
fn schedule(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Slices { .. } => "slices",
        Schedule::WholeRounds { .. } => "whole rounds",
        Schedule::Executions => "executions",
        Schedule::Boots => "boots",
    }
}

fn of_work(then: &Work, now: &Work) -> Vec<String> {
    match (then, now) {
        (Work::Command(before), Work::Command(today)) => work::of_words(before, today),
        (Work::Jobs(before), Work::Jobs(today)) => work::of_plans(before, today),
        (Work::Command(_), Work::Jobs(_)) => vec!["a command → jobs".to_owned()],
        (Work::Jobs(_), Work::Command(_)) => vec!["jobs → a command".to_owned()],
    }
}
