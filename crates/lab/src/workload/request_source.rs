//! Generates a job's requests: direction, file, offset and length, until its work is done.

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

/// The endless sequence of a job's requests; the worker decides how many it issues.
#[derive(Clone, Debug)]
pub struct RequestSource {
    access: Access,
    lengths: [u32; 3],
    /// Per file, a cursor for each direction. In random order, directions of equal block size share the first one, like
    /// fio's map of blocks.
    cursors: Vec<[Cursor; 3]>,
    shared: bool,
    file: usize,
    dice: u64,
    read_threshold: u64,
    /// Whether the job both reads and writes.
    mixed: bool,
    to_write: Option<Request>,
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

impl RequestSource {
    /// The sequence for copy `copy` of a job over these parts of its files. `None` when a part is smaller than a block.
    pub fn new(plan: &JobPlan, spans: &[Span], copy: u32) -> Option<Self> {
        let sizes = plan.block_sizes;
        let mut lengths = [0u32; 3];
        for (length, size) in lengths.iter_mut().zip([sizes.read, sizes.write, sizes.trim]) {
            *length = u32::try_from(size.0).ok().filter(|length| *length > 0)?;
        }
        let mut seed = seed(plan, copy);
        let used = Kind::ALL.map(|kind| uses(plan.access, kind));
        let mut cursors = Vec::with_capacity(spans.len());
        for span in spans {
            let mut cursor = |index: usize| {
                let blocks = span.length / u64::from(lengths[index]);
                let position = match (plan.order, plan.no_random_map) {
                    (Order::Sequential, _) => Position::Next(0),
                    (Order::Random, false) => Position::Walk(Permutation::new(blocks, split_mix(&mut seed))),
                    (Order::Random, true) => Position::Draw(split_mix(&mut seed)),
                };
                Cursor { begin: span.begin, blocks, position }
            };
            let row = [cursor(0), cursor(1), cursor(2)];
            if row.iter().zip(used).any(|(cursor, used)| used && cursor.blocks == 0) {
                return None;
            }
            cursors.push(row);
        }
        if cursors.is_empty() {
            return None;
        }
        Some(Self {
            access: plan.access,
            lengths,
            cursors,
            shared: plan.order == Order::Random && lengths[0] == lengths[1],
            file: 0,
            dice: split_mix(&mut seed),
            read_threshold: (u64::MAX / 100).saturating_mul(plan.read_percent.into()),
            mixed: (1..100).contains(&plan.read_percent),
            to_write: None,
        })
    }

    /// The next request.
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
                let drawn = self.roll();
                let other = if drawn == Kind::Read { Kind::Write } else { Kind::Read };
                if self.mixed && instead(drawn, other) { other } else { drawn }
            }
            Access::TrimWrite => return self.trim_then_write(),
        };
        self.locate(kind)
    }

    #[inline(always)]
    fn roll(&mut self) -> Kind {
        if split_mix(&mut self.dice) < self.read_threshold { Kind::Read } else { Kind::Write }
    }

    fn trim_then_write(&mut self) -> Request {
        if let Some(request) = self.to_write.take() {
            return request;
        }
        let trim = self.locate(Kind::Trim);
        self.to_write = Some(Request { kind: Kind::Write, ..trim });
        trim
    }

    #[inline(always)]
    fn locate(&mut self, kind: Kind) -> Request {
        let length = self.lengths[kind as usize];
        let file = self.file;
        // Round robin, as fio's file_service_type does by default.
        self.file = if file + 1 == self.cursors.len() { 0 } else { file + 1 };
        let lane = if self.shared { 0 } else { kind as usize };
        let cursor = &mut self.cursors[file][lane];
        let block = match &mut cursor.position {
            Position::Next(next) => {
                let block = *next;
                *next = if block + 1 >= cursor.blocks { 0 } else { block + 1 };
                block
            }
            Position::Walk(walk) => walk.step(),
            Position::Draw(state) => below(split_mix(state), cursor.blocks),
        };
        Request { kind, file: file as u32, offset: cursor.begin + block * u64::from(length), length }
    }
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
fn seed(plan: &JobPlan, copy: u32) -> u64 {
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
    use model::plan::BlockSizes;
    use model::unit::Bytes;

    fn plan(access: Access, order: Order, read: u64, write: u64) -> JobPlan {
        let block_sizes = BlockSizes { read: Bytes(read), write: Bytes(write), trim: Bytes(write) };
        JobPlan { access, order, block_sizes, ..JobPlan::default() }
    }

    fn spans(lengths: &[u64]) -> Vec<Span> {
        lengths.iter().map(|&length| Span { begin: 8192, length }).collect()
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

    #[test]
    fn a_file_without_room_for_a_block_is_refused() {
        assert!(RequestSource::new(&plan(Access::Read, Order::Random, 4096, 4096), &spans(&[4095]), 0).is_none());
    }
}
