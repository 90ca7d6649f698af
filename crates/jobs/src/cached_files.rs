//! The page cache as a condition: how much of the jobs' files it contains, and how it is filled or emptied.
//!
//! Copies of jobs with their files enter, readings leave. What a reading means is decided in `model::page_cache`.

use crate::worker_pool::JobCopy;
use crate::workload::target::Span;
use lab::error::{Error, Result};
use lab::interruption::Interruption;
use model::page_cache::{CachedPages, is_buffered};
use model::reading::Reading;
use model::unit::Bytes;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroU64;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Bytes per read; as large as the largest read-ahead of common disks.
const CHUNK: usize = 1 << 20;

/// The files that jobs use through the page cache, each with the parts in use: sorted, without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachedFiles(BTreeMap<PathBuf, Vec<Span>>);

/// Receives the progress of reading: path, bytes done, bytes in total. Returning `false` ends it.
pub type ReadProgress<'a> = &'a mut dyn FnMut(&Path, u64, u64) -> bool;

impl CachedFiles {
    /// The files of these copies. Block devices count; other special files have no page cache.
    pub fn of<'a>(copies: impl IntoIterator<Item = &'a JobCopy<'a>>) -> Self {
        let mut files: BTreeMap<PathBuf, Vec<Span>> = BTreeMap::new();
        for target in copies.into_iter().filter(|copy| is_buffered(copy.plan)).flat_map(|copy| &copy.targets) {
            if target.span.length > 0 && is_cached_at_all(&target.path) {
                files.entry(target.path.clone()).or_default().push(target.span);
            }
        }
        files.values_mut().for_each(|spans| *spans = joined(std::mem::take(spans)));
        Self(files)
    }

    /// Adds the files of another set.
    pub fn add(&mut self, others: &Self) {
        for (path, spans) in &others.0 {
            let all = self.0.entry(path.clone()).or_default();
            all.extend(spans);
            *all = joined(std::mem::take(all));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn spans(&self) -> impl Iterator<Item = (&Path, Span)> {
        self.0.iter().flat_map(|(path, spans)| spans.iter().map(|span| (path.as_path(), *span)))
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.spans().map(|(_, span)| span.length).fold(0, u64::saturating_add)
    }

    /// How much of them is in memory.
    pub fn look(&self) -> Reading<CachedPages> {
        let mut sum = CachedPages { dirty: Some(Bytes(0)), ..CachedPages::default() };
        for (path, span) in self.spans() {
            let told = File::open(path).and_then(|file| sys::page_cache::cached(&file, span.begin, span.length));
            match told {
                Ok(cached) => {
                    sum.of += Bytes(span.length);
                    sum.resident += Bytes(cached.resident);
                    sum.dirty = sum.dirty.zip(cached.dirty).map(|(sum, more)| sum + Bytes(more));
                }
                Err(error) => return Reading::unavailable(format!("{}: {error}", path.display())),
            }
        }
        Reading::Taken(sum)
    }

    /// Whether all of it is in memory; `None` if the kernel does not report it.
    pub fn is_resident(&self) -> Option<bool> {
        self.look().taken().map(|pages| pages.resident >= pages.of)
    }

    /// Reads all of it into memory.
    ///
    /// # Errors
    /// When a file cannot be read, or `progress` ends it.
    pub fn read_in(&self, progress: ReadProgress) -> Result<()> {
        let mut chunk = vec![0; CHUNK];
        for (path, span) in self.spans() {
            read_span(path, span, &mut chunk, progress)?;
        }
        Ok(())
    }

    /// Writes dirty pages back and drops all pages, so that the next read comes from storage.
    ///
    /// # Errors
    /// When a file cannot be opened or written back.
    pub fn drop_pages(&self) -> Result<()> {
        for (path, span) in self.spans() {
            let file = File::open(path).map_err(|error| Error::file(path, "opening", error))?;
            // Only clean pages can be dropped.
            file.sync_data().map_err(|error| Error::file(path, "writing back dirty pages", error))?;
            drop_span(&file, path, span)?;
        }
        Ok(())
    }
}

/// Applies a job's `invalidate` to its files, as fio does when a job starts: dirty pages stay. Not earlier, because an
/// earlier phase may use the same file from memory. `pre_read` reads them in instead.
pub fn set_cache(copy: &JobCopy, interruption: &Interruption) -> Result<()> {
    if copy.plan.files.opening.pre_read {
        return CachedFiles::of([copy]).read_in(&mut |_, _, _| !interruption.is_requested());
    }
    let invalidates = copy.plan.invalidates();
    let files = copy.targets.iter().filter(|target| invalidates && !target.path.as_os_str().is_empty());
    for target in files {
        let file = File::open(&target.path).map_err(|error| Error::file(&target.path, "opening", error))?;
        drop_span(&file, &target.path, target.span)?;
    }
    Ok(())
}

/// Asks the kernel to drop the cached pages of a part of a file. Dirty ones stay.
///
/// # Errors
/// When the kernel refuses.
fn drop_span(file: &File, path: &Path, span: Span) -> Result<()> {
    let length = NonZeroU64::new(span.length);
    rustix::fs::fadvise(file, span.begin, length, rustix::fs::Advice::DontNeed)
        .map_err(|error| Error::file(path, "dropping cached pages", error.into()))
}

fn read_span(path: &Path, span: Span, chunk: &mut [u8], progress: ReadProgress) -> Result<()> {
    let failed = |error| Error::file(path, "reading the file into the page cache", error);
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(span.begin)).map_err(failed)?;
    let mut done = 0;
    while done < span.length {
        if !progress(path, done, span.length) {
            return Err(Error::Interrupted(format!("while reading {} into the page cache", path.display())));
        }
        let wanted = usize::try_from(span.length - done).unwrap_or(CHUNK).min(CHUNK);
        match file.read(chunk.get_mut(..wanted).unwrap_or_default()) {
            // The file became shorter; its next reader reports that.
            Ok(0) => return Ok(()),
            Ok(read) => done += read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

fn is_cached_at_all(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() || metadata.file_type().is_block_device())
}

/// Spans that overlap or touch become one.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.begin);
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.begin <= last.begin.saturating_add(last.length) => {
                let end = span.begin.saturating_add(span.length).max(last.begin.saturating_add(last.length));
                last.length = end - last.begin;
            }
            _ => joined.push(span),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::target::Target;
    use model::plan::JobPlan;
    use std::io::Write;

    const MIB: u64 = 1 << 20;

    fn file_of(mib: u64) -> tempfile::NamedTempFile {
        // In the working folder: a temporary folder may be in memory, where nothing can be dropped.
        let mut file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.write_all(&vec![7; (mib * MIB) as usize]).unwrap();
        file.as_file().sync_all().unwrap();
        file
    }

    fn files(path: &Path, plan: &JobPlan, spans: &[(u64, u64)]) -> CachedFiles {
        let target = |(begin, length): &(u64, u64)| Target {
            path: path.to_owned(),
            span: Span { begin: *begin, length: *length, beyond: 0 },
        };
        CachedFiles::of([&JobCopy { plan, number: 0, targets: spans.iter().map(target).collect(), replay: None }])
    }

    #[test]
    fn dropped_files_are_cold_and_read_in_files_are_warm() {
        let file = file_of(4);
        let files = files(file.path(), &JobPlan::default(), &[(MIB, 2 * MIB)]);
        let resident = || files.look().taken().and_then(CachedPages::fraction);
        assert_eq!((files.bytes(), resident()), (2 * MIB, Some(1.0)));
        files.drop_pages().unwrap();
        if resident() == Some(1.0) {
            // A file system in memory keeps its pages.
            return;
        }
        assert_eq!((resident(), files.is_resident()), (Some(0.0), Some(false)));
        files.read_in(&mut |_, _, _| true).unwrap();
        assert_eq!((resident(), files.is_resident()), (Some(1.0), Some(true)));
        let ended = files.read_in(&mut |_, _, _| false).unwrap_err();
        assert!(matches!(ended, Error::Interrupted(_)), "{ended}");
    }

    #[test]
    fn parts_are_counted_once_and_direct_io_is_not_counted() {
        let file = file_of(1);
        let half = MIB / 2;
        let all = files(file.path(), &JobPlan::default(), &[(half, half), (0, half), (half / 2, half)]);
        assert_eq!(all.bytes(), MIB);
        assert!(files(file.path(), &JobPlan { direct: true, ..JobPlan::default() }, &[(0, MIB)]).is_empty());
        assert!(files(Path::new("/dev/zero"), &JobPlan::default(), &[(0, MIB)]).is_empty());
        assert!(files(Path::new("/no/such/file"), &JobPlan::default(), &[(0, MIB)]).is_empty());
    }
}
