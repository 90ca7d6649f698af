//! A plan: phases in order, each a set of jobs that run at the same time.

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

        impl crate::plan::value::Choice for $name {
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
mod requests;

use crate::plan::value::word;
use crate::unit::{Bytes, Nanos};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

pub use conduct::{
    Access, CallPlan, Ends, Inject, Order, OwnPlan, PATTERNS, Pace, Peer, ReplayPlan, Reporting, SyncPlan, ThreadPlan,
    Together,
};
pub use content::{Content, HEADER_BYTES, Pattern, Verify, VerifyMethod};
pub use engine::{Buffers, ENGINES, Engine, EngineKind, Medium, Queue};
pub use files::{Fallocate, FilePlan, Making, Opening, WriteSync};
pub use logs::{LogKind, LogPlan};
pub use path_plan::{
    MOST_PAYLOAD, MOST_SUBMITTERS, PathCopy, PathCrc, PathFraming, PathInFlight, PathNull, PathPlan, PathReceive,
    PathSegment, PathSend, PathTxQueue, TxTaskCpus,
};
pub use requests::{Distribution, Each, RequestPlan, SizeRange, SizeShare, Sizes};

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
