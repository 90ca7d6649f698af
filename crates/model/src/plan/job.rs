//! A plan: phases in order, each a set of jobs that run at the same time.

mod engine;
mod path_plan;

use crate::unit::{Bytes, Nanos};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

pub use engine::{EngineKind, Medium, Queue};
pub use path_plan::{
    InjectAt, MOST_PAYLOAD, MOST_SUBMITTERS, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathPlan,
    PathReceive, PathSegment, PathSend, PathTxQueue, TxTaskCpus,
};

/// Everything that one `iotoll run` does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The phases, one after the other (fio's `stonewall` begins a new one).
    pub phases: Vec<Phase>,
    /// Caveats of reading the plan: ignored options, options that differ from fio's.
    pub warnings: Vec<Warning>,
}

/// Jobs that run at the same time and share one machine cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The jobs, in file order. `numjobs` copies are made when the phase is run.
    pub jobs: Vec<JobPlan>,
}

/// One job section after defaults, `[global]` and its own options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// The section's name.
    pub name: String,
    /// What issues the I/O.
    pub engine: EngineKind,
    /// Which directions, in what mix.
    pub access: Access,
    /// In what order blocks are visited.
    pub order: Order,
    /// `rwmixread`: percent of I/Os that read, for mixed access. 50 by default.
    pub read_percent: u8,
    /// Block size of each direction.
    pub block_sizes: BlockSizes,
    /// Where the I/O goes.
    pub target: Target,
    /// `numjobs`: how many copies run. 1 by default.
    pub copies: u32,
    /// `group_reporting`: copies are reported as one job.
    pub group_reporting: bool,
    /// Queue depth and batching.
    pub depth: Depth,
    /// `direct`: O_DIRECT.
    pub direct: bool,
    /// How long and how much.
    pub duration: Duration,
    /// `fsync=N`: an fsync after every N writes; 0 never.
    pub fsync_every: u32,
    /// `fdatasync=N`: an fdatasync after every N writes; 0 never.
    pub fdatasync_every: u32,
    /// `end_fsync`: one fsync when the job has written everything.
    pub end_fsync: bool,
    /// `norandommap`: random offsets are drawn with replacement.
    pub no_random_map: bool,
    /// `randrepeat`: the same random sequence at each run. On by default, as in fio.
    pub repeatable: bool,
    /// `randseed`, mixed with the job's index. When given, it decides instead of `repeatable`.
    pub seed: Option<u64>,
    /// `invalidate`: drop the file's pages from the page cache before the job. `None`: not said; fio's default is to drop
    /// them ([`JobPlan::invalidates`]), a comparison has its own (`--cache`).
    #[serde(default)]
    pub invalidate: Option<bool>,
    /// `fallocate` when a file is laid out.
    pub fallocate: Fallocate,
    /// `fixedbufs`: io_uring registered buffers. `None`: the engine's default.
    pub fixed_buffers: Option<bool>,
    /// `registerfiles`: io_uring registered files. `None`: the engine's default.
    pub registered_files: Option<bool>,
    /// `rate_iops` for reads, writes and trims.
    pub rates: Rates,
    /// `cpus_allowed`: the CPUs that the job may use; empty means all.
    pub cpus_allowed: Vec<u32>,
    /// `startdelay`.
    pub start_delay: Nanos,
    /// `thinktime`: sleep between I/Os.
    pub think_time: Nanos,
    /// `percentile_list`, in percent, ascending.
    pub percentiles: Vec<f64>,
    /// `uri`: the server and the export of engine `nbd`.
    #[serde(default)]
    pub uri: Option<String>,
    /// `path_send` and its like: how engine `nbd` moves what it moves.
    #[serde(flatten)]
    pub path: PathPlan,
    /// `spin_cycles`: TSC cycles that engine `spin` burns for each I/O.
    pub spin_cycles: u64,
    /// `work_steps`: dependent multiply-adds that engine `work` does for each I/O.
    pub work_steps: u64,
    /// `inject_ns`: busy work added to each I/O.
    pub inject: Nanos,
    /// `inject_at`: where.
    #[serde(default)]
    pub inject_at: InjectAt,
    /// `allow_device_write` was given on the command line.
    pub allow_device_write: bool,
}

/// fio's `percentile_list`, so that its numbers and ours stand side by side.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// fio's defaults, except that the job has no name.
impl Default for JobPlan {
    fn default() -> Self {
        Self {
            name: String::new(),
            engine: EngineKind::Psync,
            access: Access::Read,
            order: Order::Sequential,
            read_percent: 50,
            block_sizes: BlockSizes::default(),
            target: Target::default(),
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
            fallocate: Fallocate::Native,
            fixed_buffers: None,
            registered_files: None,
            rates: Rates::default(),
            cpus_allowed: Vec::new(),
            start_delay: Nanos(0),
            think_time: Nanos(0),
            percentiles: PERCENTILES.to_vec(),
            uri: None,
            path: PathPlan::default(),
            spin_cycles: 0,
            work_steps: 0,
            inject: Nanos(0),
            inject_at: InjectAt::default(),
            allow_device_write: false,
        }
    }
}

impl JobPlan {
    /// Whether its files are dropped from the page cache before it, as fio does unless it is told otherwise.
    pub fn invalidates(&self) -> bool {
        self.invalidate.unwrap_or(true)
    }

    /// The word for its access and order in `rw=`.
    pub fn rw(&self) -> &'static str {
        let same = |(_, access, order): &&(&str, Access, Order)| (*access, *order) == (self.access, self.order);
        PATTERNS.iter().find(same).map_or("", |(word, _, _)| word)
    }
}

/// Which directions a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims (discards) only.
    Trim,
    /// Reads and writes, `read_percent` of them reads.
    ReadWrite,
    /// Each block is trimmed, then written.
    TrimWrite,
}

/// In what order blocks are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One after the other.
    Sequential,
    /// At random; each block once before any twice, unless `no_random_map`.
    Random,
}

/// The words of `rw=`. Where two mean the same, the first is the one that is shown.
pub const PATTERNS: [(&str, Access, Order); 11] = [
    ("read", Access::Read, Order::Sequential),
    ("write", Access::Write, Order::Sequential),
    ("trim", Access::Trim, Order::Sequential),
    ("randread", Access::Read, Order::Random),
    ("randwrite", Access::Write, Order::Random),
    ("randtrim", Access::Trim, Order::Random),
    ("rw", Access::ReadWrite, Order::Sequential),
    ("readwrite", Access::ReadWrite, Order::Sequential),
    ("randrw", Access::ReadWrite, Order::Random),
    ("trimwrite", Access::TrimWrite, Order::Sequential),
    ("randtrimwrite", Access::TrimWrite, Order::Random),
];

/// `bs=R,W,T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSizes {
    /// Of a read.
    pub read: Bytes,
    /// Of a write.
    pub write: Bytes,
    /// Of a trim.
    pub trim: Bytes,
}

impl Default for BlockSizes {
    fn default() -> Self {
        Self { read: Bytes(4096), write: Bytes(4096), trim: Bytes(4096) }
    }
}

impl BlockSizes {
    /// The largest block that a job with this access moves.
    pub fn largest(&self, access: Access) -> Bytes {
        match access {
            Access::Read => self.read,
            Access::Write => self.write,
            Access::Trim => self.trim,
            Access::ReadWrite => self.read.max(self.write),
            Access::TrimWrite => self.trim.max(self.write),
        }
    }
}

/// Where the I/O goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// `filename`, split at unescaped colons; empty: fio's `JOB.COPY.0` in `directory`.
    pub files: Vec<String>,
    /// `directory`: put before file names, with a slash.
    pub directory: Option<String>,
    /// `size`: of all files of the job together; `None`: the files' own size. Always `Bytes` for an
    /// engine without files.
    pub size: Option<Size>,
    /// `offset` of the first byte used in each file.
    pub offset: Size,
}

/// A size in bytes or a share of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Bytes.
    Bytes(Bytes),
    /// Percent of the file, 0 to 100.
    Percent(u8),
}

impl Default for Target {
    fn default() -> Self {
        Self { files: Vec::new(), directory: None, size: None, offset: Size::Bytes(Bytes(0)) }
    }
}

/// Queue depth and batching, with fio's meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Depth {
    /// `iodepth`: I/Os in flight.
    pub in_flight: u32,
    /// `iodepth_batch_submit`: handed over together.
    pub submit: u32,
    /// `iodepth_batch_complete_min`: waited for together; 0: look without waiting while there is
    /// room for more I/O.
    pub complete_min: u32,
    /// `iodepth_batch_complete_max`: taken together; at least 1 and at least `complete_min`.
    pub complete_max: u32,
}

impl Default for Depth {
    fn default() -> Self {
        Self { in_flight: 1, submit: 1, complete_min: 1, complete_max: 1 }
    }
}

/// When a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duration {
    /// `runtime`; zero means none.
    pub runtime: Nanos,
    /// `time_based`: start over until `runtime` has passed.
    pub time_based: bool,
    /// `ramp_time`: run this long before anything counts.
    pub ramp: Nanos,
    /// `io_size`: bytes to transfer, instead of `size`.
    pub io_size: Option<Size>,
    /// `number_ios`: I/Os to issue.
    pub number_ios: Option<u64>,
    /// `loops`: times over `size`. 1 by default.
    pub loops: u32,
}

impl Default for Duration {
    fn default() -> Self {
        Self { runtime: Nanos(0), time_based: false, ramp: Nanos(0), io_size: None, number_ios: None, loops: 1 }
    }
}

/// `rate_iops=R,W,T`; zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Reads per second.
    pub read: u64,
    /// Writes per second.
    pub write: u64,
    /// Trims per second.
    pub trim: u64,
}

/// `fallocate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallocate {
    /// Do not pre-allocate.
    None,
    /// fallocate(2); what cannot, goes on without. fio's default (`native`).
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
        assert_eq!(sizes.largest(Access::Read), Bytes(1));
        assert_eq!(sizes.largest(Access::ReadWrite), Bytes(2));
        assert_eq!(sizes.largest(Access::TrimWrite), Bytes(3));
    }
}
