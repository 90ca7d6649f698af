//! The options of a job as a whole: its name, its copies, when it starts, what is reported.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    other("name", text(NAME), Words("the section's name; job, as a flag"), "writer", "")
        .form("a name")
        .help("Name the job. As a flag, start a new job"),
    nothing("description", text(unshown(|_, _| Ok(()))), Words("none"), "nightly run", "")
        .form("any text")
        .help("Describe the job. Has no effect"),
    work("ioengine", words(list_words::<EngineKind>, parsed!(engine, engine)), Is("psync"), "io_uring", "tape")
        .help("Select the I/O engine"),
    work("numjobs", count("copies", 1..=4096, field!(copies)), Is("1"), "4", "0")
        .help("Run this many copies of the job at the same time"),
    nothing("thread", switch(nowhere!()), Is("1"), "1", "2")
        .also(&["threads"])
        .help("Accepted for compatibility with fio. Jobs are always threads"),
    other("group_reporting", switch(field!(group_reporting)), Is("0"), "1", "yes")
        .help("Report all copies as one job in fio's formats and in jobs of the JSON; reports for people always do"),
    other("stonewall", switch(STONEWALL), Is("0"), "1", "2")
        .also(&["wait_for_previous"])
        .help("Wait for all previous jobs to end before starting"),
    other("startdelay", time(Seconds, field!(start_delay)), Is("0"), "5s", "1-5")
        .help("Wait this long before the job's first I/O"),
    other("percentile_list", text(parsed!(percentiles, percentiles)), Required, "50:99:99.9", "nan")
        .otherwise("fio's: 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99")
        .form("up to 20 percentiles separated by ':', above 0 and up to 100")
        .help("Report these latency percentiles"),
];

// Places that are no fields.
const NAME: Place<SetText> = unshown(|draft, text| any(text).map(|name| draft.job.name = name));
const STONEWALL: Place<Set<bool>> =
    unshown(|draft, on| draft.start = if on { Start::AfterPrevious } else { Start::Together });
