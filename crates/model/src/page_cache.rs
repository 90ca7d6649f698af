//! The page cache as a condition of a measurement: what was read of it, and where the reads came from.
//!
//! A read of a cached 4 KiB costs some thousand cycles, the same read from a disk fifty times as much, so which of the two was
//! measured is a part of the answer. Enter residency before and after and the bytes that storage read meanwhile; leaves a
//! [`CacheFinding`].

use crate::plan::{Access, JobPlan, Medium};
use crate::reading::Reading;
use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

/// Below this part of the bytes read, storage is not what was measured: where a read from a disk costs seventy times one from memory
/// (METHOD.md), this part of them makes the mean dearer by 3 %, the margin of a comparison.
pub const WARM: f64 = 0.0005;
/// From this part on, the cache is not what was measured.
pub const COLD: f64 = 0.95;
/// Residency that grows by this part of the files, and by so much more than storage is known to have delivered, came from a file system
/// whose reads the kernel does not account (FUSE, virtiofs).
const UNACCOUNTED: f64 = 0.05;
/// Residency that grows by more than this part of the files is a cache that warms up.
const GROWN: f64 = 0.01;

/// What was read about the page cache under the files of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheRecord {
    /// The files' pages were dropped before the first I/O (`invalidate=1`).
    pub dropped: bool,
    /// Just before the first I/O.
    pub before: Reading<CachedPages>,
    /// Just after the last one.
    pub after: Reading<CachedPages>,
}

/// Pages of files in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedPages {
    /// Bytes of the files' parts that jobs use.
    pub of: Bytes,
    /// Of these in the page cache.
    pub resident: Bytes,
    /// Of these changed and not yet written back; `None` where the kernel does not tell (before Linux 6.5).
    pub dirty: Option<Bytes>,
}

impl CachedPages {
    /// The part that is resident, 0 to 1; `None` of empty files.
    pub fn fraction(&self) -> Option<f64> {
        // The last page may reach beyond the file's end.
        (self.of > Bytes(0)).then(|| (self.resident.as_f64() / self.of.as_f64()).min(1.0))
    }
}

/// Where the reads of a phase or an arm came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Nearly all reads came from memory.
    Warm,
    /// Nearly all reads went to storage.
    Cold,
    /// Some reads went to storage, and what they read stayed in memory: later reads find more.
    Warming,
    /// Some reads went to storage, and the cache did not fill: it is too small, or others take it.
    Partial,
    /// Nothing was read: writes go into memory, and the kernel writes them back later.
    Written,
    /// The jobs bypass it (`direct=1`).
    Bypassed,
    /// The same, and yet storage read nothing for them: the file system keeps its files in memory (tmpfs, ZFS).
    DirectFromMemory,
    /// Nobody tells where the reads came from.
    Unknown,
}

impl CacheState {
    /// Whether the jobs bypass the page cache.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Bypassed | Self::DirectFromMemory)
    }
}

/// The page cache as a condition of what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheFinding {
    /// In one word.
    pub state: CacheState,
    /// Part of the bytes read that storage delivered, 0 to 1.
    pub reads_from_storage_fraction: Option<f64>,
    /// Bytes that storage delivered.
    pub storage_read_bytes: Option<f64>,
    /// Part of the files that was in memory before the first I/O, 0 to 1.
    pub resident_before_fraction: Option<f64>,
    /// The same after the last one.
    pub resident_after_fraction: Option<f64>,
    /// Bytes of the files that were dirty after the last I/O: somebody writes them back later.
    pub dirty_after_bytes: Option<u64>,
    /// The files' pages were dropped before the first I/O (`invalidate=1`).
    pub dropped: bool,
}

/// Bytes that were read, and how many of them storage delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadBytes {
    /// Asked for by the jobs that use the page cache.
    pub buffered: Option<f64>,
    /// Asked for by jobs that bypass it: beside buffered reads, all of these are taken to have come from storage.
    pub direct: f64,
    /// Delivered by storage to the workload.
    pub from_storage: Option<f64>,
}

impl ReadBytes {
    /// Part of the buffered reads that storage delivered.
    fn fraction(&self) -> Option<f64> {
        let buffered = self.buffered.filter(|bytes| *bytes > 0.0)?;
        // Read-ahead may fetch more than is asked for.
        Some(((self.from_storage? - self.direct) / buffered).clamp(0.0, 1.0))
    }
}

/// Whether a job's reads and writes go through the page cache.
pub fn is_buffered(job: &JobPlan) -> bool {
    job.engine.medium() == Medium::Files && !job.direct
}

/// Whether a job reads, so that it matters where from.
fn reads(job: &JobPlan) -> bool {
    matches!(job.access, Access::Read | Access::ReadWrite)
}

/// What follows for jobs that ran together; `None` where none of them uses files, or nothing was read about these.
pub fn study(jobs: &[&JobPlan], record: Option<&CacheRecord>, read: &ReadBytes) -> Option<CacheFinding> {
    let on_files = || jobs.iter().filter(|job| job.engine.medium() == Medium::Files);
    on_files().next()?;
    if !on_files().any(|job| is_buffered(job)) {
        let from_memory = read.from_storage.is_some_and(|bytes| bytes < WARM * read.direct);
        let state = if from_memory { CacheState::DirectFromMemory } else { CacheState::Bypassed };
        return Some(CacheFinding { state, ..CacheFinding::nothing() });
    }
    let record = record?;
    let fraction = |pages: &Reading<CachedPages>| pages.taken().and_then(CachedPages::fraction);
    let (before, after) = (fraction(&record.before), fraction(&record.after));
    let reads_only = on_files().filter(|job| is_buffered(job)).all(|job| job.access == Access::Read);
    let told = read.fraction().filter(|_| !(reads_only && grew_unaccounted(record, read)));
    let state = if on_files().any(|job| is_buffered(job) && reads(job)) {
        state(told, before, after)
    } else {
        CacheState::Written
    };
    Some(CacheFinding {
        state,
        reads_from_storage_fraction: told,
        storage_read_bytes: told.and(read.from_storage).map(|bytes| (bytes - read.direct).max(0.0)),
        resident_before_fraction: before,
        resident_after_fraction: after,
        dirty_after_bytes: record.after.taken().and_then(|pages| pages.dirty).map(|bytes| bytes.0),
        dropped: record.dropped,
    })
}

/// Whether more of the files came into memory than storage is known to have delivered: then what is known is not all.
fn grew_unaccounted(record: &CacheRecord, read: &ReadBytes) -> bool {
    let pages = record.before.taken().zip(record.after.taken());
    pages.is_some_and(|(before, after)| {
        let grown = after.resident.as_f64() - before.resident.as_f64();
        grown > read.from_storage.unwrap_or(0.0) + UNACCOUNTED * after.of.as_f64()
    })
}

/// What follows for jobs of whose files nothing else is known, in the slices of a comparison; `None` where none uses files.
pub fn of_jobs(jobs: &[&JobPlan], read: &ReadBytes) -> Option<CacheFinding> {
    let not_looked = || Reading::unavailable("not looked at");
    let record = CacheRecord { dropped: false, before: not_looked(), after: not_looked() };
    study(jobs, Some(&record), read)
}

/// What a command read, of which nothing is known but its bytes.
pub fn of_command(read: &ReadBytes) -> Option<CacheFinding> {
    let fraction = read.fraction();
    let state = fraction.map_or(CacheState::Unknown, |told| state(Some(told), None, None));
    let storage_read_bytes = Some(read.from_storage?);
    Some(CacheFinding { state, reads_from_storage_fraction: fraction, storage_read_bytes, ..CacheFinding::nothing() })
}

impl CacheFinding {
    fn nothing() -> Self {
        Self {
            state: CacheState::Unknown,
            reads_from_storage_fraction: None,
            storage_read_bytes: None,
            resident_before_fraction: None,
            resident_after_fraction: None,
            dirty_after_bytes: None,
            dropped: false,
        }
    }
}

/// By what storage delivered; where that is not known, by what was in memory all the time or never.
fn state(from_storage: Option<f64>, before: Option<f64>, after: Option<f64>) -> CacheState {
    let grew = before.zip(after).is_some_and(|(before, after)| after > before + GROWN);
    match (from_storage, before, after) {
        (Some(told), ..) if told >= COLD => CacheState::Cold,
        // Few of the reads, because those from memory are fast: still it was another load while it lasted.
        (Some(told), ..) if grew && told > 0.0 => CacheState::Warming,
        (Some(told), ..) if told < WARM => CacheState::Warm,
        (Some(_), ..) => CacheState::Partial,
        (None, Some(before), Some(after)) if before.min(after) > 1.0 - WARM => CacheState::Warm,
        (None, Some(_), Some(_)) if grew => CacheState::Warming,
        (None, ..) => CacheState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::EngineKind;

    const GIB: u64 = 1 << 30;

    fn pages(resident: u64) -> Reading<CachedPages> {
        Reading::Taken(CachedPages { of: Bytes(GIB), resident: Bytes(resident), dirty: Some(Bytes(0)) })
    }

    fn record(before: u64, after: u64) -> CacheRecord {
        CacheRecord { dropped: false, before: pages(before), after: pages(after) }
    }

    fn read(buffered: f64, direct: f64, from_storage: f64) -> ReadBytes {
        ReadBytes { buffered: Some(buffered), direct, from_storage: Some(from_storage) }
    }

    fn found(record: &CacheRecord, read: &ReadBytes) -> CacheFinding {
        study(&[&JobPlan::default()], Some(record), read).unwrap()
    }

    #[test]
    fn the_state_is_where_the_reads_came_from() {
        for (before, after, from_storage, state) in [
            (GIB, GIB, 0.0, CacheState::Warm),
            (GIB, GIB, 0.04, CacheState::Warm),
            (GIB, GIB, 0.4, CacheState::Partial),
            (0, GIB, 31.0, CacheState::Warming),
            (GIB / 2, GIB / 2, 31.0, CacheState::Partial),
            (0, GIB / 10, 99.0, CacheState::Cold),
            // Read-ahead fetched more than was asked for.
            (0, GIB, 300.0, CacheState::Cold),
        ] {
            let asked = 10.0 * GIB as f64;
            let found = found(&record(before, after), &read(asked, 0.0, asked * from_storage / 100.0));
            assert_eq!(found.state, state, "{from_storage} %");
        }
        let asked = 4.0 * GIB as f64;
        let found = found(&record(0, GIB), &read(asked, 0.0, asked / 4.0));
        assert_eq!(found.reads_from_storage_fraction, Some(0.25));
        assert_eq!((found.resident_before_fraction, found.resident_after_fraction), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn what_bypasses_the_cache_is_not_taken_for_a_miss() {
        let direct = JobPlan { direct: true, ..JobPlan::default() };
        let both =
            study(&[&JobPlan::default(), &direct], Some(&record(GIB, GIB)), &read(1000.0, 500.0, 500.0)).unwrap();
        assert_eq!((both.state, both.reads_from_storage_fraction), (CacheState::Warm, Some(0.0)));
        let alone = |direct_bytes, from_storage| {
            let read = ReadBytes { buffered: Some(0.0), direct: direct_bytes, from_storage };
            study(&[&direct], None, &read).unwrap().state
        };
        assert_eq!(alone(1e9, Some(1e9)), CacheState::Bypassed);
        assert_eq!(alone(1e9, None), CacheState::Bypassed);
        assert_eq!(alone(0.0, Some(0.0)), CacheState::Bypassed, "nothing was read");
        assert_eq!(alone(1e9, Some(0.0)), CacheState::DirectFromMemory);
        let null = JobPlan { engine: EngineKind::Null, ..JobPlan::default() };
        assert_eq!(study(&[&null], None, &ReadBytes::default()), None);
    }

    #[test]
    fn writes_are_said_to_be_written() {
        let writer = JobPlan { access: Access::Write, ..JobPlan::default() };
        let dirty = CachedPages { of: Bytes(GIB), resident: Bytes(GIB), dirty: Some(Bytes(4096)) };
        let record = CacheRecord { after: Reading::Taken(dirty), ..record(0, 0) };
        let found = study(&[&writer], Some(&record), &ReadBytes::default()).unwrap();
        assert_eq!((found.state, found.dirty_after_bytes), (CacheState::Written, Some(4096)));
    }

    #[test]
    fn without_accounting_of_storage_residency_speaks_where_it_can() {
        let unknown = ReadBytes { buffered: Some(1000.0), direct: 0.0, from_storage: None };
        assert_eq!(found(&record(GIB, GIB), &unknown).state, CacheState::Warm);
        assert_eq!(found(&record(0, GIB), &unknown).state, CacheState::Warming);
        assert_eq!(found(&record(GIB / 2, GIB / 2), &unknown).state, CacheState::Unknown);
        assert_eq!(found(&record(0, GIB), &unknown).reads_from_storage_fraction, None);
    }

    #[test]
    fn what_a_file_system_does_not_account_is_not_taken_for_warm() {
        let gib = GIB as f64;
        let fuse = found(&record(0, GIB), &read(4.0 * gib, 0.0, 0.0));
        assert_eq!((fuse.state, fuse.reads_from_storage_fraction), (CacheState::Warming, None));
        assert_eq!(fuse.storage_read_bytes, None);
        // A writer's pages come into memory without any read.
        let writer = JobPlan { access: Access::ReadWrite, ..JobPlan::default() };
        let written = study(&[&writer], Some(&record(0, GIB)), &read(4.0 * gib, 0.0, 0.0)).unwrap();
        assert_eq!(written.reads_from_storage_fraction, Some(0.0));
        assert_eq!(found(&record(0, GIB), &read(4.0 * gib, 0.0, 0.97 * gib)).reads_from_storage_fraction, Some(0.2425));
    }

    #[test]
    fn a_command_is_known_by_its_bytes_alone() {
        let of = |buffered, from_storage| of_command(&ReadBytes { buffered, direct: 0.0, from_storage });
        assert_eq!(of(Some(100.0), Some(31.0)).unwrap().state, CacheState::Partial);
        assert_eq!(of(None, Some(31.0)).unwrap().state, CacheState::Unknown);
        assert_eq!(of(None, Some(31.0)).unwrap().storage_read_bytes, Some(31.0));
        assert_eq!(of(Some(100.0), None), None);
    }
}
