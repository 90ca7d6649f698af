//! The options of single engines but nbd, and of injected work.

use super::*;

const fn uring(name: &'static str, kind: Kind, default: Default, good: &'static str, bad: &'static str) -> JobOption {
    work(name, kind, default, good, bad).of(&[EngineKind::IoUring])
}

const fn flag(name: &'static str, kind: Kind, good: &'static str, bad: &'static str) -> JobOption {
    work(name, kind, Is("0"), good, bad).of(&[EngineKind::Pvsync2, EngineKind::IoUring])
}

pub(super) static OPTIONS: &[JobOption] = &[
    uring("fixedbufs", switch(field!(calls.fixed_buffers)), Words("the engine's default"), "1", "2")
        .help("Register the buffers"),
    uring("registerfiles", switch(field!(calls.registered_files)), Words("the engine's default"), "1", "2")
        .help("Register the files"),
    flag("hipri", switch(field!(calls.polled)), "1", "2")
        .help("Poll the device instead of waiting for its interrupt; needs direct=1 and a device with poll queues"),
    flag("nowait", boolean(field!(calls.nowait)), "1", "2").help("Fail instead of waiting (RWF_NOWAIT)"),
    flag("uncached", boolean(field!(calls.uncached)), "1", "2")
        .help("Drop pages from the page cache after the I/O (RWF_DONTCACHE, Linux 6.14)"),
    uring("sqthread_poll", switch(field!(calls.submission_thread)), Is("0"), "1", "2")
        .help("Let a kernel thread take submissions"),
    uring("force_async", count("I/Os", 0..=MANY, field!(calls.force_async)), Is("0"), "1", "-1")
        .help("Hand one I/O in this many to a worker of the kernel (IOSQE_ASYNC). 0 means none"),
    work("spin_cycles", number("cycles", 0..=MANY_64, field!(own.spin_cycles)), Required, "2000", "-1")
        .of(&[EngineKind::Spin])
        .help("Burn this many ticks of the time-stamp counter for each I/O"),
    work("work_steps", number("steps", 0..=MANY_64, field!(own.work_steps)), Required, "500", "-1")
        .of(&[EngineKind::Work])
        .help("Execute this many dependent instructions for each I/O"),
    work("mem_copy", word_of!(own.mem_copy), Is("rep-movsb"), "non-temporal", "dma")
        .of(&[EngineKind::Mem])
        .help("Copy method"),
    work("mem_in_flight", word_of!(own.mem_in_flight), Is("none"), "shared", "inode").of(&[EngineKind::Mem]).help(
        "Where to count the I/Os in flight, as a file system does for direct I/O: nowhere, in a counter of \
         each copy of the job, or in one that all copies share",
    ),
    work("rr_peer", text(parsed!(own.rr_peer, Peer::parse)), Required, "udp://127.0.0.1:5007", "127.0.0.1")
        .form(Peer::FORM)
        .of(&[EngineKind::Rr])
        .help("Exchange requests and responses of bs bytes with this echo server (iotoll serve --echo)"),
    work("rr_connect", boolean(field!(own.rr_connect)), Is("0"), "1", "each")
        .of(&[EngineKind::Rr])
        .help("Open a connection for each exchange, and close it"),
    work("inject_ns", number("nanoseconds", 0..=MANY_64, INJECT_NS), Is("0"), "300", "300us")
        .help("Add this much busy work to each I/O, where the job issues it"),
    work("inject_every", time(Seconds, field!(inject.every)), Is("0"), "100ms", "often").help(
        "Add inject_ns once per this time instead of to each I/O: stalls with a known period, to see what \
         iotoll ftq finds on a machine. 0 adds it to each I/O",
    ),
];

// Places that are no fields.
const INJECT_NS: Place<Set<u64>> =
    place(|job| typed::shown(&job.inject.time.0), |draft, nanos| draft.job.inject.time = Nanos(nanos));
