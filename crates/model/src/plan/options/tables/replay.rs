//! Traces that are replayed.

use super::MANY;
use crate::plan::job::Skipped;
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{LARGEST_FILE, Wrong, file_names, integer_in, typed};

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "read_iolog",
        help: "Replay this trace of fio, version 2 or 3: its files, requests, syncs and times take the place of rw, bs, size and the like. \
               Of several, copies of the job take turns among them",
        default: Default::Words("no trace"),
        role: Role::Work,
        example: "trace.log",
        bad_example: "a::b",
        get: |job| typed::names(&job.replay.traces),
        set: Text("file names separated by ':', a ':' within a name as '\\:'", |draft, text| {
            file_names(text).map(|files| draft.job.replay.traces = files)
        }),
        ..PLAIN
    },
    JobOption {
        name: "read_iolog_chunked",
        help: "Accepted without effect: a trace is read before the job begins",
        default: Default::Words("0"),
        role: Role::Nothing,
        example: "1",
        bad_example: "2",
        set: Boolean(|_, _| {}),
        ..PLAIN
    },
    JobOption {
        name: "replay_no_stall",
        help: "Replay the requests of a trace one after the other, without its times",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.replay.no_stall)),
        set: Boolean(|draft, on| draft.job.replay.no_stall = on),
        ..PLAIN
    },
    JobOption {
        name: "replay_time_scale",
        help: "Replay a trace at this rate, in percent of its own",
        default: Default::Value("100"),
        role: Role::Work,
        example: "200",
        bad_example: "0",
        get: |job| Some(job.replay.time_scale.to_string()),
        set: Count("percent", 1..=MANY, |draft, percent| draft.job.replay.time_scale = percent),
        ..PLAIN
    },
    JobOption {
        name: "replay_redirect",
        help: "All requests of a trace go to this file or device",
        default: Default::Words("the files of the trace"),
        role: Role::Work,
        example: "/tmp/a",
        bad_example: "/tmp/",
        get: |job| job.replay.redirect.clone(),
        set: Text("a file's name", |draft, text| {
            if text.ends_with('/') {
                return Err(Wrong::because(text, "is a folder"));
            }
            draft.job.replay.redirect = Some(text.to_owned());
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "replay_align",
        help: "Round the offsets of a trace down to multiples of this power of 2",
        default: Default::Value("0"),
        role: Role::Work,
        example: "4k",
        bad_example: "5000",
        get: |job| Some(typed::bytes(job.replay.align)),
        set: Text("0 or a power of 2, in bytes", |draft, text| match integer_in(text, &(0..=LARGEST_FILE))? {
            align if align == 0 || align.is_power_of_two() => {
                draft.job.replay.align = align;
                Ok(())
            }
            _ => Err(Wrong::because(text, "is no power of 2")),
        }),
        ..PLAIN
    },
    JobOption {
        name: "replay_scale",
        help: "Divide the offsets of a trace by this",
        default: Default::Value("1"),
        role: Role::Work,
        example: "2",
        bad_example: "0",
        get: |job| Some(job.replay.scale.to_string()),
        set: Count("as a divisor", 1..=MANY, |draft, scale| draft.job.replay.scale = scale),
        ..PLAIN
    },
    JobOption {
        name: "replay_skip",
        help: "Leave these actions of a trace out",
        default: Default::Words("none"),
        role: Role::Work,
        example: "write,sync",
        bad_example: "flush",
        get: |job| job.replay.skip.text(),
        set: Text("read, write, trim, sync with commas between them", |draft, text| {
            draft.job.replay.skip = Skipped::parse(text).ok_or_else(|| Wrong::because(text, "names no action"))?;
            Ok(())
        }),
        ..PLAIN
    },
];
