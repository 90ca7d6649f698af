//! Block I/O through io_uring: one ring for one thread, with registered files, buffers, and ring descriptor. In:
//! transfers of slots; out: completions.

use crate::buffer::AlignedBuffer;
use crate::ring_slots::{Completion, Ring, Slots, Transfer, Way};
use io_uring::{IoUring, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// How a ring asks the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// Buffers are registered once, before the first I/O, not looked up for each.
    pub registered_buffers: bool,
    /// The same for files.
    pub registered_files: bool,
    /// Completions are polled from the device (IORING_SETUP_IOPOLL).
    pub polled: bool,
    /// A kernel thread takes submissions (IORING_SETUP_SQPOLL).
    pub submission_thread: bool,
    /// One transfer in this many is handed to a worker of the kernel (IOSQE_ASYNC); 0 means none.
    pub force_async: u32,
    /// Flags of each transfer, as in preadv2(2).
    pub flags: i32,
}

/// Sets up a small io_uring and closes it. A sysctl, a seccomp profile, or the kernel configuration can refuse it, so
/// only an attempt shows whether this process may use it.
pub fn probe() -> io::Result<()> {
    const ENTRIES: u32 = 2;
    IoUring::new(ENTRIES).map(drop)
}

/// An io_uring that transfers slots to and from files.
pub struct BlockRing {
    // Dropped before `slots`: closing the ring ends all kernel access to the memory.
    ring: IoUring,
    pub(crate) slots: Slots,
    asking: Asking,
    /// Transfers until the next one that a worker gets.
    until_async: u32,
    syscalls: u64,
}

impl BlockRing {
    /// Creates a ring with `count` slots in `buffer`.
    ///
    /// # Errors
    /// As io_uring_setup(2) and io_uring_register(2): EPERM or ENOSYS when io_uring is not allowed, ENOMEM when the
    /// registered buffers exceed RLIMIT_MEMLOCK.
    pub fn new(files: Vec<File>, buffer: AlignedBuffer, count: u32, asking: Asking) -> io::Result<Self> {
        let slots = Slots::new(files, buffer, count)?;
        let ring = Self::set_up(count, asking)?;
        if asking.registered_buffers {
            let vectors: Vec<libc::iovec> = (0..slots.count() as usize)
                .map(|index| libc::iovec { iov_base: slots.address(index).cast(), iov_len: slots.slot_bytes() })
                .collect();
            // SAFETY: the vectors describe the arena, which `slots` owns until after the ring is closed.
            unsafe { ring.submitter().register_buffers(&vectors)? };
        }
        if asking.registered_files {
            let descriptors: Vec<RawFd> = slots.files.iter().map(AsRawFd::as_raw_fd).collect();
            ring.submitter().register_files(&descriptors)?;
        }
        // Saves the descriptor look-up in each system call (5.18). Optional: older kernels work without it.
        let _ = ring.submitter().register_ring_fd();
        Ok(Self { ring, slots, asking, until_async: asking.force_async, syscalls: 0 })
    }

    fn set_up(count: u32, asking: Asking) -> io::Result<IoUring> {
        /// The kernel's default time before its thread sleeps.
        const IDLE_MILLIS: u32 = 1000;
        let entries = count.next_power_of_two();
        let plain = !asking.submission_thread && !asking.polled;
        let mut builder = IoUring::builder();
        builder.setup_cqsize(entries * 2);
        if asking.polled {
            builder.setup_iopoll();
        }
        if asking.submission_thread {
            builder.setup_single_issuer().setup_sqpoll(IDLE_MILLIS);
        }
        if plain {
            // One thread submits and reaps, so completions can run when it asks for them (6.1).
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        }
        match builder.build(entries) {
            // Older kernels refuse the flags and get a plain ring.
            Err(error) if plain && error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
            other => other,
        }
    }

    /// With `force_async`, each Nth transfer is not tried in this thread.
    #[cold]
    fn async_flags(&mut self) -> squeue::Flags {
        self.until_async -= 1;
        if self.until_async > 0 {
            return squeue::Flags::empty();
        }
        self.until_async = self.asking.force_async;
        squeue::Flags::ASYNC
    }

    #[inline]
    fn entry(&self, slot: u32, transfer: &Transfer, address: *mut u8, flags: squeue::Flags) -> squeue::Entry {
        // A registered file is identified by its index and a flag, in the descriptor field.
        let (file, flags) = if self.asking.registered_files {
            (types::Fd(transfer.file as RawFd), flags | squeue::Flags::FIXED_FILE)
        } else {
            (types::Fd(self.slots.files[transfer.file as usize].as_raw_fd()), flags)
        };
        let (length, offset, index) = (transfer.length, transfer.offset, slot as u16);
        let asked = self.asking.flags;
        match (self.asking.registered_buffers, transfer.way) {
            (true, Way::Read) => {
                opcode::ReadFixed::new(file, address, length, index).offset(offset).rw_flags(asked).build()
            }
            (true, Way::Write) => {
                opcode::WriteFixed::new(file, address, length, index).offset(offset).rw_flags(asked).build()
            }
            (false, Way::Read) => opcode::Read::new(file, address, length).offset(offset).rw_flags(asked).build(),
            (false, Way::Write) => opcode::Write::new(file, address, length).offset(offset).rw_flags(asked).build(),
        }
        .flags(flags)
    }

    fn enter(&mut self, least: usize) -> io::Result<()> {
        loop {
            // A kernel thread that takes submissions needs a call only when it sleeps.
            let calls = !self.asking.submission_thread || self.ring.submission().need_wakeup();
            self.syscalls += u64::from(calls);
            match self.ring.submit_and_wait(least) {
                Ok(_) => {
                    // A kernel thread takes submissions in its own time.
                    let staged = !self.asking.submission_thread && !self.ring.submission().is_empty();
                    let short = staged || self.ring.completion().len() < least;
                    if !short {
                        return Ok(());
                    }
                }
                // A signal: staged transfers stay staged, completions stay in the ring.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel lacks memory for requests, or completions have to be reaped first.
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY))
                        && !self.ring.completion().is_empty() =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Ring for BlockRing {
    fn slots(&self) -> &Slots {
        &self.slots
    }

    fn contents(&mut self, slot: u32, length: u32) -> Option<&mut [u8]> {
        self.slots.contents(slot, length)
    }

    #[inline]
    fn stage(&mut self, slot: u32, transfer: &Transfer) -> io::Result<()> {
        let address = self.slots.lend(slot, transfer);
        // Before the entry is built, so that it is written once.
        let flags = if self.asking.force_async > 0 { self.async_flags() } else { squeue::Flags::empty() };
        let entry = self.entry(slot, transfer, address, flags).user_data(slot.into());
        // A thread of the kernel may post a completion before it says that it took the entry.
        while self.asking.submission_thread && self.ring.submission().is_full() {
            std::hint::spin_loop();
        }
        // SAFETY: `lend` returned memory that stays valid and untouched until the completion is reaped, and the arena
        // and the files outlive the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            // Impossible while slots ≤ entries; returning the slot keeps the count correct regardless.
            self.slots.take_back(slot);
            return Err(io::Error::other("the submission ring is full"));
        }
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        if self.slots.in_flight() == 0 { Ok(()) } else { self.enter(0) }
    }

    /// One system call, or none if nothing is staged and the completions are already available. Where a kernel thread takes
    /// submissions, it spins for completions, as fio does: a sleeping wait would be the call that the thread saves.
    #[inline]
    fn wait(&mut self, least: u32, _: u32) -> io::Result<()> {
        let least = least.min(self.slots.in_flight()) as usize;
        if self.asking.submission_thread {
            self.enter(0)?;
            while self.ring.completion().len() < least {
                std::hint::spin_loop();
            }
            return Ok(());
        }
        let staged = !self.ring.submission().is_empty();
        // With deferred task work, the kernel may post a completion only during a system call.
        if !staged && self.ring.completion().len() >= least && !self.ring.submission().taskrun() {
            return Ok(());
        }
        self.enter(least)
    }

    #[inline(always)]
    fn reap(&mut self, most: u32, mut each: impl FnMut(Completion)) {
        let slots = &mut self.slots;
        for entry in self.ring.completion().take(most as usize) {
            let slot = entry.user_data() as u32;
            slots.take_back(slot);
            each(Completion { slot, result: entry.result() });
        }
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}

impl Drop for BlockRing {
    fn drop(&mut self) {
        // The kernel may write into the arena until the last completion, so wait for all of them.
        while self.slots.in_flight() > 0 {
            if self.wait(1, 1).is_err() {
                // The memory cannot be unmapped safely any more; leak it instead.
                if let Ok(empty) = AlignedBuffer::zeroed(1).and_then(|buffer| Slots::new(Vec::new(), buffer, 1)) {
                    std::mem::forget(std::mem::replace(&mut self.slots, empty));
                }
                return;
            }
            self.reap(u32::MAX, |_| {});
        }
    }
}
