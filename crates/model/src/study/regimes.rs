//! Regimes of a phase: where its rate stepped, what it did and cost before and after, and that no mean of both is shown.
//!
//! Windows of the headline meter enter. The rate is I/Os per second where they are counted live, else what storage read per
//! second, which tells of a command whether it found its files in memory.

use super::Context;
use super::background::BackgroundRates;
use super::phase::cost_within;
use super::windows::{Window, windows};
use crate::finding::{PhaseFinding, RegimeFinding};
use crate::page_cache::CacheState;
use crate::record::{Execution, IoInterval, Meter, Snapshot};
use crate::stats::regimes;
use crate::unit::Nanos;
use crate::warning::{Code, Warning};

/// Added to what storage reads per second, so that reading nothing has a rate and a trickle is no regime: 1 MiB/s.
const TRICKLE: f64 = 1024.0 * 1024.0;

/// The regimes of the one execution of a phase, in order; empty where there is one.
pub(super) fn study(
    execution: &Execution,
    meter: Meter,
    rates: &BackgroundRates,
    context: &Context,
) -> Vec<RegimeFinding> {
    let found = whole_windows(execution, meter, context);
    let Some(begin) = execution.stretch.snapshots.first().map(|snapshot| snapshot.at_nanos) else { return Vec::new() };
    let rate = |window: &Window| match window.done {
        Some(done) => Some(done.ios as f64 / window.seconds()),
        None => Some(storage_read(execution, window)? / window.seconds() + TRICKLE),
    };
    let Some(series) = found.iter().map(rate).collect::<Option<Vec<f64>>>() else { return Vec::new() };
    let ranges = regimes(&series);
    if ranges.len() < 2 {
        return Vec::new();
    }
    let regime = |range: std::ops::Range<usize>| {
        let windows = found.get(range)?;
        let (first, last) = (windows.first()?, windows.last()?);
        let interval = IoInterval { begin_nanos: first.begin, end_nanos: last.end };
        let seconds: f64 = windows.iter().map(Window::seconds).sum();
        let done = |of: fn(&Window) -> Option<f64>| windows.iter().map(of).sum::<Option<f64>>();
        let cost = cost_within(execution, interval, meter, rates, context);
        let from_storage: Option<f64> = windows.iter().map(|window| storage_read(execution, window)).sum();
        let bytes = done(|window| window.done.map(|done| done.bytes.as_f64())).filter(|bytes| *bytes > 0.0);
        Some(RegimeFinding {
            begin_seconds: first.begin.since(begin).seconds(),
            end_seconds: last.end.since(begin).seconds(),
            iops: done(|window| window.done.map(|done| done.ios as f64)).map(|ios| ios / seconds),
            cycles_per_io: cost.map(|cost| cost.value),
            cycles_per_io_low: cost.and_then(|cost| cost.low),
            cycles_per_io_high: cost.and_then(|cost| cost.high),
            storage_bytes_per_second: from_storage.map(|bytes| bytes / seconds),
            from_storage_fraction: from_storage.zip(bytes).map(|(from, bytes)| (from / bytes).min(1.0)),
        })
    };
    ranges.into_iter().filter_map(regime).collect()
}

/// Takes away the means over regimes that differ: what is left of a phase is what each regime did.
pub(super) fn withhold_means(phase: &mut PhaseFinding) {
    const REASON: &str = "the rate stepped: no single mean describes it; see the regimes";
    for value in [
        &mut phase.cycles_per_io,
        &mut phase.cycles_per_io_low,
        &mut phase.cycles_per_io_high,
        &mut phase.cycles_per_io_gross,
        &mut phase.cycles_per_io_background,
        &mut phase.cycles_per_byte,
        &mut phase.cycles_per_byte_low,
        &mut phase.cycles_per_byte_high,
        &mut phase.thread_cycles_per_io,
        &mut phase.elsewhere_cycles_per_io,
    ] {
        *value = None;
    }
    phase.by_meter.values_mut().for_each(|value| *value = None);
    for reading in &mut phase.by_meter_detail {
        if reading.cycles_per_io.take().is_some() {
            reading.reason = Some(REASON.to_owned());
        }
    }
}

/// What stepped, and how the regime that it began with is left out.
pub(super) fn caveat(phase: &PhaseFinding, jobs: &str) -> Option<Warning> {
    let (first, last) = (phase.regimes.first()?, phase.regimes.last()?);
    let step = first.end_seconds;
    let from_storage = |regime: &RegimeFinding| regime.storage_bytes_per_second.unwrap_or(0.0);
    // By half at least, as rates: a trickle of read-ahead is no reason.
    let reason = match (from_storage(first), from_storage(last)) {
        (first, last) if first > 1.5 * last + TRICKLE => {
            Some("the first read from storage, the last found more in memory")
        }
        (first, last) if last > 1.5 * first + TRICKLE => Some("the last read more from storage than the first"),
        _ => None,
    };
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let message = if first.iops.is_some() {
        // In whole seconds from the end of the ramp that there was: fio's unit.
        let ramp = last.begin_seconds.ceil();
        let mend = match phase.page_cache.as_ref().map(|cache| cache.state) {
            Some(CacheState::Warming | CacheState::Cold | CacheState::Partial) => {
                "; to measure memory alone, read the file first and set invalidate=0; to measure the disk alone, direct=1"
            }
            _ => "",
        };
        format!(
            "{jobs}: the rate stepped after {step:.1} s{reason}: no single mean describes it, so none is shown; \
             ramp_time={ramp:.0}s leaves out what was before the last level{mend}"
        )
    } else {
        format!(
            "{jobs}: storage was read at another rate after {step:.1} s{reason}: the figures are of both together; bring the \
             files into one state first (--prepare), or leave the beginning out in the command itself"
        )
    };
    Some(Warning::new(Code::TwoRegimes, message))
}

/// The windows of a meter in the time that counts, without a last one that the end cut short.
fn whole_windows(execution: &Execution, meter: Meter, context: &Context) -> Vec<Window> {
    let mut found = windows(execution, meter, execution.io_interval, context);
    if let [.., before, last] = found.as_slice()
        && last.seconds() < before.seconds() / 2.0
    {
        found.pop();
    }
    found
}

/// Bytes that storage read in a window.
fn storage_read(execution: &Execution, window: &Window) -> Option<f64> {
    let at = |nanos: Nanos| -> Option<f64> {
        let snapshots = &execution.stretch.snapshots;
        let place = snapshots.partition_point(|snapshot: &Snapshot| snapshot.at_nanos < nanos);
        Some(snapshots.get(place)?.storage_read?.as_f64())
    };
    Some((at(window.end)? - at(window.begin)?).max(0.0))
}
