//! Generates a job's requests: direction, file, offset and length, until its amount is done.

mod varied;

#[cfg(test)]
mod tests;

use self::varied::Varied;
use super::percent_of;
use super::permutation::{Permutation, below, split_mix};
use super::target::Span;
use super::turn::Turn;
use model::plan::{Access, Distribution, Each, JobPlan, Order, Queue, Size, Sizes};

/// One I/O to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Direction.
    pub kind: Kind,
    /// Index of the file.
    pub file: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

/// Directions, as table indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// From the file.
    Read = 0,
    /// To the file.
    Write = 1,
    /// Discard.
    Trim = 2,
}

impl Kind {
    /// All, in the order of their indices.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];
}

/// The sequence of a job's requests. It consists of passes over the files, as fio's does: a pass ends when its bytes
/// are issued, or when no file has a block left for the next request; the next pass begins at the beginning of each
/// file.
#[derive(Clone, Debug)]
pub struct RequestSource {
    access: Access,
    lengths: [u32; 3],
    /// Per file, a cursor for each direction. In random order, reads and writes of equal block size share the first one, like
    /// fio's map of blocks.
    cursors: Vec<[Cursor; 3]>,
    shared: bool,
    file: usize,
    /// `None` if the files simply take turns.
    turn: Option<Box<Turn>>,
    /// From a file to the next: 0 if `turn` says which one is next.
    step: usize,
    /// Files without a block for the rest of the pass.
    done: Vec<bool>,
    /// How many of them there are.
    closed: usize,
    dice: u64,
    read_threshold: u64,
    /// Whether the job both reads and writes.
    mixed: bool,
    /// The direction of the next request, drawn ahead.
    rolled: Option<Kind>,
    to_write: Option<Request>,
    /// What replaces the cursors of a job with several sizes, or another order than plainly sequential or random.
    varied: Option<Box<Varied>>,
    /// These requests, the last one first, instead of drawn ones.
    listed: Option<Vec<Request>>,
    amount: Amount,
    /// Passes do not end with these bytes, so each cursor goes back by itself.
    wraps: bool,
    /// Bytes issued in this pass.
    issued: u64,
    /// Passes that ended.
    passes: u64,
}

/// The place of one direction in the part of a file.
#[derive(Clone, Debug)]
struct Cursor {
    begin: u64,
    blocks: u64,
    position: Position,
}

#[derive(Clone, Debug)]
enum Position {
    Next(u64),
    Walk(Permutation),
    Draw(u64),
}

impl Cursor {
    /// Blocks until it is at its end.
    fn left(&self) -> u64 {
        match &self.position {
            Position::Next(next) => self.blocks.saturating_sub(*next),
            Position::Walk(walk) => walk.left().min(self.blocks),
            Position::Draw(_) if self.blocks > 0 => u64::MAX,
            Position::Draw(_) => 0,
        }
    }

    #[inline(always)]
    fn step(&mut self) -> u64 {
        match &mut self.position {
            Position::Next(next) => {
                let block = if *next >= self.blocks { 0 } else { *next };
                *next = block + 1;
                block
            }
            Position::Walk(walk) => walk.step(),
            Position::Draw(state) => below(split_mix(state), self.blocks),
        }
    }

    fn restart(&mut self) {
        match &mut self.position {
            Position::Next(next) => *next = 0,
            Position::Walk(walk) => walk.restart(),
            Position::Draw(_) => {}
        }
    }
}

/// The bytes that a job still has to move: passes over its files, until they are moved. The rules are fio's.
#[derive(Clone, Debug)]
struct Amount {
    /// Bytes of a whole pass, if bytes end it.
    pass: u64,
    /// Bytes of the pass that runs; fewer than a whole pass where the job ends within it.
    here: u64,
    /// Bytes of the passes before it.
    before: u64,
    /// The job ends at this number of bytes, even within a pass.
    most: u64,
    /// With `io_size`, passes are added to those of `loops` until this is moved …
    least: u64,
    /// … or less than this is missing: the largest block.
    block: u64,
    /// Passes that `loops` still asks for.
    passes_left: u64,
    /// `time_based`: only time ends the job.
    endless: bool,
}

impl Amount {
    /// The amount of a copy of a job that uses these parts of its files.
    fn new(plan: &JobPlan, spans: &[Span]) -> Self {
        let sum =
            |percent: u8| spans.iter().fold(0, |sum: u64, span| sum.saturating_add(percent_of(span.length, percent)));
        // A percentage of io_size makes the passes themselves shorter.
        let (size, io_size) = match plan.duration.io_size {
            None => (sum(100), None),
            Some(Size::Percent(percent)) => (sum(percent), None),
            Some(Size::Bytes(bytes)) => (sum(100), Some(bytes.0)),
        };
        // `size` limits what a pass over files of their own size moves.
        let size = match (plan.files.each, plan.target.size) {
            (Some(_), Some(Size::Bytes(most))) => size.min(most.0),
            _ => size,
        };
        // Each block is moved twice.
        let times = if plan.access == Access::TrimWrite { 2 } else { 1 };
        let free = plan.order == Order::Random && plan.sets_no_random_map() && plan.access.writes();
        // fio counts the bytes of a pass only for engines that queue; with others, a pass ends where its files do.
        let pass = match (plan.engine.queue(), free) {
            (Queue::Deep, true) => size.max(io_size.unwrap_or(0)).saturating_mul(times),
            (Queue::Deep, false) => size.saturating_mul(times),
            _ => u64::MAX,
        };
        let loops = u64::from(plan.duration.loops.max(1));
        let moved = io_size.unwrap_or(size).saturating_mul(times);
        let mut amount = Self {
            pass,
            here: 0,
            before: 0,
            most: moved.saturating_mul(loops),
            least: if io_size.is_some() { moved } else { 0 },
            block: plan.buffer_bytes(),
            passes_left: loops - 1,
            endless: plan.duration.time_based,
        };
        amount.begin_pass();
        amount
    }

    /// Bytes after which the pass that runs is over.
    #[inline(always)]
    fn of_this_pass(&self) -> u64 {
        self.here
    }

    /// Only time, or a number of I/Os, ends the job.
    fn is_endless(&self) -> bool {
        self.endless
    }

    /// From now on only time, or a number of I/Os, ends the job.
    fn make_endless(&mut self) {
        self.endless = true;
        self.here = u64::MAX;
    }

    /// A pass ended after `moved` bytes: whether another one begins.
    fn begins_another(&mut self, moved: u64) -> bool {
        self.before = self.before.saturating_add(moved);
        let begins = if moved == 0 {
            // A pass without a single I/O would repeat forever.
            false
        } else if self.endless {
            true
        } else if self.passes_left > 0 {
            self.passes_left -= 1;
            true
        } else {
            self.least.saturating_sub(self.before) >= self.block
        };
        self.begin_pass();
        begins
    }

    fn begin_pass(&mut self) {
        self.here = if self.endless { u64::MAX } else { self.pass.min(self.most.saturating_sub(self.before)) };
    }
}

impl RequestSource {
    /// The sequence for copy `copy` of a job over these parts of its files. `None` when they have no room for a block.
    pub fn new(plan: &JobPlan, spans: &[Span], copy: u32) -> Option<Self> {
        let sizes = plan.sizes();
        let mut lengths = [0u32; 3];
        for (length, sizes) in lengths.iter_mut().zip(&sizes) {
            *length = u32::try_from(sizes.most()).ok().filter(|length| *length > 0)?;
        }
        let mut seed = seed(plan, copy);
        let varied = is_varied(plan).then(|| Box::new(Varied::new(plan, spans, seed)));
        let mixed = plan.access == Access::ReadWrite;
        let mut cursors = Vec::with_capacity(spans.len());
        let mut room = false;
        for (file, span) in spans.iter().enumerate() {
            let mut cursor = |index: usize| {
                let blocks = blocks(span, plan.order, lengths[index].into());
                let position = match (plan.order, !plan.has_random_map()) {
                    (Order::Sequential, _) => Position::Next(0),
                    (Order::Random, false) => Position::Walk(Permutation::new(blocks, split_mix(&mut seed))),
                    (Order::Random, true) => Position::Draw(split_mix(&mut seed)),
                };
                Cursor { begin: span.begin, blocks, position }
            };
            let row = [cursor(0), cursor(1), cursor(2)];
            let has_room = |kind: Kind| match &varied {
                Some(varied) => varied.has_room_for(file, kind),
                None => row[kind as usize].blocks > 0,
            };
            let empty = Kind::ALL.into_iter().zip(plan.access.directions()).any(|(kind, used)| used && !has_room(kind));
            // Of two directions, the other one would go on alone.
            if empty && mixed {
                return None;
            }
            room |= !empty;
            cursors.push(row);
        }
        if !room {
            return None;
        }
        let amount = Amount::new(plan, spans);
        let dice = split_mix(&mut seed);
        let turn = Turn::new(plan, cursors.len(), split_mix(&mut seed)).map(Box::new);
        let mut source = Self {
            access: plan.access,
            lengths,
            shared: plan.order == Order::Random && shares_map(plan, &sizes),
            file: 0,
            step: usize::from(turn.is_none()),
            turn,
            done: vec![false; cursors.len()],
            closed: 0,
            cursors,
            dice,
            read_threshold: (u64::MAX / 100).saturating_mul(plan.requests.read_percent.into()),
            mixed: mixed && (1..100).contains(&plan.requests.read_percent),
            rolled: None,
            to_write: None,
            varied,
            listed: None,
            wraps: false,
            amount,
            issued: 0,
            passes: 0,
        };
        source.begin_pass();
        Some(source)
    }

    /// Only time, or a number of requests, ends the job from now on.
    pub fn make_endless(&mut self) {
        self.amount.make_endless();
        self.wraps = self.wraps();
        if let Some(varied) = &mut self.varied {
            varied.wraps = self.wraps;
        }
    }

    /// fio goes back in the one file of a job that only time ends, each direction by itself. Files that end within a
    /// block are done there, and with several files all begin again together.
    fn wraps(&self) -> bool {
        self.amount.is_endless() && self.cursors.len() == 1
    }

    /// Only these requests follow, the last one first.
    pub fn list(&mut self, requests: Vec<Request>) {
        // The one access whose requests do not all come from cursors.
        self.access = Access::TrimWrite;
        self.listed = Some(requests);
    }

    pub fn files(&self) -> usize {
        self.cursors.len()
    }

    /// The number of passes that have ended.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// Whether the bytes of this pass are issued.
    #[inline(always)]
    pub fn is_spent(&self) -> bool {
        self.issued >= self.amount.of_this_pass()
    }

    /// How many requests certainly follow, at least one unless the job is done. Begins another pass if this one is
    /// over.
    pub fn following(&mut self) -> u64 {
        if let Some(listed) = &self.listed {
            return listed.len() as u64;
        }
        // A trimmed block is written before the pass ends.
        while self.is_spent() && self.to_write.is_none() || !self.has_room() {
            let moved = std::mem::take(&mut self.issued);
            self.passes += 1;
            if !self.amount.begins_another(moved) {
                return 0;
            }
            self.begin_pass();
        }
        let sure = self.certain().max(1);
        if let Some(turn) = &mut self.turn {
            turn.spend(sure);
        }
        sure
    }

    fn begin_pass(&mut self) {
        self.wraps = self.wraps();
        self.done.fill(false);
        self.closed = 0;
        self.rolled = None;
        if let Some(turn) = &mut self.turn {
            turn.begin_pass();
        }
        if let Some(varied) = &mut self.varied {
            varied.wraps = self.wraps;
        }
        (0..self.cursors.len()).for_each(|file| self.restart(file));
    }

    /// Each direction of a file begins at its beginning.
    fn restart(&mut self, file: usize) {
        self.cursors[file].iter_mut().for_each(Cursor::restart);
        if let Some(varied) = &mut self.varied {
            varied.restart(file);
        }
    }

    /// Whether some file has a block left for the next request.
    fn has_room(&mut self) -> bool {
        if self.wraps || self.to_write.is_some() {
            return true;
        }
        let kind = match self.access {
            Access::Read => Kind::Read,
            Access::Write => Kind::Write,
            Access::Trim | Access::TrimWrite => Kind::Trim,
            Access::ReadWrite => *self.rolled.get_or_insert_with(|| roll(&mut self.dice, self.read_threshold)),
        };
        while self.closed < self.cursors.len() {
            let file = match &mut self.turn {
                None => self.next_open(self.file),
                Some(turn) => turn.choose().unwrap_or(self.file),
            };
            self.file = file;
            if self.left(file, kind) > 0 {
                return true;
            }
            self.done[file] = true;
            self.closed += 1;
            match &mut self.turn {
                None => self.file = self.after(file),
                Some(turn) => turn.finish(),
            }
        }
        false
    }

    /// A number of requests of this direction for which the file has room in this pass.
    fn left(&self, file: usize, kind: Kind) -> u64 {
        match &self.varied {
            Some(varied) => varied.left(file, kind, self.lane(kind)),
            None => self.cursors[file][self.lane(kind)].left(),
        }
    }

    /// The largest block of this direction.
    fn longest(&self, kind: Kind) -> u64 {
        self.varied.as_ref().map_or(self.lengths[kind as usize].into(), |varied| varied.longest(kind))
    }

    /// A number of requests that stay within this pass, whatever their directions.
    fn certain(&self) -> u64 {
        if self.wraps {
            return u64::MAX;
        }
        // The write of a trimmed block has no cursor of its own.
        let used = Kind::ALL.into_iter().zip(self.access.directions()).filter(|(_, used)| *used).map(|(kind, _)| kind);
        let kinds = || used.clone().filter(|kind| (self.access, *kind) != (Access::TrimWrite, Kind::Write));
        let longest = kinds().map(|kind| self.longest(kind)).max().unwrap_or(1);
        let left = self.amount.of_this_pass().saturating_sub(self.issued);
        let by_bytes = left.div_ceil(longest);
        if let Some(turn) = &self.turn {
            let here = kinds().map(|kind| self.left(self.file, kind)).min().unwrap_or(0);
            return by_bytes.min(here).min(turn.left());
        }
        let open = self.done.iter().enumerate().filter(|(_, done)| !**done);
        let least = open.flat_map(|(file, _)| kinds().map(move |kind| self.left(file, kind))).min().unwrap_or(0);
        let files = (self.cursors.len() - self.closed) as u64;
        by_bytes.min(least.saturating_mul(files))
    }

    #[inline(always)]
    pub fn draw(&mut self) -> Request {
        self.draw_or(|_, _| false)
    }

    /// The next request. In a mix of reads and writes it takes the other direction if `instead(drawn, other)` returns
    /// true.
    #[inline(always)]
    pub fn draw_or(&mut self, instead: impl FnOnce(Kind, Kind) -> bool) -> Request {
        let kind = match self.access {
            Access::Read => Kind::Read,
            Access::Write => Kind::Write,
            Access::Trim => Kind::Trim,
            Access::ReadWrite => {
                let drawn = match self.rolled.take() {
                    Some(rolled) => rolled,
                    None => roll(&mut self.dice, self.read_threshold),
                };
                let other = if drawn == Kind::Read { Kind::Write } else { Kind::Read };
                if self.mixed && instead(drawn, other) { other } else { drawn }
            }
            Access::TrimWrite => return self.trim_then_write(),
        };
        self.locate(kind)
    }

    fn trim_then_write(&mut self) -> Request {
        if let Some(request) = self.listed.as_mut().and_then(Vec::pop) {
            return request;
        }
        if let Some(request) = self.to_write.take() {
            self.issued += u64::from(request.length);
            return request;
        }
        let trim = self.locate(Kind::Trim);
        self.to_write = Some(Request { kind: Kind::Write, ..trim });
        trim
    }

    #[inline(always)]
    fn after(&self, file: usize) -> usize {
        if file + self.step >= self.cursors.len() { 0 } else { file + self.step }
    }

    /// This file, or the next one that is not done.
    fn next_open(&self, mut file: usize) -> usize {
        for _ in 0..self.cursors.len() {
            if !self.done[file] {
                break;
            }
            file = self.after(file);
        }
        file
    }

    #[inline(always)]
    fn lane(&self, kind: Kind) -> usize {
        if self.shared && kind != Kind::Trim { 0 } else { kind as usize }
    }

    #[inline(always)]
    fn locate(&mut self, kind: Kind) -> Request {
        let file = if self.closed > 0 { self.next_open(self.file) } else { self.file };
        // Round robin, as fio's file_service_type does by default.
        self.file = self.after(file);
        let lane = self.lane(kind);
        let (offset, length) = if let Some(varied) = &mut self.varied {
            varied.locate(file, kind, lane)
        } else {
            let length = self.lengths[kind as usize];
            let cursor = &mut self.cursors[file][lane];
            (cursor.begin + cursor.step() * u64::from(length), length)
        };
        self.issued += u64::from(length);
        Request { kind, file: file as u32, offset, length }
    }
}

/// Whether a job is neither plainly sequential nor plainly random, or has several sizes.
fn is_varied(plan: &JobPlan) -> bool {
    let requests = &plan.requests;
    let scattered = requests.run > 1
        || requests.percent_random != Each::from(100)
        || plan.has_own_alignment()
        || requests.distribution != Distribution::Random;
    plan.order == Order::Random && scattered || plan.used_sizes().any(|sizes| !matches!(sizes, Sizes::One(_)))
}

/// Blocks that a part of a file has room for. In sequential order the last one may reach beyond the part, as in fio, if
/// the file does.
fn blocks(span: &Span, order: Order, length: u64) -> u64 {
    match order {
        Order::Random => span.length / length,
        Order::Sequential => span.length.div_ceil(length).min(span.length.saturating_add(span.beyond) / length),
    }
}

/// Whether reads and writes take their random blocks from one map, as in fio: if they have the same ones.
fn shares_map(plan: &JobPlan, [reads, writes, _]: &[Sizes; 3]) -> bool {
    reads.least() == writes.least() && plan.has_random_map()
}

#[inline(always)]
fn roll(dice: &mut u64, read_threshold: u64) -> Kind {
    if split_mix(dice) < read_threshold { Kind::Read } else { Kind::Write }
}

/// Repeatable jobs start from a constant, as fio's do; each job and copy has its own sequence.
pub(crate) fn seed(plan: &JobPlan, copy: u32) -> u64 {
    let mut seed = match (plan.requests.seed, plan.requests.repeatable) {
        (Some(seed), _) => seed,
        (None, true) => 0x1071_0001,
        (None, false) => sys::clock::monotonic_nanos() ^ u64::from(std::process::id()) << 32,
    };
    for byte in plan.name.bytes() {
        seed = split_mix(&mut seed) ^ u64::from(byte);
    }
    split_mix(&mut seed) ^ u64::from(copy)
}
