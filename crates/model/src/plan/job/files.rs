//! The files of a job beyond their names: their number and sizes, their order, how they are made, opened and kept.

use super::SizeRange;
use serde::{Deserialize, Serialize};

part! {
    /// What fio's options about files say.
    FilePlan {
        /// `nrfiles`: files of a job without `filename`. `None` means one.
        count: Option<u32> = None,
        /// `filesize`: bytes of each file; of a range, each has a size of its own.
        each: Option<SizeRange> = None,
        /// `file_service_type`: the file of the next I/O.
        service: FileService = FileService::RoundRobin { ios: 1 },
        /// `filename_format`: the names of files, with `$jobname`, `$jobnum`, `$filenum`.
        name_format: Option<String> = None,
        /// How missing or short files are made.
        making: Making = Making::default(),
        /// How they are opened, and what the kernel is told about them.
        opening: Opening = Opening::default(),
        /// `fallocate`: how a file is preallocated when it is laid out.
        fallocate: Fallocate = Fallocate::default(),
        /// `invalidate`: drop the file's pages from the page cache before the job. `None` means not specified: fio's
        /// default drops them ([`super::JobPlan::invalidates`]), and a comparison has its own default (`--cache`).
        invalidate: Option<bool> = None,
        /// `unlink`: remove the files that were made for the job at the end.
        unlink: bool = false,
    }
}

part! {
    /// How missing or short files are made.
    #[derive(Copy)]
    Making {
        /// `allow_file_create=0`: a file that is missing is an error.
        forbidden: bool = false,
        /// `create_on_open`: missing files are made without a size.
        on_open: bool = false,
        /// `overwrite`: files that the job writes to are written before, too.
        overwrite: bool = false,
    }
}

part! {
    /// How files are opened.
    #[derive(Copy)]
    Opening {
        /// `fadvise_hint`.
        advice: FileAdvice = FileAdvice::default(),
        /// `sync`: whether each write is durable when it returns.
        sync: WriteSync = WriteSync::default(),
        /// `pre_read`: files are read into the page cache before the job.
        pre_read: bool = false,
    }
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

words! {
    /// `fallocate`.
    Fallocate {
        /// Do not pre-allocate.
        None: "none" | "0",
        /// fallocate(2), or no preallocation if that fails. fio's default.
        #[default]
        Native: "native",
        /// posix_fallocate(3), which writes where the file system cannot allocate.
        Posix: "posix" | "1",
        /// fallocate(2) with FALLOC_FL_KEEP_SIZE.
        Keep: "keep",
        /// ftruncate(2) to the size.
        Truncate: "truncate",
    }
}

words! {
    /// `fadvise_hint`.
    FileAdvice {
        /// None is given.
        None: "0",
        /// The order of the job.
        #[default]
        Order: "1",
        /// FADV_RANDOM.
        Random: "random",
        /// FADV_SEQUENTIAL.
        Sequential: "sequential",
        /// FADV_NOREUSE.
        NoReuse: "noreuse",
    }
}

words! {
    /// `sync`.
    WriteSync {
        /// Writes return before the data is durable.
        #[default]
        None: "none" | "0",
        /// O_SYNC.
        Sync: "sync" | "1",
        /// O_DSYNC.
        DataSync: "dsync",
    }
}
