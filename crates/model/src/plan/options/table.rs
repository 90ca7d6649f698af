//! The job options, in the order in which help lists them. Those of single engines follow (`engine_table.rs`, `path_table.rs`).

use super::{Default, JobOption, PLAIN, Role, Value::*, engine};
use crate::plan::draft::Start;
use crate::plan::job::{Access, BlockSizes, EngineKind, Fallocate, Order, Rates};
use crate::plan::value::TimeUnit::{Microseconds, Seconds};
use crate::plan::value::{
    LARGEST_FILE, Wrong, choice, count_in, cpus, file_names, list_words, percentiles, typed, word,
};
use crate::unit::Bytes;

const GIB: u64 = 1 << 30;

/// The most that an io_uring completion queue holds (IORING_MAX_CQ_ENTRIES of Linux).
const DEEPEST: u32 = 65_536;

/// Upper limit of counts. A larger value is a typing error: as nanoseconds or cycles, this is up to one second for each
/// I/O.
const MANY: u32 = 1_000_000_000;
pub(super) const MANY_64: u64 = MANY as u64;

/// More than three years of I/O at ten million I/Os per second.
const MOST_IOS: u64 = 1 << 50;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "name",
        help: "Name the job. As a flag, start a new job",
        default: Default::Words("the section's name; job, as a flag"),
        role: Role::Other,
        example: "writer",
        bad_example: "",
        get: |_| None,
        set: Text("a name", |draft, text| {
            draft.job.name = text.to_owned();
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "description",
        help: "Describe the job. Has no effect",
        default: Default::Words("none"),
        role: Role::Other,
        example: "nightly run",
        bad_example: "",
        get: |_| None,
        set: Text("any text", |_, _| Ok(())),
        ..PLAIN
    },
    JobOption {
        name: "ioengine",
        help: "Select the I/O engine",
        default: Default::Value("psync"),
        role: Role::Work,
        example: "io_uring",
        bad_example: "tape",
        get: |job| Some(job.engine.name().to_owned()),
        set: Choice(list_words::<EngineKind>, |draft, text| engine(text).map(|engine| draft.job.engine = engine)),
        ..PLAIN
    },
    JobOption {
        name: "rw",
        aliases: &["readwrite"],
        help: "Select the I/O direction and order. randread:N reads N blocks in order from each random position on; so do the other random orders",
        default: Default::Value("read"),
        role: Role::Work,
        example: "randread",
        bad_example: "randread:0",
        get: |job| Some(typed::pattern(job)),
        set: Choice(list_words::<(Access, Order)>, |draft, text| {
            let job = &mut draft.job;
            (job.access, job.order, job.random_run) = pattern(text)?;
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "rwmixread",
        help: "Percentage of reads in mixed I/O. The later of rwmixread and rwmixwrite wins",
        default: Default::Value("50"),
        role: Role::Work,
        example: "70",
        bad_example: "101",
        get: |job| Some(job.read_percent.to_string()),
        set: Percent(|draft, percent| draft.job.read_percent = percent),
        ..PLAIN
    },
    JobOption {
        name: "rwmixwrite",
        help: "Percentage of writes in mixed I/O",
        default: Default::Value("50"),
        role: Role::Other,
        example: "30",
        bad_example: "-1",
        get: |_| None,
        set: Percent(|draft, percent| draft.job.read_percent = 100_u8.saturating_sub(percent)),
        ..PLAIN
    },
    JobOption {
        name: "bs",
        aliases: &["blocksize"],
        help: "Block size of the I/O",
        default: Default::Value("4k"),
        role: Role::Work,
        example: "4k,8k",
        bad_example: "4x",
        get: |job| {
            let BlockSizes { read, write, trim } = job.block_sizes;
            Some(typed::each([read, write, trim].map(|size| typed::bytes(size.0))))
        },
        set: PerDirection("bytes", 1..=GIB, |draft, sizes| {
            let now = &mut draft.job.block_sizes;
            now.read = sizes.read.map_or(now.read, Bytes);
            now.write = sizes.write.map_or(now.write, Bytes);
            now.trim = sizes.trim.map_or(now.trim, Bytes);
        }),
        ..PLAIN
    },
    JobOption {
        name: "size",
        help: "Size of the job's region, over all its files",
        default: Default::Words("the size of the files"),
        role: Role::Work,
        example: "1g",
        bad_example: "0",
        get: |job| job.target.size.map(typed::size),
        set: Size(1..=LARGEST_FILE, 1..=100, |draft, size| draft.job.target.size = Some(size)),
        ..PLAIN
    },
    JobOption {
        name: "io_size",
        aliases: &["io_limit"],
        help: "Transfer this amount instead of size. A percentage is of size",
        default: Default::Words("as size"),
        role: Role::Work,
        example: "4g",
        bad_example: "200%",
        get: |job| job.duration.io_size.map(typed::size),
        set: Size(1..=LARGEST_FILE, 1..=100, |draft, size| draft.job.duration.io_size = Some(size)),
        ..PLAIN
    },
    JobOption {
        name: "offset",
        aliases: &["fileoffset"],
        help: "Start the region at this offset in each file",
        default: Default::Value("0"),
        role: Role::Work,
        example: "10%",
        bad_example: "100%",
        get: |job| Some(typed::size(job.target.offset)),
        set: Size(0..=LARGEST_FILE, 0..=99, |draft, offset| draft.job.target.offset = offset),
        ..PLAIN
    },
    JobOption {
        name: "filename",
        help: "Use these files or devices, shared by all copies of the job. As in fio, another filename adds to them",
        default: Default::Words("JOB.COPY.0, a file for each copy"),
        role: Role::Extent,
        example: "/tmp/a:/tmp/b",
        bad_example: "a::b",
        get: |job| typed::names(&job.target.files),
        set: Text("file names separated by ':', a ':' within a name as '\\:'", |draft, text| {
            file_names(text).map(|files| draft.job.target.files.extend(files))
        }),
        ..PLAIN
    },
    JobOption {
        name: "directory",
        help: "Prefix file names with this directory. Of several, copies of a job without filename take turns among them",
        default: Default::Words("the current directory"),
        role: Role::Extent,
        example: "/tmp",
        bad_example: "/a::/b",
        get: |job| {
            let folders: Vec<&String> = job.target.directory.iter().chain(&job.target.more_directories).collect();
            typed::names(&folders)
        },
        set: Text("directories separated by ':', a ':' within a name as '\\:'", |draft, text| {
            let mut directories = file_names(text)?.into_iter();
            draft.job.target.directory = directories.next();
            draft.job.target.more_directories = directories.collect();
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "numjobs",
        help: "Run this many copies of the job at the same time",
        default: Default::Value("1"),
        role: Role::Work,
        example: "4",
        bad_example: "0",
        get: |job| Some(job.copies.to_string()),
        set: Count("copies", 1..=4096, |draft, copies| draft.job.copies = copies),
        ..PLAIN
    },
    JobOption {
        name: "thread",
        help: "Accepted for compatibility with fio. Jobs are always threads",
        default: Default::Value("1"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |_| None,
        set: Switch(|_, _| {}),
        ..PLAIN
    },
    JobOption {
        name: "group_reporting",
        help: "Report all copies as one job",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "yes",
        get: |job| Some(typed::switch(job.group_reporting)),
        set: Switch(|draft, on| draft.job.group_reporting = on),
        ..PLAIN
    },
    JobOption {
        name: "stonewall",
        aliases: &["wait_for_previous"],
        help: "Wait for all previous jobs to end before starting",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |_| None,
        set: Switch(|draft, on| draft.start = if on { Start::AfterPrevious } else { Start::Together }),
        ..PLAIN
    },
    JobOption {
        name: "startdelay",
        help: "Wait this long before the job's first I/O",
        default: Default::Value("0"),
        role: Role::Other,
        example: "5s",
        bad_example: "1-5",
        get: |job| Some(typed::time(job.start_delay)),
        set: Time(Seconds, |draft, time| draft.job.start_delay = time),
        ..PLAIN
    },
    JobOption {
        name: "iodepth",
        help: "Keep this many I/Os in flight",
        default: Default::Value("1"),
        role: Role::Work,
        example: "32",
        bad_example: "0",
        get: |job| Some(job.depth.in_flight.to_string()),
        set: Count("I/Os", 1..=DEEPEST, |draft, ios| draft.job.depth.in_flight = ios),
        ..PLAIN
    },
    JobOption {
        name: "iodepth_batch_submit",
        aliases: &["iodepth_batch"],
        help: "Submit this many I/Os at once. 0 means iodepth",
        default: Default::Value("1"),
        role: Role::Work,
        example: "8",
        bad_example: "-1",
        get: |job| Some(job.depth.submit.to_string()),
        set: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.submit = ios),
        ..PLAIN
    },
    JobOption {
        name: "iodepth_batch_complete_min",
        aliases: &["iodepth_batch_complete"],
        help: "Wait for at least this many completions. 0 polls without waiting",
        default: Default::Value("1"),
        role: Role::Work,
        example: "4",
        bad_example: "4.5",
        get: |job| Some(job.depth.complete_min.to_string()),
        set: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.complete_min = ios),
        ..PLAIN
    },
    JobOption {
        name: "iodepth_batch_complete_max",
        help: "Retrieve at most this many completions at once. Raised to iodepth_batch_complete_min if lower",
        default: Default::Value("1"),
        role: Role::Work,
        example: "16",
        bad_example: "1g",
        get: |job| Some(job.depth.complete_max.to_string()),
        set: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.complete_max = ios),
        ..PLAIN
    },
    JobOption {
        name: "direct",
        help: "Bypass the page cache with O_DIRECT",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "yes",
        get: |job| Some(typed::switch(job.direct)),
        set: Boolean(|draft, on| {
            draft.job.direct = on;
            draft.cache.direct = Some(on);
        }),
        ..PLAIN
    },
    JobOption {
        name: "buffered",
        help: "Use the page cache; the opposite of direct",
        default: Default::Value("1"),
        role: Role::Other,
        example: "0",
        bad_example: "2",
        get: |_| None,
        set: Boolean(|draft, on| {
            draft.job.direct = !on;
            draft.cache.buffered = Some(on);
        }),
        ..PLAIN
    },
    JobOption {
        name: "invalidate",
        help: "Drop the file from the page cache before the job",
        default: Default::Words("1; in a comparison, `--cache` decides"),
        role: Role::Work,
        example: "0",
        bad_example: "2",
        get: |job| job.invalidate.map(typed::switch),
        set: Boolean(|draft, on| draft.job.invalidate = Some(on)),
        ..PLAIN
    },
    JobOption {
        name: "unlink",
        help: "Remove the job's files when the measurement ends; unlike in fio only those that it made",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.unlink)),
        set: Boolean(|draft, on| draft.job.unlink = on),
        ..PLAIN
    },
    JobOption {
        name: "fallocate",
        help: "Select how to preallocate a file that is laid out",
        default: Default::Value("native"),
        role: Role::Work,
        example: "none",
        bad_example: "always",
        get: |job| Some(word(job.fallocate).to_owned()),
        set: Choice(list_words::<Fallocate>, |draft, text| choice(text).map(|how| draft.job.fallocate = how)),
        ..PLAIN
    },
    JobOption {
        name: "runtime",
        aliases: &["timeout"],
        help: "Stop the job after this time. 0 means when its I/O is done",
        default: Default::Value("0"),
        role: Role::Extent,
        example: "10s",
        bad_example: "10x",
        get: |job| Some(typed::time(job.duration.runtime)),
        set: Time(Seconds, |draft, time| draft.job.duration.runtime = time),
        ..PLAIN
    },
    JobOption {
        name: "time_based",
        help: "Repeat the I/O until runtime has passed",
        default: Default::Value("0"),
        role: Role::Extent,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.duration.time_based)),
        set: Switch(|draft, on| draft.job.duration.time_based = on),
        ..PLAIN
    },
    JobOption {
        name: "ramp_time",
        help: "Run this long before recording results",
        default: Default::Value("0"),
        role: Role::Other,
        example: "2s",
        bad_example: "-2",
        get: |job| Some(typed::time(job.duration.ramp)),
        set: Time(Seconds, |draft, time| draft.job.duration.ramp = time),
        ..PLAIN
    },
    JobOption {
        name: "number_ios",
        help: "Stop the job after this many I/Os. 0 means no limit",
        default: Default::Words("no limit"),
        role: Role::Extent,
        example: "1000",
        bad_example: "many",
        get: |job| job.duration.number_ios.map(|ios| ios.to_string()),
        set: Number("I/Os", 0..=MOST_IOS, |draft, ios| draft.job.duration.number_ios = (ios > 0).then_some(ios)),
        ..PLAIN
    },
    JobOption {
        name: "loops",
        help: "Run over the region this many times",
        default: Default::Value("1"),
        role: Role::Extent,
        example: "3",
        bad_example: "0",
        get: |job| Some(job.duration.loops.to_string()),
        set: Count("times", 1..=MANY, |draft, times| draft.job.duration.loops = times),
        ..PLAIN
    },
    JobOption {
        name: "fsync",
        help: "Call fsync after every N writes. 0 means never",
        default: Default::Value("0"),
        role: Role::Work,
        example: "32",
        bad_example: "-1",
        get: |job| Some(job.fsync_every.to_string()),
        set: Count("writes", 0..=MANY, |draft, writes| draft.job.fsync_every = writes),
        ..PLAIN
    },
    JobOption {
        name: "fdatasync",
        help: "Call fdatasync after every N writes. 0 means never",
        default: Default::Value("0"),
        role: Role::Work,
        example: "32",
        bad_example: "-1",
        get: |job| Some(job.fdatasync_every.to_string()),
        set: Count("writes", 0..=MANY, |draft, writes| draft.job.fdatasync_every = writes),
        ..PLAIN
    },
    JobOption {
        name: "end_fsync",
        help: "Call fsync once when the job has written everything",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.end_fsync)),
        set: Boolean(|draft, on| draft.job.end_fsync = on),
        ..PLAIN
    },
    JobOption {
        name: "norandommap",
        help: "Pick random blocks with replacement, so that some repeat before others are used",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.no_random_map)),
        set: Switch(|draft, on| draft.job.no_random_map = on),
        ..PLAIN
    },
    JobOption {
        name: "randrepeat",
        help: "Use the same random sequence in each run",
        default: Default::Value("1"),
        role: Role::Other,
        example: "0",
        bad_example: "2",
        get: |job| Some(typed::switch(job.repeatable)),
        set: Boolean(|draft, on| draft.job.repeatable = on),
        ..PLAIN
    },
    JobOption {
        name: "randseed",
        help: "Seed the random sequence. Overrides randrepeat",
        default: Default::Words("see randrepeat"),
        role: Role::Other,
        example: "42",
        bad_example: "-1",
        get: |job| job.seed.map(|seed| seed.to_string()),
        set: Number("as a seed", 0..=u64::MAX, |draft, seed| draft.job.seed = Some(seed)),
        ..PLAIN
    },
    JobOption {
        name: "rate_iops",
        help: "Limit the rate. 0 means no limit",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1000,500",
        bad_example: "fast",
        get: |job| {
            let Rates { read, write, trim } = job.rates;
            Some(typed::each([read, write, trim].map(|rate| rate.to_string())))
        },
        set: PerDirection("I/Os per second", 0..=MANY_64, |draft, rates| {
            let now = &mut draft.job.rates;
            now.read = rates.read.unwrap_or(now.read);
            now.write = rates.write.unwrap_or(now.write);
            now.trim = rates.trim.unwrap_or(now.trim);
        }),
        ..PLAIN
    },
    JobOption {
        name: "thinktime",
        help: "Sleep this long between I/Os",
        default: Default::Value("0"),
        role: Role::Work,
        example: "50",
        bad_example: "50k",
        get: |job| Some(typed::time(job.think_time)),
        set: Time(Microseconds, |draft, time| draft.job.think_time = time),
        ..PLAIN
    },
    JobOption {
        name: "cpus_allowed",
        help: "Pin the job's threads to these CPUs",
        default: Default::Words("all CPUs"),
        role: Role::Work,
        example: "0-3,5",
        bad_example: "3-0",
        get: |job| typed::list(&job.cpus_allowed, ","),
        set: Text("CPU numbers and ranges, 0 to 1023", |draft, text| {
            cpus(text).map(|cpus| draft.job.cpus_allowed = cpus)
        }),
        ..PLAIN
    },
    JobOption {
        name: "percentile_list",
        help: "Report these latency percentiles",
        default: Default::Words("fio's: 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99"),
        role: Role::Other,
        example: "50:99:99.9",
        bad_example: "nan",
        get: |job| typed::list(&job.percentiles, ":"),
        set: Text("up to 20 percentiles separated by ':', above 0 and up to 100", |draft, text| {
            percentiles(text).map(|percentiles| draft.job.percentiles = percentiles)
        }),
        ..PLAIN
    },
];

/// Parses `rw=`, with fio's `:N` modifier: the length of the runs of a random order.
fn pattern(text: &str) -> Result<(Access, Order, u32), Wrong> {
    let Some((word, modifier)) = text.split_once(':') else {
        return choice(text).map(|(access, order)| (access, order, 1));
    };
    let (access, order) = choice(word)?;
    match order {
        Order::Random if access != Access::TrimWrite => {
            let is = format!("has no number of blocks from 1 to {MANY} behind the ':'");
            let length = count_in(modifier, &(1..=MANY)).map_err(|_| Wrong::because(text, is))?;
            Ok((access, order, length))
        }
        Order::Random => Err(Wrong::because(text, "has a ':N' modifier, which randtrimwrite does not support")),
        Order::Sequential => {
            let is = "skips bytes between the blocks of a sequential order, which is not supported";
            Err(Wrong::because(text, is))
        }
    }
}
