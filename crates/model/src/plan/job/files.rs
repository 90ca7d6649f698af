//! The files of a job beyond their names: their number and sizes, their order, how they are made, opened and synced.

use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

/// What fio's options about files say. With fio's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilePlan {
    /// `nrfiles`: files of a job without `filename`, and the most that it takes from `opendir`. `None` means one, or all.
    pub count: Option<u32>,
    /// `filesize`: bytes of each file.
    pub each: Option<FileSize>,
    /// `openfiles`: files that are open at the same time; 0 means all.
    pub open: u32,
    /// `file_service_type`: the file of the next I/O.
    pub service: Service,
    /// `filename_format`: the names of files, with `$jobname`, `$jobnum`, `$filenum`.
    pub name_format: Option<String>,
    /// `opendir`: the job uses the files in this folder and below.
    pub folder: Option<String>,
    /// `ioscheduler`: the I/O scheduler of the devices below the files, while the job runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// How missing or short files are made.
    pub making: Making,
    /// How they are opened, and what the kernel is told about them.
    pub opening: Opening,
    /// Syncs beyond `fsync` and `fdatasync`.
    pub syncing: Syncing,
}

/// How missing or short files are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Making {
    /// `allow_file_create=0`: a file that is missing is an error.
    pub forbidden: bool,
    /// `create_fsync=0`: data that is written before the job is not synced.
    pub unsynced: bool,
    /// `create_on_open`: files are made when the job opens them, without a size.
    pub on_open: bool,
    /// `create_only`: the job ends when its files are made.
    pub only: bool,
    /// `overwrite`: files that the job writes to are written before, too.
    pub overwrite: bool,
    /// `file_append`: the I/O begins at the end of each file.
    pub append: bool,
    /// `fill_device`: the job ends without an error when the device is full.
    pub fill: bool,
    /// `unlink_each_loop`: the files that were made are removed after each pass, and made anew.
    pub unlink_each_loop: bool,
}

/// How files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Opening {
    /// `fadvise_hint`.
    pub advice: FileAdvice,
    /// `sync`: whether each write is durable when it returns.
    pub sync: WriteSync,
    /// `write_hint`: how long the data is expected to live.
    pub write_hint: Option<WriteHint>,
    /// `pre_read`: files are read into the page cache before the job.
    pub pre_read: bool,
}

/// Syncs beyond `fsync` and `fdatasync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Syncing {
    /// `fsync_on_close`: each file that the job may write to is synced when it is closed.
    pub on_close: bool,
    /// `sync_file_range`: what is written is handed over to the device, file by file.
    pub range: Option<RangeSync>,
}

/// With fio's defaults.
impl Default for FilePlan {
    fn default() -> Self {
        Self {
            count: None,
            each: None,
            open: 0,
            service: Service::RoundRobin { ios: 1 },
            name_format: None,
            folder: None,
            scheduler: None,
            making: Making::default(),
            opening: Opening::default(),
            syncing: Syncing::default(),
        }
    }
}

/// The size of each file: one, or a range in which it is drawn for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSize {
    /// The smallest.
    pub least: Bytes,
    /// The largest.
    pub most: Bytes,
}

/// The order in which files are used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Service {
    /// They take turns.
    RoundRobin {
        /// I/Os of a turn.
        ios: u32,
    },
    /// One is finished before the next one begins.
    Sequential,
    /// A random one, all alike.
    Random {
        /// I/Os before another one is chosen.
        ios: u32,
    },
    /// A random one: Zipf's law over the blocks of 1/1024 of a file, from a random file on.
    Zipf {
        /// The exponent.
        theta: f64,
    },
    /// A random one: Pareto's law, from a random file on.
    Pareto {
        /// The power: 0.2 means that 80 % of the I/Os go to 20 % of the files.
        power: f64,
    },
    /// A random one, most often from the middle: a normal distribution.
    Gauss {
        /// A further spread, in percent of the number of files.
        deviation: f64,
    },
}

/// `fadvise_hint`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FileAdvice {
    /// None is given.
    None,
    /// The order of the job.
    #[default]
    Order,
    /// FADV_RANDOM.
    Random,
    /// FADV_SEQUENTIAL.
    Sequential,
    /// FADV_NOREUSE.
    NoReuse,
}

/// `sync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WriteSync {
    /// Writes return before the data is durable.
    #[default]
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    DataSync,
}

/// `write_hint`: the expected life of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WriteHint {
    /// RWH_WRITE_LIFE_NONE: no expectation.
    None,
    /// RWH_WRITE_LIFE_SHORT.
    Short,
    /// RWH_WRITE_LIFE_MEDIUM.
    Medium,
    /// RWH_WRITE_LIFE_LONG.
    Long,
    /// RWH_WRITE_LIFE_EXTREME.
    Extreme,
}

/// `sync_file_range`: the flags of the call, and how often it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RangeSync {
    /// SYNC_FILE_RANGE_WAIT_BEFORE: waits for writes of the range that are under way.
    pub wait_before: bool,
    /// SYNC_FILE_RANGE_WRITE: begins to write the dirty pages of the range.
    pub write: bool,
    /// SYNC_FILE_RANGE_WAIT_AFTER: waits for those writes.
    pub wait_after: bool,
    /// A call after every N writes.
    pub every: u32,
}
