//! The options of single engines but nbd, and of injected work.

use super::*;

const fn uring(name: &'static str, default: Default, example: &'static str, bad_example: &'static str) -> JobOption {
    work(name, default, example, bad_example).of(&[EngineKind::IoUring])
}

pub(super) static OPTIONS: &[JobOption] = &[
    uring("fixedbufs", Words("the engine's default"), "1", "2")
        .help("Register the buffers")
        .switch(field!(fixed_buffers)),
    uring("registerfiles", Words("the engine's default"), "1", "2")
        .help("Register the files")
        .switch(field!(registered_files)),
    uring("hipri", Is("0"), "1", "2")
        .help(
            "Poll the device for completions instead of waiting for its interrupt; needs direct=1 and a device \
             with poll queues",
        )
        .switch(field!(calls.polled)),
    uring("nowait", Is("0"), "1", "2").help("Fail instead of waiting (RWF_NOWAIT)").boolean(field!(calls.nowait)),
    uring("uncached", Is("0"), "1", "2")
        .help("Drop pages from the page cache after the I/O (RWF_DONTCACHE, Linux 6.14)")
        .boolean(field!(calls.uncached)),
    uring("sqthread_poll", Is("0"), "1", "2")
        .help("Let a kernel thread take submissions")
        .switch(field!(calls.submission_thread)),
    uring("sqthread_poll_cpu", Words("any"), "1", "1024").help("Pin that kernel thread to this CPU").count(
        "as a CPU",
        0..=LARGEST_CPU,
        field!(calls.submission_cpu),
    ),
    uring("force_async", Is("0"), "1", "-1")
        .help("Hand one I/O in this many to a worker of the kernel (IOSQE_ASYNC). 0 means none")
        .count("I/Os", 0..=MANY, field!(calls.force_async)),
    nothing("nonvectored", Words("1"), "1", "x")
        .help("Accepted without effect: no buffer is a vector")
        .of(&[EngineKind::IoUring])
        .boolean(nowhere!()),
    work("spin_cycles", Required, "2000", "-1")
        .help("Burn this many ticks of the time-stamp counter for each I/O")
        .of(&[EngineKind::Spin])
        .number("cycles", 0..=MANY_64, field!(spin_cycles)),
    work("cpuload", Required, "50", "half").help("Use this percentage of a CPU").of(&[EngineKind::Cpuio]).number(
        "percent",
        1..=MANY_64,
        place(
            |job| shown(&job.cpu.load),
            // As in fio, more than all is all.
            |draft, percent| draft.job.cpu.load = u8::try_from(percent.min(100)).unwrap_or(100),
        ),
    ),
    work("cpuchunks", Is("50000"), "10000", "-1")
        .help("Use the CPU for this many microseconds at a time: each counts as an I/O")
        .of(&[EngineKind::Cpuio])
        .number(
            "microseconds",
            1..=MANY_64,
            place(|job| shown(&(job.cpu.chunk.0 / 1000)), |draft, micros| draft.job.cpu.chunk = Nanos(micros * 1000)),
        ),
    work("cpumode", Is("noop"), "qsort", "sleep")
        .help("What the CPU does: it waits for the clock, or sorts numbers")
        .of(&[EngineKind::Cpuio])
        .one_of(
            &["noop", "qsort"],
            place(
                |job| shown(if job.cpu.sorts { "qsort" } else { "noop" }),
                |draft, text| draft.job.cpu.sorts = text == "qsort",
            ),
        ),
    work("work_steps", Required, "500", "-1")
        .help("Execute this many dependent instructions for each I/O")
        .of(&[EngineKind::Work])
        .number("steps", 0..=MANY_64, field!(work_steps)),
    work("mem_copy", Is("rep-movsb"), "non-temporal", "dma")
        .help("Copy method")
        .of(&[EngineKind::Mem])
        .choice(word_of!(mem_copy)),
    work("mem_in_flight", Is("none"), "shared", "inode")
        .help(
            "Where to count the I/Os in flight, as a file system does for direct I/O: nowhere, in a counter of \
             each copy of the job, or in one that all copies share",
        )
        .of(&[EngineKind::Mem])
        .choice(word_of!(mem_in_flight)),
    work("rr_peer", Required, "udp://127.0.0.1:5007", "127.0.0.1")
        .help("Exchange requests and responses of bs bytes with this echo server (iotoll serve --echo)")
        .of(&[EngineKind::Rr])
        .text(Peer::FORM, parsed!(rr_peer, Peer::parse)),
    work("rr_connect", Is("0"), "1", "each")
        .help("Open a connection for each exchange, and close it")
        .of(&[EngineKind::Rr])
        .boolean(field!(rr_connect)),
    work("inject_ns", Is("0"), "300", "300us")
        .help("Add this much busy work to each I/O, in the place that inject_at selects")
        .number(
            "nanoseconds",
            0..=MANY_64,
            place(|job| shown(&job.inject.0), |draft, nanos| draft.job.inject = Nanos(nanos)),
        ),
    work("inject_every", Is("0"), "100ms", "often")
        .help(
            "Add inject_ns once per this time instead of to each I/O: stalls with a known period, to see what \
             iotoll ftq finds on a machine. 0 adds it to each I/O",
        )
        .time(Seconds, field!(inject_every)),
    work("inject_at", Is("submit"), "wire", "storage")
        .help(
            "Place of inject_ns: submit, where the job issues the I/O, or wire, where engine nbd parses a reply. \
             The server has its own flag, iotoll serve --inject-at",
        )
        .choice((|| "submit, wire".to_owned(), parsed!(inject_at, in_client))),
];

/// The places of injected work that are not in the server.
fn in_client(text: &str) -> Result<InjectAt, Wrong> {
    match choice(text)? {
        InjectAt::Server | InjectAt::Storage => {
            let why = format!("is a place in the server; use iotoll serve --inject-ns N --inject-at {text}");
            Err(Wrong::because(text, why))
        }
        at => Ok(at),
    }
}
