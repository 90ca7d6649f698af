//! Block I/O through the kernel's native asynchronous I/O (which libaio wraps). In: transfers of slots; out:
//! completions.

use crate::buffer::AlignedBuffer;
use crate::ring_slots::{Completion, Ring, Slots, Transfer, Way};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `struct iocb` of linux/aio_abi.h, little-endian.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_descriptor: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
/// A native asynchronous I/O context that transfers slots to and from files.
pub struct AioContext {
    context: libc::c_ulong,
    pub(crate) slots: Slots,
    blocks: Vec<ControlBlock>,
    /// Addresses of the control blocks to submit next, as io_submit takes them.
    staged: Vec<u64>,
    submitted: u32,
    events: Vec<Event>,
    ready: std::ops::Range<usize>,
    syscalls: u64,
}

impl AioContext {
    /// Creates a context with `count` slots in `buffer`.
    ///
    /// # Errors
    /// EAGAIN when the system-wide limit (`fs.aio-max-nr`) is reached; ENOSYS when the kernel lacks the feature.
    pub fn new(files: Vec<File>, buffer: AlignedBuffer, count: u32) -> io::Result<Self> {
        let slots = Slots::new(files, buffer, count)?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: io_setup writes the context id to the pointer, which must point to zero.
        if unsafe { libc::syscall(libc::SYS_io_setup, libc::c_ulong::from(count), &mut context) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let length = count as usize;
        Ok(Self {
            context,
            slots,
            blocks: vec![ControlBlock::default(); length],
            staged: Vec::with_capacity(length),
            submitted: 0,
            events: vec![Event::default(); length],
            ready: 0..0,
            syscalls: 0,
        })
    }
}

impl Ring for AioContext {
    fn slots(&self) -> &Slots {
        &self.slots
    }

    fn contents(&mut self, slot: u32, length: u32) -> Option<&mut [u8]> {
        self.slots.contents(slot, length)
    }

    #[inline]
    fn stage(&mut self, slot: u32, transfer: &Transfer) -> io::Result<()> {
        let address = self.slots.lend(slot, transfer);
        let descriptor = self.slots.files[transfer.file as usize].as_raw_fd();
        self.blocks[slot as usize] = ControlBlock {
            data: slot.into(),
            opcode: if transfer.way == Way::Read { PREAD } else { PWRITE },
            descriptor: descriptor.cast_unsigned(),
            buffer: address as u64,
            length: transfer.length.into(),
            offset: transfer.offset.cast_signed(),
            ..ControlBlock::default()
        };
        self.staged.push(&raw mut self.blocks[slot as usize] as u64);
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        while !self.staged.is_empty() {
            self.syscalls += 1;
            let (count, pointers) = (self.staged.len() as libc::c_long, self.staged.as_ptr());
            // SAFETY: each address is that of one of our control blocks, whose buffer `lend` reserved until its
            // completion; the blocks do not move, because the vector's length never changes.
            let accepted = unsafe { libc::syscall(libc::SYS_io_submit, self.context, count, pointers) };
            match usize::try_from(accepted) {
                Ok(0) => return Err(io::Error::other("the kernel accepted no transfer")),
                Ok(accepted) => {
                    self.staged.drain(..accepted.min(self.staged.len()));
                    self.submitted += accepted as u32;
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    match error.raw_os_error() {
                        Some(libc::EINTR) => {}
                        Some(libc::EAGAIN) if self.submitted > 0 => return Ok(()),
                        _ => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        self.submit()?;
        let most = (most.max(1) as usize).min(self.events.len());
        let least = (least.min(self.submitted) as usize).min(most);
        let mut have = 0;
        loop {
            self.syscalls += 1;
            // SAFETY: `events` has room for `most - have` more events; a null timeout waits forever.
            let taken = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    least.saturating_sub(have) as libc::c_long,
                    (most - have) as libc::c_long,
                    self.events.as_mut_ptr().add(have),
                    std::ptr::null_mut::<libc::timespec>(),
                )
            };
            match usize::try_from(taken) {
                Ok(taken) => {
                    have += taken;
                    self.submitted -= taken as u32;
                }
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
            if have >= least {
                self.ready = 0..have;
                return Ok(());
            }
        }
    }

    #[inline(always)]
    fn reap(&mut self, _: u32, mut each: impl FnMut(Completion)) {
        for index in std::mem::replace(&mut self.ready, 0..0) {
            let event = self.events[index];
            let slot = event.data as u32;
            self.slots.take_back(slot);
            each(Completion { slot, result: i32::try_from(event.result).unwrap_or(i32::MAX) });
        }
    }

    fn syscalls(&self) -> u64 {
        self.syscalls
    }
}

impl Drop for AioContext {
    fn drop(&mut self) {
        // io_destroy waits for all I/O in flight; after it, the kernel no longer uses the arena.
        // SAFETY: the context was created by `new` and is destroyed only once.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
