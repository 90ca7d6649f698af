//! Results over the cells of a sweep: crossovers, and the cost per byte.

use super::comparisons;
use super::round_sums::ComparisonSums;
use crate::comparison::finding::{CrossoverFinding, LineFinding};
use crate::experiment::{Axis, Experiment, Metric};
use crate::stats::crossover::{Crossover, SweepPoint, Winner, crossover};
use crate::stats::line::{SizePoint, cost_line};
use crate::stats::{Pair, PairedRound};
use std::collections::BTreeMap;

/// The option with the size of an I/O.
const SIZE: &str = "bs";

/// A line through the sweep: all points that differ only in one numeric axis.
struct Along<'a> {
    axis: &'a Axis,
    /// The values of the other axes.
    at: BTreeMap<String, String>,
    arm: usize,
    /// The values on the axis, and the case of each.
    points: Vec<(f64, usize)>,
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
pub(super) fn crossovers(experiment: &Experiment, targets: &[Metric], sums: &ComparisonSums) -> Vec<CrossoverFinding> {
    let pairs = comparisons(experiment);
    let baseline =
        |candidate: usize| pairs.iter().find(|(_, other)| *other == candidate).map(|(baseline, _)| *baseline);
    let mut found = Vec::new();
    for along in lines_along(experiment).iter().filter(|along| along.arm > 0) {
        for &metric in targets {
            let rounds = |case| sums.paired(metric, baseline(case)?, case);
            let points: Option<Vec<(f64, Vec<PairedRound>)>> =
                along.points.iter().map(|&(at, case)| Some((at, rounds(case)?))).collect();
            let points = points.unwrap_or_default();
            let points: Vec<SweepPoint> = points.iter().map(|(at, rounds)| SweepPoint { at: *at, rounds }).collect();
            let Some(place) = crossover(&points, metric.good()) else { continue };
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
        Crossover::Everywhere { winner } => {
            (None, format!("none: {} is better at every {axis} where a difference was detected", name(winner)))
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
pub(super) fn lines(experiment: &Experiment, sums: &ComparisonSums) -> Vec<LineFinding> {
    let mut found = Vec::new();
    for along in lines_along(experiment).iter().filter(|along| along.axis.name == SIZE) {
        let point = |&(bytes, case): &(f64, usize)| Some((bytes, sums.pairs(Metric::CyclesPerIo, case)?));
        let points: Option<Vec<(f64, Vec<Pair>)>> = along.points.iter().map(point).collect();
        let points = points.unwrap_or_default();
        let points: Vec<SizePoint> = points.iter().map(|(bytes, rounds)| SizePoint { bytes: *bytes, rounds }).collect();
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
