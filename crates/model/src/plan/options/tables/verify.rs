//! The options of whether what was written is read back right, and of errors.

use super::*;

/// The largest `verify_backlog`: iotoll keeps each of these blocks in memory until it is read back.
const LONGEST_BACKLOG: u64 = 1 << 24;

pub(super) static OPTIONS: &[JobOption] = &[
    work(
        "verify",
        words(list_words::<Option<VerifyMethod>>, parsed!(verify.method, method)),
        Is("0"),
        "crc32c",
        "crc33",
    )
    .help(
        "Mark each block with a header and this checksum when it is written, and check them when it is read; \
         measured. fio reads what iotoll wrote, and the reverse",
    ),
    work("do_verify", boolean(field!(verify.after)), Is("1"), "0", "yes")
        .help("Read everything back when all is written, and check it; not measured"),
    work("verify_pattern", text(parsed!(verify.pattern, Pattern::parse)), Words("noise"), "0xff%o\"abcd\"-12", "abcd")
        .form(Pattern::FORM)
        .help(
            "Write this pattern, repeated, behind the header, or without one with verify=pattern. %o stands for \
             the offset of the block",
        ),
    work("verify_interval", number("bytes", 80..=GIB, field!(verify.interval)), Words("bs"), "4k", "16")
        .help("Bytes of a block that one header covers. bs has to be a multiple; otherwise a header covers a block"),
    work("verify_offset", number("bytes", 0..=GIB, field!(verify.offset)), Is("0"), "1k", "-1")
        .help("Exchange the header with the bytes at this place of what it covers. 0 means that it stays in front"),
    other("verify_fatal", boolean(field!(verify.fatal)), Is("0"), "1", "2")
        .help("Stop at the first error in a block instead of checking all of the block, also with continue_on_error"),
    other("verify_dump", boolean(field!(verify.dump)), Is("0"), "1", "2").help(
        "Write blocks with errors to FILE.OFFSET.received here, and what was expected, if it is known, to \
         FILE.OFFSET.expected",
    ),
    work("verify_backlog", number("blocks", 0..=LONGEST_BACKLOG, field!(verify.backlog)), Is("0"), "1024", "-1")
        .help("After this many writes, read them back and check them; measured. 0 means when all are written"),
    work("verify_backlog_batch", count("blocks", 1..=MANY, field!(verify.batch)), Words("verify_backlog"), "64", "0")
        .help("Read back this many blocks at a time, the oldest first"),
    work("verify_only", switch(field!(verify.only)), Is("0"), "1", "2")
        .help("Write nothing: read and check the blocks that the job would write"),
    said("verify_async", count("threads", 0..=4096, field!(verify.threads)), Is("0"), "4", "many")
        .help("Accepted; blocks are checked by the job's own thread"),
    said("verify_async_cpus", text(parsed!(verify.threads_cpus, cpus)), Words("all CPUs"), "0-3", "3-0")
        .form("CPU numbers and ranges, 0 to 1023")
        .help("Accepted; blocks are checked by the job's own thread"),
    nothing("verify_state_save", boolean(nowhere!()), Words("1"), "0", "2")
        .help("Accepted without effect: no state is saved"),
    work("continue_on_error", word_of!(errors.goes_on), Is("none"), "verify", "some").help(
        "Count these errors and go on: EIO of I/Os, and blocks that are not as they were written. Every other \
         error ends the job",
    ),
    work("ignore_error", text(parsed!(errors.ignored, IgnoredErrors::parse)), Words("none"), "EIO,ENOSPC:EIO", "EIOO")
        .form("READ,WRITE,VERIFY, each a list of error names or numbers with ':' between them")
        .help("Count these errors and go on: lists for reads, for writes and for checks"),
];

/// fio 3.33 has a method of this name whose checksum is not that of the name, and that iotoll cannot compute.
fn method(text: &str) -> Result<Option<VerifyMethod>, Wrong> {
    if text == "sha256" {
        let why = "is not SHA-256 in fio 3.33 but a function of its own; sha3-256 comes nearest";
        return Err(Wrong { unsupported: Some(Effect::Work), ..Wrong::because(text, why) });
    }
    choice(text)
}
