//! What a job writes, block by block, and whether what it reads is what was written. Only jobs that ask for it have a payload: others
//! write their buffers as they were filled once.

mod filler;
mod marks;

use super::JobCopy;
use super::request_source::{Kind, Request, seed as job_seed};
use filler::Filler;
use marks::{Marks, WRONG, Write};
use model::plan::{Access, JobPlan, Pattern, VerifyMethod};
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

#[cfg(test)]
mod tests;
