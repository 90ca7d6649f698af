//! Which requests a job makes, beyond its direction, its order and one size of blocks.

use super::{Access, JobPlan};
use crate::plan::options::Takes;
use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

/// A value for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Each<T> {
    /// Of reads.
    pub read: T,
    /// Of writes.
    pub write: T,
    /// Of trims.
    pub trim: T,
}

impl<T> Each<T> {
    /// Reads, writes, trims.
    pub fn all(&self) -> [&T; 3] {
        [&self.read, &self.write, &self.trim]
    }

    /// The same by value.
    pub fn each(self) -> [T; 3] {
        [self.read, self.write, self.trim]
    }
}

impl<T> Takes<[Option<T>; 3]> for Each<T> {
    fn take(&mut self, [read, write, trim]: [Option<T>; 3]) {
        let places = [(&mut self.read, read), (&mut self.write, write), (&mut self.trim, trim)];
        for (place, value) in places.into_iter().filter_map(|(place, given)| Some((place, given?))) {
            *place = value;
        }
    }
}

impl Takes<[Option<u64>; 3]> for Each<Bytes> {
    fn take(&mut self, given: [Option<u64>; 3]) {
        self.take(given.map(|size| size.map(Bytes)));
    }
}

impl<T: Clone> From<T> for Each<T> {
    fn from(value: T) -> Self {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }
}

part! {
    /// The options of requests that most jobs leave out.
    RequestPlan {
        /// `rw=randread:N`: each random position is followed by the blocks behind it, N blocks in all.
        run: u32 = 1,
        /// `rwmixread`: percentage of reads in mixed access.
        read_percent: u8 = 50,
        /// `bsrange`, instead of one size.
        ranges: Each<Option<SizeRange>> = Each::default(),
        /// `bssplit`, instead of one size or a range. Empty means not given.
        splits: Each<Vec<SizeShare>> = Each::default(),
        /// `blockalign` of random positions; 0 means the smallest size of the direction.
        align: Each<Bytes> = Each::default(),
        /// `percentage_random`: percentage of a random order that is random; the rest follows the request before it.
        percent_random: Each<u8> = Each::from(100),
        /// `random_distribution`.
        distribution: Distribution = Distribution::default(),
        /// `norandommap`: draw random offsets with replacement.
        no_random_map: bool = false,
        /// `randrepeat`: use the same random sequence in each run. On by default, as in fio.
        repeatable: bool = true,
        /// `randseed`, mixed with the job's index. Overrides `repeatable`.
        seed: Option<u64> = None,
    }
}

/// Sizes from one to another: `bsrange` of one direction, or those of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeRange {
    /// The smallest size.
    pub least: Bytes,
    /// The largest size.
    pub most: Bytes,
}

/// One size of `bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeShare {
    /// The size.
    pub size: Bytes,
    /// Percentage of the requests that have it.
    pub percent: u8,
}

/// `random_distribution`: how often each block is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All equally often.
    #[default]
    Random,
    /// The block of rank k in proportion to k to the power of minus this, theta.
    Zipf(f64),
}

/// The sizes that requests of one direction may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    One(u64),
    /// Multiples of `step` from `least` to `most`; `most` need not be one.
    Range { least: u64, most: u64, step: u64 },
    /// Sizes with their percentages, the greatest percentage last; it also has what is missing to 100.
    Shares(Vec<(u64, u8)>),
}

impl Sizes {
    /// The smallest.
    pub fn least(&self) -> u64 {
        match self {
            Self::One(size) | Self::Range { least: size, .. } => *size,
            Self::Shares(shares) => shares.iter().map(|(size, _)| *size).min().unwrap_or(0),
        }
    }

    /// The largest.
    pub fn most(&self) -> u64 {
        match self {
            Self::One(size) | Self::Range { most: size, .. } => *size,
            Self::Shares(shares) => shares.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }

    fn of(one: Bytes, range: Option<SizeRange>, split: &[SizeShare]) -> Self {
        if let Some(least) = split.iter().map(|share| share.size.0).min() {
            // As in fio, all are multiples of the smallest.
            let step = least.max(1);
            let sizes: Vec<_> = split.iter().map(|share| (share.size.0 - share.size.0 % step, share.percent)).collect();
            return match sizes.as_slice() {
                [(first, _), rest @ ..] if rest.iter().all(|(size, _)| size == first) => Self::One(*first),
                _ => Self::Shares(sizes),
            };
        }
        match range {
            Some(SizeRange { least, most }) if least < most => {
                Self::Range { least: least.0, most: most.0, step: least.0.max(1) }
            }
            Some(range) => Self::One(range.least.0),
            None => Self::One(one.0),
        }
    }
}

impl JobPlan {
    /// The sizes of reads, writes and trims.
    pub fn sizes(&self) -> [Sizes; 3] {
        let RequestPlan { ranges, splits, .. } = &self.requests;
        let ones = self.block_sizes.all();
        std::array::from_fn(|direction| Sizes::of(*ones[direction], *ranges.all()[direction], splits.all()[direction]))
    }

    /// The smallest block of any direction, used or not: the unit to which fio rounds percentages and shares of files.
    pub fn smallest_block(&self) -> Bytes {
        Bytes(self.sizes().iter().map(|sizes| sizes.least()).min().unwrap_or(0))
    }

    /// The smallest block of a direction in use.
    pub fn least_block(&self) -> Bytes {
        Bytes(self.used_sizes().map(|sizes| sizes.least()).min().unwrap_or(0))
    }

    /// The largest block of a direction in use.
    pub fn largest_block(&self) -> Bytes {
        Bytes(self.used_sizes().map(|sizes| sizes.most()).max().unwrap_or(0))
    }

    /// Bytes of a buffer that holds each block of any direction, used or not.
    pub fn buffer_bytes(&self) -> u64 {
        self.sizes().iter().map(|sizes| sizes.most()).max().unwrap_or(0)
    }

    /// Bytes of memory of one I/O. A trim needs none.
    pub fn slot_bytes(&self) -> u64 {
        if self.access == Access::Trim { 0 } else { self.buffer_bytes() }
    }

    /// The sizes of the directions in use.
    pub fn used_sizes(&self) -> impl Iterator<Item = Sizes> {
        self.sizes().into_iter().zip(self.access.directions()).filter(|(_, used)| *used).map(|(sizes, _)| sizes)
    }

    /// Whether `blockalign` is another than the smallest block.
    pub fn has_own_alignment(&self) -> bool {
        let sizes = self.sizes();
        let other = |(sizes, align): (&Sizes, &Bytes)| align.0 != 0 && align.0 != sizes.least();
        sizes.iter().zip(self.requests.align.all()).any(other)
    }

    /// `norandommap`, or an alignment that sets it.
    pub fn sets_no_random_map(&self) -> bool {
        self.requests.no_random_map || self.has_own_alignment()
    }

    /// Whether each block of a random order is used once before any is used again.
    pub fn has_random_map(&self) -> bool {
        self.requests.distribution == Distribution::Random && !self.sets_no_random_map()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(option: &str) -> JobPlan {
        let text = format!("[a]\nfilename=x\n{option}\n");
        crate::plan::parse::job_file("a", &text, &crate::plan::Settings::default())
            .unwrap()
            .phases
            .remove(0)
            .jobs
            .remove(0)
    }

    fn shares(option: &str) -> Vec<(u64, u8)> {
        match &job(option).sizes()[0] {
            Sizes::Shares(shares) => shares.clone(),
            Sizes::One(size) => vec![(*size, 100)],
            Sizes::Range { .. } => Vec::new(),
        }
    }

    #[test]
    fn missing_percentages_are_shared_as_in_fio() {
        assert_eq!(shares("bssplit=512/25:1k/:2k/:4k/"), [(512, 25), (1024, 25), (2048, 25), (4096, 25)]);
        assert_eq!(shares("bssplit=4k/:8k/:16k/"), [(4096, 33), (8192, 33), (16384, 34)]);
        assert_eq!(shares("bssplit=4k/50:8k/20"), [(8192, 20), (4096, 80)], "the most frequent one has the rest");
        assert_eq!(shares("bssplit=8k"), [(8192, 100)]);
        assert_eq!(shares("bssplit=3k/50:4k/50"), [(3072, 100)], "multiples of the smallest");
        assert_eq!(shares("bssplit=,8k/100"), [(4096, 100)], "reads keep theirs");
    }

    #[test]
    fn a_split_comes_before_a_range_and_a_range_before_one_size() {
        let sizes = |options| job(options).sizes()[0].clone();
        assert_eq!(sizes("bsrange=8k-16k\nbs=4k"), Sizes::Range { least: 8192, most: 16384, step: 8192 });
        assert_eq!(sizes("bssplit=2k/100\nbsrange=8k-16k"), Sizes::One(2048));
        let job = job("rw=randrw\nbs=512\nbsrange=4k-16k,8k-32k");
        assert_eq!((job.smallest_block(), job.largest_block()), (Bytes(4096), Bytes(32768)));
    }

    #[test]
    fn what_turns_the_map_off_is_as_in_fio() {
        for (options, map) in [
            ("", true),
            ("norandommap", false),
            ("blockalign=4k", true),
            ("blockalign=512", false),
            ("random_distribution=zipf:1.2", false),
        ] {
            assert_eq!(job(&format!("rw=randread\n{options}")).has_random_map(), map, "{options}");
        }
    }
}
