//! The options that say how a job's files are made, opened and synced.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("overwrite", Is("0"), "1", "2")
        .help("Write all of a file that is made for a job of writes before the job, so that the job overwrites data")
        .boolean(field!(files.making.overwrite)),
    work("file_append", Is("0"), "1", "2")
        .help("Begin at the end of each file; size is what is added")
        .boolean(field!(files.making.append)),
    work("create_on_open", Is("0"), "1", "2")
        .help("Make missing files when they are opened, empty, in the measured loop, instead of laying them out before")
        .boolean(field!(files.making.on_open)),
    work("create_only", Is("0"), "1", "2").help("Make the files, and do no I/O").boolean(field!(files.making.only)),
    work("create_fsync", Is("1"), "0", "2")
        .help("Sync data that is written into a file before the job")
        .boolean(field_not!(files.making.unsynced)),
    other("allow_file_create", Is("1"), "0", "2")
        .help("Make files that do not exist; with 0 they are an error")
        .boolean(field_not!(files.making.forbidden)),
    work("fill_device", Is("0"), "1", "2")
        .help(
            "Write until the device or file system is full; the write that finds no room ends the job without an \
             error. Without size, the file has no limit",
        )
        .also(&["fill_fs"])
        .boolean(field!(files.making.fill)),
    work("unlink_each_loop", Is("0"), "1", "2")
        .help(
            "Remove the files after each pass but the last, and make them anew, empty, in the measured loop; \
             unlike in fio only those that iotoll made",
        )
        .boolean(field!(files.making.unlink_each_loop)),
    work("pre_read", Is("0"), "1", "2")
        .help("Read the files into the page cache before the job, and do not drop them")
        .boolean(field!(files.opening.pre_read)),
    work("fadvise_hint", Is("1"), "random", "2")
        .help("What the kernel is told about the order of the I/O: nothing (0), that of the job (1), or this")
        .choice(word_of!(files.opening.advice)),
    work("sync", Is("none"), "dsync", "2")
        .help("Open the files with O_SYNC (sync, 1) or O_DSYNC (dsync), so that each write is durable when it returns")
        .choice(word_of!(files.opening.sync)),
    work("sync_file_range", Words("never"), "wait_before,write:8", "fsync:8")
        .help(
            "Call sync_file_range with these flags after every N writes, 1 by default, for what was written into \
             each file since its last sync",
        )
        .text(
            "wait_before, write and wait_after, separated by commas or bars, and :N",
            parsed!(files.syncing.range, value::files::range_sync),
        ),
    work("fsync_on_close", Is("0"), "1", "2")
        .help("Call fsync for each file that the job may write to when it is closed")
        .boolean(field!(files.syncing.on_close)),
    other("atomic", Is("0"), "1", "2")
        .help(
            "Imply direct=1. As in fio 3.33, no write is atomic beyond that: no released kernel knows the flag \
             O_ATOMIC that it sets",
        )
        .boolean(unshown(|draft, on| {
            if on {
                draft.job.direct = true;
                draft.cache.direct = Some(true);
            }
        })),
    work("write_hint", Words("not set"), "short", "forever")
        .help("Tell the kernel how long the data of each file is expected to live (fcntl F_SET_RW_HINT)")
        .choice((list_words::<WriteHint>, parsed!(files.opening.write_hint, choice::<WriteHint>))),
    nothing("create_serialize", Is("1"), "0", "2")
        .help("Accepted without effect: files are made one after the other, before the measurement")
        .boolean(nowhere!()),
    nothing("unique_filename", Is("1"), "0", "2")
        .help("Accepted without effect: no client of another machine asks for the job")
        .boolean(nowhere!()),
    nothing("allow_mounted_write", Is("0"), "1", "2")
        .help("Accepted without effect: iotoll never writes to a device that is mounted or in use otherwise")
        .boolean(nowhere!()),
    nothing("write_barrier", Is("0"), "8", "-1")
        .help("Accepted without effect, as in fio 3.33: Linux has no writes with a barrier any more")
        .count("writes", 0..=MANY, nowhere!()),
    nothing("lockfile", Is("none"), "none", "exclusive")
        .help(
            "Accepted where it asks for nothing. fio's locks, which keep its jobs off the same file, are refused: \
             use stonewall",
        )
        .choice((|| "none".to_owned(), unshown(no_lock))),
];

fn no_lock(_: &mut Draft, text: &str) -> Result<(), Wrong> {
    if text == "none" { Ok(()) } else { Err(Wrong::because(text, "is not supported; use stonewall")) }
}
