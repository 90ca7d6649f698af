//! The options of what a job writes, and of whether it is read back right.

use super::*;

/// The largest `verify_backlog`: iotoll keeps each of these blocks in memory until it is read back.
const LONGEST_BACKLOG: u64 = 1 << 24;

pub(super) static OPTIONS: &[JobOption] = &[
    work("refill_buffers", switch(field!(content.refill)), Is("0"), "1", "2")
        .help("Fill each block with new noise before it is written; measured, as a part of the I/O"),
    nothing("scramble_buffers", "0, unlike in fio; refill_buffers makes every block another one").only(&["0"]),
    work("zero_buffers", switch(field!(content.zero)), Is("0"), "1", "2").help("Write zeros instead of noise"),
    work("buffer_pattern", text(parsed!(content.pattern, without_offset)), Words("noise"), "0xdeadface", "%o")
        .form(Pattern::FORM)
        .help("Write this pattern, repeated, instead of noise"),
    work("buffer_compress_percentage", percent(field!(content.compress_percent)), Is("0"), "50", "101")
        .help("Make this part of each chunk compressible: zeros, or buffer_pattern. Implies refill_buffers"),
    work(
        "buffer_compress_chunk",
        number("bytes", 0..=1 << 30, field!(content.compress_chunk)),
        Is("512"),
        "4k",
        "half",
    )
    .help("Bytes of noise and compressible data, in turn. 0 means a block"),
    work("dedupe_percentage", percent(field!(content.dedupe_percent)), Is("0"), "30", "most")
        .help("Make this part of the writes equal to an earlier one. Implies refill_buffers"),
];

pub(super) static VERIFY: &[JobOption] = &[
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
    nothing("verify_fatal", "the first wrong block ends the job"),
    said("verify_dump", "no block is written to a file; the error names the first wrong one"),
    work("verify_backlog", number("blocks", 0..=LONGEST_BACKLOG, field!(verify.backlog)), Is("0"), "1024", "-1")
        .help("After this many writes, read them back and check them; measured. 0 means when all are written"),
    said("verify_async", "the job's own thread checks the blocks"),
    nothing("verify_state_save", "no state is saved"),
];

// Places that are no fields.
fn without_offset(text: &str) -> Result<Pattern, Wrong> {
    let pattern = Pattern::parse(text)?;
    if pattern.has_offset() {
        Err(Wrong::because(text, "has %o, which only verify_pattern may have"))
    } else {
        Ok(pattern)
    }
}

/// fio 3.33 has a method of this name whose checksum is not that of the name, and that iotoll cannot compute.
fn method(text: &str) -> Result<Option<VerifyMethod>, Wrong> {
    if text == "sha256" {
        let why = "is not SHA-256 in fio 3.33 but a function of its own; sha3-256 comes nearest";
        return Err(Wrong { unsupported: Some(Effect::Work), ..Wrong::because(text, why) });
    }
    choice(text)
}
