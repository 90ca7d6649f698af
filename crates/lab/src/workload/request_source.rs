//! Generates a job's requests: direction, file, offset and length, until its amount is done.

use super::amount::Amount;
use super::permutation::{Permutation, below, split_mix};
use super::target::Span;
use model::plan::{Access, JobPlan, Order};

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
    /// Per file, a cursor for each direction. In random order, directions of equal block size share the first one, like
    /// fio's map of blocks.
    cursors: Vec<[Cursor; 3]>,
    shared: bool,
    file: usize,
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
    /// These requests, the last one first, instead of drawn ones.
    listed: Option<Vec<Request>>,
    runs: Option<Runs>,
    amount: Amount,
    /// Passes do not end with these bytes, so each cursor goes back by itself.
    wraps: bool,
    /// Bytes issued in this pass.
    issued: u64,
    /// Passes that ended.
    passes: u64,
}

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

/// `rw=randread:N`: each random position is followed by the blocks behind it, N in all.
#[derive(Clone, Debug)]
struct Runs {
    length: u32,
    left: u32,
    /// Per file and direction, where the last request ended, from the beginning of the part in use.
    ends: Vec<[u64; 3]>,
}

impl RequestSource {
    /// The sequence for copy `copy` of a job over these parts of its files. `None` when they have no room for a block.
    pub fn new(plan: &JobPlan, spans: &[Span], copy: u32) -> Option<Self> {
        let sizes = plan.block_sizes;
        let mut lengths = [0u32; 3];
        for (length, size) in lengths.iter_mut().zip([sizes.read, sizes.write, sizes.trim]) {
            *length = u32::try_from(size.0).ok().filter(|length| *length > 0)?;
        }
        let mut seed = seed(plan, copy);
        let used = Kind::ALL.map(|kind| uses(plan.access, kind));
        let mixed = plan.access == Access::ReadWrite;
        let mut cursors = Vec::with_capacity(spans.len());
        let mut room = false;
        for span in spans {
            let mut cursor = |index: usize| {
                let blocks = blocks(span, plan.order, lengths[index].into());
                let position = match (plan.order, plan.no_random_map) {
                    (Order::Sequential, _) => Position::Next(0),
                    (Order::Random, false) => Position::Walk(Permutation::new(blocks, split_mix(&mut seed))),
                    (Order::Random, true) => Position::Draw(split_mix(&mut seed)),
                };
                Cursor { begin: span.begin, blocks, position }
            };
            let row = [cursor(0), cursor(1), cursor(2)];
            let empty = row.iter().zip(used).any(|(cursor, used)| used && cursor.blocks == 0);
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
        let runs = (plan.random_run > 1 && plan.order == Order::Random).then(|| Runs {
            length: plan.random_run,
            left: plan.random_run,
            ends: vec![[0; 3]; spans.len()],
        });
        let mut source = Self {
            access: plan.access,
            lengths,
            shared: plan.order == Order::Random && lengths[0] == lengths[1],
            file: 0,
            done: vec![false; cursors.len()],
            closed: 0,
            cursors,
            dice: split_mix(&mut seed),
            read_threshold: (u64::MAX / 100).saturating_mul(plan.read_percent.into()),
            mixed: mixed && (1..100).contains(&plan.read_percent),
            rolled: None,
            to_write: None,
            listed: None,
            runs,
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
        while self.is_spent() || !self.has_room() {
            let moved = std::mem::take(&mut self.issued);
            self.passes += 1;
            if !self.amount.begins_another(moved) {
                return 0;
            }
            self.begin_pass();
        }
        self.certain().max(1)
    }

    fn begin_pass(&mut self) {
        self.wraps = self.wraps();
        self.done.fill(false);
        self.closed = 0;
        self.rolled = None;
        for (file, row) in self.cursors.iter_mut().enumerate() {
            row.iter_mut().for_each(Cursor::restart);
            if let Some(ends) = self.runs.as_mut().and_then(|runs| runs.ends.get_mut(file)) {
                *ends = [0; 3];
            }
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
            let file = self.next_open(self.file);
            if self.cursors[file][self.lane(kind)].left() > 0 {
                self.file = file;
                return true;
            }
            self.done[file] = true;
            self.closed += 1;
            self.file = self.after(file);
        }
        false
    }

    /// A number of requests that stay within this pass, whatever their directions.
    fn certain(&self) -> u64 {
        if self.wraps {
            return u64::MAX;
        }
        // The write of a trimmed block has no cursor of its own.
        let drawn = |kind: &Kind| uses(self.access, *kind) && (self.access, *kind) != (Access::TrimWrite, Kind::Write);
        let kinds = || Kind::ALL.into_iter().filter(drawn);
        let longest = kinds().map(|kind| self.lengths[kind as usize]).max().unwrap_or(1);
        let left = self.amount.of_this_pass().saturating_sub(self.issued);
        let by_bytes = left.div_ceil(u64::from(longest));
        let open = self.cursors.iter().zip(&self.done).filter(|(_, done)| !**done);
        let least = open.flat_map(|(row, _)| kinds().map(|kind| row[self.lane(kind)].left())).min().unwrap_or(0);
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
        if file + 1 >= self.cursors.len() { 0 } else { file + 1 }
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
        let length = self.lengths[kind as usize];
        let file = if self.closed > 0 { self.next_open(self.file) } else { self.file };
        // Round robin, as fio's file_service_type does by default.
        self.file = self.after(file);
        self.issued += u64::from(length);
        let lane = self.lane(kind);
        let offset = if self.runs.is_some() {
            self.locate_in_run(file, kind, lane)
        } else {
            let cursor = &mut self.cursors[file][lane];
            cursor.begin + cursor.step() * u64::from(length)
        };
        Request { kind, file: file as u32, offset, length }
    }

    /// The block behind the last one of this file and direction, or a random one if the run is over or ends with the
    /// file.
    fn locate_in_run(&mut self, file: usize, kind: Kind, lane: usize) -> u64 {
        let length = u64::from(self.lengths[kind as usize]);
        let cursor = &mut self.cursors[file][lane];
        let Some(runs) = &mut self.runs else { return cursor.begin };
        runs.left -= 1;
        let end = &mut runs.ends[file][kind as usize];
        if runs.left == 0 {
            runs.left = runs.length;
            *end = u64::MAX;
        }
        let within = match end.checked_add(length) {
            Some(next) if next <= cursor.blocks * length => *end,
            _ => cursor.step() * length,
        };
        *end = within + length;
        cursor.begin + within
    }
}

/// Blocks that a part of a file has room for. In sequential order the last one may reach beyond the part, as in fio, if
/// the file does.
fn blocks(span: &Span, order: Order, length: u64) -> u64 {
    match order {
        Order::Random => span.length / length,
        Order::Sequential => span.length.div_ceil(length).min(span.length.saturating_add(span.beyond) / length),
    }
}

#[inline(always)]
fn roll(dice: &mut u64, read_threshold: u64) -> Kind {
    if split_mix(dice) < read_threshold { Kind::Read } else { Kind::Write }
}

fn uses(access: Access, kind: Kind) -> bool {
    match access {
        Access::Read => kind == Kind::Read,
        Access::Write => kind == Kind::Write,
        Access::Trim => kind == Kind::Trim,
        Access::ReadWrite => kind != Kind::Trim,
        Access::TrimWrite => kind != Kind::Read,
    }
}

/// Repeatable jobs start from a constant, as fio's do; each job and copy has its own sequence.
pub(super) fn seed(plan: &JobPlan, copy: u32) -> u64 {
    let mut seed = match (plan.seed, plan.repeatable) {
        (Some(seed), _) => seed,
        (None, true) => 0x1071_0001,
        (None, false) => sys::clock::monotonic_nanos() ^ u64::from(std::process::id()) << 32,
    };
    for byte in plan.name.bytes() {
        seed = split_mix(&mut seed) ^ u64::from(byte);
    }
    split_mix(&mut seed) ^ u64::from(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{BlockSizes, EngineKind};
    use model::unit::Bytes;

    fn plan(access: Access, order: Order, read: u64, write: u64) -> JobPlan {
        let block_sizes = BlockSizes { read: Bytes(read), write: Bytes(write), trim: Bytes(write) };
        JobPlan { access, order, block_sizes, ..JobPlan::default() }
    }

    fn spans(lengths: &[u64]) -> Vec<Span> {
        lengths.iter().map(|&length| Span { begin: 8192, length, beyond: 0 }).collect()
    }

    #[test]
    fn sequential_wraps_within_its_span() {
        let mut source =
            RequestSource::new(&plan(Access::Read, Order::Sequential, 4096, 4096), &spans(&[12_288]), 0).unwrap();
        let offsets: Vec<u64> = (0..4).map(|_| source.draw().offset).collect();
        assert_eq!(offsets, [8192, 12_288, 16_384, 8192]);
    }

    #[test]
    fn random_visits_each_block_of_each_file_once_a_pass() {
        let mut source =
            RequestSource::new(&plan(Access::ReadWrite, Order::Random, 512, 512), &spans(&[51_200, 51_200]), 3)
                .unwrap();
        let mut seen: Vec<(u32, u64)> = (0..200).map(|_| source.draw()).map(|r| (r.file, r.offset)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 200);
        assert!(seen.iter().all(|(_, offset)| (8192..8192 + 51_200).contains(offset)));
    }

    #[test]
    fn the_mix_is_what_was_asked_for() {
        let job = JobPlan { read_percent: 70, ..plan(Access::ReadWrite, Order::Random, 4096, 8192) };
        let mut source = RequestSource::new(&job, &spans(&[1 << 30]), 0).unwrap();
        let reads = (0..100_000).map(|_| source.draw()).filter(|request| request.kind == Kind::Read).count();
        assert!((69_000..71_000).contains(&reads), "{reads}");
    }

    #[test]
    fn a_trimmed_block_is_then_written() {
        let mut source =
            RequestSource::new(&plan(Access::TrimWrite, Order::Random, 4096, 4096), &spans(&[1 << 20]), 0).unwrap();
        for _ in 0..100 {
            let (trim, write) = (source.draw(), source.draw());
            assert_eq!((trim.kind, write.kind), (Kind::Trim, Kind::Write));
            assert_eq!((trim.offset, trim.length), (write.offset, write.length));
        }
    }

    #[test]
    fn copies_differ_and_repeat() {
        let job = plan(Access::Read, Order::Random, 4096, 4096);
        let draw = |copy| {
            let mut source = RequestSource::new(&job, &spans(&[1 << 24]), copy).unwrap();
            (0..16).map(|_| source.draw().offset).collect::<Vec<_>>()
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
    }

    /// All requests of a job: file, offset in blocks of 4 KiB.
    fn all(plan: &JobPlan, spans: &[Span]) -> Vec<(u32, u64)> {
        let mut source = RequestSource::new(plan, spans, 0).unwrap();
        let mut requests = Vec::new();
        loop {
            let sure = source.following().min(1000);
            if sure == 0 {
                return requests;
            }
            requests.extend((0..sure).map(|_| source.draw()).map(|request| (request.file, request.offset / 4096)));
        }
    }

    const KIB: u64 = 1024;

    fn span(kib: u64, beyond: u64) -> Span {
        Span { begin: 0, length: kib * KIB, beyond: beyond * KIB }
    }

    #[test]
    fn the_last_block_of_a_sequential_pass_reaches_into_the_file_behind_it() {
        let mut job = plan(Access::Read, Order::Sequential, 4096, 4096);
        assert_eq!(all(&job, &[span(10, 0)]), [(0, 0), (0, 1)]);
        assert_eq!(all(&job, &[span(10, 2)]), [(0, 0), (0, 1), (0, 2)]);
        job.order = Order::Random;
        assert_eq!(all(&job, &[span(10, 2)]).len(), 2);
    }

    #[test]
    fn the_size_of_an_unused_direction_changes_nothing() {
        assert_eq!(all(&plan(Access::Read, Order::Sequential, 4096, 1000), &[span(10, 0)]).len(), 2);
        assert_eq!(all(&plan(Access::Write, Order::Sequential, 4096, 65_536), &[span(100, 0)]).len(), 1);
    }

    #[test]
    fn a_short_file_is_done_while_a_longer_one_goes_on() {
        let mut job = plan(Access::Read, Order::Sequential, 4096, 4096);
        let spans = [span(8, 0), span(16, 0)];
        let pass = [(0, 0), (1, 0), (0, 1), (1, 1), (1, 2), (1, 3)];
        assert_eq!(all(&job, &spans), pass);
        job.duration.loops = 2;
        assert_eq!(all(&job, &spans), [pass, pass].concat());
        job.order = Order::Random;
        let mut requests = all(&job, &spans);
        requests.sort_unstable();
        requests.dedup();
        assert_eq!(requests.len(), 6);
    }

    #[test]
    fn a_mix_ends_with_its_bytes_in_each_loop() {
        for (order, engine, loops) in [
            (Order::Sequential, EngineKind::Psync, 1),
            (Order::Sequential, EngineKind::Libaio, 3),
            (Order::Random, EngineKind::Psync, 3),
        ] {
            let mut job = JobPlan { engine, ..plan(Access::ReadWrite, order, 4096, 4096) };
            job.duration.loops = loops;
            assert_eq!(all(&job, &[span(64, 0)]).len() as u32, 16 * loops);
            job.read_percent = 100;
            assert_eq!(all(&job, &[span(66, 0)]).len() as u32, 16 * loops);
        }
    }

    #[test]
    fn time_repeats_what_a_pass_does() {
        let mut job = plan(Access::Read, Order::Sequential, 4096, 4096);
        job.duration.time_based = true;
        let mut source = RequestSource::new(&job, &[span(8, 0), span(16, 0)], 0).unwrap();
        let mut files = Vec::new();
        while files.len() < 12 {
            assert!(source.following() > 0);
            files.push(source.draw().file);
        }
        assert_eq!(files, [0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1]);
    }

    #[test]
    fn a_random_position_begins_a_run() {
        let job = JobPlan { random_run: 4, ..plan(Access::Read, Order::Random, 4096, 4096) };
        let blocks: Vec<u64> = all(&job, &[span(4096, 0)]).into_iter().map(|(_, block)| block).collect();
        assert_eq!(blocks.len(), 1024);
        let follows = blocks.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!((740..=780).contains(&follows), "three of four follow: {follows}");
    }

    #[test]
    fn a_file_without_room_for_a_block_is_refused() {
        assert!(RequestSource::new(&plan(Access::Read, Order::Random, 4096, 4096), &spans(&[4095]), 0).is_none());
    }
}
