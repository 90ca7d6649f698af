//! A comparison next to an earlier one with the same baseline: how much of the difference to the stored record is due
//! to the change, and how much is due to everything else.
//!
//! B now ÷ A stored = (B now ÷ A now) × (A now ÷ A stored). The first factor is the comparison's own change, measured
//! side by side. The second is called environment and was not measured side by side: it contains everything that
//! changed between the two sessions, known or not, and its interval contains only the variation within each session.
//! All three have intervals of one confidence, that of the change.

#[cfg(test)]
mod tests;

use super::finding::{AgainstStored, CompareFinding};
use super::record::{CompareRecord, Header, Schedule};
use super::study::which_rounds::RoundsOfTheAnswer;
use model::elided_list::{distinct, elided_list};
use model::experiment::{ArmPlan, Case, Cell, Experiment, Metric, Work};
use model::plan::service::{Service, named_in};
use model::record::Meter;
use model::slice::Rounds;
use model::stats::estimate::CONFIDENCE;
use model::stats::{LogLevel, log_level};
use model::stored::{Stored, work};
use std::collections::BTreeMap;

/// Checks whether an experiment can be compared with an earlier comparison.
///
/// # Errors
/// If the two have nothing in common.
pub(crate) fn fits(record: &CompareRecord, experiment: &Experiment) -> Result<(), String> {
    if record.rounds.is_empty() {
        return Err("it contains no complete round".to_owned());
    }
    let then = &record.header.experiment;
    let known = |cell: &Cell| baseline(then, &cell.values).is_some();
    if experiment.cells.iter().any(known) {
        return Ok(());
    }
    let (stored, now) = (labels(&then.cells), labels(&experiment.cells));
    Err(format!("its baseline was measured at {stored}, but today's is at {now}; include at least one of its cells"))
}

/// Cells in words.
fn labels(cells: &[Cell]) -> String {
    let label = |cell: &Cell| if cell.values.is_empty() { "no point of a sweep".to_owned() } else { cell.to_string() };
    elided_list(&cells.iter().map(label).collect::<Vec<_>>(), ", ")
}

/// Adds the comparison with a stored record to the finding of a record.
pub(crate) fn stand_beside(finding: &mut CompareFinding, record: &CompareRecord, stored: &Stored<CompareRecord>) {
    let now = Session::of(record, None);
    // Meters differ in what they count as busy, so both sessions are read with the meter of now.
    let then = Session::of(&stored.record, Some(now.sums.meter));
    let arms = &record.header.experiment.arms;
    // A result that is withheld because it covers two regimes is withheld here too.
    let answers = now.answers && then.answers;
    for cell in finding.cells.iter_mut().filter(|_| answers) {
        let Some(arm) = arms.iter().position(|arm| arm.name == cell.arm) else { continue };
        for metric in Metric::ALL {
            if let Some(found) = cell.metrics.get_mut(metric.name()) {
                // One confidence for the change and for what it is multiplied with.
                let confidence = found.confidence.unwrap_or(CONFIDENCE);
                found.stored = against([&now, &then], metric, (&cell.cell, arm), confidence);
            }
        }
    }
    stored.stand_beside(record, differing_work(&stored.record.header, &record.header), &mut finding.head);
}

/// One of the two sessions.
struct Session<'a> {
    experiment: &'a Experiment,
    sums: Rounds,
    /// Whether one regime describes it.
    answers: bool,
}

impl<'a> Session<'a> {
    /// With the meter that the study chooses, or with a given one, which may be none.
    fn of(record: &'a CompareRecord, given: Option<Option<Meter>>) -> Self {
        let counted = RoundsOfTheAnswer::of(record);
        let answers = counted.answers();
        let sums = if let Some(meter) = given { counted.rounds_by(meter) } else { counted.rounds() };
        Self { experiment: &record.header.experiment, sums, answers }
    }

    /// The level of an arm in a cell. `None` if it was not measured, and for percentiles, which are not ratios of sums.
    fn level(&self, metric: Metric, cell: &BTreeMap<String, String>, arm: usize) -> Option<LogLevel> {
        let case = case(self.experiment, cell, arm)?;
        log_level(&self.sums.pairs(metric, case)?)
    }
}

/// The index of the case of an arm in a cell.
fn case(experiment: &Experiment, cell: &BTreeMap<String, String>, arm: usize) -> Option<usize> {
    let is_there =
        |case: &Case| case.arm == arm && experiment.cells.get(case.cell).is_some_and(|known| known.values == *cell);
    experiment.cases.iter().position(is_there)
}

/// The baseline's case in a cell.
fn baseline<'a>(experiment: &'a Experiment, cell: &BTreeMap<String, String>) -> Option<&'a Case> {
    experiment.cases.get(case(experiment, cell, 0)?)
}

fn against(
    [now, then]: [&Session; 2],
    metric: Metric,
    (cell, arm): (&BTreeMap<String, String>, usize),
    confidence: f64,
) -> Option<AgainstStored> {
    let stored = then.level(metric, cell, 0)?;
    let (baseline, candidate) = (now.level(metric, cell, 0)?, now.level(metric, cell, arm)?);
    Some(AgainstStored {
        baseline: stored.log.exp(),
        environment: baseline.since(&stored, confidence),
        total: candidate.since(&stored, confidence),
    })
}

/// Differences between the work of the baselines, in the cells that both sessions measured.
fn differing_work(then: &Header, now: &Header) -> Vec<String> {
    let (before, today) = (&then.experiment.services, &now.experiment.services);
    let mut found = work::of_services(before, today);
    for cell in &now.experiment.cells {
        let cases = baseline(&then.experiment, &cell.values).zip(baseline(&now.experiment, &cell.values));
        found.extend(cases.into_iter().flat_map(|(then, now)| of_work((&then.work, before), (&now.work, today))));
    }
    // A difference that all cells share is listed once.
    let mut found = distinct(found);
    if let (Some(before), Some(today)) = (then.experiment.arms.first(), now.experiment.arms.first()) {
        found.extend(work::differs(
            "under",
            surroundings(before, &then.experiment.services),
            surroundings(today, &now.experiment.services),
        ));
    }
    found.extend(work::differs("measured in", schedule(then.schedule), schedule(now.schedule)));
    found
}

/// The settings that are applied for a baseline.
fn surroundings(arm: &ArmPlan, services: &[Service]) -> String {
    let settings = arm.settings.iter().map(ToString::to_string);
    let all: Vec<String> = settings.chain(arm.setup.clone()).collect();
    if all.is_empty() { "nothing".to_owned() } else { named_in(services, &all.join(" ")) }
}

/// How the experiment was divided. The slice length is ignored, because it follows from the speed of the machine.
fn schedule(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Slices { .. } => "slices",
        Schedule::WholeRounds { .. } => "whole rounds",
        Schedule::SlicedCommands { .. } => "slices of commands",
        Schedule::Executions => "executions",
    }
}

fn of_work((then, before): (&Work, &[Service]), (now, today): (&Work, &[Service])) -> Vec<String> {
    match (then, now) {
        (Work::Command(then), Work::Command(now)) => work::of_words((then, before), (now, today)),
        (Work::Jobs(then), Work::Jobs(now)) => work::of_plans((then, before), (now, today)),
        (Work::Command(_), Work::Jobs(_)) => vec!["a command → jobs".to_owned()],
        (Work::Jobs(_), Work::Command(_)) => vec!["jobs → a command".to_owned()],
    }
}
