//! Cycles of the whole machine in a slice or an execution.

use super::{SliceReading, SliceRecord};
use crate::record::{Execution, Meter};
use crate::study::Context;
use crate::study::io_time::io_seconds;
use crate::study::windows::{Window, window, windows};

/// Cycles of the whole machine in a slice (including stolen ones for short slices), and the available seconds of CPU
/// time.
pub(super) fn cycles(slice: &SliceRecord, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } | SliceReading::Command { before, after, .. } => {
            let window = window(before, after, meter, context)?;
            (window.capacity_seconds > 0.0).then_some((window.cycles, window.capacity_seconds))
        }
        SliceReading::Execution(execution) => {
            let whole = io_seconds(execution) * context.cpus as f64;
            let (cycles, capacity) = during_io(execution, meter, context);
            // Windows cover all of the time except its ends, so their rate is used for the whole time.
            (capacity > 0.0).then(|| (cycles / capacity * whole, whole))
        }
    }
}

/// From before the start of a command until after its end.
pub(super) fn whole_seconds(execution: &Execution) -> Option<f64> {
    let snapshots = &execution.stretch.snapshots;
    Some(snapshots.last()?.at_nanos.since(snapshots.first()?.at_nanos).seconds())
}

/// Cycles and capacity over a whole execution.
pub(super) fn whole(execution: &Execution, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    let windows = windows(execution, meter, None, context);
    let sum = |of: fn(&Window) -> f64| windows.iter().map(of).sum::<f64>();
    let (cycles, capacity) = (sum(|window| window.cycles), sum(|window| window.capacity_seconds));
    let all = whole_seconds(execution)? * context.cpus as f64;
    (capacity > 0.0).then(|| (cycles / capacity * all, all))
}

/// Cycles and capacity of the windows in which the command did I/O. If these windows cover less than half of that time,
/// the windows at its ends are included in proportion.
fn during_io(execution: &Execution, meter: Meter, context: &Context) -> (f64, f64) {
    let sum = |windows: &[(f64, Window)]| {
        let add = |(cycles, capacity): (f64, f64), (part, window): &(f64, Window)| {
            (cycles + part * window.cycles, capacity + part * window.capacity_seconds)
        };
        windows.iter().fold((0.0, 0.0), add)
    };
    let within = windows(execution, meter, execution.io_interval, context);
    let covered: f64 = within.iter().map(Window::seconds).sum();
    match execution.io_interval {
        Some(interval) if covered < io_seconds(execution) / 2.0 => {
            let part = |window: Window| {
                let (begin, end) = (window.begin.max(interval.begin_nanos), window.end.min(interval.end_nanos));
                (end.since(begin).seconds() / window.seconds(), window)
            };
            sum(&windows(execution, meter, None, context).into_iter().map(part).collect::<Vec<_>>())
        }
        _ => sum(&within.into_iter().map(|window| (1.0, window)).collect::<Vec<_>>()),
    }
}
