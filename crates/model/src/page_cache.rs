//! The page cache as a condition of a measurement: its contents, and where the reads came from.
//!
//! A read of a cached 4 KiB block costs a few thousand cycles, the same read from a disk fifty times as much, so the
//! answer depends on which of the two was measured. This module computes a [`CacheFinding`] from the residency before
//! and after, and from the bytes that storage read.

use crate::plan::{Access, JobPlan, Medium};
use crate::reading::Reading;
use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

/// Maximum fraction of the bytes read from storage for a warm cache. A read from a disk costs seventy times as much as
/// one from memory (docs/method/page-cache.md), so this fraction raises the mean by 3 %, the margin of a comparison.
pub const WARM: f64 = 0.0005;
/// Minimum fraction of the bytes read from storage for a cold cache.
pub const COLD: f64 = 0.95;
/// If residency grows by this fraction of the files more than storage is known to have delivered, the file system does
/// not account its reads in the kernel (FUSE, virtiofs).
const UNACCOUNTED: f64 = 0.05;
/// If residency grows by more than this fraction of the files, the cache is warming up.
const GROWN: f64 = 0.01;

/// The page cache for the files of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheRecord {
    /// Whether the files' pages were dropped before the first I/O (`invalidate=1`).
    pub dropped: bool,
    /// Pages in memory just before the first I/O.
    pub before: Reading<CachedPages>,
    /// Pages in memory just after the last I/O.
    pub after: Reading<CachedPages>,
}

/// The pages of files in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedPages {
    /// Total bytes of the files' parts that jobs use.
    pub of: Bytes,
    /// Bytes of these in the page cache.
    pub resident: Bytes,
    /// Bytes of these that are dirty; `None` if the kernel does not report it (before Linux 6.5).
    pub dirty: Option<Bytes>,
}

impl CachedPages {
    /// The resident fraction, 0 to 1; `None` for empty files.
    pub fn fraction(&self) -> Option<f64> {
        // The last page may extend beyond the end of the file.
        (self.of > Bytes(0)).then(|| (self.resident.as_f64() / self.of.as_f64()).min(1.0))
    }
}

/// Where the reads of a phase or an arm came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Nearly all reads came from memory.
    Warm,
    /// Nearly all reads went to storage.
    Cold,
    /// Some reads went to storage, and their pages stayed in memory: later reads find more.
    Warming,
    /// Some reads went to storage, but the cache did not fill: it is too small, or others use it.
    Partial,
    /// No reads: writes go into memory, and the kernel writes them back later.
    Written,
    /// The jobs bypass the page cache (`direct=1`).
    Bypassed,
    /// The jobs bypass the page cache, but storage read nothing for them: the file system keeps its files in memory
    /// (tmpfs, ZFS).
    DirectFromMemory,
    /// Unknown where the reads came from.
    #[default]
    Unknown,
}

impl CacheState {
    /// Whether the jobs bypass the page cache.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::Bypassed | Self::DirectFromMemory)
    }
}

/// The page cache as a condition of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheFinding {
    /// State of the page cache.
    pub state: CacheState,
    /// Fraction of the bytes read that storage delivered, 0 to 1.
    pub reads_from_storage_fraction: Option<f64>,
    /// Bytes that storage delivered.
    pub storage_read_bytes: Option<f64>,
    /// Fraction of the files in memory before the first I/O, 0 to 1.
    pub resident_before_fraction: Option<f64>,
    /// Fraction of the files in memory after the last I/O, 0 to 1.
    pub resident_after_fraction: Option<f64>,
    /// Dirty bytes of the files after the last I/O, which the kernel writes back later; for a command, by how much the machine's grew.
    pub dirty_after_bytes: Option<u64>,
    /// Whether the files' pages were dropped before the first I/O (`invalidate=1`).
    pub dropped: bool,
}

/// Bytes read, and how many of them storage delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadBytes {
    /// Requested by jobs that use the page cache.
    pub buffered: Option<f64>,
    /// Requested by jobs that bypass it. If there are also buffered reads, all of these count as delivered by storage.
    pub direct: f64,
    /// Delivered by storage to the workload.
    pub from_storage: Option<f64>,
}

impl ReadBytes {
    /// The fraction of buffered reads that storage delivered.
    fn fraction(&self) -> Option<f64> {
        let buffered = self.buffered.filter(|bytes| *bytes > 0.0)?;
        // Read-ahead may fetch more than was requested.
        Some(((self.from_storage? - self.direct) / buffered).clamp(0.0, 1.0))
    }
}

/// Whether a job's reads and writes go through the page cache.
pub fn is_buffered(job: &JobPlan) -> bool {
    job.engine.medium() == Medium::Files && !job.direct
}

/// Whether a job reads data.
fn reads(job: &JobPlan) -> bool {
    job.access.reads()
}

/// The finding for jobs that ran at the same time; `None` if none of them uses files, or nothing was recorded.
pub fn study(jobs: &[&JobPlan], record: Option<&CacheRecord>, read: &ReadBytes) -> Option<CacheFinding> {
    let on_files = || jobs.iter().filter(|job| job.engine.medium() == Medium::Files);
    on_files().next()?;
    if !on_files().any(|job| is_buffered(job)) {
        let from_memory = read.from_storage.is_some_and(|bytes| bytes < WARM * read.direct);
        let state = if from_memory { CacheState::DirectFromMemory } else { CacheState::Bypassed };
        return Some(CacheFinding { state, ..CacheFinding::default() });
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

/// Whether more of the files came into memory than storage is known to have delivered, so that some reads are not
/// accounted.
fn grew_unaccounted(record: &CacheRecord, read: &ReadBytes) -> bool {
    let pages = record.before.taken().zip(record.after.taken());
    pages.is_some_and(|(before, after)| {
        let grown = after.resident.as_f64() - before.resident.as_f64();
        grown > read.from_storage.unwrap_or(0.0) + UNACCOUNTED * after.of.as_f64()
    })
}

/// The finding for jobs without residency, as in the slices of a comparison; `None` if none uses files.
pub fn of_jobs(jobs: &[&JobPlan], read: &ReadBytes) -> Option<CacheFinding> {
    let not_looked = || Reading::unavailable("not looked at");
    let record = CacheRecord { dropped: false, before: not_looked(), after: not_looked() };
    study(jobs, Some(&record), read)
}

/// The finding for a command, of which only the bytes are known, and by how much the machine's dirty pages grew.
pub fn of_command(read: &ReadBytes, dirtied: Option<Bytes>) -> Option<CacheFinding> {
    let fraction = read.fraction();
    let state = fraction.map_or(CacheState::Unknown, |told| state(Some(told), None, None));
    let storage_read_bytes = Some(read.from_storage?);
    Some(CacheFinding {
        state,
        reads_from_storage_fraction: fraction,
        storage_read_bytes,
        dirty_after_bytes: dirtied.map(|bytes| bytes.0),
        ..CacheFinding::default()
    })
}

/// The state, according to what storage delivered; if unknown, according to whether all or none of the files stayed in
/// memory.
fn state(from_storage: Option<f64>, before: Option<f64>, after: Option<f64>) -> CacheState {
    let grew = before.zip(after).is_some_and(|(before, after)| after > before + GROWN);
    match (from_storage, before, after) {
        (Some(told), ..) if told >= COLD => CacheState::Cold,
        // A small fraction of the reads, because those from memory are fast, but a different load while it lasted.
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
            // Read-ahead fetched more than was requested.
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
    fn direct_reads_are_not_misses() {
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
    fn writes_have_their_own_state() {
        let writer = JobPlan { access: Access::Write, ..JobPlan::default() };
        let dirty = CachedPages { of: Bytes(GIB), resident: Bytes(GIB), dirty: Some(Bytes(4096)) };
        let record = CacheRecord { after: Reading::Taken(dirty), ..record(0, 0) };
        let found = study(&[&writer], Some(&record), &ReadBytes::default()).unwrap();
        assert_eq!((found.state, found.dirty_after_bytes), (CacheState::Written, Some(4096)));
    }

    #[test]
    fn without_accounting_residency_decides() {
        let unknown = ReadBytes { buffered: Some(1000.0), direct: 0.0, from_storage: None };
        assert_eq!(found(&record(GIB, GIB), &unknown).state, CacheState::Warm);
        assert_eq!(found(&record(0, GIB), &unknown).state, CacheState::Warming);
        assert_eq!(found(&record(GIB / 2, GIB / 2), &unknown).state, CacheState::Unknown);
        assert_eq!(found(&record(0, GIB), &unknown).reads_from_storage_fraction, None);
    }

    #[test]
    fn unaccounted_reads_are_not_warm() {
        let gib = GIB as f64;
        let fuse = found(&record(0, GIB), &read(4.0 * gib, 0.0, 0.0));
        assert_eq!((fuse.state, fuse.reads_from_storage_fraction), (CacheState::Warming, None));
        assert_eq!(fuse.storage_read_bytes, None);
        // A writer's pages come into memory without a read.
        let writer = JobPlan { access: Access::ReadWrite, ..JobPlan::default() };
        let written = study(&[&writer], Some(&record(0, GIB)), &read(4.0 * gib, 0.0, 0.0)).unwrap();
        assert_eq!(written.reads_from_storage_fraction, Some(0.0));
        assert_eq!(found(&record(0, GIB), &read(4.0 * gib, 0.0, 0.97 * gib)).reads_from_storage_fraction, Some(0.2425));
    }

    #[test]
    fn a_command_is_judged_by_its_bytes() {
        let of =
            |buffered, from_storage| of_command(&ReadBytes { buffered, direct: 0.0, from_storage }, Some(Bytes(4096)));
        assert_eq!(of(Some(100.0), Some(31.0)).unwrap().state, CacheState::Partial);
        assert_eq!(of(None, Some(31.0)).unwrap().state, CacheState::Unknown);
        assert_eq!(of(None, Some(31.0)).unwrap().storage_read_bytes, Some(31.0));
        assert_eq!(of(Some(100.0), None), None);
        assert_eq!(of(None, Some(0.0)).unwrap().dirty_after_bytes, Some(4096));
    }
}
