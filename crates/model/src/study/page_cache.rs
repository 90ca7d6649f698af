//! Where the reads of a phase came from: bytes requested by jobs compared with bytes delivered by storage.

use super::regimes::SOURCES_APART;
use super::windows::growth;
use crate::page_cache::{self, CacheFinding, CacheState, ReadBytes, is_buffered};
use crate::plan::{JobPlan, Medium};
use crate::record::{Execution, JobRecord, Snapshot};
use crate::stats::regimes::LEAST_STEP;

/// Engines of fio that read files or devices; others read the network, or nothing.
const FIO_FILE_ENGINES: [&str; 10] =
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "io_uring", "mmap", "splice"];

/// If storage read fewer bytes for a command, they belong to its start: libraries and configuration.
const LEAST_BYTES: f64 = 16.0 * 1024.0 * 1024.0;

/// The page cache as a condition of a phase. `jobs` are those of the plan, for iotoll's own engines.
pub(super) fn page_cache(executions: &[Execution], jobs: Option<&[JobPlan]>) -> Option<CacheFinding> {
    let from_storage = executions.iter().map(from_storage).sum::<Option<f64>>();
    let done = || executions.iter().flat_map(|execution| &execution.jobs);
    let Some(jobs) = jobs else {
        let buffered = executions.iter().map(file_reads).sum::<Option<f64>>();
        let read = ReadBytes { buffered, direct: 0.0, from_storage };
        let dirtied = executions.iter().filter_map(|execution| execution.dirtied).max();
        return page_cache::of_command(&read, dirtied);
    };
    let sum = |wanted: fn(&JobPlan) -> bool| -> f64 {
        let is = |job: &&JobRecord| jobs.iter().find(|plan| plan.name == job.name).is_some_and(wanted);
        done().filter(is).map(|job| job.read.bytes.as_f64()).sum()
    };
    let direct = |job: &JobPlan| job.engine.medium() == Medium::Files && job.direct;
    let read = ReadBytes { buffered: Some(sum(is_buffered)), direct: sum(direct), from_storage };
    let record = executions.first().and_then(|execution| execution.page_cache.as_ref());
    page_cache::study(&jobs.iter().collect::<Vec<_>>(), record, &read)
}

/// Bytes that storage read for an execution during its I/O.
pub(crate) fn from_storage(execution: &Execution) -> Option<f64> {
    let ends = execution.stretch.snapshots.first().zip(execution.stretch.snapshots.last());
    // Too short for two readings during the I/O: what was read before and after it is small in comparison.
    let all = || ends.and_then(|(first, last)| Some(last.storage_read?.since(first.storage_read?).as_f64()));
    growth(execution, storage_read).or_else(all)
}

/// Bytes that a foreign program reports as read from files; `None` if it does not report them, or not all of them.
pub(crate) fn file_reads(execution: &Execution) -> Option<f64> {
    if execution.jobs.iter().any(|job| job.uncounted) {
        return None;
    }
    let reads = execution.jobs.iter().filter(|job| reads_files(job)).map(|job| job.read.bytes.as_f64());
    Some(reads.sum()).filter(|bytes| *bytes > 0.0)
}

/// Whether two executions of a command read different fractions of their reads from storage.
pub(super) fn are_apart(one: &Execution, next: &Execution) -> bool {
    let Some((from_one, from_next)) = from_storage(one).zip(from_storage(next)) else { return false };
    match file_reads(one).zip(file_reads(next)) {
        Some((all_of_one, all_of_next)) => (from_one / all_of_one - from_next / all_of_next).abs() > SOURCES_APART,
        // The total number of bytes read is unknown.
        None => {
            let (less, more) = (from_one.min(from_next), from_one.max(from_next));
            more - less >= LEAST_BYTES && more >= LEAST_STEP * less
        }
    }
}

/// Whether a command read so much from both storage and memory that the order of these reads matters.
pub(super) fn makes_regimes(found: Option<&CacheFinding>) -> bool {
    // A small fraction of the bytes may have taken most of the time.
    let much = |found: &CacheFinding| found.storage_read_bytes.is_some_and(|bytes| bytes >= LEAST_BYTES);
    found.is_some_and(|found| found.state != CacheState::Cold && much(found))
}

fn storage_read(snapshot: &Snapshot) -> Option<(crate::unit::Nanos, u64)> {
    snapshot.storage_read.map(|bytes| (snapshot.at_nanos, bytes.0))
}

/// Whether the reads that a foreign program reports came from files.
fn reads_files(job: &JobRecord) -> bool {
    // If no engine is named, it is fio's default: psync.
    let engine = job.engine.strip_prefix("fio").map(str::trim);
    engine.is_some_and(|engine| engine.is_empty() || FIO_FILE_ENGINES.contains(&engine))
}
