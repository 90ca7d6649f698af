//! What a job writes, block by block, and whether what it reads is what was written. Only jobs that ask for it have a payload: others
//! write their buffers as they were filled once.

mod filler;

use super::request_source::{Kind, Request, seed as job_seed};
use crate::worker_pool::JobCopy;
use crc::{Algorithm, Crc, Table};
use filler::Filler;
use md5::Digest;
use model::plan::job::{Choice, word};
use model::plan::{Access, HEADER_BYTES, JobPlan, Pattern, VerifyMethod};
use model::record::Verified;
use model::unit::{Bytes, Hertz};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sys::clock::ticks;

/// The payload of one copy of a job.
pub struct Payload {
    fill: Fill,
    filler: Filler,
    marks: Option<Marks>,
    /// A pattern that is the whole block.
    bare: Option<Pattern>,
    checks: Checks,
    clock: Hertz,
    begin: u64,
    /// Seeds of this run, so that blocks of an earlier one are recognised.
    seed: u64,
    /// Writes so far.
    written: u64,
    /// Reads that come next and are to be checked against the write at the front of `numbers`.
    due: Arc<AtomicU64>,
    /// Numbers of writes that were not read back yet, in order.
    numbers: VecDeque<u64>,
    names: Vec<String>,
    /// Other copies of the job may write the same blocks, so that a block need not be this one's.
    shared: bool,
    job: String,
    /// What was read and checked.
    pub verified: Verified,
    /// The first wrong block.
    pub first_wrong: Option<String>,
    /// For what should be there.
    scratch: Vec<u8>,
}

/// What happens to a block before it is written.
enum Fill {
    /// It was filled once.
    Once,
    Noise,
    /// The pattern of `verify_pattern`.
    Pattern(Pattern),
}

/// Which reads are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    None,
    /// Those that read back what was written.
    Due,
    All,
}

/// What a read is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The number of its write, if it is known.
    number: Option<u64>,
}

impl Payload {
    /// `None` if nothing happens to the job's blocks, except that buffers are filled once ([`fill_once`]).
    pub fn new(copy: &JobCopy, clock: Hertz) -> Option<Self> {
        let plan = copy.plan;
        let (content, verify) = (&plan.content, &plan.verify);
        let checked = verify.method.is_some();
        let compresses = (1..100).contains(&content.compress_percent);
        let steady = content.zero || content.pattern.is_some() && content.compress_percent == 0;
        let fill = match (&verify.pattern, plan.access.writes()) {
            (_, false) => Fill::Once,
            (Some(pattern), true) if checked => Fill::Pattern(pattern.clone()),
            _ if checked => Fill::Noise,
            _ if !steady && (content.refill || compresses || content.dedupe_percent > 0) => Fill::Noise,
            _ => Fill::Once,
        };
        let checks = match plan.access {
            _ if !checked => Checks::None,
            Access::Read => Checks::All,
            _ if verify.reads_between() => Checks::Due,
            _ => Checks::None,
        };
        if matches!(fill, Fill::Once) && checks == Checks::None {
            return None;
        }
        let bare = verify.pattern.clone().filter(|_| verify.method == Some(VerifyMethod::Pattern));
        let names = copy.targets.iter().map(|target| match &plan.path.uri {
            Some(uri) if target.path.as_os_str().is_empty() => uri.clone(),
            _ => target.path.display().to_string(),
        });
        let longest = usize::try_from(plan.largest_block().0).unwrap_or(0);
        let backlog = if checks == Checks::Due { verify.backlog as usize + 1 } else { 0 };
        Some(Self {
            fill,
            filler: Filler::new(plan, job_seed(plan, copy.number)),
            marks: Marks::new(plan, copy.number),
            bare,
            checks,
            clock,
            begin: ticks(),
            seed: sys::clock::monotonic_nanos() ^ u64::from(std::process::id()) << 40 ^ u64::from(copy.number) << 56,
            written: 0,
            due: Arc::default(),
            numbers: VecDeque::with_capacity(backlog),
            names: names.collect(),
            shared: plan.copies > 1 && (plan.path.uri.is_some() || !plan.target.files.is_empty()),
            job: plan.name.clone(),
            verified: Verified::default(),
            first_wrong: None,
            scratch: vec![0; if checked { longest } else { 0 }],
        })
    }

    /// The same job reads back what it wrote, also into files that others wrote to.
    pub fn reading_back(mut self, shared: bool) -> Self {
        self.shared |= shared;
        self.checks = Checks::All;
        self
    }

    /// The numbers of the writes that are read back next.
    pub fn expect(&mut self, numbers: impl IntoIterator<Item = u64>) {
        self.numbers.clear();
        self.numbers.extend(numbers);
        self.due.store(self.numbers.len() as u64, Relaxed);
    }

    /// The numbers of the writes that were not read back.
    pub fn numbers(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.numbers).into()
    }

    /// Counts the reads that are to be checked, where a job reads other blocks too.
    pub fn due(&self) -> Arc<AtomicU64> {
        self.due.clone()
    }

    /// Prepares a block that is about to be written.
    #[inline]
    pub fn before_write(&mut self, request: &Request, memory: &mut [u8]) {
        let number = self.written;
        self.written += 1;
        let seed = match &self.fill {
            Fill::Once => 0,
            Fill::Noise if self.marks.is_some() => {
                let seed = self.seed_of(number);
                self.filler.fill(seed, memory);
                seed
            }
            Fill::Noise => {
                let seed = self.filler.next_seed();
                self.filler.fill(seed, memory);
                0
            }
            Fill::Pattern(pattern) => {
                pattern.fill(memory, request.offset);
                0
            }
        };
        if let Some(marks) = &self.marks {
            let nanos = self.clock.nanos(model::unit::Ticks(ticks().saturating_sub(self.begin))).0;
            marks.mark(memory, request.offset, Write { seed, number, nanos });
        }
        if self.checks == Checks::Due {
            self.numbers.push_back(number);
        }
    }

    /// The seed of a marked block.
    fn seed_of(&self, number: u64) -> u64 {
        if matches!(self.fill, Fill::Pattern(_)) {
            return 0;
        }
        super::permutation::split_mix(&mut (self.seed ^ number))
    }

    /// What the next request has to be checked against once it is done; `None` if it is not checked.
    #[inline]
    pub fn expectation(&mut self, request: &Request) -> Option<Expected> {
        if request.kind != Kind::Read || self.checks == Checks::None {
            return None;
        }
        let due = self.due.load(Relaxed);
        if due > 0 {
            self.due.store(due - 1, Relaxed);
            return Some(Expected { number: self.numbers.pop_front().filter(|_| !self.shared) });
        }
        (self.checks == Checks::All).then_some(Expected { number: None })
    }

    /// Checks a block that was read. Returns the result of the read, or that it is wrong.
    pub fn after_read(&mut self, request: &Request, expected: Expected, moved: i32, memory: &[u8]) -> i32 {
        self.verified.ios += 1;
        self.verified.bytes += Bytes(u64::from(moved.unsigned_abs()));
        let whole = memory.len() == moved.unsigned_abs() as usize;
        let wrong = match (&self.bare, self.marks) {
            _ if !whole => Some(format!("only {moved} bytes of {} were read", memory.len())),
            (Some(pattern), _) => {
                let expected = self.scratch.get_mut(..memory.len()).unwrap_or_default();
                pattern.fill(expected, request.offset);
                let place = expected.iter().zip(memory.iter()).position(|(expected, found)| expected != found);
                place.map(|place| {
                    let byte = |bytes: &[u8]| bytes.get(place).copied().unwrap_or_default();
                    let (found, wanted) = (byte(memory), byte(expected));
                    format!("byte {place} is {found:#04x}, expected {wanted:#04x} of the pattern")
                })
            }
            (None, Some(marks)) => {
                let known = expected.number.map(|number| (self.seed_of(number), number));
                marks.check(memory, request.offset, known).err()
            }
            (None, None) => None,
        };
        match wrong {
            None => moved,
            Some(what) => self.note_wrong(request, &what),
        }
    }

    #[cold]
    fn note_wrong(&mut self, request: &Request, what: &str) -> i32 {
        self.verified.wrong += 1;
        let name = self.names.get(request.file as usize).cloned().unwrap_or_default();
        let place = format!("{name}: the block of {} bytes at offset {}", request.length, request.offset);
        self.first_wrong.get_or_insert_with(|| format!("{place}: {what}"));
        WRONG
    }

    /// What was wrong, in one line, with the counts.
    pub fn complaint(&self) -> Option<String> {
        let first = self.first_wrong.as_ref()?;
        let (wrong, all) = (self.verified.wrong, self.verified.ios);
        let blocks = if all == 1 { "block" } else { "blocks" };
        Some(format!("job '{}': verify: {first} ({wrong} of {all} {blocks} read back so far are wrong)", self.job))
    }
}

/// Fills the buffers of a job once, before its first I/O: with noise, zeros, or its pattern in each slot.
pub fn fill_once(plan: &JobPlan, memory: &mut [u8], slot: usize, noise: impl FnOnce(&mut [u8])) {
    let content = &plan.content;
    match &content.pattern {
        _ if content.zero => memory.fill(0),
        Some(pattern) if content.compress_percent == 0 || content.compress_percent == 100 => {
            memory.chunks_mut(slot.max(1)).for_each(|slot| pattern.fill(slot, 0));
        }
        None if content.compress_percent == 100 => memory.fill(0),
        _ => noise(memory),
    }
}

const HEADER: usize = HEADER_BYTES as usize;
const MAGIC: u16 = 0xacca;
const CRC_AT: usize = 36;

/// Marks blocks, and checks marks: headers of 40 bytes as fio 3.33 writes them, all numbers with their lowest byte first, with the checksum
/// of the bytes that follow.
///
/// | Bytes | |
/// |---|---|
/// | 0 | `0xacca` |
/// | 2 | the method's number |
/// | 4 | bytes that the header covers, itself included |
/// | 8 | the seed of the content |
/// | 16 | offset in the file |
/// | 24, 28 | seconds and nanoseconds since the job began |
/// | 32 | number of the job, from 1 |
/// | 34 | number of the write, from 0, in 16 bits |
/// | 36 | CRC-32C of the bytes before it |
#[derive(Clone, Copy)]
struct Marks {
    method: VerifyMethod,
    number: u16,
    /// Bytes of header and checksum.
    header: usize,
    thread: u16,
}

/// What a header says of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Write {
    seed: u64,
    number: u64,
    /// Nanoseconds since the job began.
    nanos: u64,
}

impl Marks {
    /// `None` if blocks have no headers.
    fn new(plan: &JobPlan, copy: u32) -> Option<Self> {
        let method = plan.verify.method?;
        let (number, header) = method.header()?;
        Some(Self { method, number, header: header as usize, thread: (copy as u16).wrapping_add(1) })
    }

    /// Marks a block that is complete but for its header.
    fn mark(&self, memory: &mut [u8], offset: u64, write: Write) {
        let length = memory.len();
        let Some((header, data)) = memory.split_at_mut_checked(self.header) else { return };
        let (front, sum) = header.split_at_mut(HEADER);
        checksum(self.method, data, sum);
        let fields: [&[u8]; 9] = [
            &MAGIC.to_le_bytes(),
            &self.number.to_le_bytes(),
            &(length as u32).to_le_bytes(),
            &write.seed.to_le_bytes(),
            &offset.to_le_bytes(),
            &((write.nanos / 1_000_000_000) as u32).to_le_bytes(),
            &((write.nanos % 1_000_000_000) as u32).to_le_bytes(),
            &self.thread.to_le_bytes(),
            &(write.number as u16).to_le_bytes(),
        ];
        let bytes = fields.into_iter().flatten();
        front.iter_mut().zip(bytes).for_each(|(byte, field)| *byte = *field);
        let (before, crc) = front.split_at_mut(CRC_AT);
        crc.copy_from_slice(&crc32c(before).to_le_bytes());
    }

    /// Checks a block. `expected`: seed and number of its write, if known.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn check(&self, part: &[u8], offset: u64, expected: Option<(u64, u64)>) -> Result<(), String> {
        let Some((header, data)) = part.split_at_checked(self.header) else {
            return Err(format!("has {} bytes, less than a header", part.len()));
        };
        let (front, sum) = header.split_at(HEADER);
        let field = |at: usize, bytes: usize| {
            let bytes = front.get(at..at + bytes).unwrap_or_default();
            bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let wrong = |what: &str, found: u64, wanted: u64| Err(format!("{what} is {found}, expected {wanted}"));
        if field(0, 2) != u64::from(MAGIC) {
            return Err(format!("has no header: it begins with {:#06x}, expected {MAGIC:#06x}", field(0, 2)));
        }
        let crc = u64::from(crc32c(front.get(..CRC_AT).unwrap_or_default()));
        if field(CRC_AT, 4) != crc {
            return Err(format!("the header's checksum is {:#010x}, expected {crc:#010x}", field(CRC_AT, 4)));
        }
        if field(4, 4) != part.len() as u64 {
            return wrong("the length in the header", field(4, 4), part.len() as u64);
        }
        if field(16, 8) != offset {
            return wrong("the offset in the header", field(16, 8), offset);
        }
        if let Some((seed, number)) = expected {
            if field(34, 2) != number & 0xffff {
                return wrong("the number of the write in the header", field(34, 2), number & 0xffff);
            }
            if field(8, 8) != seed {
                return Err(format!(
                    "is not of this run: the seed in its header is {:#x}, expected {seed:#x}",
                    field(8, 8)
                ));
            }
        }
        if field(2, 2) != u64::from(self.number) {
            let mut methods = VerifyMethod::words().into_iter();
            let there =
                methods.find(|(_, method)| method.header().is_some_and(|(number, _)| u64::from(number) == field(2, 2)));
            let there = there.map_or_else(|| format!("method {}", field(2, 2)), |(word, _)| word.to_owned());
            return Err(format!("was written with verify={there}"));
        }
        let mut computed = [0; 128];
        let computed = computed.get_mut(..sum.len()).unwrap_or_default();
        checksum(self.method, data, computed);
        if computed != sum {
            let word = word(self.method);
            return Err(format!("the {word} of its data is {}, expected {}", hexadecimal(computed), hexadecimal(sum)));
        }
        Ok(())
    }
}

/// −EILSEQ, as the engines report errors.
const WRONG: i32 = -84;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// The checksums of fio 3.33, with its own parameters: what fio stores is what counts, and tests read its files.

/// Neither the usual start nor the usual end, and not reflected.
static CRC32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0,
    residue: 0,
});

/// CRC-32C without the last exclusive or.
fn crc32c(data: &[u8]) -> u32 {
    !::crc32c::crc32c(data)
}

/// Writes the checksum of `data` to `out`, which has the length that the method's row says.
fn checksum(method: VerifyMethod, data: &[u8], out: &mut [u8]) {
    match method {
        VerifyMethod::Pattern => {}
        VerifyMethod::Crc32 => put(out, &CRC32.checksum(data).to_le_bytes()),
        VerifyMethod::Crc32c => put(out, &crc32c(data).to_le_bytes()),
        VerifyMethod::Md5 => put(out, &md5::Md5::digest(data)),
        VerifyMethod::Sha1 => {
            let mut digest = sha1::Sha1::digest(data);
            digest.chunks_mut(4).for_each(<[u8]>::reverse);
            put(out, &digest);
        }
        VerifyMethod::Xxhash => put(out, &xxhash_rust::xxh32::xxh32(data, 1).to_le_bytes()),
    }
}

fn put(out: &mut [u8], digest: &[u8]) {
    out.iter_mut().zip(digest).for_each(|(out, byte)| *out = *byte);
}

#[cfg(test)]
mod tests;
