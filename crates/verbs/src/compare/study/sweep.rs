//! Results over the cells of a sweep: crossovers, the cost per byte, and how the rate grows with the submitters.

use super::comparisons;
use crate::compare::finding::{CrossoverFinding, LineFinding};
use model::experiment::metric::Term;
use model::experiment::{Axis, Experiment, Metric, Work};
use model::scaling::{ScalabilityFinding, scalability_of};
use model::slice::Rounds;
use model::stats::Resolution;
use model::stats::crossover::{Between, Crossover, SweepPoint, Winner, crossover};
use model::stats::curves::{Place, cost_line};
use std::collections::BTreeMap;

/// The option with the size of an I/O.
const SIZE: &str = "bs";

/// The option with the number of threads that do the same.
const SUBMITTERS: &str = "numjobs";
/// Fewest numbers of submitters that make a curve.
const FEWEST_NUMBERS: usize = 3;

/// A line through the sweep: all points that differ only in one numeric axis.
struct Along<'a> {
    axis: &'a Axis,
    /// The values of the other axes.
    at: BTreeMap<String, String>,
    arm: usize,
    /// The values on the axis, and the case of each.
    points: Vec<(f64, usize)>,
}

impl Along<'_> {
    /// The values of the axis as they were written, for these numbers on it.
    fn points_at(&self, numbers: &[f64]) -> Vec<String> {
        let known = self.axis.numbers().unwrap_or_default();
        let written = known.iter().zip(&self.axis.values);
        written.filter(|(number, _)| numbers.contains(number)).map(|(_, value)| value.clone()).collect()
    }
}

fn lines_along(experiment: &Experiment) -> Vec<Along<'_>> {
    let mut all: Vec<Along> = Vec::new();
    for axis in &experiment.axes {
        let Some(numbers) = axis.numbers().filter(|numbers| numbers.iter().all(|number| *number > 0.0)) else {
            continue;
        };
        for (place, case) in experiment.cases.iter().enumerate() {
            let Some(cell) = experiment.cells.get(case.cell) else { continue };
            let mut at = cell.values.clone();
            let value = at.remove(&axis.name);
            let position = axis.values.iter().position(|known| Some(known) == value.as_ref());
            let Some(&number) = position.and_then(|position| numbers.get(position)) else { continue };
            let same = |along: &&mut Along| along.axis == axis && along.at == at && along.arm == case.arm;
            match all.iter_mut().find(same) {
                Some(along) => along.points.push((number, place)),
                None => all.push(Along { axis, at, arm: case.arm, points: vec![(number, place)] }),
            }
        }
    }
    all
}

/// The crossovers of each arm along each numeric axis, in each target metric.
pub(super) fn crossovers(experiment: &Experiment, targets: &[Metric], sums: &Rounds) -> Vec<CrossoverFinding> {
    let pairs = comparisons(experiment);
    let baseline =
        |candidate: usize| pairs.iter().find(|(_, other)| *other == candidate).map(|(baseline, _)| *baseline);
    let mut found = Vec::new();
    for along in lines_along(experiment).iter().filter(|along| along.arm > 0) {
        for &metric in targets {
            let rounds = |case| sums.paired(metric, baseline(case)?, case);
            let points = along.points.iter().map(|&(at, case)| Some((at, rounds(case)?)));
            let points: Vec<SweepPoint> = points.collect::<Option<_>>().unwrap_or_default();
            let steps = along.points.first().map_or_else(Resolution::default, |(_, case)| sums.steps(metric, *case));
            let between = match metric.counts() {
                // I/Os of a high percentile wait for others, and a command may need fewer I/Os of a larger size.
                _ if along.axis.name != SIZE || metric.percent().is_some() => Between::Anything,
                [_, Term::Executions] => Between::Anything,
                [Term::Bytes, _] | [_, Term::Bytes] => Between::CostPerByte,
                _ => Between::CostPerIo,
            };
            let Some(place) = crossover(&points, steps, metric.good(), between) else { continue };
            let arms = [0, along.arm].map(|arm| experiment.arms.get(arm).map_or("", |arm| arm.name.as_str()));
            found.push(in_words(&place, along, arms, metric));
        }
    }
    found
}

fn in_words(place: &Crossover, along: &Along, [baseline, arm]: [&str; 2], metric: Metric) -> CrossoverFinding {
    let axis = &along.axis.name;
    let name = |winner: &Winner| if *winner == Winner::Candidate { arm } else { baseline };
    let (at, words) = match place {
        Crossover::At { at, winner_above } => {
            let (above, below) = if *winner_above == Winner::Candidate { (arm, baseline) } else { (baseline, arm) };
            (Some(at), format!("{above} is better above it, {below} below it"))
        }
        Crossover::Everywhere { winner } => (None, format!("none: {} is better at every {axis}", name(winner))),
        Crossover::Unresolved { winner, undecided } => {
            let places: Vec<String> = along.points_at(undecided);
            let loser = if *winner == Winner::Candidate { baseline } else { arm };
            (
                None,
                format!(
                    "unknown: {} is better where a difference was detected, but {loser} may be better at {axis} {}",
                    name(winner),
                    places.join(", ")
                ),
            )
        }
        Crossover::Several { changes } => {
            (None, format!("no single one: the better arm changes {changes} times along {axis}"))
        }
        Crossover::Undecided => (None, format!("unknown: no difference was detected at any {axis}")),
    };
    CrossoverFinding {
        axis: axis.clone(),
        at: along.at.clone(),
        arm: arm.to_owned(),
        metric: metric.name().to_owned(),
        value: at.map(|at| at.value),
        low: at.and_then(|at| at.low),
        high: at.and_then(|at| at.high),
        words,
    }
}

/// cost(b) = c0 + c1·b for each arm, if block sizes were swept.
pub(super) fn lines(experiment: &Experiment, sums: &Rounds) -> Vec<LineFinding> {
    let mut found = Vec::new();
    for along in lines_along(experiment).iter().filter(|along| along.axis.name == SIZE) {
        let point = |&(bytes, case): &(f64, usize)| Some((bytes, sums.pairs(Metric::CyclesPerIo, case)?));
        let points: Vec<Place> = along.points.iter().map(point).collect::<Option<_>>().unwrap_or_default();
        let Some(line) = cost_line(&points) else { continue };
        let arm = experiment.arms.get(along.arm).map_or("", |arm| arm.name.as_str());
        found.push(LineFinding {
            arm: arm.to_owned(),
            at: along.at.clone(),
            per_io: line.per_io,
            per_byte: line.per_byte,
            misfit: line.misfit,
        });
    }
    found
}

/// The rate as a function of the submitters for each arm, if their number was swept. More than `cpus` wait for CPUs, and do not
/// enter the fit.
pub(super) fn scalability(experiment: &Experiment, sums: &Rounds, cpus: usize) -> Vec<ScalabilityFinding> {
    // Of several jobs, the others' rates would not be of this number.
    let alone = |case: usize| match experiment.cases.get(case).map(|case| &case.work) {
        Some(Work::Jobs(plan)) => plan.phases.iter().map(|phase| phase.jobs.len()).sum::<usize>() == 1,
        _ => false,
    };
    let swept = |along: &&Along| {
        along.axis.name == SUBMITTERS
            && along.points.len() >= FEWEST_NUMBERS
            && along.points.iter().all(|(_, case)| alone(*case))
    };
    let found = |along: &Along| {
        let allowed = along.points.iter().filter_map(|(_, case)| allowed_cpus(experiment, *case)).min();
        let cpus = allowed.map_or(cpus, |allowed| allowed.min(cpus));
        ScalabilityFinding {
            arm: experiment.arms.get(along.arm).map_or_else(String::new, |arm| arm.name.clone()),
            axis: along.axis.name.clone(),
            at: along.at.clone(),
            ..scalability_of(&along.points, sums, cpus)
        }
    };
    lines_along(experiment).iter().filter(swept).map(found).collect()
}

/// The number of CPUs that a job may use, if it is limited to some.
fn allowed_cpus(experiment: &Experiment, case: usize) -> Option<usize> {
    let Work::Jobs(plan) = &experiment.cases.get(case)?.work else { return None };
    let cpus = &plan.phases.first()?.jobs.first()?.thread.cpus_allowed;
    (!cpus.is_empty()).then_some(cpus.len())
}
