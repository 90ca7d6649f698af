//! The placement of arms: how often the two busiest threads shared a CPU, and each arm's rate and cost in both modes.
//!
//! A slice belongs to one mode; an execution only if nearly all of its windows do. If an arm's threads share a CPU more
//! often than those of another arm, the change includes that difference.

use super::View;
use crate::compare::finding::CompareFinding;
use crate::compare::record::{SliceReading, SliceRecord};
use model::experiment::{Case, arm_at};
use model::placement::{CasePlacement, Mode, ModeFinding, in_words, mend, two_rates};
use model::plan::JobPlan;
use model::slice::{MeasuredSlices, SliceCost};
use model::study::placement::{self, ALMOST_ALL, PlacedWindow};
use model::warning::{Code, Warning};
use std::collections::BTreeSet;

/// Maximum difference between the arms' fractions of slices with a shared CPU for the same placement.
const APART: f64 = 0.2;
/// Minimum number of slices or executions per mode to judge how often an arm was in it.
const FEWEST: usize = 5;

/// A slice or execution in one mode.
struct Unit {
    mode: Mode,
    seconds: f64,
    ios: Option<f64>,
    cycles: Option<f64>,
}

/// Each case with two busy threads.
pub(super) fn cases(record: View, measured: &MeasuredSlices) -> Vec<CasePlacement> {
    let experiment = &record.header.experiment;
    let servers = servers(record);
    let found = experiment.cases.iter().enumerate().filter_map(|(place, case)| {
        let (mut same, mut all, mut units) = (0, 0, Vec::new());
        for (round, slice) in slices(record, place) {
            let windows = windows(slice, placement::of_load(jobs(case), &servers));
            let in_mode = |mode| windows.iter().filter(|window| window.mode == Some(mode)).count();
            let (here, apart) = (in_mode(Mode::Same), in_mode(Mode::Apart));
            same += here;
            all += here + apart;
            let mode = match (here as f64, (here + apart) as f64) {
                (_, 0.0) => continue,
                (here, all) if here >= ALMOST_ALL * all => Mode::Same,
                (here, all) if all - here >= ALMOST_ALL * all => Mode::Apart,
                _ => continue,
            };
            units.push(unit(mode, round, slice, measured));
        }
        (all > 0).then_some(())?;
        Some(CasePlacement {
            arm: experiment.arms.get(case.arm)?.name.clone(),
            cell: experiment.cells.get(case.cell)?.values.clone(),
            same_fraction: same as f64 / all as f64,
            modes: [Mode::Same, Mode::Apart].into_iter().filter_map(|mode| together(mode, &units)).collect(),
        })
    });
    found.collect()
}

/// The slices of a case with their rounds.
fn slices<'a>(record: View<'a>, case: usize) -> impl Iterator<Item = (usize, &'a SliceRecord)> {
    let rounds = record.rounds.iter().enumerate();
    let all = rounds.flat_map(|(number, round)| round.slices.iter().map(move |slice| (number, slice)));
    all.filter(move |(_, slice)| slice.case == Some(case))
}

fn servers(record: View) -> BTreeSet<u32> {
    let slices = record.rounds.iter().flat_map(|round| &round.slices);
    placement::servers(slices.flat_map(|slice| slice.reading.pairs().map(|(_, after)| after)))
}

/// The jobs of a case; `None` for a command.
fn jobs(case: &Case) -> Option<&[JobPlan]> {
    case.work.phase().map(|phase| phase.jobs.as_slice())
}

fn windows<'a>(slice: &'a SliceRecord, servers: Option<&BTreeSet<u32>>) -> Vec<PlacedWindow<'a>> {
    match &slice.reading {
        SliceReading::Slice { before, after, work, .. } => {
            let Some(whereabouts) = after.whereabouts.as_deref() else { return Vec::new() };
            let (begin, end) = (before.at_nanos, after.at_nanos);
            let mode = whereabouts.mode(end.since(begin), servers);
            vec![PlacedWindow { begin, end, ios: Some(work.ios), whereabouts, mode }]
        }
        SliceReading::Execution(execution) => placement::placed(execution, servers),
        // Where its threads ran is not recorded.
        SliceReading::Command { .. } => Vec::new(),
    }
}

fn unit(mode: Mode, round: usize, slice: &SliceRecord, measured: &MeasuredSlices) -> Unit {
    let SliceCost { ios, seconds, cycles_per_io } = measured.cost(round, slice);
    let ios = ios.filter(|_| seconds.is_some());
    Unit { mode, seconds: seconds.unwrap_or(0.0), ios, cycles: cycles_per_io.zip(ios).map(|(each, ios)| each * ios) }
}

fn together(mode: Mode, units: &[Unit]) -> Option<ModeFinding> {
    let of_mode = || units.iter().filter(|unit| unit.mode == mode);
    let seconds: f64 = of_mode().map(|unit| unit.seconds).sum();
    let ios = of_mode().map(|unit| unit.ios).sum::<Option<f64>>().filter(|ios| *ios > 0.0);
    let cycles: Option<f64> = of_mode().map(|unit| unit.cycles).sum();
    (seconds > 0.0).then(|| ModeFinding {
        mode,
        windows: of_mode().count(),
        seconds,
        iops: ios.map(|ios| ios / seconds),
        cycles_per_io: cycles.zip(ios).map(|(cycles, ios)| cycles / ios),
    })
}

/// Caveats: an arm ran in two modes, arms ran in different modes, or a server was misplaced.
pub(super) fn caveats(finding: &CompareFinding, record: View) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let experiment = &record.header.experiment;
    let mend = mend(experiment.place.as_ref());
    for case in &finding.placement {
        let baseline = finding.placement.iter().find(|other| other.cell == case.cell);
        warnings.extend(baseline.and_then(|baseline| differs(baseline, case, &mend)));
        warnings.extend(modes(case, &mend));
    }
    if let Some(place) = &experiment.place {
        let servers = servers(record);
        let slices = record.rounds.iter().flat_map(|round| &round.slices);
        let windows = slices.filter_map(|slice| {
            let of_load = placement::of_load(jobs(experiment.cases.get(slice.case?)?), &servers)?;
            Some(windows(slice, Some(of_load)))
        });
        let windows: Vec<PlacedWindow> = windows.flatten().collect();
        warnings.extend(placement::elsewhere(place, &windows, &servers, record.header.host.cpus));
    }
    warnings
}

fn differs(baseline: &CasePlacement, case: &CasePlacement, mend: &str) -> Option<Warning> {
    let enough = |case: &CasePlacement| case.modes.iter().map(|mode| mode.windows).sum::<usize>() >= FEWEST;
    let apart = (case.same_fraction - baseline.same_fraction).abs() > APART;
    if !apart || !enough(case) || !enough(baseline) {
        return None;
    }
    let part = |case: &CasePlacement| format!("{:.0} % of the time ({})", case.same_fraction * 100.0, figures(case));
    let message = format!(
        "{}: the two busiest threads shared a CPU in {}, of arm '{}' in {}: the change includes that difference; {mend}",
        arm_at(&case.arm, &case.cell),
        part(case),
        baseline.arm,
        part(baseline)
    );
    Some(Warning::new(Code::PlacementDiffers, message))
}

fn modes(case: &CasePlacement, mend: &str) -> Option<Warning> {
    two_rates(&case.modes)?;
    let message = format!(
        "{}: its rate depends on whether the two busiest threads shared a CPU ({}); the results mix \
         both; {mend}",
        arm_at(&case.arm, &case.cell),
        figures(case)
    );
    Some(Warning::new(Code::PlacementModes, message))
}

/// "one CPU: 1.1 s, 30528 IOPS and 58.1 kcycles/IO; two: …".
fn figures(case: &CasePlacement) -> String {
    let words = |found: &ModeFinding| {
        let cpus = if found.mode == Mode::Same { "one CPU" } else { "two" };
        format!("{cpus}: {}", in_words(found))
    };
    case.modes.iter().map(words).collect::<Vec<_>>().join("; ")
}
