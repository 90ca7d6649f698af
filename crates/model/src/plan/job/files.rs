//! The files of a job beyond their names: their number and sizes, their order, how they are made, opened and kept.

use crate::unit::Bytes;

part! {
    /// What fio's options about files say.
    FilePlan {
        /// `nrfiles`: files of a job without `filename`. `None` means one.
        count: Option<u32> = None,
        /// `filesize`: bytes of each file.
        each: Option<Bytes> = None,
        /// `file_service_type=random:N`: I/Os before a random file is next. `None`: they take turns.
        service: Option<u32> = None,
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
        /// `fadvise_hint`: the kernel is told the order of the I/O.
        advises: bool = true,
        /// `sync`: whether each write is durable when it returns.
        sync: WriteSync = WriteSync::default(),
        /// `pre_read`: files are read into the page cache before the job.
        pre_read: bool = false,
    }
}

words! {
    /// `fallocate`.
    Fallocate {
        /// Do not pre-allocate.
        None: "none" | "0",
        /// fallocate(2), or no preallocation if that fails. fio's default.
        #[default]
        Native: "native" | "posix" | "1",
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
