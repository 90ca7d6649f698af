//! The files of a job beyond their names: their number and sizes, their order, how they are made, opened and synced.

use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

/// What fio's options about files say. With fio's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePlan {
    /// `nrfiles`: files of a job without `filename`. `None` means one.
    pub count: Option<u32>,
    /// `filesize`: bytes of each file.
    pub each: Option<FileSize>,
    /// `file_service_type`: the file of the next I/O.
    pub service: FileService,
    /// `filename_format`: the names of files, with `$jobname`, `$jobnum`, `$filenum`.
    pub name_format: Option<String>,
    /// `ioscheduler`: the I/O scheduler of the devices below the files, while the job runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// How missing or short files are made.
    pub making: Making,
    /// How they are opened, and what the kernel is told about them.
    pub opening: Opening,
    /// `fsync_on_close`: each file that the job may write to is synced when it is closed.
    pub sync_on_close: bool,
}

/// How missing or short files are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Making {
    /// `allow_file_create=0`: a file that is missing is an error.
    pub forbidden: bool,
    /// `create_on_open`: files are made when the job opens them, without a size.
    pub on_open: bool,
    /// `overwrite`: files that the job writes to are written before, too.
    pub overwrite: bool,
}

/// How files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Opening {
    /// `fadvise_hint`.
    pub advice: FileAdvice,
    /// `sync`: whether each write is durable when it returns.
    pub sync: WriteSync,
    /// `pre_read`: files are read into the page cache before the job.
    pub pre_read: bool,
}

/// With fio's defaults.
impl Default for FilePlan {
    fn default() -> Self {
        Self {
            count: None,
            each: None,
            service: FileService::RoundRobin { ios: 1 },
            name_format: None,
            scheduler: None,
            making: Making::default(),
            opening: Opening::default(),
            sync_on_close: false,
        }
    }
}

/// The size of each file: one, or a range in which it is drawn for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSize {
    /// The smallest.
    pub least: Bytes,
    /// The largest.
    pub most: Bytes,
}

/// The order in which files are used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileService {
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
}

/// `fadvise_hint`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
pub enum WriteSync {
    /// Writes return before the data is durable.
    #[default]
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    DataSync,
}
