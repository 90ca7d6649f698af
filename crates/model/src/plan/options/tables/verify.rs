//! The options of whether what was written is read back right, and of errors.

use super::*;

/// The largest `verify_backlog`: iotoll keeps each of these blocks in memory until it is read back.
const LONGEST_BACKLOG: u64 = 1 << 24;

pub(super) static OPTIONS: &[JobOption] = &[
    work("verify", Is("0"), "crc32c", "crc33")
        .help(
            "Mark each block with a header and this checksum when it is written, and check them when it is read; \
             measured. fio reads what iotoll wrote, and the reverse",
        )
        .choice((list_words::<Option<VerifyMethod>>, parsed!(verify.method, method))),
    work("do_verify", Is("1"), "0", "yes")
        .help("Read everything back when all is written, and check it; not measured")
        .boolean(field!(verify.after)),
    work("verify_pattern", Words("noise"), "0xff%o\"abcd\"-12", "abcd")
        .help(
            "Write this pattern, repeated, behind the header, or without one with verify=pattern. %o stands for \
             the offset of the block",
        )
        .text(Pattern::FORM, parsed!(verify.pattern, Pattern::parse)),
    work("verify_interval", Words("bs"), "4k", "16")
        .help("Bytes of a block that one header covers. bs has to be a multiple; otherwise a header covers a block")
        .number("bytes", 80..=GIB, field!(verify.interval)),
    work("verify_offset", Is("0"), "1k", "-1")
        .help("Exchange the header with the bytes at this place of what it covers. 0 means that it stays in front")
        .number("bytes", 0..=GIB, field!(verify.offset)),
    other("verify_fatal", Is("0"), "1", "2")
        .help("Stop at the first error in a block instead of checking all of the block, also with continue_on_error")
        .boolean(field!(verify.fatal)),
    other("verify_dump", Is("0"), "1", "2")
        .help(
            "Write blocks with errors to FILE.OFFSET.received here, and what was expected, if it is known, to \
             FILE.OFFSET.expected",
        )
        .boolean(field!(verify.dump)),
    work("verify_backlog", Is("0"), "1024", "-1")
        .help("After this many writes, read them back and check them; measured. 0 means when all are written")
        .number("blocks", 0..=LONGEST_BACKLOG, field!(verify.backlog)),
    work("verify_backlog_batch", Words("verify_backlog"), "64", "0")
        .help("Read back this many blocks at a time, the oldest first")
        .count("blocks", 1..=MANY, field!(verify.batch)),
    work("verify_only", Is("0"), "1", "2")
        .help("Write nothing: read and check the blocks that the job would write")
        .switch(field!(verify.only)),
    said("verify_async", Is("0"), "4", "many").help("Accepted; blocks are checked by the job's own thread").count(
        "threads",
        0..=4096,
        field!(verify.threads),
    ),
    said("verify_async_cpus", Words("all CPUs"), "0-3", "3-0")
        .help("Accepted; blocks are checked by the job's own thread")
        .text("CPU numbers and ranges, 0 to 1023", parsed!(verify.threads_cpus, cpus)),
    nothing("verify_state_save", Words("1"), "0", "2")
        .help("Accepted without effect: no state is saved")
        .boolean(nowhere!()),
    work("continue_on_error", Is("none"), "verify", "some")
        .help(
            "Count these errors and go on: EIO of I/Os, and blocks that are not as they were written. Every other \
             error ends the job",
        )
        .choice(word_of!(errors.goes_on)),
    work("ignore_error", Words("none"), "EIO,ENOSPC:EIO", "EIOO")
        .help("Count these errors and go on: lists for reads, for writes and for checks")
        .text(
            "READ,WRITE,VERIFY, each a list of error names or numbers with ':' between them",
            parsed!(errors.ignored, IgnoredErrors::parse),
        ),
];

/// fio 3.33 has a method of this name whose checksum is not that of the name, and that iotoll cannot compute.
fn method(text: &str) -> Result<Option<VerifyMethod>, Wrong> {
    if text == "sha256" {
        let why = "is not SHA-256 in fio 3.33 but a function of its own; sha3-256 comes nearest";
        return Err(Wrong { unsupported: Some(Effect::Work), ..Wrong::because(text, why) });
    }
    choice(text)
}
