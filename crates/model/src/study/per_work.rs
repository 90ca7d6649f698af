//! Counts per I/O, byte or second: the ratio over windows, with its interval.
//!
//! Computes a [`Cost`] from the windows of a meter or a probe and the background's rate. All such figures of a run use
//! this estimator.

use super::background::{BackgroundRates, Rate};
use super::windows::{Window, done_between, grouped, io_seconds, windows_of_counter};
use crate::finding::Figure;
use crate::record::{Done, Execution, IoInterval, JobRecord, Snapshot, Stretch};
use crate::stats::estimate::CONFIDENCE;
use crate::stats::{Dominant, Estimate, Neighbours, Pair, Uncertainty, dominant, ratio_of_sums};
use crate::unit::Nanos;

/// The divisor of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Per {
    Io,
    Byte,
    Second,
}

/// The cost of a unit of work: net with its interval, and gross.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub net: Estimate,
    pub gross: f64,
    /// Total length of the windows, in seconds.
    pub seconds: f64,
    /// Number of groups of windows, or of executions, that the interval is based on.
    pub units: usize,
    /// The one of them that carries much of the mean.
    pub dominant: Option<Dominant>,
    /// The correlation of consecutive ones, where it is evident.
    pub correlation: Option<f64>,
}

/// The counts in the windows that `seen` finds in each execution, net of the background's rate, per unit of work.
/// `None` if it finds no windows.
pub(super) fn per_work(
    executions: &[Execution],
    per: Per,
    rate: Rate,
    seen: impl Fn(&Execution) -> Option<Vec<Window>>,
) -> Option<Cost> {
    let mut units = Vec::new();
    let (mut capacity, mut cycles, mut seconds) = (0.0, 0.0, 0.0);
    for execution in executions {
        let found = seen(execution)?;
        let shares = shares(execution, &found, per)?;
        let sum = |of: fn(&Window) -> f64| found.iter().map(of).sum::<f64>();
        capacity += sum(|window| window.capacity_seconds);
        cycles += sum(|window| window.cycles);
        seconds += sum(Window::seconds);
        let net = |window: &Window| window.cycles - rate.cycles_per_capacity_second * window.capacity_seconds;
        if executions.len() > 1 {
            units.push(Pair { numerator: found.iter().map(net).sum(), denominator: shares * sum(Window::seconds) });
        } else {
            units.extend(grouped(&found).iter().map(|window| Pair {
                numerator: net(window),
                denominator: work(window, per).unwrap_or(shares * window.seconds()),
            }));
        }
    }
    // Windows follow each other; executions start anew.
    let neighbours = if executions.len() > 1 { Neighbours::Independent } else { Neighbours::Alike };
    let ratio = ratio_of_sums(&units, neighbours)?;
    let work: f64 = units.iter().map(|unit| unit.denominator).sum();
    // The background's error affects the whole phase.
    let background = Uncertainty::new(rate.standard_error * capacity / work, rate.degrees_of_freedom);
    let error = ratio.error.map(|own| own.plus(background));
    Some(Cost {
        net: Estimate::around(ratio.value, error.as_ref(), CONFIDENCE),
        gross: cycles / work,
        seconds,
        units: units.len(),
        // A unit with much of the work and few cycles is no stall.
        dominant: dominant(&units).filter(|unit| !unit.of_denominator),
        correlation: ratio.correlation,
    })
}

/// The work in a window, if the snapshots have it.
fn work(window: &Window, per: Per) -> Option<f64> {
    match per {
        Per::Io => window.done.map(|done| done.ios as f64),
        Per::Byte => window.done.map(|done| done.bytes.as_f64()),
        Per::Second => Some(window.seconds()),
    }
}

/// Work per second of an execution. If the snapshots do not have the work, only its total is known, and each window
/// gets a share proportional to time.
fn shares(execution: &Execution, found: &[Window], per: Per) -> Option<f64> {
    let jobs = || execution.jobs.iter();
    let counted: Option<f64> = found.iter().map(|window| work(window, per)).sum();
    let seconds: f64 = found.iter().map(Window::seconds).sum();
    if let Some(counted) = counted.filter(|counted| *counted > 0.0 && seconds > 0.0) {
        return Some(counted / seconds);
    }
    let work = match per {
        Per::Io => total(jobs(), JobRecord::ios)?,
        Per::Byte => total(jobs(), |job| job.bytes().0)?,
        Per::Second => return None,
    };
    let wall = io_seconds(execution);
    (wall > 0.0 && seconds > 0.0).then(|| work as f64 / wall)
}

/// A sum over jobs; `None` if it is 0, because the value is then unknown.
pub(super) fn total<'a>(jobs: impl Iterator<Item = &'a JobRecord>, of: impl Fn(&JobRecord) -> u64) -> Option<u64> {
    Some(jobs.map(of).fold(0, u64::saturating_add)).filter(|total| *total > 0)
}

/// The context switches of the whole machine in each window.
pub(super) fn switch_windows(stretch: &Stretch, interval: Option<IoInterval>) -> Vec<Window> {
    windows_of_counter(stretch, interval, |before: &Snapshot, after: &Snapshot| {
        let (first, last) = (before.system?, after.system?);
        let grown = last.context_switches.saturating_sub(first.context_switches) as f64;
        Window::of_counter(first.at_nanos, last.at_nanos, grown, done_between(before, after))
    })
}

/// The context switches of a phase, as one figure that the sheet, its events and its limits show.
pub(super) fn switches(executions: &[Execution], rates: &BackgroundRates) -> Figure {
    let jobs = || executions.iter().flat_map(|execution| &execution.jobs);
    let own = jobs().map(|job| Some(job.usage?.context_switches as f64)).sum::<Option<f64>>();
    let own = own.zip(total(jobs(), JobRecord::ios)).map(|(switches, ios)| switches / ios as f64);
    let own = own.map_or_else(String::new, |own| format!("; the load's own threads make {own:.3} per I/O"));
    let unknown = |reason: &str| Figure { estimate: None, why_not: Some(format!("{reason}{own}")) };
    // If no background was measured, every figure is gross, and a caveat says so.
    let rate = rates.switches().or_else(|| (!rates.watched()).then(Default::default));
    let Some(rate) = rate else { return unknown("the background was too short for a window") };
    let seen = |execution: &Execution| Some(switch_windows(&execution.stretch, execution.io_interval));
    let Some(cost) = per_work(executions, Per::Io, rate, seen) else {
        return unknown("the number of I/Os is unknown, or no window was read during them");
    };
    let (net, background) = (cost.net, cost.gross - cost.net.value);
    let reason = match net.low {
        None => Some("too few windows for an interval; run longer".to_owned()),
        Some(low) if low <= 0.0 => Some("not different from 0".to_owned()),
        Some(_) if background > net.value => {
            Some(format!("the background's are more than the load's: {:.0} %", background / net.value * 100.0))
        }
        Some(_) => None,
    };
    Figure { estimate: Some(net), why_not: reason.map(|reason| reason + &own) }
}

/// Work per second with its interval: over executions, or over groups of windows of one. `whole` is the work of an execution whose
/// snapshots do not have it.
pub(super) fn rate(
    value: f64,
    executions: &[Execution],
    work: fn(&Done) -> u64,
    whole: impl Fn(&Execution) -> Option<u64>,
) -> Estimate {
    let seen = |execution: &Execution| {
        let counted = windows_of_counter(&execution.stretch, execution.io_interval, |before, after| {
            let done = done_between(before, after)?;
            Window::of_counter(before.at_nanos, after.at_nanos, work(&done) as f64, Some(done))
        });
        if counted.is_empty() {
            let end = Nanos((io_seconds(execution) * 1e9) as u64);
            return Some(vec![Window::of_counter(Nanos(0), end, whole(execution)? as f64, None)?]);
        }
        Some(counted)
    };
    let Some(found) = per_work(executions, Per::Second, Rate::default(), seen).map(|cost| cost.net) else {
        return Estimate::bare(value);
    };
    // Windows and whole phases differ by what lies between.
    let off = value - found.value;
    Estimate { value, low: found.low.map(|low| low + off), high: found.high.map(|high| high + off) }
}

/// Duration of an execution: of one exact, of several the mean.
pub(super) fn seconds(executions: &[Execution]) -> Option<Estimate> {
    let units: Vec<Pair> =
        executions.iter().map(|execution| Pair { numerator: io_seconds(execution), denominator: 1.0 }).collect();
    match units.as_slice() {
        [one] => Some(Estimate::exact(one.numerator)),
        several => Some(ratio_of_sums(several, Neighbours::Independent)?.estimate()),
    }
}
