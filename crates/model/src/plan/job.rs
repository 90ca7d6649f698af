//! A plan: phases in order, each a set of jobs that run at the same time.

mod conduct;
mod content;
mod engine;
mod files;
mod logs;
mod path_plan;
mod peer;
mod requests;
mod verify;

use crate::unit::{Bytes, Nanos};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

pub use conduct::{Access, CallPlan, Ends, Order, PATTERNS, Pace, ReplayPlan, Together};
pub use content::{Content, LONGEST_PATTERN, Pattern, PatternPiece};
pub use engine::{ENGINES, Engine, EngineKind, Medium, Queue};
pub use files::{FileAdvice, FilePlan, FileService, FileSize, Making, Opening, WriteSync};
pub use logs::{LogKind, LogName, LogPlan, WithoutLogs};
pub use path_plan::{
    InjectAt, MOST_PAYLOAD, MOST_SUBMITTERS, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathPlan,
    PathReceive, PathSegment, PathSend, PathTxQueue, TxTaskCpus,
};
pub use peer::Peer;
pub use requests::{Distribution, Each, RegionPlan, RequestPlan, Shape, SizeRange, SizeShare, Sizes};
pub use verify::{HEADER_BYTES, VERIFY_METHODS, Verify, VerifyMethod, VerifyRow};

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
        let scheduler = |job: &JobPlan| {
            let scheduler = job.files.scheduler.as_ref()?;
            Some(format!(
                "ioscheduler: only iotoll run sets it; leave it out, and compare schedulers by --candidate-set \
                 file:/sys/block/DEVICE/queue/scheduler={scheduler}"
            ))
        };
        let decided = "says when a job runs, which the measurement decides here; leave it out";
        let why = |job: &JobPlan| {
            let turns = job.together.first_option().map(|option| format!("{option} {decided}"));
            let log =
                job.logs.first_option().map(|option| format!("{option}: only iotoll run writes logs; leave it out"));
            let replays =
                job.replay.is_in_force().then(|| "read_iolog: only iotoll run replays traces; leave it out".into());
            scheduler(job).or(turns).or(log).or(replays)
        };
        let mut jobs = self.phases.iter().flat_map(|phase| &phase.jobs);
        jobs.find_map(|job| why(job).map(|why| format!("job '{}': {why}", job.name)))
    }
}

/// Jobs that run at the same time and share one machine cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The jobs, in file order. The `numjobs` copies are created when the phase runs.
    pub jobs: Vec<JobPlan>,
}

/// One job: the defaults, `[global]` and its own options combined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// The section's name, or what `name` says.
    pub name: String,
    /// The section's name, where `name` says another one; it still names the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The I/O engine.
    pub engine: EngineKind,
    /// Which directions it uses.
    pub access: Access,
    /// The order in which it visits blocks.
    pub order: Order,
    /// `rw=randread:N`: each random position is followed by the blocks behind it, N blocks in all. 1 by default.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub random_run: u32,
    /// `rwmixread`: percentage of reads in mixed access. 50 by default.
    pub read_percent: u8,
    /// Block size of each direction.
    pub block_sizes: BlockSizes,
    /// Sizes and positions beyond these.
    #[serde(default, skip_serializing_if = "is_default")]
    pub requests: RequestPlan,
    /// Files or devices, and the region in them.
    pub target: Target,
    /// How the offset of the region differs between the copies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub region: RegionPlan,
    /// Their number, sizes and order; how they are made, opened and synced.
    #[serde(default, skip_serializing_if = "is_default")]
    pub files: FilePlan,
    /// `numjobs`: number of copies. 1 by default.
    pub copies: u32,
    /// `group_reporting`: report the copies as one job.
    pub group_reporting: bool,
    /// Queue depth and batching.
    pub depth: Depth,
    /// `direct`: O_DIRECT.
    pub direct: bool,
    /// Time and amount of I/O.
    pub duration: Duration,
    /// `fsync=N`: call fsync after every N writes; 0 means never.
    pub fsync_every: u32,
    /// `fdatasync=N`: call fdatasync after every N writes; 0 means never.
    pub fdatasync_every: u32,
    /// `end_fsync`: call fsync once when the job has written everything.
    pub end_fsync: bool,
    /// `norandommap`: draw random offsets with replacement.
    pub no_random_map: bool,
    /// `randrepeat`: use the same random sequence in each run. On by default, as in fio.
    pub repeatable: bool,
    /// `randseed`, mixed with the job's index. Overrides `repeatable`.
    pub seed: Option<u64>,
    /// `invalidate`: drop the file's pages from the page cache before the job. `None` means not specified: fio's
    /// default drops them ([`JobPlan::invalidates`]), and a comparison has its own default (`--cache`).
    #[serde(default)]
    pub invalidate: Option<bool>,
    /// `unlink`: remove the files that were made for the job at the end.
    #[serde(default)]
    pub unlink: bool,
    /// `fallocate`: how a file is preallocated when it is laid out.
    pub fallocate: Fallocate,
    /// `fixedbufs`: registered buffers of io_uring. `None` means the engine's default.
    pub fixed_buffers: Option<bool>,
    /// `registerfiles`: registered files of io_uring. `None` means the engine's default.
    pub registered_files: Option<bool>,
    /// `rate_iops` for reads, writes and trims.
    pub rates: Rates,
    /// Rates in bytes, and how often it pauses.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    /// What it writes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub content: Content,
    /// Whether what was written is read back right.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verify: Verify,
    /// The trace that it replays.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replay: ReplayPlan,
    /// Its logs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub logs: LogPlan,
    /// `cpus_allowed`: the CPUs that the job may use. Empty means all.
    pub cpus_allowed: Vec<u32>,
    /// How its engine asks the kernel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub calls: CallPlan,
    /// `lockmem`: bytes of memory that each thread takes away from the machine.
    #[serde(default, skip_serializing_if = "is_default")]
    pub locked_memory: Bytes,
    /// How other jobs depend on it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub together: Together,
    /// `startdelay`.
    pub start_delay: Nanos,
    /// `thinktime`: sleep between I/Os.
    pub think_time: Nanos,
    /// `percentile_list`, in percent, ascending.
    pub percentiles: Vec<f64>,
    /// `uri`: the server and the export of engine `nbd`.
    #[serde(default)]
    pub uri: Option<String>,
    /// The `path_…` options: how engine `nbd` sends and receives.
    #[serde(flatten)]
    pub path: PathPlan,
    /// `spin_cycles`: TSC cycles that engine `spin` burns for each I/O.
    pub spin_cycles: u64,
    /// `work_steps`: dependent multiply-adds that engine `work` executes for each I/O.
    pub work_steps: u64,
    /// `mem_copy`: how engine `mem` copies.
    #[serde(default)]
    pub mem_copy: PathCopy,
    /// `mem_in_flight`: where engine `mem` counts I/Os in flight.
    #[serde(default)]
    pub mem_in_flight: PathInFlight,
    /// `rr_peer`: the echo server of engine `rr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rr_peer: Option<Peer>,
    /// `rr_connect`: engine `rr` connects anew for each exchange.
    #[serde(default)]
    pub rr_connect: bool,
    /// `inject_ns`: busy work added to each I/O.
    pub inject: Nanos,
    /// `inject_every`: add `inject_ns` once per this time instead of to each I/O; 0 means to each.
    #[serde(default)]
    pub inject_every: Nanos,
    /// `inject_at`: where `inject_ns` is added.
    #[serde(default)]
    pub inject_at: InjectAt,
    /// `allow_device_write` was given on the command line.
    pub allow_device_write: bool,
}

/// fio's default `percentile_list`, so that the numbers can be compared with fio's.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Whether no option of a part of a job is given.
pub fn is_default<T: Default + PartialEq>(part: &T) -> bool {
    *part == T::default()
}

/// The default of `random_run`.
fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// fio's defaults. The name is empty.
impl Default for JobPlan {
    fn default() -> Self {
        Self {
            name: String::new(),
            section: None,
            engine: EngineKind::Psync,
            access: Access::Read,
            order: Order::Sequential,
            random_run: 1,
            read_percent: 50,
            block_sizes: BlockSizes::default(),
            requests: RequestPlan::default(),
            target: Target::default(),
            region: RegionPlan::default(),
            files: FilePlan::default(),
            copies: 1,
            group_reporting: false,
            depth: Depth::default(),
            direct: false,
            duration: Duration::default(),
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            no_random_map: false,
            repeatable: true,
            seed: None,
            invalidate: None,
            unlink: false,
            fallocate: Fallocate::Native,
            fixed_buffers: None,
            registered_files: None,
            rates: Rates::default(),
            pace: Pace::default(),
            content: Content::default(),
            verify: Verify::default(),
            replay: ReplayPlan::default(),
            logs: LogPlan::default(),
            cpus_allowed: Vec::new(),
            calls: CallPlan::default(),
            locked_memory: Bytes(0),
            together: Together::default(),
            start_delay: Nanos(0),
            think_time: Nanos(0),
            percentiles: PERCENTILES.to_vec(),
            uri: None,
            path: PathPlan::default(),
            spin_cycles: 0,
            work_steps: 0,
            mem_copy: PathCopy::default(),
            mem_in_flight: PathInFlight::default(),
            rr_peer: None,
            rr_connect: false,
            inject: Nanos(0),
            inject_every: Nanos(0),
            inject_at: InjectAt::default(),
            allow_device_write: false,
        }
    }
}

impl JobPlan {
    /// Whether its files are dropped from the page cache before it starts. The default is fio's; files that are read
    /// before are not dropped.
    pub fn invalidates(&self) -> bool {
        self.invalidate.unwrap_or(true) && !self.files.opening.pre_read
    }

    /// The number of its files.
    pub fn file_count(&self) -> usize {
        let made = self.files.count.unwrap_or(1).max(1) as usize;
        if self.target.files.is_empty() { made } else { self.target.files.len() }
    }

    /// The first part of the names of its files, if it has no `filename`.
    pub fn file_stem(&self) -> &str {
        self.section.as_deref().unwrap_or(&self.name)
    }

    /// The directory of the files of one copy; `None` without `directory`. As in fio, files with a name are in the first.
    pub fn directory_of(&self, copy: u32) -> Option<&str> {
        let target = &self.target;
        let first = target.directory.as_deref()?;
        let all = || std::iter::once(first).chain(target.more_directories.iter().map(String::as_str));
        let turn = if target.files.is_empty() { copy as usize % (1 + target.more_directories.len()) } else { 0 };
        all().nth(turn)
    }

    /// The value of `rw=` for its access and order, without the length of random runs.
    pub fn rw(&self) -> &'static str {
        let same = |(_, access, order): &&(&str, Access, Order)| (*access, *order) == (self.access, self.order);
        PATTERNS.iter().find(same).map_or("", |(word, _, _)| word)
    }
}

/// `bs=R,W,T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSizes {
    /// Of reads.
    pub read: Bytes,
    /// Of writes.
    pub write: Bytes,
    /// Of trims.
    pub trim: Bytes,
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self { read: Bytes(4096), write: Bytes(4096), trim: Bytes(4096) }
    }
}

/// Files or devices, and the region in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// `filename`, split at unescaped colons. Empty means fio's `JOB.COPY.0` in `directory`.
    pub files: Vec<String>,
    /// `directory`: prefix of file names, joined with a slash.
    pub directory: Option<String>,
    /// Further directories of `directory=A:B`: copies of a job without `filename` take turns among all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_directories: Vec<String>,
    /// `size` of all files of the job together. `None` means the files' own size. Always `Bytes` for an engine without
    /// files.
    pub size: Option<Size>,
    /// `offset` of the first byte that is used in each file.
    pub offset: Size,
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

/// Queue depth and batching, with fio's meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Depth {
    /// `iodepth`: I/Os in flight.
    pub in_flight: u32,
    /// `iodepth_low`: once the queue was full, none is submitted until it has drained to this. `None` means `iodepth`: it is kept full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<u32>,
    /// `iodepth_batch_submit`: submitted at once.
    pub submit: u32,
    /// `iodepth_batch_complete_min`: completions to wait for; 0 polls without waiting while more I/O can be submitted.
    pub complete_min: u32,
    /// `iodepth_batch_complete_max`: completions retrieved at once; at least 1 and at least `complete_min`.
    pub complete_max: u32,
}

impl Default for Depth {
    fn default() -> Self {
        Self { in_flight: 1, low: None, submit: 1, complete_min: 1, complete_max: 1 }
    }
}

/// When a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duration {
    /// `runtime`; 0 means no limit.
    pub runtime: Nanos,
    /// `time_based`: repeat the I/O until `runtime` has passed.
    pub time_based: bool,
    /// `ramp_time`: run this long before recording results.
    pub ramp: Nanos,
    /// `io_size`: amount to transfer instead of `size`.
    pub io_size: Option<Size>,
    /// `number_ios`: maximum number of I/Os.
    pub number_ios: Option<u64>,
    /// `loops`: number of passes over `size`. 1 by default.
    pub loops: u32,
}

impl Default for Duration {
    fn default() -> Self {
        Self { runtime: Nanos(0), time_based: false, ramp: Nanos(0), io_size: None, number_ios: None, loops: 1 }
    }
}

/// A rate of each direction, as `rate_iops=R,W,T` has them; 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Of reads, per second.
    pub read: u64,
    /// Of writes, per second.
    pub write: u64,
    /// Of trims, per second.
    pub trim: u64,
}

impl Rates {
    /// Reads, writes and trims.
    pub fn each(self) -> [u64; 3] {
        [self.read, self.write, self.trim]
    }

    /// Changes the directions that are given.
    pub(crate) fn update(&mut self, [read, write, trim]: [Option<u64>; 3]) {
        self.read = read.unwrap_or(self.read);
        self.write = write.unwrap_or(self.write);
        self.trim = trim.unwrap_or(self.trim);
    }
}

/// `fallocate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallocate {
    /// Do not pre-allocate.
    None,
    /// fallocate(2), or no preallocation if that fails. fio's default (`native`).
    Native,
    /// posix_fallocate(3), which writes where the file system cannot allocate.
    Posix,
    /// fallocate(2) with FALLOC_FL_KEEP_SIZE.
    Keep,
    /// ftruncate(2) to the size.
    Truncate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_and_order_has_a_word() {
        for (_, access, order) in PATTERNS {
            let job = JobPlan { access, order, ..JobPlan::default() };
            assert!(PATTERNS.contains(&(job.rw(), access, order)));
        }
        let mixed = JobPlan { access: Access::ReadWrite, ..JobPlan::default() };
        assert_eq!(mixed.rw(), "rw");
    }

    #[test]
    fn the_largest_block_is_that_of_the_directions_in_use() {
        let sizes = BlockSizes { read: Bytes(1), write: Bytes(2), trim: Bytes(3) };
        let largest = |access| JobPlan { access, block_sizes: sizes, ..JobPlan::default() }.largest_block();
        assert_eq!(largest(Access::Read), Bytes(1));
        assert_eq!(largest(Access::ReadWrite), Bytes(2));
        assert_eq!(largest(Access::TrimWrite), Bytes(3));
    }
}
