//! The options of a job as a whole: its name, its copies, when it starts, what is reported.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    other("name", Words("the section's name; job, as a flag"), "writer", "")
        .help("Name the job. As a flag, start a new job")
        .text("a name", unshown(|draft, text| any(text).map(|name| draft.job.name = name))),
    nothing("description", Words("none"), "nightly run", "")
        .help("Describe the job. Has no effect")
        .text("any text", unshown(|_, _| Ok(()))),
    work("ioengine", Is("psync"), "io_uring", "tape")
        .help("Select the I/O engine")
        .choice((list_words::<EngineKind>, parsed!(engine, engine))),
    work("numjobs", Is("1"), "4", "0").help("Run this many copies of the job at the same time").count(
        "copies",
        1..=4096,
        field!(copies),
    ),
    nothing("thread", Is("1"), "1", "2")
        .help("Accepted for compatibility with fio. Jobs are always threads")
        .also(&["threads"])
        .switch(nowhere!()),
    other("group_reporting", Is("0"), "1", "yes")
        .help("Report all copies as one job in fio's formats and in jobs of the JSON; reports for people always do")
        .switch(field!(group_reporting)),
    other("stonewall", Is("0"), "1", "2")
        .help("Wait for all previous jobs to end before starting")
        .also(&["wait_for_previous"])
        .switch(unshown(|draft, on| draft.start = if on { Start::AfterPrevious } else { Start::Together })),
    other("startdelay", Is("0"), "5s", "1-5")
        .help("Wait this long before the job's first I/O")
        .time(Seconds, field!(start_delay)),
    other(
        "percentile_list",
        Words("fio's: 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99"),
        "50:99:99.9",
        "nan",
    )
    .help("Report these latency percentiles")
    .text("up to 20 percentiles separated by ':', above 0 and up to 100", parsed!(percentiles, percentiles)),
];
