//! The options that say how a job's files are made, opened and synced.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("overwrite", boolean(field!(files.making.overwrite)), Is("0"), "1", "2")
        .help("Write all of a file that is made for a job of writes before the job, so that the job overwrites data"),
    work("file_append", boolean(field!(files.making.append)), Is("0"), "1", "2")
        .help("Begin at the end of each file; size is what is added"),
    work("create_on_open", boolean(field!(files.making.on_open)), Is("0"), "1", "2").help(
        "Make missing files when they are opened, empty, in the measured loop, instead of laying them out before",
    ),
    work("create_only", boolean(field!(files.making.only)), Is("0"), "1", "2").help("Make the files, and do no I/O"),
    work("create_fsync", boolean(field_not!(files.making.unsynced)), Is("1"), "0", "2")
        .help("Sync data that is written into a file before the job"),
    other("allow_file_create", boolean(field_not!(files.making.forbidden)), Is("1"), "0", "2")
        .help("Make files that do not exist; with 0 they are an error"),
    work("fill_device", boolean(field!(files.making.fill)), Is("0"), "1", "2").also(&["fill_fs"]).help(
        "Write until the device or file system is full; the write that finds no room ends the job without an \
         error. Without size, the file has no limit",
    ),
    work("unlink_each_loop", boolean(field!(files.making.unlink_each_loop)), Is("0"), "1", "2").help(
        "Remove the files after each pass but the last, and make them anew, empty, in the measured loop; \
         unlike in fio only those that iotoll made",
    ),
    work("pre_read", boolean(field!(files.opening.pre_read)), Is("0"), "1", "2")
        .help("Read the files into the page cache before the job, and do not drop them"),
    work("fadvise_hint", word_of!(files.opening.advice), Is("1"), "random", "2")
        .help("What the kernel is told about the order of the I/O: nothing (0), that of the job (1), or this"),
    work("sync", word_of!(files.opening.sync), Is("none"), "dsync", "2")
        .help("Open the files with O_SYNC (sync, 1) or O_DSYNC (dsync), so that each write is durable when it returns"),
    work("sync_file_range", text(parsed!(files.syncing.range, range_sync)), Required, "wait_before,write:8", "fsync:8")
        .otherwise("never")
        .form("wait_before, write and wait_after, separated by commas or bars, and :N")
        .help(
            "Call sync_file_range with these flags after every N writes, 1 by default, for what was written into \
         each file since its last sync",
        ),
    work("fsync_on_close", boolean(field!(files.syncing.on_close)), Is("0"), "1", "2")
        .help("Call fsync for each file that the job may write to when it is closed"),
    other("atomic", boolean(ATOMIC), Is("0"), "1", "2").help(
        "Imply direct=1. As in fio 3.33, no write is atomic beyond that: no released kernel knows the flag \
         O_ATOMIC that it sets",
    ),
    work(
        "write_hint",
        words(list_words::<WriteHint>, parsed!(files.opening.write_hint, choice::<WriteHint>)),
        Required,
        "short",
        "forever",
    )
    .otherwise("not set")
    .help("Tell the kernel how long the data of each file is expected to live (fcntl F_SET_RW_HINT)"),
    nothing("create_serialize", boolean(nowhere!()), Is("1"), "0", "2")
        .help("Accepted without effect: files are made one after the other, before the measurement"),
    nothing("unique_filename", boolean(nowhere!()), Is("1"), "0", "2")
        .help("Accepted without effect: no client of another machine asks for the job"),
    nothing("allow_mounted_write", boolean(nowhere!()), Is("0"), "1", "2")
        .help("Accepted without effect: iotoll never writes to a device that is mounted or in use otherwise"),
    nothing("write_barrier", count("writes", 0..=MANY, nowhere!()), Is("0"), "8", "-1")
        .help("Accepted without effect, as in fio 3.33: Linux has no writes with a barrier any more"),
    nothing("lockfile", words(|| "none".to_owned(), unshown(no_lock)), Is("none"), "none", "exclusive").help(
        "Accepted where it asks for nothing. fio's locks, which keep its jobs off the same file, are refused: \
         use stonewall",
    ),
];

// Places that are no fields.
const ATOMIC: Place<Set<bool>> = unshown(|draft, on| {
    if on {
        draft.job.direct = true;
        draft.cache.direct = Some(true);
    }
});

fn no_lock(_: &mut Draft, text: &str) -> Result<(), Wrong> {
    if text == "none" { Ok(()) } else { Err(Wrong::because(text, "is not supported; use stonewall")) }
}
