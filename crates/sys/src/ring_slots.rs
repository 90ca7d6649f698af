//! Common to the asynchronous rings: transfers of slots to and from files.
//!
//! A ring owns its files and one arena of memory, divided into slots of equal size. A slot in flight belongs to the
//! kernel: it cannot be read, written, or staged again until its completion is reaped, and dropping the ring waits for
//! it.

use crate::buffer::AlignedBuffer;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// File to memory.
    Read,
    /// Memory to file.
    Write,
}

/// One transfer between a slot and a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Direction.
    pub way: Way,
    /// Index of the file.
    pub file: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes, at most the slot size.
    pub length: u32,
}

/// A completed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot.
    pub slot: u32,
    /// Bytes transferred, or the negated error number.
    pub result: i32,
}

/// A ring of the kernel, for one thread.
pub trait Ring {
    /// Its memory and files, for operations other than transfers.
    fn slots(&self) -> &Slots;

    /// The first bytes of a slot; `None` while it is in flight, or if it is shorter.
    fn contents(&mut self, slot: u32, length: u32) -> Option<&mut [u8]>;

    /// Stages a transfer for the next [`submit`](Self::submit) or [`wait`](Self::wait).
    ///
    /// # Panics
    /// When the slot is in flight or the transfer is larger than the slot.
    fn stage(&mut self, slot: u32, transfer: &Transfer) -> io::Result<()>;

    /// Submits the staged transfers, if there are any. If the kernel has no room while others are in flight, the rest stays staged for
    /// the next call.
    ///
    /// # Errors
    /// Also when the kernel refuses a transfer immediately, for example one not aligned for O_DIRECT: it has no
    /// completion.
    fn submit(&mut self) -> io::Result<()>;

    /// Submits the staged transfers, then waits for at least `least` completions; takes up to `most` if it takes any.
    fn wait(&mut self, least: u32, most: u32) -> io::Result<()>;

    /// Passes up to `most` completions to `each`.
    fn reap(&mut self, most: u32, each: impl FnMut(Completion));

    /// Submitting and waiting system calls so far.
    fn syscalls(&self) -> u64;
}

/// The memory and files of a ring, and which slots are in flight.
#[derive(Debug)]
pub struct Slots {
    pub(crate) files: Vec<OwnedFd>,
    buffer: AlignedBuffer,
    slot_bytes: usize,
    busy: Vec<bool>,
    in_flight: u32,
}

impl Slots {
    pub(crate) fn new(files: Vec<File>, buffer: AlignedBuffer, count: u32) -> io::Result<Self> {
        let slots = usize::try_from(count).unwrap_or(usize::MAX);
        let slot_bytes = buffer.len().checked_div(slots).filter(|bytes| *bytes > 0);
        let needed = "a ring needs at least one slot of at least one byte";
        let slot_bytes = slot_bytes.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, needed))?;
        let files = files.into_iter().map(OwnedFd::from).collect();
        Ok(Self { files, buffer, slot_bytes, busy: vec![false; slots], in_flight: 0 })
    }

    pub(crate) fn count(&self) -> u32 {
        self.busy.len() as u32
    }

    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// The files.
    pub fn files(&self) -> &[OwnedFd] {
        &self.files
    }

    /// Transfers staged or in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Marks the slot as in flight and returns the address that the kernel may use.
    ///
    /// # Panics
    /// When the slot is in flight or does not exist, or the transfer does not fit: a bug in the caller, which would
    /// otherwise give the kernel memory outside the slot.
    #[inline(always)]
    pub(crate) fn lend(&mut self, slot: u32, transfer: &Transfer) -> *mut u8 {
        let index = slot as usize;
        assert!(!self.busy[index], "slot {slot} is already in flight");
        assert!(transfer.length as usize <= self.slot_bytes, "transfer larger than its slot");
        assert!((transfer.file as usize) < self.files.len(), "no file {}", transfer.file);
        self.busy[index] = true;
        self.in_flight += 1;
        self.buffer.pointer().wrapping_add(index * self.slot_bytes)
    }

    #[inline(always)]
    pub(crate) fn take_back(&mut self, slot: u32) {
        if std::mem::replace(&mut self.busy[slot as usize], false) {
            self.in_flight -= 1;
        }
    }

    /// Address of slot `index`, to register with the kernel.
    pub(crate) fn address(&self, index: usize) -> *mut u8 {
        self.buffer.pointer().wrapping_add(index * self.slot_bytes)
    }

    /// The first bytes of a slot; `None` while it is in flight, or if it is shorter.
    pub(crate) fn contents(&mut self, slot: u32, length: u32) -> Option<&mut [u8]> {
        let (index, length) = (usize::try_from(slot).ok()?, usize::try_from(length).ok()?);
        if *self.busy.get(index)? || length > self.slot_bytes {
            return None;
        }
        let begin = index * self.slot_bytes;
        self.buffer.get_mut(begin..begin + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aio::AioContext;
    use crate::uring::{Asking, BlockRing};
    use std::os::unix::fs::FileExt;

    const SLOT: usize = 4096;

    /// A file that has no name any more.
    fn scratch(name: &str) -> File {
        let path = std::env::temp_dir().join(format!("iotoll-sys-{name}-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len(16 * SLOT as u64).unwrap();
        file
    }

    fn transfer(way: Way, block: u64) -> Transfer {
        Transfer { way, file: 0, offset: block * SLOT as u64, length: SLOT as u32 }
    }

    #[test]
    fn slots_written_by_one_ring_are_read_back_by_another() {
        let file = scratch("rings");
        let arena = || AlignedBuffer::zeroed(4 * SLOT).unwrap();
        let mut aio = AioContext::new(vec![file.try_clone().unwrap()], arena(), 4).unwrap();
        for slot in 0..4 {
            aio.slots.contents(slot, SLOT as u32).unwrap().fill(slot as u8 + 1);
            aio.stage(slot, &transfer(Way::Write, slot.into())).unwrap();
            assert!(aio.slots.contents(slot, SLOT as u32).is_none(), "a slot in flight belongs to the kernel");
        }
        let mut done = 0;
        while done < 4 {
            aio.wait(1, 4).unwrap();
            aio.reap(4, |completion| {
                assert_eq!(completion.result, SLOT as i32);
                done += 1;
            });
        }
        assert_eq!(aio.slots().in_flight(), 0);
        for registered in [true, false] {
            let asking = Asking { registered_buffers: registered, registered_files: registered, ..Asking::default() };
            let mut ring = BlockRing::new(vec![file.try_clone().unwrap()], arena(), 4, asking).unwrap();
            for slot in 0..4 {
                ring.stage(slot, &transfer(Way::Read, slot.into())).unwrap();
            }
            ring.wait(4, 4).unwrap();
            let mut done = 0;
            ring.reap(u32::MAX, |completion| {
                assert_eq!(completion.result, SLOT as i32);
                done += 1;
            });
            assert_eq!((done, ring.slots.in_flight(), ring.syscalls()), (4, 0, 1));
            for slot in 0..4u32 {
                assert!(ring.slots.contents(slot, SLOT as u32).unwrap().iter().all(|byte| *byte == slot as u8 + 1));
            }
        }
    }

    #[test]
    fn a_ring_with_a_thread_of_the_kernel_waits_without_calls() {
        let file = scratch("thread");
        let asking = Asking { submission_thread: true, registered_files: true, ..Asking::default() };
        let mut ring = BlockRing::new(vec![file], AlignedBuffer::zeroed(SLOT).unwrap(), 1, asking).unwrap();
        for _ in 0..64 {
            ring.stage(0, &transfer(Way::Read, 3)).unwrap();
            ring.wait(1, 1).unwrap();
            ring.reap(1, |completion| assert_eq!(completion.result, SLOT as i32));
        }
        assert!(ring.slots.in_flight() == 0 && ring.syscalls() < 8, "{}", ring.syscalls());
    }

    #[test]
    fn dropping_a_ring_waits_for_io_in_flight() {
        let file = scratch("drop");
        file.write_all_at(&[9; SLOT], 0).unwrap();
        let arena = AlignedBuffer::zeroed(4 * SLOT).unwrap();
        let mut ring = BlockRing::new(vec![file], arena, 4, Asking::default()).unwrap();
        (0..4).for_each(|slot| ring.stage(slot, &transfer(Way::Read, 0)).unwrap());
        ring.submit().unwrap();
        drop(ring);
    }

    #[test]
    #[should_panic(expected = "already in flight")]
    fn a_slot_in_flight_cannot_be_staged_again() {
        let arena = AlignedBuffer::zeroed(4 * SLOT).unwrap();
        let mut slots = Slots::new(vec![File::open("/proc/self/exe").unwrap()], arena, 4).unwrap();
        slots.lend(1, &transfer(Way::Read, 0));
        slots.lend(1, &transfer(Way::Read, 0));
    }
}
