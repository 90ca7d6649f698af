//! Context switches per I/O: the one figure of a phase, with its interval, that the sheet, its events and its limits show.

use super::background::BackgroundRates;
use super::per_work::{Per, per_work, total};
use super::windows::{Window, done_between, windows_of_counter};
use crate::record::{Execution, IoInterval, JobRecord, Snapshot, Stretch};
use crate::stats::Estimate;

/// Context switches of a phase.
pub(super) struct Switches {
    /// Of the whole machine for an I/O, net of the background, also where they are not told from it.
    pub net: Option<Estimate>,
    /// Why they are not known; `None` if they are.
    pub reason: Option<String>,
    /// Of the load's own threads for an I/O.
    pub own: Option<f64>,
}

/// The context switches of the whole machine in each window.
pub(super) fn windows(stretch: &Stretch, interval: Option<IoInterval>) -> Vec<Window> {
    windows_of_counter(stretch, interval, |before: &Snapshot, after: &Snapshot| {
        let (first, last) = (before.system?, after.system?);
        let grown = last.context_switches.saturating_sub(first.context_switches) as f64;
        Window::of_counter(first.at_nanos, last.at_nanos, grown, done_between(before, after))
    })
}

pub(super) fn study(executions: &[Execution], rates: &BackgroundRates) -> Switches {
    let jobs = || executions.iter().flat_map(|execution| &execution.jobs);
    let own = jobs().map(|job| Some(job.usage?.context_switches as f64)).sum::<Option<f64>>();
    let own = own.zip(total(jobs(), JobRecord::ios)).map(|(switches, ios)| switches / ios as f64);
    let unknown = |reason: &str| Switches { net: None, reason: Some(reason.to_owned()), own };
    // If no background was measured, every figure is gross, and a caveat says so.
    let rate = rates.switches().or_else(|| (!rates.watched()).then(Default::default));
    let Some(rate) = rate else { return unknown("the background was too short for a window") };
    let seen = |execution: &Execution| Some(windows(&execution.stretch, execution.io_interval));
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
    Switches { net: Some(net), reason, own }
}
