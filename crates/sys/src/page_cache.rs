//! Reports how much of a file is in the kernel's page cache, and how much of that is dirty. Changes nothing in the
//! cache.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// cachestat(2), Linux 6.5; the number is the same on every architecture that has it (include/uapi/asm-generic/unistd.h).
const CACHESTAT: libc::c_long = 451;
/// The fallback maps this many bytes of a file at a time: a multiple of every page size, with a 64 KiB result vector at
/// 4 KiB per page.
const MAPPED_AT_A_TIME: u64 = 256 << 20;

/// Cached bytes of a range of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// Bytes in the page cache, in whole pages.
    pub resident: u64,
    /// Of these, dirty bytes and bytes under write-back. `None` if the kernel lacks cachestat(2).
    pub dirty: Option<u64>,
}

/// Queries the page cache for `length` bytes from `begin`. Reads no data and changes nothing in the cache. Takes some
/// 15 ns per resident page with cachestat(2), more with mincore(2).
///
/// # Errors
/// When the kernel does not report it: for a pipe or character device, or a file of another user.
pub fn cached(file: &File, begin: u64, length: u64) -> io::Result<Cached> {
    match cachestat(file, begin, length) {
        // A seccomp filter may return EPERM for an unknown system call.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            Ok(Cached { resident: mincore(file, begin, length)?, dirty: None })
        }
        // On overlayfs, cachestat(2) inspects the overlay's own inode, which never has pages; a mapping refers to the
        // underlying file.
        Ok(told) if told.resident == 0 && is_on_overlay(file) => {
            Ok(Cached { resident: mincore(file, begin, length).unwrap_or(0), dirty: told.dirty })
        }
        told => told,
    }
}

fn is_on_overlay(file: &File) -> bool {
    /// OVERLAYFS_SUPER_MAGIC of linux/magic.h.
    const OVERLAY: i64 = 0x794c_7630;
    rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type == OVERLAY)
}

/// struct cachestat_range of linux/mman.h.
#[repr(C)]
struct Range {
    offset: u64,
    length: u64,
}

/// struct cachestat of linux/mman.h, in pages.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn cachestat(file: &File, begin: u64, length: u64) -> io::Result<Cached> {
    if length == 0 {
        // The kernel treats length 0 as the rest of the file.
        return Ok(Cached { resident: 0, dirty: Some(0) });
    }
    let (range, mut pages) = (Range { offset: begin, length }, Pages::default());
    // SAFETY: both structures have the kernel's layout and outlive the call; flags must be 0.
    let told = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut pages, 0) };
    if told != 0 {
        return Err(io::Error::last_os_error());
    }
    let bytes = |pages: u64| pages.saturating_mul(rustix::param::page_size() as u64);
    Ok(Cached { resident: bytes(pages.cached), dirty: Some(bytes(pages.dirty.saturating_add(pages.writeback))) })
}

/// Bytes of the range that mincore(2) reports as resident.
fn mincore(file: &File, begin: u64, length: u64) -> io::Result<u64> {
    let page = rustix::param::page_size() as u64;
    // A file that grows while it is written may yet be much shorter than the range. A device has no length here.
    let there = file.metadata().map(|metadata| if metadata.is_file() { metadata.len() } else { u64::MAX })?;
    let (mut at, end) = (begin / page * page, begin.saturating_add(length).min(there));
    let mut resident = 0;
    while at < end {
        let chunk = (end - at).min(MAPPED_AT_A_TIME);
        resident += resident_pages(file, at, chunk)? * page;
        at += chunk;
    }
    Ok(resident)
}

fn resident_pages(file: &File, begin: u64, length: u64) -> io::Result<u64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let bytes = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut flags = vec![0_u8; bytes.div_ceil(rustix::param::page_size())];
    // SAFETY: a new mapping at an address that the kernel chooses; nothing here accesses the memory.
    let memory = unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, begin) }?;
    // SAFETY: the range is the mapping, and `flags` has one byte per page.
    let told = unsafe { libc::mincore(memory.cast(), bytes, flags.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping was created above and has no references.
    unsafe { munmap(memory, bytes) }?;
    if told == 0 { Ok(flags.iter().filter(|flags| **flags & 1 == 1).count() as u64) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LENGTH: u64 = 1 << 20;

    fn written() -> File {
        // In the working folder: a temporary folder may be in memory, whose pages cannot be dropped.
        let mut file = tempfile::tempfile_in(".").unwrap();
        file.write_all(&vec![7; LENGTH as usize]).unwrap();
        file
    }

    #[test]
    fn a_range_far_beyond_the_end_is_looked_up_at_once() {
        let file = written();
        assert_eq!(mincore(&file, 0, 1 << 60).unwrap(), mincore(&file, 0, LENGTH).unwrap());
        assert_eq!(mincore(&file, 1 << 40, 1 << 60).unwrap(), 0);
    }

    #[test]
    fn written_data_are_resident_and_both_methods_agree() {
        let file = written();
        let told = cached(&file, 0, LENGTH).unwrap();
        assert_eq!(told.resident, LENGTH);
        assert_eq!(mincore(&file, 0, LENGTH).unwrap(), LENGTH);
        assert_eq!(cached(&file, 0, 0).unwrap().resident, 0);
        assert_eq!(mincore(&file, LENGTH, 0).unwrap(), 0);
    }

    #[test]
    fn dropped_pages_are_not_resident() {
        let file = written();
        file.sync_all().unwrap();
        let half = std::num::NonZeroU64::new(LENGTH / 2);
        rustix::fs::fadvise(&file, 0, half, rustix::fs::Advice::DontNeed).unwrap();
        let told = cached(&file, 0, LENGTH).unwrap();
        if told.resident == LENGTH {
            // A file system in memory keeps its pages.
            return;
        }
        assert_eq!((told.resident, told.dirty.unwrap_or(0)), (LENGTH / 2, 0));
        assert_eq!(mincore(&file, 0, LENGTH).unwrap(), LENGTH / 2);
        assert_eq!(cached(&file, 0, LENGTH / 2).unwrap().resident, 0);
    }

    #[test]
    fn a_pipe_has_no_page_cache() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let told = cached(&File::from(std::os::fd::OwnedFd::from(reader)), 0, LENGTH);
        assert!(told.is_err() || told.is_ok_and(|told| told.resident == 0));
    }
}
