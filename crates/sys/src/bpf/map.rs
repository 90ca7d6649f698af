//! Memory that programs share with this process: arrays that it maps, and hash tables.

use super::{Command, Error, address, address_mut, call, object_name, open};
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

#[repr(C)]
struct Create {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
}

const HASH: u32 = 1;
const ARRAY: u32 = 2;
const FLAG_MAPPABLE: u32 = 1 << 10;

fn create(name: &str, kind: u32, key_size: u32, value_size: u32, entries: u32, flags: u32) -> Result<OwnedFd, Error> {
    let name = object_name(name);
    let mut attributes = Create { kind, key_size, value_size, entries, flags, inner: 0, node: 0, name };
    // SAFETY: the structure has the attributes of this command, without addresses.
    let created = unsafe { open(Command::MapCreate, &mut attributes, size_of::<Create>()) };
    created.map_err(|error| Error::new("making a BPF map", error))
}

/// An array of values that programs find by number, and that this process reads and writes as memory.
pub struct ArrayMap {
    descriptor: OwnedFd,
    memory: NonNull<AtomicU64>,
    /// Mapped.
    bytes: usize,
    words: usize,
    words_of_value: usize,
}

// SAFETY: the memory is accessed only through atomics, and only the owner unmaps it.
unsafe impl Send for ArrayMap {}
// SAFETY: as above.
unsafe impl Sync for ArrayMap {}

impl ArrayMap {
    /// An array of `entries` values of 0, each of `words` words of 64 bits.
    ///
    /// # Errors
    /// Without the right, the memory, or the kernel's support.
    pub fn create(name: &str, words: usize, entries: usize) -> Result<Self, Error> {
        const ATTEMPT: &str = "making a BPF map";
        let too_large = || Error::no_memory(ATTEMPT);
        let value_size = words.checked_mul(8).and_then(|bytes| u32::try_from(bytes).ok()).ok_or_else(too_large)?;
        let all = words.checked_mul(entries).ok_or_else(too_large)?;
        let bytes = all.checked_mul(8).and_then(|bytes| bytes.checked_next_multiple_of(rustix::param::page_size()));
        let bytes = bytes.ok_or_else(too_large)?;
        let count = u32::try_from(entries).map_err(|_| too_large())?;
        let descriptor = create(name, ARRAY, 4, value_size, count, FLAG_MAPPABLE)?;
        let (protection, flags) =
            (rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE, rustix::mm::MapFlags::SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses aliases nothing, and an array has all its pages.
        let memory = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, flags, &descriptor, 0) };
        let memory = memory.map_err(|error| Error::new(ATTEMPT, error.into()))?;
        let memory = NonNull::new(memory.cast()).ok_or_else(too_large)?;
        Ok(Self { descriptor, memory, bytes, words: all, words_of_value: words })
    }

    /// The words of each value, in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &[AtomicU64]> {
        self.words().chunks_exact(self.words_of_value.max(1))
    }

    /// The words of all values.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, has at least this many words, lives as long as `self`, and is accessed
        // only through atomics (programs access whole aligned words), for which every bit pattern is valid.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.words) }
    }
}

impl Drop for ArrayMap {
    fn drop(&mut self) {
        // SAFETY: `create` made this mapping with this length, and no reference to it remains. Unmapping a complete
        // mapping does not fail.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

impl AsFd for ArrayMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl fmt::Debug for ArrayMap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ArrayMap").field("words", &self.words).finish_non_exhaustive()
    }
}

/// A hash table from a word to `WORDS` words of 64 bits, which programs fill.
#[derive(Debug)]
pub struct HashMap<const WORDS: usize> {
    descriptor: OwnedFd,
    capacity: u32,
}

#[repr(C)]
struct Batch {
    after: u64,
    last: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

/// Entries that one system call reads.
const BATCH: u32 = 4096;

impl<const WORDS: usize> HashMap<WORDS> {
    /// An empty table with memory for `capacity` entries.
    ///
    /// # Errors
    /// Without the right, the memory, or the kernel's support.
    pub fn create(name: &str, capacity: u32) -> Result<Self, Error> {
        let value_size = WORDS.checked_mul(8).and_then(|bytes| u32::try_from(bytes).ok());
        let value_size = value_size.ok_or_else(|| Error::no_memory("making a BPF map"))?;
        Ok(Self { descriptor: create(name, HASH, 8, value_size, capacity, 0)?, capacity })
    }

    /// Removes and returns all entries.
    ///
    /// # Errors
    /// As bpf(2).
    pub fn drain(&self) -> Result<Vec<(u64, [u64; WORDS])>, Error> {
        // No bucket has more entries than the table; a batch has at least all entries of one bucket.
        let most = self.capacity.min(BATCH);
        let length = usize::try_from(most).unwrap_or(usize::MAX);
        let mut keys = vec![0u64; length];
        let mut values = vec![[0u64; WORDS]; length];
        let mut entries = Vec::new();
        let mut position: Option<u64> = None;
        loop {
            let mut last = 0u64;
            let mut attributes = Batch {
                after: position.as_ref().map_or(0, address),
                last: address_mut(&mut last),
                keys: address_mut(keys.as_mut_slice()),
                values: address_mut(values.as_mut_slice()),
                count: most,
                map: self.descriptor.as_raw_fd().unsigned_abs(),
                element_flags: 0,
                flags: 0,
            };
            // SAFETY: the structure has the attributes of this command. Keys and values have room for `count` entries
            // of the table's sizes, positions are at most 8 bytes, and all live during the call.
            let read = unsafe { call(Command::MapLookupAndDeleteBatch, &mut attributes, size_of::<Batch>()) };
            let end = match read {
                Ok(_) => false,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
                Err(error) => return Err(Error::new("reading a BPF map", error)),
            };
            let count = usize::try_from(attributes.count).unwrap_or(0);
            entries.extend(keys.iter().copied().zip(values.iter().copied()).take(count));
            if end {
                return Ok(entries);
            }
            position = Some(last);
        }
    }
}

impl<const WORDS: usize> AsFd for HashMap<WORDS> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
