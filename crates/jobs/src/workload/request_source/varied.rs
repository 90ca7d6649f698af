//! Requests of jobs that are neither plainly sequential nor plainly random, or have several sizes: where each one is, and
//! its size. [`super::RequestSource`] gives the direction and the file, and counts bytes and passes.
//!
//! All offsets here are relative to the part of the file that the job uses.

mod draws;

use super::Kind;
use crate::workload::permutation::{Permutation, below, split_mix};
use crate::workload::target::Span;
use draws::{Dice, FreeMap, Skew};
use model::plan::{Access, JobPlan, Order, Sizes};

/// The state of such a job.
#[derive(Clone, Debug)]
pub(super) struct Varied {
    order: Order,
    /// By direction.
    sizes: [Dice; 3],
    /// `percentage_random`.
    percent: [u64; 3],
    /// `rw=randread:N`: N, and requests up to and with the next position by chance.
    run: u32,
    run_left: u32,
    /// Only time ends the job, and it has one file: each direction goes back to the beginning by itself.
    pub wraps: bool,
    dice: u64,
    files: Vec<Part>,
}

/// The part of one file that the job uses.
#[derive(Clone, Debug)]
struct Part {
    begin: u64,
    length: u64,
    /// Bytes up to the end of the file.
    whole: u64,
    lanes: [Lane; 3],
    /// The byte behind the last request of each direction.
    end: [u64; 3],
}

/// Random positions: block numbers times their alignment.
#[derive(Clone, Debug)]
struct Lane {
    unit: u64,
    /// The smallest request.
    least: u64,
    blocks: u64,
    chosen: Chosen,
}

#[derive(Clone, Debug)]
enum Chosen {
    /// Each block once, as the beginning of a request.
    Once(Permutation),
    /// Each block once, in requests of several blocks.
    Mapped(FreeMap),
    Repeatedly,
    Skewed(Skew),
}

impl Varied {
    pub fn new(plan: &JobPlan, spans: &[Span], mut seed: u64) -> Self {
        let seed = &mut seed;
        let sizes = plan.sizes().each_ref().map(Dice::new);
        let dice = split_mix(seed);
        let files = spans.iter().map(|span| {
            // Reads and writes have the same centre.
            let (walks, chance) = (split_mix(seed), split_mix(seed));
            let lanes =
                [0, 1, 2].map(|direction| Lane::new(plan, direction, span.length, &sizes[direction], [walks, chance]));
            let whole = span.length.saturating_add(span.beyond);
            Part { begin: span.begin, length: span.length, whole, lanes, end: [0; 3] }
        });
        Self {
            order: plan.order,
            percent: plan.requests.percent_random.all().map(|percent| u64::from(*percent)),
            run: plan.requests.run,
            run_left: 1,
            wraps: false,
            dice,
            files: files.collect(),
            sizes,
        }
    }

    /// Whether a file has room for a request of this direction.
    pub fn has_room_for(&self, file: usize, kind: Kind) -> bool {
        let part = &self.files[file];
        match self.order {
            Order::Random => part.lanes[kind as usize].blocks > 0,
            Order::Sequential => self.follows(part, kind as usize).is_some(),
        }
    }

    /// The largest size of this direction.
    pub fn longest(&self, kind: Kind) -> u64 {
        self.sizes[kind as usize].most()
    }

    /// A number of requests of this direction for which the file has room in this pass, at least one if it has any.
    pub fn left(&self, file: usize, kind: Kind, lane: usize) -> u64 {
        let direction = kind as usize;
        let part = &self.files[file];
        match self.order {
            Order::Random => part.lanes[lane].left(self.sizes[direction].most()),
            Order::Sequential => match self.follows(part, direction) {
                None => 0,
                Some(at) => (part.length.saturating_sub(at) / self.sizes[direction].most()).max(1),
            },
        }
    }

    /// A pass over a file begins.
    pub fn restart(&mut self, file: usize) {
        let wraps = self.wraps;
        let Some(part) = self.files.get_mut(file) else { return };
        part.end = [0; 3];
        if !wraps {
            part.lanes.iter_mut().for_each(Lane::begin_pass);
        }
    }

    /// The offset and the length of the next request of this file and direction; `lane` is where its random positions are
    /// from.
    pub fn locate(&mut self, file: usize, kind: Kind, lane: usize) -> (u64, u32) {
        let direction = kind as usize;
        let followed = match self.order {
            Order::Sequential => self.follows(&self.files[file], direction),
            Order::Random => self.drawn_to_follow(file, direction),
        };
        let (at, length) = match followed {
            Some(at) => {
                let room = self.room(&self.files[file], at);
                (at, self.sizes[direction].draw(&mut self.dice, room))
            }
            // Only time ends the job, and its region is over.
            None if self.order == Order::Sequential => {
                let room = self.files[file].length;
                (0, self.sizes[direction].draw(&mut self.dice, room))
            }
            None => {
                let part = &mut self.files[file];
                part.lanes[lane].draw(&mut self.dice, &self.sizes[direction], part.length)
            }
        };
        let part = &mut self.files[file];
        part.end[direction] = at + length;
        (part.begin + at, u32::try_from(length).unwrap_or(u32::MAX))
    }

    /// Where a request of a random order is that is not at a position by chance.
    fn drawn_to_follow(&mut self, file: usize, direction: usize) -> Option<u64> {
        let end = self.files[file].end[direction];
        self.run_left -= 1;
        if self.run_left == 0 {
            self.run_left = self.run.max(1);
            let percent = self.percent[direction];
            if percent == 100 || below(split_mix(&mut self.dice), 100) < percent {
                return None;
            }
        }
        let part = &self.files[file];
        let fits = end.saturating_add(self.sizes[direction].least()) <= self.limit(part);
        // Behind the end, chance goes on; if only time ends the job, the beginning does, as in fio.
        if fits { Some(end) } else { self.wraps.then_some(0) }
    }

    /// Where the next request of a sequential order is; `None` if the pass over the file is over.
    fn follows(&self, part: &Part, direction: usize) -> Option<u64> {
        let at = part.end[direction];
        let least = self.sizes[direction].least();
        let ends_within = at.saturating_add(least) <= self.limit(part);
        (ends_within && at < part.length).then_some(at)
    }

    /// Where the last request must end. As in fio, that of one size may reach into the file behind the region.
    fn limit(&self, part: &Part) -> u64 {
        let one = self.order == Order::Sequential && self.sizes.iter().all(|dice| matches!(dice, Dice::One(_)));
        if one { part.whole } else { part.length }
    }

    fn room(&self, part: &Part, at: u64) -> u64 {
        self.limit(part).saturating_sub(at)
    }
}

/// Whether requests of this direction take blocks by themselves: a write of a trimmed block does not.
fn takes_blocks(plan: &JobPlan, direction: usize) -> bool {
    match (plan.access, Kind::ALL[direction]) {
        (Access::Read, kind) => kind == Kind::Read,
        (Access::Trim | Access::TrimWrite, kind) => kind == Kind::Trim,
        // Writes of the same blocks take those of reads.
        (Access::Write | Access::ReadWrite, kind) => kind != Kind::Trim,
    }
}

impl Lane {
    fn new(plan: &JobPlan, direction: usize, room: u64, dice: &Dice, [walks, chance]: [u64; 2]) -> Self {
        let requests = &plan.requests;
        let mut walks = walks ^ direction as u64;
        let align = requests.align.all()[direction].0;
        let unit = if align == 0 { dice.least().max(1) } else { align };
        let lane = Self { unit, least: dice.least(), blocks: 0, chosen: Chosen::Repeatedly };
        let blocks = lane.blocks_of(room);
        let distribution = &requests.distribution;
        let several = plan.used_sizes().any(|sizes| !matches!(sizes, Sizes::One(_))) || dice.most() > unit;
        let chosen = match Skew::new(distribution, blocks, chance) {
            Some(skew) => Chosen::Skewed(skew),
            None if !plan.has_random_map() || !takes_blocks(plan, direction) => Chosen::Repeatedly,
            None if several => Chosen::Mapped(FreeMap::new(blocks)),
            None => Chosen::Once(Permutation::new(blocks, split_mix(&mut walks))),
        };
        Self { blocks, chosen, ..lane }
    }

    /// Positions in `room` bytes at which a request of the smallest size ends within them.
    fn blocks_of(&self, room: u64) -> u64 {
        let least = self.least;
        if room < least {
            return 0;
        }
        // As in fio: with an alignment of more than a block, the rest of the last one is not used.
        if self.unit > least { room / self.unit } else { (room - least) / self.unit + 1 }
    }

    fn left(&self, longest: u64) -> u64 {
        match &self.chosen {
            _ if self.blocks == 0 => 0,
            Chosen::Once(walk) => walk.left(),
            Chosen::Mapped(map) if map.free() == 0 => 0,
            Chosen::Mapped(map) => (map.free() / longest.div_ceil(self.unit).max(1)).max(1),
            Chosen::Repeatedly | Chosen::Skewed(_) => u64::MAX,
        }
    }

    fn begin_pass(&mut self) {
        match &mut self.chosen {
            Chosen::Once(walk) => walk.restart(),
            Chosen::Mapped(map) => map.begin(self.blocks),
            Chosen::Repeatedly | Chosen::Skewed(_) => {}
        }
    }

    /// A position by chance, and the length there.
    fn draw(&mut self, state: &mut u64, dice: &Dice, room: u64) -> (u64, u64) {
        let block = match &mut self.chosen {
            Chosen::Once(walk) => walk.step(),
            Chosen::Repeatedly => below(split_mix(state), self.blocks),
            Chosen::Skewed(skew) => skew.draw(state),
            Chosen::Mapped(map) => {
                if map.free() == 0 {
                    map.begin(self.blocks);
                }
                let block = map.next_free(below(split_mix(state), self.blocks));
                let at = block * self.unit;
                // As in fio, a used block cuts a request short.
                let length = dice.draw(state, room.saturating_sub(at));
                let taken = map.take(block, length.div_ceil(self.unit));
                return (at, length.min(taken * self.unit));
            }
        };
        let at = block * self.unit;
        (at, dice.draw(state, room.saturating_sub(at)))
    }
}
