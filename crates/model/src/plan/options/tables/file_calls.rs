//! The options that say how a job's files are made, opened and synced.

use super::MANY;
use crate::plan::job::{FileAdvice, WriteHint, WriteSync};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value, Value::*};
use crate::plan::value::files::{optional, range_sync, show_range_sync};
use crate::plan::value::{Wrong, choice, list_words, typed, word};

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "overwrite",
        help: "Write all of a file that is made for a job of writes before the job, so that the job overwrites data",
        default: Default::Value("0"),
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.files.making.overwrite)),
        set: Boolean(|draft, on| draft.job.files.making.overwrite = on),
        ..PLAIN
    },
    JobOption {
        name: "file_append",
        help: "Begin at the end of each file; size is what is added",
        default: Default::Value("0"),
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.files.making.append)),
        set: Boolean(|draft, on| draft.job.files.making.append = on),
        ..PLAIN
    },
    JobOption {
        name: "create_on_open",
        help: "Make missing files when they are opened, empty, in the measured loop, instead of laying them out before",
        default: Default::Value("0"),
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.files.making.on_open)),
        set: Boolean(|draft, on| draft.job.files.making.on_open = on),
        ..PLAIN
    },
    JobOption {
        name: "create_only",
        help: "Make the files, and do no I/O",
        default: Default::Value("0"),
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.files.making.only)),
        set: Boolean(|draft, on| draft.job.files.making.only = on),
        ..PLAIN
    },
    JobOption {
        name: "create_fsync",
        help: "Sync data that is written into a file before the job",
        default: Default::Value("1"),
        example: "0",
        bad_example: "2",
        get: |job| Some(typed::switch(!job.files.making.unsynced)),
        set: Boolean(|draft, on| draft.job.files.making.unsynced = !on),
        ..PLAIN
    },
    JobOption {
        name: "allow_file_create",
        help: "Make files that do not exist; with 0 they are an error",
        default: Default::Value("1"),
        role: Role::Other,
        example: "0",
        bad_example: "2",
        get: |job| Some(typed::switch(!job.files.making.forbidden)),
        set: Boolean(|draft, on| draft.job.files.making.forbidden = !on),
        ..PLAIN
    },
    JobOption {
        name: "fill_device",
        aliases: &["fill_fs"],
        help: "Write until the device or file system is full; the write that finds no room ends the job without an error. Without size, the file has no limit",
        default: Default::Value("0"),
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.files.making.fill)),
        set: Boolean(|draft, on| draft.job.files.making.fill = on),
        ..PLAIN
    },
    JobOption {
        name: "unlink_each_loop",
        help: "Remove the files after each pass but the last, and make them anew, empty, in the measured loop; unlike in fio only those that iotoll made",
        default: Default::Value("0"),
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.files.making.unlink_each_loop)),
        set: Boolean(|draft, on| draft.job.files.making.unlink_each_loop = on),
        ..PLAIN
    },
    JobOption {
        name: "pre_read",
        help: "Read the files into the page cache before the job, and do not drop them",
        default: Default::Value("0"),
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.files.opening.pre_read)),
        set: Boolean(|draft, on| draft.job.files.opening.pre_read = on),
        ..PLAIN
    },
    JobOption {
        name: "fadvise_hint",
        help: "What the kernel is told about the order of the I/O: nothing (0), that of the job (1), or this",
        default: Default::Value("1"),
        example: "random",
        bad_example: "2",
        get: |job| Some(word(job.files.opening.advice).to_owned()),
        set: Choice(list_words::<FileAdvice>, |draft, text| {
            choice(text).map(|advice| draft.job.files.opening.advice = advice)
        }),
        ..PLAIN
    },
    JobOption {
        name: "sync",
        help: "Open the files with O_SYNC (sync, 1) or O_DSYNC (dsync), so that each write is durable when it returns",
        default: Default::Value("none"),
        example: "dsync",
        bad_example: "2",
        get: |job| Some(word(job.files.opening.sync).to_owned()),
        set: Choice(list_words::<WriteSync>, |draft, text| {
            choice(text).map(|sync| draft.job.files.opening.sync = sync)
        }),
        ..PLAIN
    },
    JobOption {
        name: "sync_file_range",
        help: "Call sync_file_range with these flags after every N writes, 1 by default, for what was written into each file since its last sync",
        default: Default::Words("never"),
        example: "wait_before,write:8",
        bad_example: "fsync:8",
        get: |job| job.files.syncing.range.map(show_range_sync),
        set: Text("wait_before, write and wait_after, separated by commas or bars, and :N", |draft, text| {
            range_sync(text).map(|sync| draft.job.files.syncing.range = Some(sync))
        }),
        ..PLAIN
    },
    JobOption {
        name: "fsync_on_close",
        help: "Call fsync for each file that the job may write to when it is closed",
        default: Default::Value("0"),
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.files.syncing.on_close)),
        set: Boolean(|draft, on| draft.job.files.syncing.on_close = on),
        ..PLAIN
    },
    JobOption {
        name: "atomic",
        help: "Imply direct=1. As in fio 3.33, no write is atomic beyond that: no released kernel knows the flag O_ATOMIC that it sets",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        set: Boolean(|draft, on| {
            if on {
                draft.job.direct = true;
                draft.cache.direct = Some(true);
            }
        }),
        ..PLAIN
    },
    JobOption {
        name: "write_hint",
        help: "Tell the kernel how long the data of each file is expected to live (fcntl F_SET_RW_HINT)",
        default: Default::Words("not set"),
        example: "short",
        bad_example: "forever",
        get: |job| job.files.opening.write_hint.map(|hint| word(hint).to_owned()),
        set: Choice(list_words::<WriteHint>, |draft, text| {
            optional(text).map(|hint| draft.job.files.opening.write_hint = hint)
        }),
        ..PLAIN
    },
    nothing(
        "create_serialize",
        "Accepted without effect: files are made one after the other, before the measurement",
        ("1", "0", "2"),
        Boolean(|_, _| {}),
    ),
    nothing(
        "unique_filename",
        "Accepted without effect: no client of another machine asks for the job",
        ("1", "0", "2"),
        Boolean(|_, _| {}),
    ),
    nothing(
        "allow_mounted_write",
        "Accepted without effect: iotoll never writes to a device that is mounted or in use otherwise",
        ("0", "1", "2"),
        Boolean(|_, _| {}),
    ),
    nothing(
        "write_barrier",
        "Accepted without effect, as in fio 3.33: Linux has no writes with a barrier any more",
        ("0", "8", "-1"),
        Count("writes", 0..=MANY, |_, _| {}),
    ),
    nothing(
        "lockfile",
        "Accepted where it asks for nothing. fio's locks, which keep its jobs off the same file, are refused: use stonewall",
        ("none", "none", "exclusive"),
        Choice(
            || "none".to_owned(),
            |_, text| {
                if text == "none" { Ok(()) } else { Err(Wrong::because(text, "is not supported; use stonewall")) }
            },
        ),
    ),
];

/// An option that changes nothing, with its default, its example and its bad example.
const fn nothing(
    name: &'static str,
    help: &'static str,
    (default, example, bad_example): (&'static str, &'static str, &'static str),
    set: Value,
) -> JobOption {
    JobOption { name, help, default: Default::Value(default), role: Role::Nothing, example, bad_example, set, ..PLAIN }
}
