//! Reads the records in a sample buffer. Pure: bytes in, events out.
//!
//! A record is a header (`struct perf_event_header`: type, mode flags, size) and a body, as include/uapi/linux/perf_event.h describes under
//! `enum perf_event_type`.

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

/// Calls `each` for every record in `bytes`, which starts at a record. Skips unknown types; a record that does not fit ends the reading,
/// because the next one cannot be located.
pub(super) fn read<'a>(mut bytes: &'a [u8], mut each: impl FnMut(SampleEvent<'a>)) {
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

/// The registers in [`super::stack_sampler::REGISTERS`], which the kernel writes in the order of their numbers
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
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, words: &[u64], tail: &[u8]) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        body.extend_from_slice(tail);
        let size = u16::try_from(HEADER_SIZE + body.len()).unwrap();
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes()[..], &size.to_ne_bytes()[..], &body].concat()
    }

    fn events(bytes: &[u8]) -> Vec<SampleEvent<'_>> {
        let mut events = Vec::new();
        read(bytes, |event| events.push(event));
        events
    }

    const IDS: u64 = 8 << 32 | 7;

    #[test]
    fn a_sample_has_its_chain_registers_and_the_filled_part_of_its_stack() {
        let user_context = (-512i64).cast_unsigned();
        let words = [IDS, 5, CONTEXT_KERNEL, 100, 90, user_context, 40, 2, 1, 2, 3, 16, 11, 22, 8];
        let bytes = record(RECORD_SAMPLE, 1, &words, &[]);
        let [SampleEvent::Sample(sample)] = &events(&bytes)[..] else { panic!() };
        assert_eq!((sample.process, sample.thread), (7, 8));
        assert_eq!(sample.kernel, [100, 90]);
        assert_eq!(sample.registers, Some(registers([1, 2, 3])));
        assert_eq!(sample.stack, 11u64.to_ne_bytes());
    }

    #[test]
    fn a_thread_of_the_kernel_has_no_registers() {
        let bytes = record(RECORD_SAMPLE, 1, &[IDS, 2, CONTEXT_KERNEL, 100, 0, 0], &[]);
        let [SampleEvent::Sample(sample)] = &events(&bytes)[..] else { panic!() };
        assert_eq!((sample.registers, sample.stack, sample.kernel.as_slice()), (None, &[][..], &[100][..]));
    }

    #[test]
    fn mappings_names_processes_and_losses_are_read_and_other_records_skipped() {
        let bytes = [
            record(RECORD_MMAP2, 2, &[IDS, 4096, 8192, 512, 0, 99, 0, 5], b"/bin/true\0\0"),
            record(RECORD_COMM, MISC_COMM_EXEC, &[IDS], b"true\0\0\0\0"),
            record(RECORD_FORK, 0, &[3 << 32 | 7, 0, 0], &[]),
            record(RECORD_LOST, 0, &[1, 40], &[]),
            record(5, 0, &[0; 3], &[]),
        ]
        .concat();
        let mapped = Mapped { process: 7, begin: 4096, length: 8192, offset: 512, inode: 99, path: b"/bin/true" };
        let named = Named { process: 7, thread: 8, name: b"true", executed: true };
        let forked = Forked { process: 7, parent: 3 };
        let expected = [
            SampleEvent::Mapped(mapped),
            SampleEvent::Named(named),
            SampleEvent::Forked(forked),
            SampleEvent::Lost(40),
        ];
        assert_eq!(events(&bytes), expected);
    }

    #[test]
    fn truncated_and_invalid_records_are_left_out() {
        let whole = record(RECORD_LOST, 0, &[1, 40], &[]);
        let torn = [&whole[..], &whole[..20]].concat();
        assert_eq!(events(&torn).len(), 1);
        assert_eq!(events(&[0; 64]), []);
        assert_eq!(events(&record(RECORD_SAMPLE, 1, &[IDS, u64::MAX, 3], &[])), []);
        assert_eq!(events(&record(RECORD_SAMPLE, 1, &[IDS, 0, 0, u64::MAX], &[])), []);
        assert_eq!(events(&record(RECORD_MMAP2, 1, &[IDS], &[])), []);
    }
}
