//! A timer that fires on one CPU and records what it interrupted: the calls in the kernel, and the registers and stack of the program.
//!
//! It says what ran; it does not measure how long. The timer is of the same kind as those that the load sleeps by, so the share of
//! samples in a load that runs right after its timers is not its share of time (docs/method/meters.md: under half of the true cost
//! for a load that sleeps). The period below prevents the two from running in phase, which is all that a sampler can
//! do. While enabled, it also wakes the CPU at every period, idle or not.

use super::{
    Attributes, FLAG_COMM, FLAG_COMM_EXEC, FLAG_DISABLED, FLAG_EXCLUDE_CALLCHAIN_USER, FLAG_MMAP, FLAG_MMAP2,
    FLAG_TASK, SAMPLE_CALLCHAIN, SAMPLE_REGS_USER, SAMPLE_STACK_USER, SAMPLE_TID, SOFTWARE_CPU_CLOCK, TYPE_SOFTWARE,
    control, described, open_on_cpu,
};
use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// 724 samples a second: below the 1 kHz from which sampling costs throughput.
///
/// Timers of 1, 4 and 10 ms are everywhere: the kernel's tick, timeouts, polling loops. A period close to one of them
/// samples the same phase repeatedly: 997 Hz moves through a millisecond in steps of 3 µs and covers a seventh of it in
/// a slice of 50 ms. This is 1 ms × (1 + 1/φ²) with φ the golden ratio, the ratio furthest from small fractions, so
/// that any series of samples spreads over the phases of such a timer as evenly as its number allows. The number of
/// nanoseconds is prime, so no whole number divides it either.
pub const DEFAULT_PERIOD_NANOS: u64 = 1_381_967;

/// Frame, stack and instruction pointer: PERF_REG_X86_BP, SP and IP.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// Link register, stack and program counter: PERF_REG_ARM64_LR, SP and PC.
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 30 | 1 << 31 | 1 << 32;

/// How much of a program's stack is copied. fio keeps so much on it that less than nearly all that a record can hold does not reach the
/// first function of its threads; the kernel takes off what the rest of the record needs.
const STACK_BYTES: u32 = 65_528;

/// 128 samples with whole stacks: 170 ms at the default period. Users without CAP_IPC_LOCK may have only some 512 KiB in all
/// (perf_event_mlock_kb), so less is tried next.
const RING_PAGES: [NonZeroUsize; 4] = [
    NonZeroUsize::new(2048).unwrap(),
    NonZeroUsize::new(512).unwrap(),
    NonZeroUsize::new(256).unwrap(),
    NonZeroUsize::new(32).unwrap(),
];
/// Pages of all CPUs together: 512 MiB, which 64 CPUs need for the longest rings; 256 CPUs have 2 MiB each, 43 ms.
const PAGES_OF_ALL: usize = 131_072;

const IOCTL_ENABLE: libc::c_ulong = 0x2400;
const IOCTL_DISABLE: libc::c_ulong = 0x2401;

/// Samples of what runs on one CPU.
pub struct StackSampler {
    // Declared before the event, so that the mapping is dropped first.
    ring: Ring,
    event: OwnedFd,
    taken: Vec<u8>,
}

impl StackSampler {
    /// Opens a sampler for `cpu`, one of `cpus`, not running yet.
    pub fn open_cpu(cpu: u32, cpus: usize, period_nanos: u64) -> io::Result<Self> {
        let mut refused = None;
        let shortest = RING_PAGES.iter().copied().min();
        let fits = |pages: &NonZeroUsize| pages.get() <= PAGES_OF_ALL / cpus.max(1) || Some(*pages) == shortest;
        for pages in RING_PAGES.into_iter().filter(fits) {
            match Self::open_with_ring(cpu, period_nanos, pages) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied || refused.is_none() => {
                    refused = Some(error);
                }
                opened => return opened,
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::OutOfMemory.into()))
    }

    fn open_with_ring(cpu: u32, period_nanos: u64, pages: NonZeroUsize) -> io::Result<Self> {
        let event = open_on_cpu(
            Attributes {
                kind: TYPE_SOFTWARE,
                config: SOFTWARE_CPU_CLOCK,
                sample_period: period_nanos,
                sample_type: SAMPLE_TID | SAMPLE_CALLCHAIN | SAMPLE_REGS_USER | SAMPLE_STACK_USER,
                flags: FLAG_DISABLED
                    | FLAG_MMAP
                    | FLAG_COMM
                    | FLAG_TASK
                    | FLAG_EXCLUDE_CALLCHAIN_USER
                    | FLAG_MMAP2
                    | FLAG_COMM_EXEC,
                sample_regs_user: REGISTERS,
                sample_stack_user: STACK_BYTES,
                ..Attributes::default()
            },
            cpu,
        )?;
        let ring = Ring::map(&event, pages).map_err(described)?;
        Ok(Self { ring, event, taken: Vec::new() })
    }

    /// Starts sampling.
    pub fn enable(&self) -> io::Result<()> {
        control(&self.event, IOCTL_ENABLE)
    }

    /// Stops sampling. Samples stay available to [`take`](Self::take).
    pub fn disable(&self) -> io::Result<()> {
        control(&self.event, IOCTL_DISABLE)
    }

    /// Takes what was written since the last call, and frees its space.
    pub fn take(&mut self) {
        self.ring.take(&mut self.taken);
    }

    /// Passes on what was taken, in its order.
    ///
    /// The kernel reports losses with the next record that fits, so they can be one call late.
    pub fn events(&self, each: impl FnMut(SampleEvent<'_>)) {
        read(&self.taken, each);
    }
}

/// Offsets in `struct perf_event_mmap_page` of include/uapi/linux/perf_event.h.
const DATA_HEAD_OFFSET: usize = 1024;
const DATA_TAIL_OFFSET: usize = 1032;

/// A mapped sample buffer.
///
/// The ring buffer in which the kernel delivers samples: one page of control data, then the ring.
///
/// The kernel writes at `data_head`, this process reads at `data_tail`; both only grow, and their remainder modulo the
/// ring size is the position. The kernel never writes between tail and head, so those bytes are stable until the tail
/// moves. No slice of the shared memory is ever created: bytes are copied out first.
struct Ring {
    base: NonNull<u8>,
    /// Size of the control page, and so the offset of the ring.
    page: usize,
    /// Size of the ring: a power of two.
    size: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to the thread that created it; the other party is the
// kernel, with which the atomics below synchronise.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a buffer of `pages` pages of samples, rounded up to a power of two as the kernel requires.
    fn map(event: &OwnedFd, pages: NonZeroUsize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let too_large = || io::Error::from(io::ErrorKind::InvalidInput);
        let size = pages.get().checked_next_power_of_two().and_then(|pages| pages.checked_mul(page));
        let size = size.ok_or_else(too_large)?;
        let length = size.checked_add(page).ok_or_else(too_large)?;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps nothing.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, page, size })
    }

    /// Moves all bytes that the kernel has finished writing into `into`, oldest first, and frees their space.
    fn take(&mut self, into: &mut Vec<u8>) {
        into.clear();
        // Acquire: the records before the head are complete.
        let head = self.position(DATA_HEAD_OFFSET).load(Ordering::Acquire);
        // Only this process moves the tail.
        let tail = self.position(DATA_TAIL_OFFSET).load(Ordering::Relaxed);
        for piece in pieces(tail, head, self.size) {
            let length = piece.len();
            into.reserve(length);
            // SAFETY: `pieces` returns ranges inside the ring, which is behind the control page in the mapping; the
            // kernel does not write between tail and head; `into` has room for `length` more bytes, which are
            // initialised before they are included in its length.
            unsafe {
                let from = self.base.as_ptr().add(self.page + piece.start);
                let to = into.as_mut_ptr().add(into.len());
                std::ptr::copy_nonoverlapping(from, to, length);
                into.set_len(into.len() + length);
            }
        }
        // Release: the bytes have been copied before the kernel may overwrite them.
        self.position(DATA_TAIL_OFFSET).store(head, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are in the control page, which lives as long as `self`, and are multiples of 8 from a
        // page boundary; the kernel reads and writes these words as whole words.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}

/// The ranges of the bytes from `tail` to `head` in a ring of `size` bytes: one, or two if they wrap around.
fn pieces(tail: u64, head: u64, size: usize) -> [Range<usize>; 2] {
    let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(usize::MAX).min(size);
    let start = usize::try_from(tail % size as u64).unwrap_or(0);
    let first = length.min(size - start);
    [start..start + first, 0..length - first]
}

/// Something that the kernel wrote into the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleEvent<'a> {
    /// What ran when the timer fired.
    Sample(Sample<'a>),
    /// A process or a thread began.
    Forked(Forked),
    /// A thread has a name.
    Named(Named<'a>),
    /// A process mapped a file that it may execute.
    Mapped(Mapped<'a>),
    /// The kernel dropped this number of records, because the buffer was full.
    Lost(u64),
}

/// What ran on a CPU at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample<'a> {
    /// 0 for the idle task.
    pub process: u32,
    /// 0 for the idle task.
    pub thread: u32,
    /// Addresses in the kernel, the innermost first. All but the first are return addresses.
    pub kernel: Vec<u64>,
    /// Registers in user mode; `None` for a thread of the kernel.
    pub registers: Option<UserRegisters>,
    /// The bytes from the stack pointer on, as many as were asked for or are there.
    pub stack: &'a [u8],
}

/// Registers from which a stack can be unwound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserRegisters {
    /// The next instruction.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The frame pointer.
    pub frame: u64,
    /// The link register, on CPUs that have one.
    pub link: u64,
}

/// A process or a thread that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forked {
    /// Its process: that of its parent, if it is a thread.
    pub process: u32,
    /// The process that made it.
    pub parent: u32,
}

/// A name of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// Its process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The name.
    pub name: &'a [u8],
    /// Whether it has it because it started another program: none of the earlier mappings of the process exist any more.
    pub executed: bool,
}

/// A mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped<'a> {
    /// The process.
    pub process: u32,
    /// Its first address.
    pub begin: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Of its first byte in the file.
    pub offset: u64,
    /// The number of the file in its file system.
    pub inode: u64,
    /// The file, as the process sees it.
    pub path: &'a [u8],
}

const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const RECORD_MMAP2: u32 = 10;
const MISC_COMM_EXEC: u16 = 1 << 13;
const HEADER_SIZE: usize = 8;
/// Call chains contain markers of contexts (`PERF_CONTEXT_*`): the addresses above this one.
const FIRST_CONTEXT: u64 = u64::MAX - 4094;
const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();

/// A record is a header (`struct perf_event_header`: type, mode flags, size) and a body, as include/uapi/linux/perf_event.h describes under
/// `enum perf_event_type`.
///
/// Calls `each` for every record in `bytes`, which starts at a record. Skips unknown types; a record that does not fit ends the reading,
/// because the next one cannot be located.
fn read<'a>(mut bytes: &'a [u8], mut each: impl FnMut(SampleEvent<'a>)) {
    while let Some((kind, misc, body, rest)) = split(bytes) {
        let event = match kind {
            RECORD_SAMPLE => sample(Words(body)).map(SampleEvent::Sample),
            RECORD_LOST => Words(body).skipping(1).next().map(SampleEvent::Lost),
            RECORD_COMM => named(misc, Words(body)).map(SampleEvent::Named),
            RECORD_FORK => {
                Words(body).next().map(|ids| SampleEvent::Forked(Forked { process: low(ids), parent: high(ids) }))
            }
            RECORD_MMAP2 => mapped(Words(body)).map(SampleEvent::Mapped),
            _ => None,
        };
        event.into_iter().for_each(&mut each);
        bytes = rest;
    }
}

/// Type, mode flags, and body of the first record, and the bytes behind it.
fn split(bytes: &[u8]) -> Option<(u32, u16, &[u8], &[u8])> {
    let (header, _) = bytes.split_first_chunk::<HEADER_SIZE>()?;
    let [k0, k1, k2, k3, m0, m1, s0, s1] = *header;
    let size = usize::from(u16::from_ne_bytes([s0, s1]));
    let body = bytes.get(HEADER_SIZE..size)?;
    let rest = bytes.get(size..)?;
    Some((u32::from_ne_bytes([k0, k1, k2, k3]), u16::from_ne_bytes([m0, m1]), body, rest))
}

/// A body, word by word.
struct Words<'a>(&'a [u8]);

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
}

impl Words<'_> {
    fn skipping(mut self, words: usize) -> Self {
        self.0 = self.0.get(words * 8..).unwrap_or_default();
        self
    }
}

/// Process and thread are the halves of a word.
fn low(ids: u64) -> u32 {
    u32::try_from(ids & u64::from(u32::MAX)).unwrap_or(0)
}

fn high(ids: u64) -> u32 {
    low(ids >> 32)
}

/// The process and thread, the chain of calls, the registers and the stack, in the order of their bits in `sample_type`.
fn sample(mut words: Words<'_>) -> Option<Sample<'_>> {
    let ids = words.next()?;
    let mut kernel = Vec::new();
    let mut in_kernel = false;
    for _ in 0..words.next()? {
        match words.next()? {
            context if context >= FIRST_CONTEXT => in_kernel = context == CONTEXT_KERNEL,
            address if in_kernel => kernel.push(address),
            _ => {}
        }
    }
    // 0: none, 1: of 32 bits, 2: of 64 bits.
    let registers = match words.next()? {
        0 => None,
        _ => Some(registers([words.next()?, words.next()?, words.next()?])),
    };
    let length = usize::try_from(words.next()?).ok()?;
    let copied = words.0.get(..length)?;
    // Behind the room for the copy stands how much of it was filled.
    let filled = words.0.get(length..).and_then(|rest| Words(rest).next()).unwrap_or(0);
    let filled = usize::try_from(filled).unwrap_or(0);
    Some(Sample {
        process: low(ids),
        thread: high(ids),
        kernel,
        registers,
        stack: copied.get(..filled).unwrap_or(copied),
    })
}

/// The registers in [`REGISTERS`], which the kernel writes in the order of their numbers
/// (arch/*/include/uapi/asm/perf_regs.h).
#[cfg(target_arch = "x86_64")]
fn registers([frame, stack, instruction]: [u64; 3]) -> UserRegisters {
    UserRegisters { instruction, stack, frame, link: 0 }
}

#[cfg(target_arch = "aarch64")]
fn registers([link, stack, instruction]: [u64; 3]) -> UserRegisters {
    UserRegisters { instruction, stack, frame: 0, link }
}

/// Process and thread; the name.
fn named(misc: u16, mut words: Words<'_>) -> Option<Named<'_>> {
    let ids = words.next()?;
    let executed = misc & MISC_COMM_EXEC != 0;
    Some(Named { process: low(ids), thread: high(ids), name: text(words.0), executed })
}

/// Process, address, length and offset; the device, the number of the file, its generation, and 8 bytes of protection; the path.
fn mapped(mut words: Words<'_>) -> Option<Mapped<'_>> {
    let (process, begin, length, offset) = (low(words.next()?), words.next()?, words.next()?, words.next()?);
    let (_device, inode) = (words.next()?, words.next()?);
    Some(Mapped { process, begin, length, offset, inode, path: text(words.skipping(2).0) })
}

/// Up to the first byte that is 0.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
