//! The regimes of a phase: where its rate stepped, and the rate and cost before and after. No mean over different
//! regimes is shown.
//!
//! The rate is I/Os per second if they are counted live, otherwise what storage read per second, which shows whether a
//! command found its files in memory. If there are several executions, each is one reading.

use super::net_cost::BackgroundRates;
use super::windows::{done_between, io_seconds, quiet_pairs, total};
use super::{cost_of, cost_within, page_cache, thread_cycles_per_io};
use crate::elided_list::elided_list;
use crate::experiment::Metric;
use crate::finding::{PhaseFinding, RegimeFinding};
use crate::profile::FunctionsFinding;
use crate::record::{Done, Execution, IoInterval, JobRecord, Meter, Snapshot};
use crate::stats::regimes;
use crate::stats::regimes::LEAST_STEP;
use crate::unit::Nanos;
use crate::warning::{Code, Warning};
use std::ops::Range;

/// Added to what storage reads per second, so that no reads at all have a rate and a trickle is not a regime: 1 MiB/s.
const TRICKLE: f64 = 1024.0 * 1024.0;

/// Minimum difference between the fractions of reads from storage for two different loads.
pub(super) const SOURCES_APART: f64 = 0.05;

/// Why a meter that ran has no mean.
pub const MEAN_WITHHELD: &str = "the rate stepped, so no single mean describes it; see the regimes";

/// The regimes of the only execution of a phase, in order; empty if there is only one.
pub(super) fn study(execution: &Execution, meter: Option<Meter>, rates: &BackgroundRates) -> Vec<RegimeFinding> {
    let found = steps(execution);
    let Some(begin) = execution.stretch.snapshots.first().map(|snapshot| snapshot.at_nanos) else { return Vec::new() };
    let rate = |step: &Step| match step.done {
        Some(done) => Some(done.ios as f64 / step.seconds()),
        None => Some(step.storage_read? / step.seconds() + TRICKLE),
    };
    let Some(series) = found.iter().map(rate).collect::<Option<Vec<f64>>>() else { return Vec::new() };
    let ranges = regimes(&series);
    if ranges.len() < 2 {
        return Vec::new();
    }
    let ranges = ranges.into_iter().map(|range| without_mixed_ends(&series, range));
    let regime = |range: Range<usize>| {
        let steps = found.get(range)?;
        let (first, last) = (steps.first()?, steps.last()?);
        let interval = IoInterval { begin_nanos: first.begin, end_nanos: last.end };
        let seconds: f64 = steps.iter().map(Step::seconds).sum();
        let done = |of: fn(&Done) -> f64| steps.iter().map(|step| step.done.as_ref().map(of)).sum::<Option<f64>>();
        let cost = meter.and_then(|meter| cost_within(execution, interval, meter, rates));
        let from_storage: Option<f64> = steps.iter().map(|step| step.storage_read).sum();
        let bytes = done(|done| done.bytes.as_f64()).filter(|bytes| *bytes > 0.0);
        let ios = done(|done| done.ios as f64).filter(|ios| *ios > 0.0);
        let own_nanos = steps.iter().map(|step| step.thread_nanos).sum::<Option<f64>>();
        Some(RegimeFinding {
            first_execution: None,
            last_execution: None,
            begin_seconds: first.begin.since(begin).seconds(),
            end_seconds: last.end.since(begin).seconds(),
            iops: done(|done| done.ios as f64).map(|ios| ios / seconds),
            cycles_per_io: cost,
            thread_cycles_per_io: own_nanos.zip(ios).map(|(nanos, ios)| nanos / 1e9 * rates.context.clock.0 / ios),
            storage_bytes_per_second: from_storage.map(|bytes| bytes / seconds),
            from_storage_fraction: from_storage.zip(bytes).map(|(from, bytes)| (from / bytes).min(1.0)),
        })
    };
    ranges.filter_map(regime).collect()
}

/// The regimes of a phase with several executions: an execution that read from storage what the others found in memory
/// is not part of their mean.
pub(super) fn of_executions(
    executions: &[Execution],
    meter: Option<Meter>,
    rates: &BackgroundRates,
) -> Vec<RegimeFinding> {
    let begin_of = |execution: &Execution| Some(execution.stretch.snapshots.first()?.at_nanos);
    let end_of = |execution: &Execution| Some(execution.stretch.snapshots.last()?.at_nanos);
    let Some(begin) = executions.first().and_then(begin_of) else { return Vec::new() };
    let mut before = 0;
    let regime = |part: &[Execution]| {
        let first_execution = before + 1;
        before += part.len();
        let seconds: f64 = part.iter().map(io_seconds).sum();
        let per_second = |value: f64| value / seconds;
        let ios = total(part.iter().flat_map(|execution| &execution.jobs), JobRecord::ios);
        let cost = meter.and_then(|meter| cost_of(part, meter, rates));
        let from_storage: Option<f64> = part.iter().map(page_cache::from_storage).sum();
        let read: Option<f64> = part.iter().map(page_cache::file_reads).sum();
        Some(RegimeFinding {
            first_execution: Some(first_execution),
            last_execution: Some(before),
            begin_seconds: begin_of(part.first()?)?.since(begin).seconds(),
            end_seconds: end_of(part.last()?)?.since(begin).seconds(),
            iops: ios.map(|ios| per_second(ios as f64)),
            cycles_per_io: cost,
            thread_cycles_per_io: thread_cycles_per_io(part, ios, rates).map(|own| own.value),
            storage_bytes_per_second: from_storage.map(per_second),
            from_storage_fraction: from_storage.zip(read).map(|(from, read)| (from / read).min(1.0)),
        })
    };
    let found: Vec<RegimeFinding> =
        executions.chunk_by(|one, next| !page_cache::are_apart(one, next)).filter_map(regime).collect();
    if found.len() > 1 { found } else { Vec::new() }
}

/// A regime without the windows at its ends in which the rate stepped: a part of their I/Os belongs to the neighbouring
/// regime.
fn without_mixed_ends(series: &[f64], range: Range<usize>) -> Range<usize> {
    let Some(rates) = series.get(range.clone()) else { return range };
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(level) = sorted.get(sorted.len() / 2) else { return range };
    let own = |rate: &f64| *rate > level / LEAST_STEP && *rate < level * LEAST_STEP;
    let (first, last) = (rates.iter().position(own), rates.iter().rposition(own));
    // At most one window at each end: other outliers are part of the regime.
    let begin = first.map_or(0, |first| first.min(1));
    let end = last.map_or(0, |last| (rates.len() - 1 - last).min(1));
    if begin + end < rates.len() { range.start + begin..range.end - end } else { range }
}

/// Whether the regimes are different loads rather than one load at two speeds: CPU use by others or a slow device only
/// changes the rate, not the cost of an I/O.
pub(super) fn are_loads_apart(regimes: &[RegimeFinding]) -> bool {
    regimes.iter().zip(regimes.iter().skip(1)).any(|(one, next)| {
        // Work of others for the load (writeback, servers) only appears in the machine's cost.
        let machine = one.cycles_per_io.zip(next.cycles_per_io);
        let costs_differ = machine.is_some_and(|(one, next)| {
            let (ratio, ends) = (one.value / next.value, one.ends().zip(next.ends()));
            let apart = ends.is_some_and(|((low, high), (next_low, next_high))| low > next_high || next_low > high);
            apart && ratio.max(1.0 / ratio) >= LEAST_STEP
        });
        let (Some(own), Some(others)) = (one.thread_cycles_per_io, next.thread_cycles_per_io) else {
            // Without the threads' cost, the machine's cost decides. When the I/Os of a command happened is unknown.
            return if machine.is_some() { costs_differ } else { one.iops.is_some() };
        };
        costs_differ || is_another_load((own, others), one.from_storage_fraction.zip(next.from_storage_fraction))
    })
}

/// Whether two costs of the workload's own threads, or two fractions of reads from storage, are those of different
/// loads.
pub fn is_another_load((own, others): (f64, f64), sources: Option<(f64, f64)>) -> bool {
    let ratio = own / others;
    ratio.max(1.0 / ratio) >= LEAST_STEP || sources.is_some_and(|(one, other)| (one - other).abs() > SOURCES_APART)
}

/// Removes the means over different regimes; only the figures of each regime remain.
pub(super) fn withhold_means(phase: &mut PhaseFinding) {
    for metric in [Metric::CyclesPerIo, Metric::CyclesPerByte, Metric::ContextSwitchesPerIo, Metric::ThreadCyclesPerIo]
    {
        phase.figures.withhold(metric, MEAN_WITHHELD);
    }
    let others = &mut phase.others;
    (others.cycles_per_io_by_level, others.cycles_per_io_by_name, others.cycles_per_io_gross) = (None, None, None);
    for reading in &mut phase.by_meter_detail {
        if reading.cycles_per_io.take().is_some() {
            reading.reason = Some(MEAN_WITHHELD.to_owned());
        }
    }
    if !phase.counted.per_io.is_empty() {
        phase.counted.per_io.clear();
        phase.counted.reason = Some(MEAN_WITHHELD.to_owned());
    }
    for probe in phase.probes.iter_mut().filter(|probe| probe.per_io.is_some()) {
        probe.per_io = None;
        probe.reason = Some(MEAN_WITHHELD.to_owned());
    }
    phase.accounts.clear();
    phase.functions = FunctionsFinding { profile: phase.functions.profile.take(), ..FunctionsFinding::default() };
}

/// A caveat about the step, and how to exclude the first regime.
pub(super) fn caveat(phase: &PhaseFinding, jobs: &str) -> Option<Warning> {
    let (first, last) = (phase.regimes.first()?, phase.regimes.last()?);
    if first.first_execution.is_some() {
        return Some(Warning::new(Code::TwoRegimes, executions_apart(phase, jobs)));
    }
    let step = first.end_seconds;
    let from_storage = |regime: &RegimeFinding| regime.storage_bytes_per_second.unwrap_or(0.0);
    // Only if the rates differ by half or more: a trickle of read-ahead is not a reason.
    let reason = match (from_storage(first), from_storage(last)) {
        (first, last) if first > 1.5 * last + TRICKLE => {
            Some("the first read from storage, the last found more in memory")
        }
        (first, last) if last > 1.5 * first + TRICKLE => Some("the last read more from storage than the first"),
        _ => None,
    };
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let message = if first.iops.is_some() && !are_loads_apart(&phase.regimes) {
        format!(
            "{jobs}: the rate stepped after {step:.1} s, but not the cost of an I/O: the cost covers all of it, while I/Os per \
             second and latencies mix two speeds"
        )
    } else if first.iops.is_some() {
        // In whole seconds after the actual ramp, as fio counts.
        let ramp = last.begin_seconds.ceil();
        let mend = match phase.page_cache {
            Some(_) if !reason.is_empty() => {
                "; to measure only memory, read the file first and set invalidate=0; to measure only the disk, use direct=1"
            }
            _ => "",
        };
        format!(
            "{jobs}: the rate stepped after {step:.1} s{reason}, so no single mean is shown; \
             ramp_time={ramp:.0}s excludes the time before the last level{mend}"
        )
    } else {
        format!(
            "{jobs}: the rate of reads from storage stepped after {step:.1} s{reason}: the figures cover both parts; bring the \
             files into one state first (--prepare), or exclude the beginning in the command itself"
        )
    };
    Some(Warning::new(Code::TwoRegimes, message))
}

/// A caveat about executions that read from storage, and how to make all of them read from one place.
fn executions_apart(phase: &PhaseFinding, jobs: &str) -> String {
    let told = |regime: &RegimeFinding| {
        let rate = regime.storage_bytes_per_second.unwrap_or(0.0) / 1e6;
        match regime.from_storage_fraction {
            Some(part) => format!("{} {:.0} %", regime.executions().unwrap_or_default(), part * 100.0),
            None => format!("{} {rate:.0} MB/s", regime.executions().unwrap_or_default()),
        }
    };
    let told = elided_list(&phase.regimes.iter().map(told).collect::<Vec<_>>(), ", ");
    let consequence = match are_loads_apart(&phase.regimes) {
        true => "no single mean is shown",
        false => "the figures cover all of them",
    };
    let jobs = if jobs.is_empty() { String::new() } else { format!("{jobs}: ") };
    format!(
        "{jobs}executions found different parts of their files in memory (read from storage: {told}): {consequence}; bring the \
         files into one state before each (--prepare)"
    )
}

/// What happened between two snapshots.
pub(super) struct Step {
    pub begin: Nanos,
    pub end: Nanos,
    pub done: Option<Done>,
    storage_read: Option<f64>,
    thread_nanos: Option<f64>,
}

impl Step {
    fn seconds(&self) -> f64 {
        self.end.since(self.begin).seconds()
    }
}

/// The steps in the time that counts, except a last one that the end cut short. Meters do not matter here, except that
/// if one disturbs the load in some windows, only quiet windows are used.
pub(super) fn steps(execution: &Execution) -> Vec<Step> {
    let step = |(before, after): (&Snapshot, &Snapshot)| {
        let (begin, end) = (before.at_nanos, after.at_nanos);
        let storage_read = before.storage_read.zip(after.storage_read);
        let threads = before.thread_nanos().zip(after.thread_nanos());
        (end > begin && IoInterval::covers(execution.io_interval, begin, end)).then(|| Step {
            begin,
            end,
            done: done_between(before, after),
            storage_read: storage_read.map(|(before, after)| after.since(before).as_f64()),
            thread_nanos: threads.map(|(before, after)| after.since(before).as_f64()),
        })
    };
    let mut found: Vec<Step> = quiet_pairs(&execution.stretch).filter_map(step).collect();
    if let [.., before, last] = found.as_slice()
        && last.seconds() < before.seconds() / 2.0
    {
        found.pop();
    }
    found
}
