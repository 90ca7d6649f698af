//! The options of single engines but nbd, and of injected work.

use super::{MANY, MANY_64, one_of};
use crate::plan::job::{EngineKind, InjectAt, PathCopy, PathInFlight, Peer};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::TimeUnit::Seconds;
use crate::plan::value::{LARGEST_CPU, Wrong, choice, list_words, typed, word};
use crate::unit::Nanos;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "fixedbufs",
        help: "Register the buffers",
        default: Default::Words("the engine's default"),
        engines: &[EngineKind::IoUring],
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| job.fixed_buffers.map(typed::switch),
        set: Switch(|draft, on| draft.job.fixed_buffers = Some(on)),
        ..PLAIN
    },
    JobOption {
        name: "registerfiles",
        help: "Register the files",
        default: Default::Words("the engine's default"),
        engines: &[EngineKind::IoUring],
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| job.registered_files.map(typed::switch),
        set: Switch(|draft, on| draft.job.registered_files = Some(on)),
        ..PLAIN
    },
    JobOption {
        name: "hipri",
        help: "Poll the device for completions instead of waiting for its interrupt; needs direct=1 and a device with poll queues",
        default: Default::Value("0"),
        engines: &[EngineKind::IoUring],
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.calls.polled)),
        set: Switch(|draft, on| draft.job.calls.polled = on),
        ..PLAIN
    },
    JobOption {
        name: "nowait",
        help: "Fail instead of waiting (RWF_NOWAIT)",
        default: Default::Value("0"),
        engines: &[EngineKind::IoUring],
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.calls.nowait)),
        set: Boolean(|draft, on| draft.job.calls.nowait = on),
        ..PLAIN
    },
    JobOption {
        name: "uncached",
        help: "Drop pages from the page cache after the I/O (RWF_DONTCACHE, Linux 6.14)",
        default: Default::Value("0"),
        engines: &[EngineKind::IoUring],
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.calls.uncached)),
        set: Boolean(|draft, on| draft.job.calls.uncached = on),
        ..PLAIN
    },
    JobOption {
        name: "sqthread_poll",
        help: "Let a kernel thread take submissions",
        default: Default::Value("0"),
        engines: &[EngineKind::IoUring],
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.calls.submission_thread)),
        set: Switch(|draft, on| draft.job.calls.submission_thread = on),
        ..PLAIN
    },
    JobOption {
        name: "sqthread_poll_cpu",
        help: "Pin that kernel thread to this CPU",
        default: Default::Words("any"),
        engines: &[EngineKind::IoUring],
        role: Role::Work,
        example: "1",
        bad_example: "1024",
        get: |job| job.calls.submission_cpu.map(|cpu| cpu.to_string()),
        set: Count("as a CPU", 0..=LARGEST_CPU, |draft, cpu| draft.job.calls.submission_cpu = Some(cpu)),
        ..PLAIN
    },
    JobOption {
        name: "force_async",
        help: "Hand one I/O in this many to a worker of the kernel (IOSQE_ASYNC). 0 means none",
        default: Default::Value("0"),
        engines: &[EngineKind::IoUring],
        role: Role::Work,
        example: "1",
        bad_example: "-1",
        get: |job| Some(job.calls.force_async.to_string()),
        set: Count("I/Os", 0..=MANY, |draft, ios| draft.job.calls.force_async = ios),
        ..PLAIN
    },
    JobOption {
        name: "nonvectored",
        help: "Accepted without effect: no buffer is a vector",
        default: Default::Words("1"),
        engines: &[EngineKind::IoUring],
        role: Role::Nothing,
        example: "1",
        bad_example: "x",
        get: |_| None,
        set: Boolean(|_, _| {}),
        ..PLAIN
    },
    JobOption {
        name: "spin_cycles",
        help: "Burn this many ticks of the time-stamp counter for each I/O",
        default: Default::Required,
        engines: &[EngineKind::Spin],
        role: Role::Work,
        example: "2000",
        bad_example: "-1",
        get: |job| Some(job.spin_cycles.to_string()),
        set: Number("cycles", 0..=MANY_64, |draft, cycles| draft.job.spin_cycles = cycles),
        ..PLAIN
    },
    JobOption {
        name: "cpuload",
        help: "Use this percentage of a CPU",
        default: Default::Required,
        engines: &[EngineKind::Cpuio],
        role: Role::Work,
        example: "50",
        bad_example: "half",
        get: |job| Some(job.cpu.load.to_string()),
        // As in fio, more than all is all.
        set: Number("percent", 1..=MANY_64, |draft, percent| {
            draft.job.cpu.load = u8::try_from(percent.min(100)).unwrap_or(100);
        }),
        ..PLAIN
    },
    JobOption {
        name: "cpuchunks",
        help: "Use the CPU for this many microseconds at a time: each counts as an I/O",
        default: Default::Value("50000"),
        engines: &[EngineKind::Cpuio],
        role: Role::Work,
        example: "10000",
        bad_example: "-1",
        get: |job| Some((job.cpu.chunk.0 / 1000).to_string()),
        set: Number("microseconds", 1..=MANY_64, |draft, micros| draft.job.cpu.chunk = Nanos(micros * 1000)),
        ..PLAIN
    },
    JobOption {
        name: "cpumode",
        help: "What the CPU does: it waits for the clock, or sorts numbers",
        default: Default::Value("noop"),
        engines: &[EngineKind::Cpuio],
        role: Role::Work,
        example: "qsort",
        bad_example: "sleep",
        get: |job| Some(if job.cpu.sorts { "qsort" } else { "noop" }.to_owned()),
        set: Choice(
            || "noop, qsort".to_owned(),
            |draft, text| {
                one_of(text, &["noop", "qsort"])?;
                draft.job.cpu.sorts = text == "qsort";
                Ok(())
            },
        ),
        ..PLAIN
    },
    JobOption {
        name: "work_steps",
        help: "Execute this many dependent instructions for each I/O",
        default: Default::Required,
        engines: &[EngineKind::Work],
        role: Role::Work,
        example: "500",
        bad_example: "-1",
        get: |job| Some(job.work_steps.to_string()),
        set: Number("steps", 0..=MANY_64, |draft, steps| draft.job.work_steps = steps),
        ..PLAIN
    },
    JobOption {
        name: "mem_copy",
        help: "Copy method",
        default: Default::Value("rep-movsb"),
        engines: &[EngineKind::Mem],
        role: Role::Work,
        example: "non-temporal",
        bad_example: "dma",
        get: |job| Some(word(job.mem_copy).to_owned()),
        set: Choice(list_words::<PathCopy>, |draft, text| choice(text).map(|copy| draft.job.mem_copy = copy)),
        ..PLAIN
    },
    JobOption {
        name: "mem_in_flight",
        help: "Where to count the I/Os in flight, as a file system does for direct I/O: nowhere, in a counter of each copy of the job, or in one that all copies share",
        default: Default::Value("none"),
        engines: &[EngineKind::Mem],
        role: Role::Work,
        example: "shared",
        bad_example: "inode",
        get: |job| Some(word(job.mem_in_flight).to_owned()),
        set: Choice(list_words::<PathInFlight>, |draft, text| {
            choice(text).map(|in_flight| draft.job.mem_in_flight = in_flight)
        }),
        ..PLAIN
    },
    JobOption {
        name: "rr_peer",
        help: "Exchange requests and responses of bs bytes with this echo server (iotoll serve --echo)",
        default: Default::Required,
        engines: &[EngineKind::Rr],
        role: Role::Work,
        example: "udp://127.0.0.1:5007",
        bad_example: "127.0.0.1",
        get: |job| job.rr_peer.as_ref().map(ToString::to_string),
        set: Text(Peer::FORM, |draft, text| Peer::parse(text).map(|peer| draft.job.rr_peer = Some(peer))),
        ..PLAIN
    },
    JobOption {
        name: "rr_connect",
        help: "Open a connection for each exchange, and close it",
        default: Default::Value("0"),
        engines: &[EngineKind::Rr],
        role: Role::Work,
        example: "1",
        bad_example: "each",
        get: |job| Some(typed::switch(job.rr_connect)),
        set: Boolean(|draft, anew| draft.job.rr_connect = anew),
        ..PLAIN
    },
    JobOption {
        name: "inject_ns",
        help: "Add this much busy work to each I/O, in the place that inject_at selects",
        default: Default::Value("0"),
        role: Role::Work,
        example: "300",
        bad_example: "300us",
        get: |job| Some(job.inject.0.to_string()),
        set: Number("nanoseconds", 0..=MANY_64, |draft, nanos| draft.job.inject = Nanos(nanos)),
        ..PLAIN
    },
    JobOption {
        name: "inject_every",
        help: "Add inject_ns once per this time instead of to each I/O: stalls with a known period, to see what iotoll ftq finds on a machine. 0 adds it to each I/O",
        default: Default::Value("0"),
        role: Role::Work,
        example: "100ms",
        bad_example: "often",
        get: |job| Some(typed::time(job.inject_every)),
        set: Time(Seconds, |draft, time| draft.job.inject_every = time),
        ..PLAIN
    },
    JobOption {
        name: "inject_at",
        help: "Place of inject_ns: submit, where the job issues the I/O, or wire, where engine nbd parses a reply. The server has its own flag, iotoll serve --inject-at",
        default: Default::Value("submit"),
        role: Role::Work,
        example: "wire",
        bad_example: "storage",
        get: |job| Some(word(job.inject_at).to_owned()),
        set: Choice(
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
        ..PLAIN
    },
];
