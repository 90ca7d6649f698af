//! Traces that are replayed.

use super::*;

pub(super) static OPTIONS: &[JobOption] =
    &[
        work("read_iolog", Words("no trace"), "trace.log", "a::b")
            .help(
                "Replay this trace of fio, version 2 or 3: its files, requests, syncs and times take the place of rw, \
             bs, size and the like. Of several, copies of the job take turns among them",
            )
            .text("file names separated by ':', a ':' within a name as '\\:'", parsed!(replay.traces, file_names)),
        nothing("read_iolog_chunked", Words("0"), "1", "2")
            .help("Accepted without effect: a trace is read before the job begins")
            .boolean(nowhere!()),
        work("replay_no_stall", Is("0"), "1", "2")
            .help("Replay the requests of a trace one after the other, without its times")
            .boolean(field!(replay.no_stall)),
        work("replay_time_scale", Is("100"), "200", "0")
            .help("Replay a trace at this rate, in percent of its own")
            .count("percent", 1..=MANY, field!(replay.time_scale)),
        work("replay_redirect", Words("the files of the trace"), "/tmp/a", "/tmp/")
            .help("All requests of a trace go to this file or device")
            .text("a file's name", parsed!(replay.redirect, file_name)),
        work("replay_align", Is("0"), "4k", "5000")
            .help("Round the offsets of a trace down to multiples of this power of 2")
            .text(
                "0 or a power of 2, in bytes",
                place(
                    |job| shown(&Bytes(job.replay.align)),
                    |draft, text| power_of_2(text).map(|align| draft.job.replay.align = align),
                ),
            ),
        work("replay_scale", Is("1"), "2", "0").help("Divide the offsets of a trace by this").count(
            "as a divisor",
            1..=MANY,
            field!(replay.scale),
        ),
        work("replay_skip", Words("none"), "write,sync", "flush")
            .help("Leave these actions of a trace out")
            .text("read, write, trim, sync with commas between them", parsed!(replay.skip, Skipped::parse)),
    ];

fn power_of_2(text: &str) -> Result<u64, Wrong> {
    let align = integer_in(text, &(0..=LARGEST_FILE))?;
    let fits = align == 0 || align.is_power_of_two();
    if fits { Ok(align) } else { Err(Wrong::because(text, "is no power of 2")) }
}
