//! The options of what a job writes.

use super::GIB;
use crate::plan::job::{DedupeMode, Pattern};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{Wrong, choice, list_words, typed, word};
use crate::unit::Bytes;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "refill_buffers",
        help: "Fill each block with new noise before it is written; measured, as a part of the I/O",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.content.refill)),
        set: Switch(|draft, on| draft.job.content.refill = on),
        ..PLAIN
    },
    JobOption {
        name: "scramble_buffers",
        help: "Change 16 bytes of every 512 before each write, so that no two blocks are equal; measured. On in fio",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.content.scramble)),
        set: Boolean(|draft, on| draft.job.content.scramble = on),
        ..PLAIN
    },
    JobOption {
        name: "zero_buffers",
        help: "Write zeros instead of noise",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.content.zero)),
        set: Switch(|draft, on| draft.job.content.zero = on),
        ..PLAIN
    },
    JobOption {
        name: "buffer_pattern",
        help: "Write this pattern, repeated, instead of noise",
        default: Default::Words("noise"),
        role: Role::Work,
        example: "0xdeadface",
        bad_example: "%o",
        get: |job| job.content.pattern.as_ref().map(|pattern| pattern.text().to_owned()),
        set: Text(Pattern::FORM, |draft, text| {
            let pattern = Pattern::parse(text)?;
            if pattern.has_offset() {
                return Err(Wrong::because(text, "has %o, which only verify_pattern may have"));
            }
            draft.job.content.pattern = Some(pattern);
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "buffer_compress_percentage",
        help: "Make this part of each chunk compressible: zeros, or buffer_pattern. Implies refill_buffers",
        default: Default::Value("0"),
        role: Role::Work,
        example: "50",
        bad_example: "101",
        get: |job| Some(job.content.compress_percent.to_string()),
        set: Percent(|draft, percent| draft.job.content.compress_percent = percent),
        ..PLAIN
    },
    JobOption {
        name: "buffer_compress_chunk",
        help: "Bytes of noise and compressible data, in turn. 0 means a block",
        default: Default::Value("512"),
        role: Role::Work,
        example: "4k",
        bad_example: "half",
        get: |job| Some(typed::bytes(job.content.compress_chunk.0)),
        set: Number("bytes", 0..=GIB, |draft, bytes| draft.job.content.compress_chunk = Bytes(bytes)),
        ..PLAIN
    },
    JobOption {
        name: "dedupe_percentage",
        help: "Make this part of the writes equal to an earlier one. Implies refill_buffers",
        default: Default::Value("0"),
        role: Role::Work,
        example: "30",
        bad_example: "most",
        get: |job| Some(job.content.dedupe_percent.to_string()),
        set: Percent(|draft, percent| draft.job.content.dedupe_percent = percent),
        ..PLAIN
    },
    JobOption {
        name: "dedupe_mode",
        help: "What an equal write repeats: the last one that was new, or one of a working set",
        default: Default::Value("repeat"),
        role: Role::Work,
        example: "working_set",
        bad_example: "random",
        get: |job| Some(word(job.content.dedupe_mode).to_owned()),
        set: Choice(list_words::<DedupeMode>, |draft, text| {
            choice(text).map(|found| draft.job.content.dedupe_mode = found)
        }),
        ..PLAIN
    },
    JobOption {
        name: "dedupe_working_set_percentage",
        help: "Blocks of the working set, as a part of size",
        default: Default::Value("5"),
        role: Role::Work,
        example: "20",
        bad_example: "-1",
        get: |job| Some(job.content.dedupe_set_percent.to_string()),
        set: Percent(|draft, percent| draft.job.content.dedupe_set_percent = percent),
        ..PLAIN
    },
    JobOption {
        name: "dedupe_global",
        help: "Use one working set for all jobs with this option",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.content.dedupe_global)),
        set: Boolean(|draft, on| draft.job.content.dedupe_global = on),
        ..PLAIN
    },
];
