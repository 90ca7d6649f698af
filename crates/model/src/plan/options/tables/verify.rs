//! The options of whether what was written is read back right, and of errors.

use super::{GIB, MANY, without_effect};
use crate::plan::job::{GoesOn, IgnoredErrors, Pattern, VerifyMethod};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{Effect, Wrong, choice, cpus, list_words, typed, word};
use crate::unit::Bytes;

/// The largest `verify_backlog`: iotoll keeps each of these blocks in memory until it is read back.
const LONGEST_BACKLOG: u32 = 1 << 24;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "verify",
        help: "Mark each block with a header and this checksum when it is written, and check them when it is read; measured. fio reads what \
               iotoll wrote, and the reverse",
        default: Default::Value("0"),
        role: Role::Work,
        example: "crc32c",
        bad_example: "crc33",
        get: |job| Some(word(job.verify.method).to_owned()),
        set: Choice(list_words::<Option<VerifyMethod>>, |draft, text| {
            draft.job.verify.method = method(text)?;
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "do_verify",
        help: "Read everything back when all is written, and check it; not measured",
        default: Default::Value("1"),
        role: Role::Work,
        example: "0",
        bad_example: "yes",
        get: |job| Some(typed::switch(job.verify.after)),
        set: Boolean(|draft, on| draft.job.verify.after = on),
        ..PLAIN
    },
    JobOption {
        name: "verify_pattern",
        help: "Write this pattern, repeated, behind the header, or without one with verify=pattern. %o stands for the offset of the block",
        default: Default::Words("noise"),
        role: Role::Work,
        example: "0xff%o\"abcd\"-12",
        bad_example: "abcd",
        get: |job| job.verify.pattern.as_ref().map(|pattern| pattern.text().to_owned()),
        set: Text(Pattern::FORM, |draft, text| {
            Pattern::parse(text).map(|pattern| draft.job.verify.pattern = Some(pattern))
        }),
        ..PLAIN
    },
    JobOption {
        name: "verify_interval",
        help: "Bytes of a block that one header covers. bs has to be a multiple; otherwise a header covers a block",
        default: Default::Words("bs"),
        role: Role::Work,
        example: "4k",
        bad_example: "16",
        get: |job| job.verify.interval.map(|interval| typed::bytes(interval.0)),
        set: Number("bytes", 80..=GIB, |draft, bytes| draft.job.verify.interval = Some(Bytes(bytes))),
        ..PLAIN
    },
    JobOption {
        name: "verify_offset",
        help: "Exchange the header with the bytes at this place of what it covers. 0 means that it stays in front",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1k",
        bad_example: "-1",
        get: |job| Some(typed::bytes(job.verify.offset.0)),
        set: Number("bytes", 0..=GIB, |draft, bytes| draft.job.verify.offset = Bytes(bytes)),
        ..PLAIN
    },
    JobOption {
        name: "verify_fatal",
        help: "Stop at the first error in a block instead of checking all of the block, also with continue_on_error",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.verify.fatal)),
        set: Boolean(|draft, on| draft.job.verify.fatal = on),
        ..PLAIN
    },
    JobOption {
        name: "verify_dump",
        help: "Write blocks with errors to FILE.OFFSET.received here, and what was expected, if it is known, to FILE.OFFSET.expected",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.verify.dump)),
        set: Boolean(|draft, on| draft.job.verify.dump = on),
        ..PLAIN
    },
    JobOption {
        name: "verify_backlog",
        help: "After this many writes, read them back and check them; measured. 0 means when all are written",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1024",
        bad_example: "-1",
        get: |job| Some(job.verify.backlog.to_string()),
        set: Number("blocks", 0..=LONGEST_BACKLOG as u64, |draft, blocks| {
            draft.job.verify.backlog = u32::try_from(blocks).unwrap_or(LONGEST_BACKLOG);
        }),
        ..PLAIN
    },
    JobOption {
        name: "verify_backlog_batch",
        help: "Read back this many blocks at a time, the oldest first",
        default: Default::Words("verify_backlog"),
        role: Role::Work,
        example: "64",
        bad_example: "0",
        get: |job| job.verify.batch.map(|batch| batch.to_string()),
        set: Count("blocks", 1..=MANY, |draft, blocks| draft.job.verify.batch = Some(blocks)),
        ..PLAIN
    },
    JobOption {
        name: "verify_only",
        help: "Write nothing: read and check the blocks that the job would write",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.verify.only)),
        set: Switch(|draft, on| draft.job.verify.only = on),
        ..PLAIN
    },
    JobOption {
        name: "verify_async",
        help: "Accepted; blocks are checked by the job's own thread",
        default: Default::Value("0"),
        role: Role::Said,
        example: "4",
        bad_example: "many",
        get: |job| Some(job.verify.threads.to_string()),
        set: Count("threads", 0..=4096, |draft, threads| draft.job.verify.threads = threads),
        ..PLAIN
    },
    JobOption {
        name: "verify_async_cpus",
        help: "Accepted; blocks are checked by the job's own thread",
        default: Default::Words("all CPUs"),
        role: Role::Said,
        example: "0-3",
        bad_example: "3-0",
        get: |job| typed::list(&job.verify.threads_cpus, ","),
        set: Text("CPU numbers and ranges, 0 to 1023", |draft, text| {
            cpus(text).map(|cpus| draft.job.verify.threads_cpus = cpus)
        }),
        ..PLAIN
    },
    without_effect(
        "verify_state_save",
        "Accepted without effect: no state is saved",
        ("1", "0", "2"),
        Boolean(|_, _| {}),
    ),
    JobOption {
        name: "continue_on_error",
        help: "Count these errors and go on: EIO of I/Os, and blocks that are not as they were written. Every other error ends the job",
        default: Default::Value("none"),
        role: Role::Work,
        example: "verify",
        bad_example: "some",
        get: |job| Some(word(job.errors.goes_on).to_owned()),
        set: Choice(list_words::<GoesOn>, |draft, text| choice(text).map(|found| draft.job.errors.goes_on = found)),
        ..PLAIN
    },
    JobOption {
        name: "ignore_error",
        help: "Count these errors and go on: lists for reads, for writes and for checks",
        default: Default::Words("none"),
        role: Role::Work,
        example: "EIO,ENOSPC:EIO",
        bad_example: "EIOO",
        get: |job| job.errors.ignored.text(),
        set: Text("READ,WRITE,VERIFY, each a list of error names or numbers with ':' between them", |draft, text| {
            let found =
                IgnoredErrors::parse(text).ok_or_else(|| Wrong::because(text, "has a part that is no error"))?;
            draft.job.errors.ignored = found;
            Ok(())
        }),
        ..PLAIN
    },
];

/// fio 3.33 has a method of this name whose checksum is not that of the name, and that iotoll cannot compute.
fn method(text: &str) -> Result<Option<VerifyMethod>, Wrong> {
    if text == "sha256" {
        let why = "is not SHA-256 in fio 3.33 but a function of its own; sha3-256 comes nearest";
        return Err(Wrong { unsupported: Some(Effect::Work), ..Wrong::because(text, why) });
    }
    choice(text)
}
