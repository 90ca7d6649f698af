//! A plan: phases in order, each a set of jobs that run at the same time; and the requests that a job makes.

/// A part of a job: its fields, each with fio's default, which a record may leave out. Behind the semicolon, those that it leaves out as long as
/// no option of them is given.
macro_rules! part {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$about:meta])* $field:ident: $type:ty = $default:expr,)+
        $(; $($(#[$of:meta])* $part:ident: $kind:ty,)+)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($(#[$about])* pub $field: $type,)+
            $($($(#[$of])* #[serde(skip_serializing_if = "is_default")] pub $part: $kind,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ $($($part: <$kind>::default(),)+)? }
            }
        }
    };
}

/// Values that are words of options, and of records. Of two words with the same value, the first is shown.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $value:ident: $word:literal $(| $other:literal)*,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $word)] $value,)+
        }

        impl crate::plan::job::Choice for $name {
            fn words() -> Vec<(&'static str, Self)> {
                vec![$(($word, Self::$value) $(, ($other, Self::$value))*),+]
            }
        }
    };
}

mod conduct;
mod content;
mod engine;
mod files;
mod logs;
mod path_plan;

use super::options::Takes;
use crate::unit::{Bytes, Nanos};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

pub use conduct::{
    Access, CallPlan, Ends, Inject, Order, OwnPlan, Pace, Peer, ReplayPlan, Reporting, SyncPlan, ThreadPlan, Together,
};
pub use content::{Content, HEADER_BYTES, Pattern, Verify, VerifyMethod};
pub use engine::{Buffers, ENGINES, Engine, EngineKind, Medium, Queue};
pub use files::{Fallocate, FilePlan, Making, Opening, WriteSync};
pub use logs::{LogKind, LogPlan};
pub use path_plan::{
    MOST_PAYLOAD, MOST_SUBMITTERS, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathPlan, PathReceive,
    PathSegment, PathSend, PathTxQueue, TxTaskCpus,
};

/// A value that is one of a fixed set of words.
pub trait Choice: Copy {
    /// The words and their values.
    fn words() -> Vec<(&'static str, Self)>;
}

/// The first word for `value`.
pub fn word<T: Choice + PartialEq>(value: T) -> &'static str {
    T::words().into_iter().find(|(_, meaning)| *meaning == value).map_or("", |(word, _)| word)
}

/// All words, for help.
pub fn list_words<T: Choice>() -> String {
    let words: Vec<_> = T::words().into_iter().map(|(word, _)| word).collect();
    words.join(", ")
}

/// All jobs of one `iotoll run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The phases in order. fio's `stonewall` starts a new one.
    pub phases: Vec<Phase>,
    /// Caveats of parsing the plan: ignored options, and options that differ from fio's.
    pub warnings: Vec<Warning>,
}

impl Plan {
    /// Why only `iotoll run` has its jobs, if they depend on each other, end by themselves, write logs or replay traces.
    pub fn only_for_run(&self) -> Option<String> {
        let decided = "says when a job runs, which the measurement decides here; leave it out";
        let why = |job: &JobPlan| {
            let turns = job.together.first_option().map(|option| format!("{option} {decided}"));
            let log =
                job.logs.first_option().map(|option| format!("{option}: only iotoll run writes logs; leave it out"));
            let replays =
                job.replay.is_in_force().then(|| "read_iolog: only iotoll run replays traces; leave it out".into());
            turns.or(log).or(replays)
        };
        let mut jobs = self.phases.iter().flat_map(|phase| &phase.jobs);
        jobs.find_map(|job| why(job).map(|why| format!("job '{}': {why}", job.name)))
    }

    /// The jobs that replay traces, each with the number of its phase and its own in it; and where their caveats go.
    pub fn replaying(&mut self) -> (impl Iterator<Item = (usize, usize, &mut JobPlan)>, &mut Vec<Warning>) {
        let jobs = self.phases.iter_mut().enumerate().flat_map(|(phase, Phase { jobs })| {
            let jobs = jobs.iter_mut().enumerate().filter(|(_, job)| job.replay.is_in_force());
            jobs.map(move |(number, job)| (phase, number, job))
        });
        (jobs, &mut self.warnings)
    }
}

/// Jobs that run at the same time and share one machine cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The jobs, in file order. The `numjobs` copies are created when the phase runs.
    pub jobs: Vec<JobPlan>,
}

part! {
    /// One job: the defaults, `[global]` and its own options combined.
    JobPlan {
        /// The section's name, or what `name` says.
        name: String = String::new(),
        /// The I/O engine.
        engine: EngineKind = EngineKind::Psync,
        /// Which directions it uses.
        access: Access = Access::Read,
        /// The order in which it visits blocks.
        order: Order = Order::Sequential,
        /// Block size of each direction.
        block_sizes: Each<Bytes> = Bytes(4096).into(),
        /// Files or devices, and the region in them.
        target: Target = Target::default(),
        /// `numjobs`: number of copies.
        copies: u32 = 1,
        /// Queue depth and batching.
        depth: Depth = Depth::default(),
        /// `direct`: O_DIRECT.
        direct: bool = false,
        /// Time and amount of I/O.
        duration: Duration = Duration::default(),
        ;
        /// Which requests it makes beyond these.
        requests: RequestPlan,
        /// The number, sizes and order of the files; how they are made, opened and kept.
        files: FilePlan,
        /// When files are synced.
        sync: SyncPlan,
        /// How its engine asks the kernel.
        calls: CallPlan,
        /// What slows it down.
        pace: Pace,
        /// What it writes.
        content: Content,
        /// Whether what was written is read back right.
        verify: Verify,
        /// The trace that it replays.
        replay: ReplayPlan,
        /// Its logs.
        logs: LogPlan,
        /// The threads of its copies.
        thread: ThreadPlan,
        /// When it runs among other jobs.
        together: Together,
        /// Engine `nbd`: its server, and how it sends and receives.
        path: PathPlan,
        /// Options of single engines.
        own: OwnPlan,
        /// Busy work that is added.
        inject: Inject,
        /// How it is reported.
        reporting: Reporting,
    }
}

/// Whether no option of a part of a job is given.
pub fn is_default<T: Default + PartialEq>(part: &T) -> bool {
    *part == T::default()
}

impl JobPlan {
    /// Whether its files are dropped from the page cache before it starts. The default is fio's; files that are read
    /// before are not dropped.
    pub fn invalidates(&self) -> bool {
        self.files.invalidate.unwrap_or(true) && !self.files.opening.pre_read
    }

    /// The number of its files.
    pub fn file_count(&self) -> usize {
        let made = self.files.count.unwrap_or(1).max(1) as usize;
        if self.target.files.is_empty() { made } else { self.target.files.len() }
    }

    /// The first part of the names of its files, if it has no `filename`.
    pub fn file_stem(&self) -> &str {
        self.target.section.as_deref().unwrap_or(&self.name)
    }

    /// The value of `rw=` for its access and order, without the length of random runs.
    pub fn rw(&self) -> &'static str {
        word((self.access, self.order))
    }
}

part! {
    /// Files or devices, and the region in them.
    Target {
        /// The section's name, where `name` says another one; it still names the files.
        #[serde(skip_serializing_if = "Option::is_none")]
        section: Option<String> = None,
        /// `filename`, split at unescaped colons. Empty means fio's `JOB.COPY.0` in `directory`.
        files: Vec<String> = Vec::new(),
        /// `directory`: prefix of file names, joined with a slash.
        directory: Option<String> = None,
        /// `size` of all files of the job together. `None` means the files' own size. Always `Bytes` for an engine without
        /// files.
        size: Option<Size> = None,
        /// `offset` of the first byte that is used in each file.
        offset: Size = Size::default(),
        /// `offset_increment`: the copies begin this far apart.
        increment: Size = Size::default(),
        /// `offset_align`: percentages of offsets are rounded up to this; 0 means to the smallest block.
        align: Bytes = Bytes(0),
        /// `allow_device_write` was given on the command line.
        allow_device_write: bool = false,
    }
}

/// A size in bytes, or as a percentage of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Bytes.
    Bytes(Bytes),
    /// Percent of the file, 0 to 100.
    Percent(u8),
}

impl Default for Size {
    fn default() -> Self {
        Self::Bytes(Bytes(0))
    }
}

part! {
    /// Queue depth and batching, with fio's meanings.
    #[derive(Copy)]
    Depth {
        /// `iodepth`: I/Os in flight.
        in_flight: u32 = 1,
        /// `iodepth_low`: once the queue was full, none is submitted until it has drained to this. `None` means `iodepth`: it is kept full.
        #[serde(skip_serializing_if = "Option::is_none")]
        low: Option<u32> = None,
        /// `iodepth_batch_submit`: submitted at once.
        submit: u32 = 1,
        /// `iodepth_batch_complete_min`: completions to wait for; 0 polls without waiting while more I/O can be submitted.
        complete_min: u32 = 1,
        /// `iodepth_batch_complete_max`: completions retrieved at once; at least 1 and at least `complete_min`.
        complete_max: u32 = 1,
    }
}

part! {
    /// When a job ends.
    #[derive(Copy)]
    Duration {
        /// `runtime`; 0 means no limit.
        runtime: Nanos = Nanos(0),
        /// `time_based`: repeat the I/O until `runtime` has passed.
        time_based: bool = false,
        /// `ramp_time`: run this long before recording results.
        ramp: Nanos = Nanos(0),
        /// `io_size`: amount to transfer instead of `size`.
        io_size: Option<Size> = None,
        /// `number_ios`: maximum number of I/Os.
        number_ios: Option<u64> = None,
        /// `loops`: number of passes over `size`.
        loops: u32 = 1,
    }
}

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
    /// Which requests a job makes, beyond its direction, its order and one size of blocks.
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
    use crate::plan::options::choice;

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

    #[test]
    fn an_invalid_word_has_a_suggestion() {
        assert_eq!(choice::<EngineKind>("io_uring"), Ok(EngineKind::IoUring));
        assert_eq!(choice::<EngineKind>("psnyc").unwrap_err().suggestion.as_deref(), Some("psync"));
        assert_eq!(choice::<(Access, Order)>("RANDREAD").unwrap_err().suggestion, None);
        assert_eq!(choice::<(Access, Order)>("ranread").unwrap_err().suggestion.as_deref(), Some("randread"));
        assert_eq!(choice::<Fallocate>("1"), Ok(Fallocate::Native));
        assert_eq!(list_words::<Fallocate>(), "none, 0, native, posix, 1");
    }
}
