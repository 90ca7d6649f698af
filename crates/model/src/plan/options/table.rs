//! The job options, in the order in which help lists them. The options of engine nbd follow (`path_table.rs`).

use super::{JobOption, Value::*, engine};
use crate::plan::draft::Start;
use crate::plan::job::{Access, EngineKind, Fallocate, InjectAt, Order, PathCopy, PathInFlight, Peer};
use crate::plan::value::TimeUnit::{Microseconds, Seconds};
use crate::plan::value::{LARGEST_FILE, Wrong, choice, count_in, cpus, file_names, list_words, percentiles};
use crate::unit::{Bytes, Nanos};

const GIB: u64 = 1 << 30;

/// The most that an io_uring completion queue holds (IORING_MAX_CQ_ENTRIES of Linux).
const DEEPEST: u32 = 65_536;

/// Upper limit of counts. A larger value is a typing error: as nanoseconds or cycles, this is up to one second for each
/// I/O.
const MANY: u32 = 1_000_000_000;
const MANY_64: u64 = MANY as u64;

/// More than three years of I/O at ten million I/Os per second.
const MOST_IOS: u64 = 1 << 50;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "name",
        aliases: &[],
        help: "Name the job. As a flag, start a new job",
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
        help: "Describe the job. Has no effect",
        example: "nightly run",
        bad_example: "",
        value: Text("any text", |_, _| Ok(())),
    },
    JobOption {
        name: "ioengine",
        aliases: &[],
        help: "Select the I/O engine [default: psync]",
        example: "io_uring",
        bad_example: "sync",
        value: Choice(list_words::<EngineKind>, |draft, text| engine(text).map(|engine| draft.job.engine = engine)),
    },
    JobOption {
        name: "rw",
        aliases: &["readwrite"],
        help: "Select the I/O direction and order. randread:N reads N blocks in order from each random position on; so do the other random orders [default: read]",
        example: "randread",
        bad_example: "randread:0",
        value: Choice(list_words::<(Access, Order)>, |draft, text| {
            let job = &mut draft.job;
            (job.access, job.order, job.random_run) = pattern(text)?;
            Ok(())
        }),
    },
    JobOption {
        name: "rwmixread",
        aliases: &[],
        help: "Percentage of reads in mixed I/O. The later of rwmixread and rwmixwrite wins [default: 50]",
        example: "70",
        bad_example: "101",
        value: Percent(|draft, percent| draft.job.read_percent = percent),
    },
    JobOption {
        name: "rwmixwrite",
        aliases: &[],
        help: "Percentage of writes in mixed I/O [default: 50]",
        example: "30",
        bad_example: "-1",
        value: Percent(|draft, percent| draft.job.read_percent = 100_u8.saturating_sub(percent)),
    },
    JobOption {
        name: "bs",
        aliases: &["blocksize"],
        help: "Block size of the I/O [default: 4k]",
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
        help: "Size of the job's region, over all its files [default: size of the files]",
        example: "1g",
        bad_example: "0",
        value: Size(1..=LARGEST_FILE, 1..=100, |draft, size| draft.job.target.size = Some(size)),
    },
    JobOption {
        name: "io_size",
        aliases: &["io_limit"],
        help: "Transfer this amount instead of size. A percentage is of size",
        example: "4g",
        bad_example: "200%",
        value: Size(1..=LARGEST_FILE, 1..=100, |draft, size| draft.job.duration.io_size = Some(size)),
    },
    JobOption {
        name: "offset",
        aliases: &["fileoffset"],
        help: "Start the region at this offset in each file [default: 0]",
        example: "10%",
        bad_example: "100%",
        value: Size(0..=LARGEST_FILE, 0..=99, |draft, offset| draft.job.target.offset = offset),
    },
    JobOption {
        name: "filename",
        aliases: &[],
        help: "Use these files or devices, shared by all copies of the job. As in fio, another filename adds to them [default: one file for each copy]",
        example: "/tmp/a:/tmp/b",
        bad_example: "a::b",
        value: Text("file names separated by ':', a ':' within a name as '\\:'", |draft, text| {
            file_names(text).map(|files| draft.job.target.files.extend(files))
        }),
    },
    JobOption {
        name: "directory",
        aliases: &[],
        help: "Prefix file names with this directory. Of several, copies of a job without filename take turns among them",
        example: "/tmp",
        bad_example: "/a::/b",
        value: Text("directories separated by ':', a ':' within a name as '\\:'", |draft, text| {
            let mut directories = file_names(text)?.into_iter();
            draft.job.target.directory = directories.next();
            draft.job.target.more_directories = directories.collect();
            Ok(())
        }),
    },
    JobOption {
        name: "numjobs",
        aliases: &[],
        help: "Run this many copies of the job at the same time [default: 1]",
        example: "4",
        bad_example: "0",
        value: Count("copies", 1..=4096, |draft, copies| draft.job.copies = copies),
    },
    JobOption {
        name: "thread",
        aliases: &[],
        help: "Accepted for compatibility with fio. Jobs are always threads",
        example: "1",
        bad_example: "2",
        value: Switch(|_, _| {}),
    },
    JobOption {
        name: "group_reporting",
        aliases: &[],
        help: "Report all copies as one job [default: 0]",
        example: "1",
        bad_example: "yes",
        value: Switch(|draft, on| draft.job.group_reporting = on),
    },
    JobOption {
        name: "stonewall",
        aliases: &["wait_for_previous"],
        help: "Wait for all previous jobs to end before starting [default: 0]",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.start = if on { Start::AfterPrevious } else { Start::Together }),
    },
    JobOption {
        name: "startdelay",
        aliases: &[],
        help: "Wait this long before the job's first I/O [default: 0]",
        example: "5s",
        bad_example: "1-5",
        value: Time(Seconds, |draft, time| draft.job.start_delay = time),
    },
    JobOption {
        name: "iodepth",
        aliases: &[],
        help: "Keep this many I/Os in flight [default: 1]",
        example: "32",
        bad_example: "0",
        value: Count("I/Os", 1..=DEEPEST, |draft, ios| draft.job.depth.in_flight = ios),
    },
    JobOption {
        name: "iodepth_batch_submit",
        aliases: &["iodepth_batch"],
        help: "Submit this many I/Os at once. 0 means iodepth [default: 1]",
        example: "8",
        bad_example: "-1",
        value: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.submit = ios),
    },
    JobOption {
        name: "iodepth_batch_complete_min",
        aliases: &["iodepth_batch_complete"],
        help: "Wait for at least this many completions. 0 polls without waiting [default: 1]",
        example: "4",
        bad_example: "4.5",
        value: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.complete_min = ios),
    },
    JobOption {
        name: "iodepth_batch_complete_max",
        aliases: &[],
        help: "Retrieve at most this many completions at once. Raised to iodepth_batch_complete_min if lower [default: 1]",
        example: "16",
        bad_example: "1g",
        value: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.complete_max = ios),
    },
    JobOption {
        name: "fixedbufs",
        aliases: &[],
        help: "Engine io_uring: register the buffers",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.job.fixed_buffers = Some(on)),
    },
    JobOption {
        name: "registerfiles",
        aliases: &[],
        help: "Engine io_uring: register the files",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.job.registered_files = Some(on)),
    },
    JobOption {
        name: "direct",
        aliases: &[],
        help: "Bypass the page cache with O_DIRECT [default: 0]",
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
        help: "Use the page cache; the opposite of direct [default: 1]",
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
        help: "Drop the file from the page cache before the job [default: 1; for compare, see --cache]",
        example: "0",
        bad_example: "2",
        value: Boolean(|draft, on| draft.job.invalidate = Some(on)),
    },
    JobOption {
        name: "unlink",
        aliases: &[],
        help: "Remove the job's files when the measurement ends; unlike in fio only those that it made",
        example: "1",
        bad_example: "2",
        value: Boolean(|draft, on| draft.job.unlink = on),
    },
    JobOption {
        name: "fallocate",
        aliases: &[],
        help: "Select how to preallocate a file that is laid out [default: native]",
        example: "none",
        bad_example: "always",
        value: Choice(list_words::<Fallocate>, |draft, text| choice(text).map(|how| draft.job.fallocate = how)),
    },
    JobOption {
        name: "runtime",
        aliases: &["timeout"],
        help: "Stop the job after this time. 0 means when its I/O is done [default: 0]",
        example: "10s",
        bad_example: "10x",
        value: Time(Seconds, |draft, time| draft.job.duration.runtime = time),
    },
    JobOption {
        name: "time_based",
        aliases: &[],
        help: "Repeat the I/O until runtime has passed [default: 0]",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.job.duration.time_based = on),
    },
    JobOption {
        name: "ramp_time",
        aliases: &[],
        help: "Run this long before recording results [default: 0]",
        example: "2s",
        bad_example: "-2",
        value: Time(Seconds, |draft, time| draft.job.duration.ramp = time),
    },
    JobOption {
        name: "number_ios",
        aliases: &[],
        help: "Stop the job after this many I/Os. 0 means no limit [default: 0]",
        example: "1000",
        bad_example: "many",
        value: Number("I/Os", 0..=MOST_IOS, |draft, ios| draft.job.duration.number_ios = (ios > 0).then_some(ios)),
    },
    JobOption {
        name: "loops",
        aliases: &[],
        help: "Run over the region this many times [default: 1]",
        example: "3",
        bad_example: "0",
        value: Count("times", 1..=MANY, |draft, times| draft.job.duration.loops = times),
    },
    JobOption {
        name: "fsync",
        aliases: &[],
        help: "Call fsync after every N writes. 0 means never [default: 0]",
        example: "32",
        bad_example: "-1",
        value: Count("writes", 0..=MANY, |draft, writes| draft.job.fsync_every = writes),
    },
    JobOption {
        name: "fdatasync",
        aliases: &[],
        help: "Call fdatasync after every N writes. 0 means never [default: 0]",
        example: "32",
        bad_example: "-1",
        value: Count("writes", 0..=MANY, |draft, writes| draft.job.fdatasync_every = writes),
    },
    JobOption {
        name: "end_fsync",
        aliases: &[],
        help: "Call fsync once when the job has written everything [default: 0]",
        example: "1",
        bad_example: "2",
        value: Boolean(|draft, on| draft.job.end_fsync = on),
    },
    JobOption {
        name: "norandommap",
        aliases: &[],
        help: "Pick random blocks with replacement, so that some repeat before others are used [default: 0]",
        example: "1",
        bad_example: "2",
        value: Switch(|draft, on| draft.job.no_random_map = on),
    },
    JobOption {
        name: "randrepeat",
        aliases: &[],
        help: "Use the same random sequence in each run [default: 1]",
        example: "0",
        bad_example: "2",
        value: Boolean(|draft, on| draft.job.repeatable = on),
    },
    JobOption {
        name: "randseed",
        aliases: &[],
        help: "Seed the random sequence. Overrides randrepeat",
        example: "42",
        bad_example: "-1",
        value: Number("as a seed", 0..=u64::MAX, |draft, seed| draft.job.seed = Some(seed)),
    },
    JobOption {
        name: "rate_iops",
        aliases: &[],
        help: "Limit the rate. 0 means no limit [default: 0]",
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
        help: "Sleep this long between I/Os [default: 0]",
        example: "50",
        bad_example: "50k",
        value: Time(Microseconds, |draft, time| draft.job.think_time = time),
    },
    JobOption {
        name: "cpus_allowed",
        aliases: &[],
        help: "Pin the job's threads to these CPUs [default: all]",
        example: "0-3,5",
        bad_example: "3-0",
        value: Text("CPU numbers and ranges, 0 to 1023", |draft, text| {
            cpus(text).map(|cpus| draft.job.cpus_allowed = cpus)
        }),
    },
    JobOption {
        name: "percentile_list",
        aliases: &[],
        help: "Report these latency percentiles [default: fio's 17 percentiles, 1 to 99.99]",
        example: "50:99:99.9",
        bad_example: "nan",
        value: Text("up to 20 percentiles separated by ':', above 0 and up to 100", |draft, text| {
            percentiles(text).map(|percentiles| draft.job.percentiles = percentiles)
        }),
    },
    JobOption {
        name: "spin_cycles",
        aliases: &[],
        help: "Engine spin: burn this many ticks of the time-stamp counter for each I/O",
        example: "2000",
        bad_example: "-1",
        value: Number("cycles", 0..=MANY_64, |draft, cycles| draft.job.spin_cycles = cycles),
    },
    JobOption {
        name: "work_steps",
        aliases: &[],
        help: "Engine work: execute this many dependent instructions for each I/O",
        example: "500",
        bad_example: "-1",
        value: Number("steps", 0..=MANY_64, |draft, steps| draft.job.work_steps = steps),
    },
    JobOption {
        name: "mem_copy",
        aliases: &[],
        help: "Copy method of engine mem [default: rep-movsb]",
        example: "non-temporal",
        bad_example: "dma",
        value: Choice(list_words::<PathCopy>, |draft, text| choice(text).map(|copy| draft.job.mem_copy = copy)),
    },
    JobOption {
        name: "mem_in_flight",
        aliases: &[],
        help: "Where engine mem counts the I/Os in flight, as a file system does for direct I/O: nowhere, in a counter of each copy of the job, or in one that all copies share [default: none]",
        example: "shared",
        bad_example: "inode",
        value: Choice(list_words::<PathInFlight>, |draft, text| {
            choice(text).map(|in_flight| draft.job.mem_in_flight = in_flight)
        }),
    },
    JobOption {
        name: "rr_peer",
        aliases: &[],
        help: "Engine rr: exchange requests and responses of bs bytes with this echo server (iotoll serve --echo)",
        example: "udp://127.0.0.1:5007",
        bad_example: "127.0.0.1",
        value: Text(Peer::FORM, |draft, text| Peer::parse(text).map(|peer| draft.job.rr_peer = Some(peer))),
    },
    JobOption {
        name: "rr_connect",
        aliases: &[],
        help: "Engine rr: open a connection for each exchange, and close it [default: 0]",
        example: "1",
        bad_example: "each",
        value: Boolean(|draft, anew| draft.job.rr_connect = anew),
    },
    JobOption {
        name: "inject_ns",
        aliases: &[],
        help: "Add this much busy work to each I/O, in the place that inject_at selects [default: 0]",
        example: "300",
        bad_example: "300us",
        value: Number("nanoseconds", 0..=MANY_64, |draft, nanos| draft.job.inject = Nanos(nanos)),
    },
    JobOption {
        name: "inject_every",
        aliases: &[],
        help: "Add inject_ns once per this time instead of to each I/O: stalls with a known period, to see what iotoll ftq finds on a machine. 0 adds it to each I/O [default: 0]",
        example: "100ms",
        bad_example: "often",
        value: Time(Seconds, |draft, time| draft.job.inject_every = time),
    },
    JobOption {
        name: "inject_at",
        aliases: &[],
        help: "Place of inject_ns: submit, where the job issues the I/O, or wire, where engine nbd parses a reply. The server has its own flag, iotoll serve --inject-at [default: submit]",
        example: "wire",
        bad_example: "storage",
        value: Choice(
            || "submit, wire".to_owned(),
            |draft, text| match choice(text)? {
                InjectAt::Server | InjectAt::Storage => Err(Wrong::because(
                    text,
                    format!("is a place in the server; use iotoll serve --inject-ns N --inject-at {text}"),
                )),
                at => {
                    draft.job.inject_at = at;
                    Ok(())
                }
            },
        ),
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
