//! The times of a slice in which a meter that disturbs ran, and what it read.

use crate::record::{Execution, Snapshot};
use crate::slice::{SliceReading, SliceRecord};
use crate::study::io_time::io_seconds;
use crate::unit::Nanos;

/// A time and what was read of it.
pub(super) struct ReadTime<'a, T> {
    pub(super) before: &'a Snapshot,
    pub(super) after: &'a Snapshot,
    /// When it began: at the snapshot before it, or earlier if it covers several windows.
    pub(super) begin: Nanos,
    pub(super) read: &'a T,
}

/// All of a slice, or the windows of an execution in its time of I/O.
pub(super) fn read_times<'a, T>(
    slice: &'a SliceRecord,
    window: impl Fn(&'a Snapshot, &'a Snapshot) -> Option<ReadTime<'a, T>>,
) -> Vec<ReadTime<'a, T>> {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } | SliceReading::Command { before, after, .. } => {
            window(before, after).into_iter().collect()
        }
        SliceReading::Execution(Execution { stretch, io_interval, .. }) => {
            let snapshots = &stretch.snapshots;
            let windows = snapshots.iter().zip(snapshots.iter().skip(1));
            let inside = |it: &ReadTime<T>| {
                io_interval.is_none_or(|io| it.begin >= io.begin_nanos && it.after.at_nanos <= io.end_nanos)
            };
            windows.filter_map(|(before, after)| window(before, after)).filter(inside).collect()
        }
    }
}

/// How often a slice is as long as these times: 1, but for an execution, whose I/Os are those of its whole time of I/O.
pub(super) fn times_read<T>(slice: &SliceRecord, all: &[ReadTime<T>]) -> f64 {
    let SliceReading::Execution(execution) = &slice.reading else { return 1.0 };
    let seconds = |it: &ReadTime<T>| it.after.at_nanos.since(it.begin).seconds();
    io_seconds(execution) / all.iter().map(seconds).sum::<f64>()
}
