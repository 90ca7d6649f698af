//! The options, in the order in which help lists them; those of engine nbd come after them.

use super::{JobOption, Value::*};
use crate::plan::draft::Start;
use crate::plan::job::{Access, EngineKind, Fallocate, InjectAt, Order};
use crate::plan::value::TimeUnit::{Microseconds, Seconds};
use crate::plan::value::{LARGEST_FILE, Wrong, choice, cpus, directory, file_names, list_words, percentiles};
use crate::unit::{Bytes, Nanos};

const GIB: u64 = 1 << 30;

/// The most that an io_uring completion queue holds (IORING_MAX_CQ_ENTRIES of Linux).
const DEEPEST: u32 = 65_536;

/// More than this only a slip of the keyboard asks for: as nanoseconds or cycles it is up to a second
/// for each I/O.
const MANY: u32 = 1_000_000_000;
const MANY_64: u64 = MANY as u64;

/// At ten million a second, more than three years of I/O.
const MOST_IOS: u64 = 1 << 50;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "name",
        aliases: &[],
        help: "Name of the job; as a flag it begins a new job",
        example: "writer",
        bad_example: "",
        value: Text("a name", |draft, text| {
            draft.job.name = text.to_owned();
            Ok(())
        }),
    },
    JobOption {
        name: "description",
        aliases: &[],
        help: "A note for the reader; changes nothing",
        example: "nightly run",
        bad_example: "",
        value: Text("any text", |_, _| Ok(())),
    },
    JobOption {
        name: "ioengine",
        aliases: &[],
        help: "What issues the I/O",
        example: "io_uring",
        bad_example: "sync",
        value: Choice(list_words::<EngineKind>, |draft, text| choice(text).map(|engine| draft.job.engine = engine)),
    },
    JobOption {
        name: "rw",
        aliases: &["readwrite"],
        help: "Directions and order of the I/O",
        example: "randread",
        bad_example: "randread:8",
        value: Choice(list_words::<(Access, Order)>, |draft, text| {
            (draft.job.access, draft.job.order) = pattern(text)?;
            Ok(())
        }),
    },
    JobOption {
        name: "rwmixread",
        aliases: &[],
        help: "Share of reads in mixed I/O; the later of this and rwmixwrite wins",
        example: "70",
        bad_example: "101",
        value: Percent(|draft, percent| draft.job.read_percent = percent),
    },
    JobOption {
        name: "rwmixwrite",
        aliases: &[],
        help: "Share of writes in mixed I/O",
        example: "30",
        bad_example: "-1",
        value: Percent(|draft, percent| draft.job.read_percent = 100_u8.saturating_sub(percent)),
    },
    JobOption {
        name: "bs",
        aliases: &["blocksize"],
        help: "Block size",
        example: "4k,8k",
        bad_example: "4x",
        value: PerDirection("bytes", 1..=GIB, |draft, sizes| {
            let now = &mut draft.job.block_sizes;
            now.read = sizes.read.map_or(now.read, Bytes);
            now.write = sizes.write.map_or(now.write, Bytes);
            now.trim = sizes.trim.map_or(now.trim, Bytes);
        }),
    },
    JobOption {
        name: "size",
        aliases: &[],
        help: "Region of the job, over all its files",
        example: "1g",
        bad_example: "0",
        value: Size(1..=LARGEST_FILE, 1..=100, |draft, size| draft.job.target.size = Some(size)),
    },
    JobOption {
        name: "io_size",
        aliases: &["io_limit"],
        help: "Amount to transfer, where it differs from size; a percentage is of size",
        example: "4g",
        bad_example: "200%",
        value: Size(1..=LARGEST_FILE, 1..=100, |draft, size| draft.job.duration.io_size = Some(size)),
    },
    JobOption {
        name: "offset",
        aliases: &["fileoffset"],
        help: "Where in each file the region begins",
        example: "10%",
        bad_example: "100%",
        value: Size(0..=LARGEST_FILE, 0..=99, |draft, offset| draft.job.target.offset = offset),
    },
    JobOption {
        name: "filename",
        aliases: &[],
        help: "Files or devices, shared by the copies of the job; without it each copy has a file of its own",
        example: "/tmp/a:/tmp/b",
        bad_example: "a::b",
        value: Text("file names separated by ':', a ':' within a name as '\\:'", |draft, text| {
            file_names(text).map(|files| draft.job.target.files = files)
        }),
    },
    JobOption {
        name: "directory",
        aliases: &[],
        help: "Directory of the files",
        example: "/tmp",
        bad_example: "/a:/b",
        value: Text("one directory, a ':' within its name as '\\:'", |draft, text| {
            directory(text).map(|directory| draft.job.target.directory = Some(directory))
        }),
    },
    JobOption {
        name: "numjobs",
        aliases: &[],
        help: "Copies of the job that run at the same time",
        example: "4",
        bad_example: "0",
        value: Count("copies", 1..=4096, |draft, copies| draft.job.copies = copies),
    },
    JobOption {
        name: "thread",
        aliases: &[],
        help: "Accepted for the sake of fio's files: jobs are always threads",
        example: "1",
        bad_example: "2",
        value: Switch(|_, _| {}),
    },
    JobOption {
        name: "group_reporting",
        aliases: &[],
        help: "Report the copies as one job",
        example: "1",
        bad_example: "yes",
        value: Switch(|draft, on| draft.job.group_reporting = on),
    },
    JobOption {
        name: "stonewall",
        aliases: &["wait_for_previous"],
        help: "Start when all jobs before have ended",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.start = if on { Start::AfterPrevious } else { Start::Together }),
    },
    JobOption {
        name: "startdelay",
        aliases: &[],
        help: "Wait before the job's first I/O",
        example: "5s",
        bad_example: "1-5",
        value: Time(Seconds, |draft, time| draft.job.start_delay = time),
    },
    JobOption {
        name: "iodepth",
        aliases: &[],
        help: "I/Os in flight",
        example: "32",
        bad_example: "0",
        value: Count("I/Os", 1..=DEEPEST, |draft, ios| draft.job.depth.in_flight = ios),
    },
    JobOption {
        name: "iodepth_batch_submit",
        aliases: &["iodepth_batch"],
        help: "I/Os handed over together; 0: iodepth",
        example: "8",
        bad_example: "-1",
        value: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.submit = ios),
    },
    JobOption {
        name: "iodepth_batch_complete_min",
        aliases: &["iodepth_batch_complete"],
        help: "I/Os waited for together; 0: look without waiting",
        example: "4",
        bad_example: "4.5",
        value: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.complete_min = ios),
    },
    JobOption {
        name: "iodepth_batch_complete_max",
        aliases: &[],
        help: "I/Os taken together; at least as many as are waited for",
        example: "16",
        bad_example: "1g",
        value: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.complete_max = ios),
    },
    JobOption {
        name: "fixedbufs",
        aliases: &[],
        help: "Engine io_uring: registered buffers",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.job.fixed_buffers = Some(on)),
    },
    JobOption {
        name: "registerfiles",
        aliases: &[],
        help: "Engine io_uring: registered files",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.job.registered_files = Some(on)),
    },
    JobOption {
        name: "direct",
        aliases: &[],
        help: "Bypass the page cache (O_DIRECT)",
        example: "1",
        bad_example: "yes",
        value: Boolean(|draft, on| {
            draft.job.direct = on;
            draft.cache.direct = Some(on);
        }),
    },
    JobOption {
        name: "buffered",
        aliases: &[],
        help: "The opposite of direct",
        example: "0",
        bad_example: "2",
        value: Boolean(|draft, on| {
            draft.job.direct = !on;
            draft.cache.buffered = Some(on);
        }),
    },
    JobOption {
        name: "invalidate",
        aliases: &[],
        help: "Drop the file from the page cache before the job [default: 1, as fio; compare: see --cache]",
        example: "0",
        bad_example: "2",
        value: Boolean(|draft, on| draft.job.invalidate = Some(on)),
    },
    JobOption {
        name: "fallocate",
        aliases: &[],
        help: "How space is reserved when a file is laid out",
        example: "none",
        bad_example: "always",
        value: Choice(list_words::<Fallocate>, |draft, text| choice(text).map(|how| draft.job.fallocate = how)),
    },
    JobOption {
        name: "runtime",
        aliases: &["timeout"],
        help: "End the job after this time; 0: when its I/O is done",
        example: "10s",
        bad_example: "10x",
        value: Time(Seconds, |draft, time| draft.job.duration.runtime = time),
    },
    JobOption {
        name: "time_based",
        aliases: &[],
        help: "Start over until runtime has passed",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.job.duration.time_based = on),
    },
    JobOption {
        name: "ramp_time",
        aliases: &[],
        help: "Run this long before anything counts",
        example: "2s",
        bad_example: "-2",
        value: Time(Seconds, |draft, time| draft.job.duration.ramp = time),
    },
    JobOption {
        name: "number_ios",
        aliases: &[],
        help: "End the job after this many I/Os; 0: no limit",
        example: "1000",
        bad_example: "many",
        value: Number("I/Os", 0..=MOST_IOS, |draft, ios| draft.job.duration.number_ios = (ios > 0).then_some(ios)),
    },
    JobOption {
        name: "loops",
        aliases: &[],
        help: "Times that the job goes over its region",
        example: "3",
        bad_example: "0",
        value: Count("times", 1..=MANY, |draft, times| draft.job.duration.loops = times),
    },
    JobOption {
        name: "fsync",
        aliases: &[],
        help: "fsync after every so many writes; 0: never",
        example: "32",
        bad_example: "-1",
        value: Count("writes", 0..=MANY, |draft, writes| draft.job.fsync_every = writes),
    },
    JobOption {
        name: "fdatasync",
        aliases: &[],
        help: "fdatasync after every so many writes; 0: never",
        example: "32",
        bad_example: "-1",
        value: Count("writes", 0..=MANY, |draft, writes| draft.job.fdatasync_every = writes),
    },
    JobOption {
        name: "end_fsync",
        aliases: &[],
        help: "fsync when the job has written everything",
        example: "1",
        bad_example: "2",
        value: Boolean(|draft, on| draft.job.end_fsync = on),
    },
    JobOption {
        name: "norandommap",
        aliases: &[],
        help: "Draw random blocks with replacement",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.job.no_random_map = on),
    },
    JobOption {
        name: "randrepeat",
        aliases: &[],
        help: "The same random sequence at each run",
        example: "0",
        bad_example: "2",
        value: Boolean(|draft, on| draft.job.repeatable = on),
    },
    JobOption {
        name: "randseed",
        aliases: &[],
        help: "Seed of the random sequence; decides instead of randrepeat",
        example: "42",
        bad_example: "-1",
        value: Number("as a seed", 0..=u64::MAX, |draft, seed| draft.job.seed = Some(seed)),
    },
    JobOption {
        name: "rate_iops",
        aliases: &[],
        help: "Upper limit of the rate; 0: none",
        example: "1000,500",
        bad_example: "fast",
        value: PerDirection("I/Os per second", 0..=MANY_64, |draft, rates| {
            let now = &mut draft.job.rates;
            now.read = rates.read.unwrap_or(now.read);
            now.write = rates.write.unwrap_or(now.write);
            now.trim = rates.trim.unwrap_or(now.trim);
        }),
    },
    JobOption {
        name: "thinktime",
        aliases: &[],
        help: "Sleep between I/Os",
        example: "50",
        bad_example: "50k",
        value: Time(Microseconds, |draft, time| draft.job.think_time = time),
    },
    JobOption {
        name: "cpus_allowed",
        aliases: &[],
        help: "CPUs that the job may use",
        example: "0-3,5",
        bad_example: "3-0",
        value: Text("CPU numbers and ranges, 0 to 1023", |draft, text| {
            cpus(text).map(|cpus| draft.job.cpus_allowed = cpus)
        }),
    },
    JobOption {
        name: "percentile_list",
        aliases: &[],
        help: "Percentiles of latency to report",
        example: "50:99:99.9",
        bad_example: "nan",
        value: Text("up to 20 percentiles separated by ':', above 0 and up to 100", |draft, text| {
            percentiles(text).map(|percentiles| draft.job.percentiles = percentiles)
        }),
    },
    JobOption {
        name: "spin_cycles",
        aliases: &[],
        help: "Engine spin: ticks of the time-stamp counter burnt for each I/O",
        example: "2000",
        bad_example: "-1",
        value: Number("cycles", 0..=MANY_64, |draft, cycles| draft.job.spin_cycles = cycles),
    },
    JobOption {
        name: "work_steps",
        aliases: &[],
        help: "Engine work: dependent instructions done for each I/O",
        example: "500",
        bad_example: "-1",
        value: Number("steps", 0..=MANY_64, |draft, steps| draft.job.work_steps = steps),
    },
    JobOption {
        name: "inject_ns",
        aliases: &[],
        help: "Busy work added to each I/O, where inject_at says",
        example: "300",
        bad_example: "300us",
        value: Number("nanoseconds", 0..=MANY_64, |draft, nanos| draft.job.inject = Nanos(nanos)),
    },
    JobOption {
        name: "inject_at",
        aliases: &[],
        help: "Where inject_ns is added: where I/O is issued, or where engine nbd understands a reply; the server's are flags of iotoll serve",
        example: "wire",
        bad_example: "storage",
        value: Choice(list_words::<InjectAt>, |draft, text| match choice(text)? {
            InjectAt::Server | InjectAt::Storage => {
                Err(Wrong::because(text, format!("is the server's: iotoll serve --inject-ns N --inject-at {text}")))
            }
            at => {
                draft.job.inject_at = at;
                Ok(())
            }
        }),
    },
];

/// `rw=`, with a reason of its own for the modifier that fio takes after it.
fn pattern(text: &str) -> Result<(Access, Order), Wrong> {
    match text.split_once(':') {
        Some(_) => Err(Wrong::because(text, "has a ':N' modifier, which is not supported")),
        None => choice(text),
    }
}
