//! Traces that are replayed.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("read_iolog", text(parsed!(replay.traces, file_names)), Words("no trace"), "trace.log", "a::b")
        .form("file names separated by ':', a ':' within a name as '\\:'")
        .help(
            "Replay this trace of fio, version 2 or 3: its files, requests, syncs and times take the place of rw, \
             bs, size and the like. Of several, copies of the job take turns among them",
        ),
    nothing("read_iolog_chunked", boolean(nowhere!()), Words("0"), "1", "2")
        .help("Accepted without effect: a trace is read before the job begins"),
    work("replay_no_stall", boolean(field!(replay.no_stall)), Is("0"), "1", "2")
        .help("Replay the requests of a trace one after the other, without its times"),
    work("replay_time_scale", count("percent", 1..=MANY, field!(replay.time_scale)), Is("100"), "200", "0")
        .help("Replay a trace at this rate, in percent of its own"),
    work("replay_redirect", text(parsed!(replay.redirect, file_name)), Required, "/tmp/a", "/tmp/")
        .otherwise("the files of the trace")
        .form("a file's name")
        .help("All requests of a trace go to this file or device"),
    work("replay_align", text(REPLAY_ALIGN), Is("0"), "4k", "5000")
        .form("0 or a power of 2, in bytes")
        .help("Round the offsets of a trace down to multiples of this power of 2"),
    work("replay_scale", count("as a divisor", 1..=MANY, field!(replay.scale)), Is("1"), "2", "0")
        .help("Divide the offsets of a trace by this"),
    work("replay_skip", text(parsed!(replay.skip, Skipped::parse)), Words("none"), "write,sync", "flush")
        .form("read, write, trim, sync with commas between them")
        .help("Leave these actions of a trace out"),
];

// Places that are no fields.
const REPLAY_ALIGN: Place<SetText> = place(
    |job| shown(&Bytes(job.replay.align)),
    |draft, text| power_of_2(text).map(|align| draft.job.replay.align = align),
);

fn power_of_2(text: &str) -> Result<u64, Wrong> {
    let align = integer_in(text, &(0..=LARGEST_FILE))?;
    let fits = align == 0 || align.is_power_of_two();
    if fits { Ok(align) } else { Err(Wrong::because(text, "is no power of 2")) }
}
