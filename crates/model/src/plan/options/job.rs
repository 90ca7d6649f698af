//! The options of a job as a whole: its name, its copies, its pace and length, its thread, and how others depend on it.

use super::*;

/// The most that an io_uring completion queue holds (IORING_MAX_CQ_ENTRIES of Linux).
const DEEPEST: u32 = 65_536;

/// The largest rate: no memory moves as many bytes per second.
const FASTEST: u64 = 1 << 50;

/// More than three years of I/O at ten million I/Os per second.
const MOST_IOS: u64 = 1 << 50;

const fn bytes_per_second(place: Place<Set<[Option<u64>; 3]>>) -> Kind {
    per_direction("bytes per second", 0..=FASTEST, place)
}

const fn ios_per_second(place: Place<Set<[Option<u64>; 3]>>) -> Kind {
    per_direction("I/Os per second", 0..=MANY_64, place)
}

/// The largest number: no machine has more.
const MOST_LOCKED: u64 = 1 << 50;
const ENDS_BY_RUNTIME: &str =
    "the job runs for its runtime: iotoll compare is what ends when its intervals are narrow enough";

pub(super) static OPTIONS: &[JobOption] = &[
    other("name", text(NAME), Words("the section's name; job, as a flag"), "writer", "")
        .form("a name")
        .help("Name the job. As a flag, start a new job"),
    nothing("description", "it describes the job"),
    work("ioengine", words(list_words::<EngineKind>, parsed!(engine, engine)), Is("psync"), "io_uring", "tape")
        .help("Select the I/O engine"),
    work("numjobs", count("copies", 1..=4096, field!(copies)), Is("1"), "4", "0")
        .help("Run this many copies of the job at the same time"),
    nothing("thread", "jobs are always threads").also(&["threads"]).bare(),
    other("group_reporting", switch(field!(reporting.group)), Is("0"), "1", "yes")
        .help("Report all copies as one job in fio's formats and in jobs of the JSON; reports for people always do"),
    other("stonewall", switch(STONEWALL), Is("0"), "1", "2")
        .also(&["wait_for_previous"])
        .help("Wait for all previous jobs to end before starting"),
    other("startdelay", time(Seconds, field!(together.start_delay)), Is("0"), "5s", "1-5")
        .help("Wait this long before the job's first I/O"),
    other("percentile_list", text(parsed!(reporting.percentiles, percentiles)), Required, "50:99:99.9", "nan")
        .otherwise("fio's: 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99")
        .form("up to 20 percentiles separated by ':', above 0 and up to 100")
        .help("Report these latency percentiles"),
];

pub(super) static PACE: &[JobOption] = &[
    work("iodepth", count("I/Os", 1..=DEEPEST, field!(depth.in_flight)), Is("1"), "32", "0")
        .help("Keep this many I/Os in flight"),
    work("iodepth_low", count("I/Os", 1..=DEEPEST, field!(depth.low)), Words("iodepth: it is kept full"), "4", "0")
        .help("Once the queue is full, submit nothing until it has drained to this depth"),
    work("iodepth_batch_submit", count("I/Os", 0..=DEEPEST, field!(depth.submit)), Is("1"), "8", "-1")
        .also(&["iodepth_batch"])
        .help("Submit this many I/Os at once. 0 means iodepth"),
    work("iodepth_batch_complete_min", count("I/Os", 0..=DEEPEST, field!(depth.complete_min)), Is("1"), "4", "4.5")
        .also(&["iodepth_batch_complete"])
        .help("Wait for at least this many completions. 0 polls without waiting"),
    work("iodepth_batch_complete_max", count("I/Os", 0..=DEEPEST, field!(depth.complete_max)), Is("1"), "16", "1g")
        .help("Retrieve at most this many completions at once. Raised to iodepth_batch_complete_min if lower"),
    work("rate_iops", ios_per_second(field!(pace.ios)), Is("0"), "1000,500", "fast")
        .help("Limit the rate. 0 means no limit"),
    work("rate", bytes_per_second(field!(pace.bytes)), Is("0"), "10m,5m", "fast")
        .help("Limit the rate in bytes. 0 means no limit"),
    work("thinktime", time(Microseconds, field!(pace.think_time)), Is("0"), "50", "50k")
        .help("Sleep this long between I/Os"),
    work("thinktime_blocks", count("I/Os", 1..=MANY, field!(pace.think_blocks)), Is("1"), "8", "0")
        .help("Sleep for thinktime after this many I/Os, once they have completed"),
    extent("runtime", time(Seconds, field!(duration.runtime)), Is("0"), "10s", "10x")
        .also(&["timeout"])
        .help("Stop the job after this time. 0 means when its I/O is done"),
    extent("time_based", switch(field!(duration.time_based)), Is("0"), "1", "2")
        .help("Repeat the I/O until runtime has passed"),
    other("ramp_time", time(Seconds, field!(duration.ramp)), Is("0"), "2s", "-2")
        .help("Run this long before recording results"),
    extent("number_ios", number("I/Os", 0..=MOST_IOS, NUMBER_IOS), Words("no limit"), "1000", "many")
        .help("Stop the job after this many I/Os. 0 means no limit"),
    extent("loops", count("times", 1..=MANY, field!(duration.loops)), Is("1"), "3", "0")
        .help("Run over the region this many times"),
];

pub(super) static TOGETHER: &[JobOption] = &[
    other("new_group", switch(unshown(|draft, on| draft.new_group = on)), Is("0"), "1", "2")
        .help("Begin a new group, for exitall. Each job is reported by itself anyway"),
    work("exitall", switch(field!(together.exit_all)), Is("0"), "1", "2")
        .help("When this job ends, end the others of its group, or what exit_what says"),
    work("exit_what", word_of!(together.exit_what), Is("group"), "all", "none").help(
        "What ends with a job that has exitall: the jobs of its group, those that run until the next \
         stonewall, or the whole run",
    ),
    said("steadystate", ENDS_BY_RUNTIME).also(&["ss"]),
    said("steadystate_duration", ENDS_BY_RUNTIME).also(&["ss_dur"]),
    said("steadystate_ramp_time", ENDS_BY_RUNTIME).also(&["ss_ramp"]),
    nothing("exitall_on_error", "an error of one job always ends the others").bare(),
];

pub(super) static THREAD: &[JobOption] = &[
    work("cpus_allowed", text(parsed!(thread.cpus_allowed, cpus)), Words("all CPUs"), "0-3,5", "3-0")
        .form("CPU numbers and ranges, 0 to 1023")
        .help("Pin the job's threads to these CPUs"),
    other("cpumask", number("as a mask of CPUs", 1..=0xffff_ffff, CPUMASK), Words("all CPUs"), "0x5", "0")
        .help("The same as a bit mask: 5 is CPUs 0 and 2. The later of the two wins"),
    nothing("mem", "buffers are small pages of the job's own").also(&["iomem"]).only(&[
        "malloc",
        "shm",
        "mmap",
        "mmapshared",
    ]),
    work("lockmem", number("bytes", 0..=MOST_LOCKED, field!(thread.locked_memory)), Is("0"), "64m", "much")
        .help("Take this much memory away from the machine: each thread of the job locks it for as long as it runs"),
];

// Places that are no fields.
const NAME: Place<SetText> = unshown(|draft, text| any(text).map(|name| draft.job.name = name));
const STONEWALL: Place<Set<bool>> =
    unshown(|draft, on| draft.start = if on { Start::AfterPrevious } else { Start::Together });

const NUMBER_IOS: Place<Set<u64>> = place(
    |job| typed::shown(&job.duration.number_ios),
    |draft, ios| draft.job.duration.number_ios = (ios > 0).then_some(ios),
);

const CPUMASK: Place<Set<u64>> = unshown(|draft, mask| {
    draft.job.thread.cpus_allowed = (0..=LARGEST_CPU.min(31)).filter(|cpu| mask >> cpu & 1 == 1).collect();
});
