//! Block I/O through the asynchronous I/O of the C library (aio_read and others), which threads of its own perform. In:
//! transfers of slots; out: completions.

use crate::buffer::AlignedBuffer;
use crate::ring_slots::{Completion, Slots, Transfer, Way};
use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

// The libc crate has the structure, but not the functions.
// SAFETY: these are the declarations of aio.h.
unsafe extern "C" {
    fn aio_read(block: *mut libc::aiocb) -> libc::c_int;
    fn aio_write(block: *mut libc::aiocb) -> libc::c_int;
    fn aio_fsync(operation: libc::c_int, block: *mut libc::aiocb) -> libc::c_int;
    fn aio_error(block: *const libc::aiocb) -> libc::c_int;
    fn aio_return(block: *mut libc::aiocb) -> libc::ssize_t;
    fn aio_suspend(
        blocks: *const *const libc::aiocb,
        count: libc::c_int,
        timeout: *const libc::timespec,
    ) -> libc::c_int;
}

/// As many blocks are waited for at a time: as in fio, the oldest ones.
const WAITED_FOR: usize = 8;

/// Transfers slots to and from files.
pub struct PosixAio {
    slots: Slots,
    /// A control block for each slot, and one for syncs. Threads of the library read and write those in flight.
    blocks: Box<[UnsafeCell<libc::aiocb>]>,
    /// Slots in flight, the oldest first.
    waiting: Vec<u32>,
    done: Vec<Completion>,
}

impl PosixAio {
    /// Has `count` slots in `buffer`. Threads of the library use descriptors by their numbers, whichever thread started them: all
    /// users in a process must have one table of descriptors.
    ///
    /// # Errors
    /// When the buffer is too small.
    pub fn new(files: Vec<File>, buffer: AlignedBuffer, count: u32) -> io::Result<Self> {
        let slots = Slots::new(files, buffer, count)?;
        let blocks = (0..=count).map(|_| UnsafeCell::new(empty())).collect();
        let room = count as usize;
        Ok(Self { slots, blocks, waiting: Vec::with_capacity(room), done: Vec::with_capacity(room) })
    }

    /// Hands a transfer to the library.
    ///
    /// # Errors
    /// When the library has no memory or no thread for it.
    ///
    /// # Panics
    /// When the slot is in flight or the transfer is larger than the slot.
    #[inline]
    pub fn start(&mut self, slot: u32, transfer: &Transfer) -> io::Result<()> {
        let address = self.slots.lend(slot, transfer);
        let block = self.blocks[slot as usize].get();
        let outcome = {
            let mut filled = empty();
            filled.aio_fildes = self.slots.files[transfer.file as usize].as_raw_fd();
            filled.aio_buf = address.cast();
            filled.aio_nbytes = transfer.length as usize;
            filled.aio_offset = transfer.offset.cast_signed();
            // SAFETY: `lend` made sure that this slot is not in flight, so nothing else uses its block, and reserved the
            // memory until its completion; the blocks do not move, and dropping waits for those in flight.
            unsafe {
                block.write(filled);
                if transfer.way == Way::Read { aio_read(block) } else { aio_write(block) }
            }
        };
        if outcome != 0 {
            let error = io::Error::last_os_error();
            self.slots.take_back(slot);
            return Err(error);
        }
        self.waiting.push(slot);
        Ok(())
    }

    /// Waits until at least `least` transfers are done, and takes at most `most`.
    pub fn wait(&mut self, least: u32, most: u32) {
        let (waiting, done) = (self.waiting.len(), self.done.len());
        let least = (least as usize).min(waiting + done);
        let most = (most.max(1) as usize).max(least);
        loop {
            self.look(most);
            if self.done.len() >= least {
                return;
            }
            self.suspend();
        }
    }

    /// Takes what is done.
    fn look(&mut self, most: usize) {
        let Self { blocks, waiting, done, .. } = self;
        waiting.retain(|&slot| {
            if done.len() >= most {
                return true;
            }
            let block = blocks[slot as usize].get();
            // SAFETY: the block was handed over by `start`, and its result was not taken yet.
            let error = unsafe { aio_error(block) };
            if error == libc::EINPROGRESS {
                return true;
            }
            // SAFETY: it is done, and this takes its result, once.
            let moved = unsafe { aio_return(block) };
            let result = if error == 0 { i32::try_from(moved).unwrap_or(i32::MAX) } else { -error };
            done.push(Completion { slot, result });
            false
        });
    }

    /// Sleeps until one of the oldest transfers is done, or a signal comes.
    fn suspend(&self) {
        let mut list = [std::ptr::null::<libc::aiocb>(); WAITED_FOR];
        for (place, slot) in list.iter_mut().zip(&self.waiting) {
            *place = self.blocks[*slot as usize].get();
        }
        // SAFETY: each pointer is null, which the library skips, or one of our blocks, which do not move.
        unsafe { aio_suspend(list.as_ptr(), WAITED_FOR as libc::c_int, std::ptr::null()) };
    }

    /// Passes what [`wait`](Self::wait) found to `each`.
    #[inline]
    pub fn reap(&mut self, mut each: impl FnMut(Completion)) {
        for completion in self.done.drain(..) {
            self.slots.take_back(completion.slot);
            each(completion);
        }
    }

    /// Calls fsync in a thread of the library, and waits for it. As in fio, also where fdatasync would do.
    ///
    /// # Errors
    /// As fsync(2).
    pub fn sync(&mut self, file: u32) -> io::Result<()> {
        let (Some(file), Some(block)) = (self.slots.files.get(file as usize), self.blocks.last()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut filled = empty();
        filled.aio_fildes = file.as_raw_fd();
        let block = block.get();
        let list = [block.cast_const()];
        // SAFETY: the last block is no slot's, and only in flight within this function.
        unsafe {
            block.write(filled);
            if aio_fsync(libc::O_SYNC, block) != 0 {
                return Err(io::Error::last_os_error());
            }
            loop {
                match aio_error(block) {
                    libc::EINPROGRESS => aio_suspend(list.as_ptr(), 1, std::ptr::null()),
                    error => {
                        aio_return(block);
                        return if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) };
                    }
                };
            }
        }
    }

    /// Transfers in flight, or done and not yet taken.
    pub fn in_flight(&self) -> u32 {
        self.slots.in_flight()
    }

    /// Puts another file at this index, and returns the one that was there.
    ///
    /// # Errors
    /// When transfers are in flight, because the library knows the file by its descriptor; when there is no such index.
    pub fn replace_file(&mut self, index: u32, file: File) -> io::Result<File> {
        let in_flight = self.in_flight() > 0;
        match self.slots.files.get_mut(index as usize) {
            Some(place) if !in_flight => Ok(std::mem::replace(place, file)),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The first bytes of a slot; `None` while it is in flight, or if it is shorter.
    pub fn contents(&mut self, slot: u32, length: u32) -> Option<&mut [u8]> {
        self.slots.contents(slot, length)
    }

    /// The files, for operations other than transfers.
    pub fn files(&self) -> &[File] {
        &self.slots.files
    }
}

impl Drop for PosixAio {
    fn drop(&mut self) {
        while !self.waiting.is_empty() {
            self.look(usize::MAX);
            if !self.waiting.is_empty() {
                self.suspend();
            }
        }
    }
}

fn empty() -> libc::aiocb {
    // SAFETY: a control block of zeros is valid: no memory, and the next line asks for no signal of its completion.
    let mut block: libc::aiocb = unsafe { std::mem::zeroed() };
    block.aio_sigevent.sigev_notify = libc::SIGEV_NONE;
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: usize = 4096;

    #[test]
    fn slots_are_written_synced_and_read_back_and_errors_are_results() {
        let file = tempfile::tempfile().unwrap();
        let closed = File::open("/dev/null").unwrap();
        let mut aio = PosixAio::new(vec![file, closed], AlignedBuffer::zeroed(16 * SLOT).unwrap(), 16).unwrap();
        let transfer =
            |way, file, block: u32| Transfer { way, file, offset: u64::from(block) * SLOT as u64, length: SLOT as u32 };
        let mut run = |way, fill: bool| {
            for slot in 0..16 {
                aio.contents(slot, SLOT as u32).unwrap().fill(if fill { slot as u8 + 1 } else { 0 });
                aio.start(slot, &transfer(way, 0, slot)).unwrap();
                assert!(aio.contents(slot, 1).is_none(), "a slot in flight belongs to the library");
            }
            let mut results = Vec::new();
            while results.len() < 16 {
                aio.wait(3, 5);
                let before = results.len();
                aio.reap(|completion| results.push(completion.result));
                let took = results.len() - before;
                assert!((3.min(16 - before)..=5).contains(&took), "{took}");
            }
            assert_eq!((results, aio.in_flight()), (vec![SLOT as i32; 16], 0));
        };
        run(Way::Write, true);
        run(Way::Read, false);
        for slot in 0..16_u32 {
            assert!(aio.contents(slot, SLOT as u32).unwrap().iter().all(|byte| *byte == slot as u8 + 1));
        }
        aio.sync(0).unwrap();
        assert_eq!(aio.sync(1).unwrap_err().raw_os_error(), Some(libc::EINVAL), "/dev/null cannot be synced");
        // Not open for writing.
        aio.start(2, &transfer(Way::Write, 1, 0)).unwrap();
        assert!(aio.replace_file(0, File::open("/dev/null").unwrap()).is_err());
        aio.wait(1, 1);
        let mut results = Vec::new();
        aio.reap(|completion| results.push((completion.slot, completion.result)));
        assert_eq!(results, [(2, -libc::EBADF)]);
        // Dropping waits for what is in flight.
        aio.start(2, &transfer(Way::Read, 0, 0)).unwrap();
    }
}
