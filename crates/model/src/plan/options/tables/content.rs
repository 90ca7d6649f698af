//! The options of what a job writes.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("refill_buffers", switch(field!(content.refill)), Is("0"), "1", "2")
        .help("Fill each block with new noise before it is written; measured, as a part of the I/O"),
    work("scramble_buffers", boolean(field!(content.scramble)), Is("0"), "1", "2")
        .help("Change 16 bytes of every 512 before each write, so that no two blocks are equal; measured. On in fio"),
    work("zero_buffers", switch(field!(content.zero)), Is("0"), "1", "2").help("Write zeros instead of noise"),
    work("buffer_pattern", text(parsed!(content.pattern, without_offset)), Words("noise"), "0xdeadface", "%o")
        .form(Pattern::FORM)
        .help("Write this pattern, repeated, instead of noise"),
    work("buffer_compress_percentage", percent(field!(content.compress_percent)), Is("0"), "50", "101")
        .help("Make this part of each chunk compressible: zeros, or buffer_pattern. Implies refill_buffers"),
    work("buffer_compress_chunk", number("bytes", 0..=GIB, field!(content.compress_chunk)), Is("512"), "4k", "half")
        .help("Bytes of noise and compressible data, in turn. 0 means a block"),
    work("dedupe_percentage", percent(field!(content.dedupe_percent)), Is("0"), "30", "most")
        .help("Make this part of the writes equal to an earlier one. Implies refill_buffers"),
    work("dedupe_mode", word_of!(content.dedupe_mode), Is("repeat"), "working_set", "random")
        .help("What an equal write repeats: the last one that was new, or one of a working set"),
    work("dedupe_working_set_percentage", percent(field!(content.dedupe_set_percent)), Is("5"), "20", "-1")
        .help("Blocks of the working set, as a part of size"),
    work("dedupe_global", boolean(field!(content.dedupe_global)), Is("0"), "1", "2")
        .help("Use one working set for all jobs with this option"),
];

fn without_offset(text: &str) -> Result<Pattern, Wrong> {
    let pattern = Pattern::parse(text)?;
    if pattern.has_offset() {
        Err(Wrong::because(text, "has %o, which only verify_pattern may have"))
    } else {
        Ok(pattern)
    }
}
