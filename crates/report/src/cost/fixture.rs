//! Typical findings, for the tests of every format.

mod exact;
mod machine;
mod profiled;

pub use exact::beside_a_compiler;
pub use machine::{host, origin};
pub use profiled::profiled;

use machine::peer;
use model::ThreadUsage;
use model::finding::*;
use model::placement::{Mode, ModeFinding, PlacementFinding};
use model::probe::Kind;
use model::record::{Exit, Outcome, TaskOwner, Verified};
use model::stats::Estimate;
use model::stored::{StoredFinding, UnpairedChange};
use model::unit::{Bytes, Nanos};
use model::warning::{Code, Warning};

/// All findings with their names.
pub fn all() -> Vec<(&'static str, RunFinding)> {
    vec![
        ("psync_4k", psync_4k()),
        ("udp_like", udp_like()),
        ("beside_a_compiler", beside_a_compiler()),
        ("profiled", profiled()),
        ("probed", probed()),
        ("cost_without_ios", cost_without_ios()),
        ("failed", failed()),
        ("many_jobs", many_jobs()),
        ("two_phases", two_phases()),
        ("stepped", stepped()),
        ("no_interval", no_interval()),
        ("stored", stored()),
        ("meters_unavailable", meters_unavailable()),
        ("empty", empty()),
        ("hostile", hostile(f64::NAN, "\u{1b}[31m読み\n書き\u{7}")),
    ]
}

/// 4 KiB random reads by pread on a quiet machine.
pub fn psync_4k() -> RunFinding {
    RunFinding {
        title: "randread-4k".to_owned(),
        command_line: words(
            "iotoll run --name=randread-4k --ioengine=psync --rw=randread --bs=4k \
             --size=512m --runtime=10 --filename=/srv/scratch/f --direct=1",
        ),
        phases: vec![phase("randread-4k")],
        jobs: vec![job("randread-4k")],
        merged_jobs: vec![job("randread-4k")],
        ..empty()
    }
}

/// Small packets over loopback: the senders' own threads account for 40 % of the machine's cost.
pub fn udp_like() -> RunFinding {
    let mut finding = psync_4k();
    finding.title = "udp-64".to_owned();
    finding.host.storage.clear();
    finding.host.hypervisor = None;
    finding.command_line = words("iotoll run udp.fio");
    finding.phases = vec![PhaseFinding {
        jobs: vec!["udp-64".to_owned()],
        thread_cycles_per_io: Some(2764.0),
        elsewhere_cycles_per_io: Some(4146.0),
        accounts: vec![
            account("the workload's own threads", TaskOwner::Workload, 2764.0),
            account("ksoftirqd", TaskOwner::Kernel, 2350.0),
            account("iperf3 (another process)", TaskOwner::Other, 1520.0),
            account("iotoll's own meters", TaskOwner::Iotoll, 36.0),
            AccountFinding {
                owner: None,
                ..account("no task: interrupts, idle entry and exit, ended tasks", TaskOwner::Other, 240.0)
            },
        ],
        placement: Some(PlacementFinding {
            cpus: [(1, 1.0)].into(),
            peers: vec![peer("iperf3")],
            migrations_per_second: Some(0.2),
            mode: Some(Mode::Apart),
            modes: Vec::new(),
        }),
        ..phase("udp-64")
    }];
    finding.merged_jobs = vec![JobFinding { engine: "udp".to_owned(), ..job("udp-64") }];
    finding
}

/// A run with a counter, a gauge, a counter that was reset, and a counter without a cost per I/O.
pub fn probed() -> RunFinding {
    let mut finding = udp_like();
    let probe = |name: &str, unit: &str, kind| ProbeFinding {
        name: name.to_owned(),
        meaning: format!("what {name} is"),
        unit: unit.to_owned(),
        kind,
        ..ProbeFinding::default()
    };
    let counter = |name: &str, unit: &str, per_second: f64| ProbeFinding {
        per_second: Some(per_second),
        per_second_low: Some(per_second * 0.97),
        per_second_high: Some(per_second * 1.03),
        background_per_second: Some(120.0),
        series: vec![(0.05, per_second), (0.15, per_second)],
        ..probe(name, unit, Kind::Counter)
    };
    let per_io = ProbeFinding {
        per_io: Some(64.2),
        per_io_low: Some(63.9),
        per_io_high: Some(64.5),
        ..counter("net.eth0.rx_bytes", "bytes", 9.4e6)
    };
    let gauge = ProbeFinding {
        mean: Some(512.4),
        mean_low: Some(480.0),
        mean_high: Some(544.8),
        min: Some(0.0),
        max: Some(2041.0),
        ..probe("dirty", "pages", Kind::Gauge)
    };
    let reason =
        Some("it went backwards, from 4294967290 to 3: it was reset, or a counter of 32 bits began anew".to_owned());
    let reset = ProbeFinding { reason, ..probe("softirqs.net_rx", "softirqs", Kind::Counter) };
    for phase in &mut finding.phases {
        phase.probes = vec![per_io.clone(), counter("pressure.cpu.some", "ns", 2.1e7), gauge.clone(), reset.clone()];
    }
    finding
}

/// A command whose I/Os are not counted.
pub fn cost_without_ios() -> RunFinding {
    RunFinding {
        title: "dd if=/dev/zero of=/srv/scratch/f bs=1M count=4096 conv=fsync".to_owned(),
        command_line: words("iotoll cost -- dd if=/dev/zero of=/srv/scratch/f bs=1M count=4096 conv=fsync"),
        counted_by: Some("nothing: dd is not known to iotoll, and --ios was not given".to_owned()),
        phases: vec![PhaseFinding {
            jobs: vec!["dd".to_owned()],
            wall_seconds: 13.42,
            cycles: Some(4.2086e10),
            cycles_low: Some(4.161e10),
            cycles_high: Some(4.256e10),
            headline_meter: Some("idle".to_owned()),
            busy_cpus: Some(1.208),
            busy_cpus_gross: Some(1.25),
            accounts: vec![
                AccountFinding {
                    cycles_per_io: f64::NAN,
                    ..account("the command and its children", TaskOwner::Workload, 4100.0)
                },
                AccountFinding { cycles_per_io: f64::NAN, ..account("kworker", TaskOwner::Kernel, 2810.0) },
            ],
            by_meter_detail: vec![MeterReading {
                name: "idle".to_owned(),
                cycles_per_io: None,
                cycles_per_execution: Some(Estimate { value: 4.2086e10, low: Some(4.161e10), high: Some(4.256e10) }),
                seconds: 13.42,
                reason: Some("the number of I/Os is unknown".to_owned()),
            }],
            exits: vec![Exit::Status(0)],
            cycles_outside_io: Some(3.1e9),
            interval_from: "134 windows of 100 ms and the background's error".to_owned(),
            carried_by: None,
            correlation: None,
            ..PhaseFinding::default()
        }],
        warnings: vec![Warning::new(
            Code::WorkUnknown,
            "the number of I/Os is unknown, so there is no cost per I/O: give it with --ios N or --bytes N",
        )],
        ..empty()
    }
}

/// A file that was read from the disk first, then from memory: two loads, and no mean of both.
pub fn stepped() -> RunFinding {
    let mut finding = psync_4k();
    for phase in &mut finding.phases {
        let regime = |begin, end, iops, cycles: f64| RegimeFinding {
            begin_seconds: begin,
            end_seconds: end,
            iops: Some(iops),
            cycles_per_io: Some(cycles),
            cycles_per_io_low: Some(cycles * 0.98),
            cycles_per_io_high: Some(cycles * 1.02),
            from_storage_fraction: Some(if begin > 0.0 { 0.0 } else { 1.0 }),
            ..RegimeFinding::default()
        };
        phase.regimes = vec![regime(0.0, 2.5, 12.6e3, 41e3), regime(2.5, 10.0, 284e3, 6.9e3)];
        (phase.cycles_per_io, phase.cycles_per_io_low, phase.cycles_per_io_high) = (None, None, None);
        (phase.cycles_per_byte, phase.thread_cycles_per_io, phase.accounts) = (None, None, Vec::new());
        phase.by_meter_detail.retain(|reading| reading.cycles_per_io.is_none());
        phase.series = series(|seconds| if seconds < 2.5 { (12.6e3, 41e3) } else { (284e3, 6.9e3) });
    }
    finding
}

/// 100 windows of 100 ms: the rate and the cost at each time, with a periodic ripple.
fn series(at: impl Fn(f64) -> (f64, f64)) -> Vec<SeriesPoint> {
    let point = |window: u32| {
        let seconds = f64::from(window) / 10.0 + 0.05;
        let ripple = 1.0 + f64::from(window * 7 % 11) / 300.0;
        let (iops, cycles_per_io) = (at(seconds).0 * ripple, at(seconds).1 / ripple);
        SeriesPoint {
            seconds,
            window_seconds: 0.1,
            busy_cpus: Some(0.8),
            iops: Some(iops),
            ios: Some((iops / 10.0) as u64),
            bytes: Some((iops / 10.0) as u64 * 4096),
            cycles: Some(cycles_per_io * iops / 10.0),
            cycles_per_io: Some(cycles_per_io),
        }
    };
    (0..100).map(point).collect()
}

/// A command with counted I/Os that ended early because the disk was full.
pub fn failed() -> RunFinding {
    let mut finding = psync_4k();
    finding.outcome = Outcome::Failed(
        "job randread-4k: read at offset 4096 of /srv/scratch/f: Input/output error (os error 5)".to_owned(),
    );
    for job in &mut finding.merged_jobs {
        job.errors = 3;
        job.error = Some("read at offset 4096: Input/output error (os error 5)".to_owned());
    }
    finding.warnings.push(Warning::new(Code::JobFailed, "job randread-4k ended with an error after 2.1 s"));
    finding
}

/// More jobs in one phase than the report shows.
pub fn many_jobs() -> RunFinding {
    let names: Vec<_> = (0..32).map(|index| format!("writer-{index:02}")).collect();
    RunFinding {
        title: "32 writers".to_owned(),
        merged_jobs: names.iter().map(|name| JobFinding { cycles_per_io: None, ..job(name) }).collect(),
        phases: vec![PhaseFinding { jobs: names, ..phase("") }],
        ..psync_4k()
    }
}

/// A layout phase followed by a mixed one.
pub fn two_phases() -> RunFinding {
    let mut mixed = job("mixed");
    mixed.write = DirectionFinding { latency_ns: latency(4.0), short: 2, ..mixed.read.clone() };
    mixed.trim = DirectionFinding { ios: 12, ..DirectionFinding::default() };
    (mixed.phase, mixed.copies, mixed.syncs) = (1, 4, 412);
    mixed.copies_apart = Some(CopiesApart { slowest: 3, slowest_iops: 50e3, fastest: 0, fastest_iops: 90e3 });
    mixed.verified = Some(Verified { ios: 2048, bytes: Bytes(8 << 20), wrong: 0 });
    RunFinding {
        title: "layout, mixed".to_owned(),
        phases: vec![phase("layout"), PhaseFinding { wall_seconds: 30.0, ..phase("mixed") }],
        merged_jobs: vec![job("layout"), mixed],
        outcome: Outcome::Interrupted,
        ..psync_4k()
    }
}

/// Too short for an interval or for the far percentiles.
pub fn no_interval() -> RunFinding {
    let mut finding = psync_4k();
    for phase in &mut finding.phases {
        (phase.cycles_per_io_low, phase.cycles_per_io_high) = (None, None);
        phase.interval_from = "2 windows: too few for an interval".to_owned();
        for reading in &mut phase.by_meter_detail {
            reading.cycles_per_io = reading.cycles_per_io.map(|estimate| Estimate::bare(estimate.value));
        }
    }
    for job in &mut finding.merged_jobs {
        job.latency_ns.p9999 = None;
        job.read.latency_ns.p9999 = None;
    }
    finding.warnings = vec![
        Warning::new(Code::NoInterval, "2 windows are too few for an interval: run for 5 s or more"),
        Warning::new(Code::FewSamples, "p99.99 needs 100 k I/Os"),
    ];
    finding
}

/// A machine on which only the thread clocks can be read.
pub fn meters_unavailable() -> RunFinding {
    let mut finding = psync_4k();
    let reason = "permission denied: /sys/devices/system/cpu/cpu0/cpuidle is hidden in this container; \
                  run outside of it, or mount /sys read-only";
    for meter in finding.meters.iter_mut().filter(|meter| meter.name != "thread") {
        *meter =
            MeterFinding { available: false, reason: Some(reason.to_owned()), sees: None, name: meter.name.clone() };
    }
    for phase in &mut finding.phases {
        *phase = PhaseFinding {
            headline_meter: None,
            cycles_per_io: None,
            cycles_per_io_low: None,
            cycles_per_io_high: None,
            cycles_per_io_gross: None,
            cycles_per_io_background: None,
            cycles_per_byte: None,
            context_switches_per_io: None,
            context_switches_per_io_low: None,
            context_switches_per_io_high: None,
            busy_cpus: None,
            elsewhere_cycles_per_io: None,
            accounts: Vec::new(),
            by_meter_detail: phase.by_meter_detail.iter().filter(|reading| reading.name == "thread").cloned().collect(),
            ..phase.clone()
        };
    }
    finding.background = Background::default();
    finding.warnings = vec![Warning::new(
        Code::MeterUnavailable,
        "no meter of the whole machine could be read, so the cost is unknown",
    )];
    finding
}

/// No measurement.
pub fn empty() -> RunFinding {
    RunFinding {
        schema: SCHEMA.to_owned(),
        method_version: 1,
        title: String::new(),
        started_unix_seconds: 1_760_000_000.0,
        command_line: Vec::new(),
        counted_by: None,
        host: host(),
        meters: ["pmu", "idle", "timer_list", "proc_stat", "thread"].into_iter().map(meter).collect(),
        events: Vec::new(),
        background: background(),
        phases: Vec::new(),
        jobs: Vec::new(),
        merged_jobs: Vec::new(),
        stored: None,
        limits: Vec::new(),
        services: Vec::new(),
        origin: origin(),
        canaries: Vec::new(),
        outcome: Outcome::Completed,
        warnings: Vec::new(),
    }
}

/// A run with a stored record.
pub fn stored() -> RunFinding {
    let mut finding = psync_4k();
    finding.stored = Some(StoredFinding {
        from: "old".to_owned(),
        started_unix_seconds: 1_746_267_300.0,
        differs: vec!["kernel 6.9.1 → 6.18.44".to_owned()],
    });
    for phase in &mut finding.phases {
        phase.stored = Some(StoredPhase {
            cycles_per_io: phase.cycles_per_io.map(|now| now / 1.105),
            cycles_per_io_change: Some(UnpairedChange { change: 0.105, low: Some(0.083), high: Some(0.127) }),
            iops: phase.iops.map(|now| now / 0.95),
            iops_change: Some(-0.05),
            ..StoredPhase::default()
        });
    }
    finding
}

/// A finding with `number` for all numbers and `text` for all names.
pub fn hostile(number: f64, text: &str) -> RunFinding {
    let mut finding = two_phases();
    let estimate = Estimate { value: number, low: Some(number), high: Some(number) };
    finding.title = text.repeat(20);
    finding.limits = crate::limits::hostile(number, text);
    finding.command_line = vec![text.repeat(9); 5];
    finding.counted_by = Some(text.to_owned());
    finding.outcome = Outcome::Failed(text.to_owned());
    finding.warnings = vec![Warning::new(Code::Unknown, text.repeat(30))];
    finding.host.cpu_model = text.repeat(10);
    finding.host.tsc_hertz = number;
    finding.host.mitigations = vec![text.repeat(4); 8];
    finding.background.busy_fraction = Some(number);
    finding.background.seconds = number;
    finding.background.tasks = vec![BackgroundTask { name: text.to_owned(), busy_fraction: number }; 30];
    finding.stored =
        Some(StoredFinding { from: text.repeat(9), started_unix_seconds: number, differs: vec![text.repeat(5); 3] });
    for phase in &mut finding.phases {
        phase.jobs = vec![text.to_owned(); 3];
        let change = Some(UnpairedChange { change: number, low: Some(-number), high: Some(number) });
        phase.stored = Some(StoredPhase {
            cycles_per_io: Some(number),
            cycles_per_io_change: change,
            cycles: Some(number),
            cycles_change: change,
            iops: Some(number),
            iops_change: Some(number),
        });
        profiled::hostile(phase, number, text);
        phase.wall_seconds = number;
        let ends = (Some(number), Some(-number), Some(number));
        (phase.cycles_per_io, phase.cycles_per_io_low, phase.cycles_per_io_high) = ends;
        (phase.context_switches_per_io, phase.context_switches_per_io_low, phase.context_switches_per_io_high) = ends;
        (phase.cycles_per_io_gross, phase.cycles_per_io_background) = (Some(number), Some(number));
        (phase.cycles, phase.cycles_per_byte) = (Some(number), Some(number));
        phase.busy_cpus = Some(number);
        (phase.iops, phase.bytes_per_second) = (Some(number), Some(number));
        phase.thread_cycles_per_io = Some(-number);
        phase.elsewhere_cycles_per_io = Some(number);
        phase.cycles_outside_io = Some(number);
        phase.probes = probed().phases.remove(0).probes;
        for probe in &mut phase.probes {
            (probe.name, probe.unit, probe.reason) = (text.repeat(9), text.to_owned(), Some(text.repeat(30)));
            for value in [&mut probe.per_second, &mut probe.per_io, &mut probe.mean, &mut probe.max] {
                *value = value.map(|_| number);
            }
        }
        phase.exits = vec![Exit::Signal(i32::MIN), Exit::Status(i32::MAX)];
        phase.interval_from = text.to_owned();
        phase.placement = Some(PlacementFinding {
            cpus: (0..9).map(|cpu| (cpu, number)).collect(),
            peers: vec![peer(&text.repeat(9)); 5],
            migrations_per_second: Some(number),
            mode: Some(Mode::Mixed),
            modes: vec![ModeFinding { mode: Mode::Same, windows: 1, seconds: number, iops: None, cycles_per_io: None }],
        });
        for reading in &mut phase.by_meter_detail {
            reading.cycles_per_io = Some(estimate);
            reading.seconds = number;
            reading.name += text;
        }
        for account in &mut phase.accounts {
            account.cycles_per_io = number;
            account.share = number;
            account.name = text.to_owned();
        }
    }
    for job in &mut finding.merged_jobs {
        job.name = text.to_owned();
        job.engine = text.to_owned();
        job.ios = u64::MAX;
        job.errors = u64::MAX;
        job.error = Some(text.to_owned());
        job.latency_ns.mean = Some(number);
        job.read.latency_ns.max = Some(number);
        job.read.ios = u64::MAX;
        job.latency_ns.stamp_error_mean = Some(number);
        job.latency_ns.percentiles = vec![(number, Some(number)); 20];
    }
    finding
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn meter(name: &str) -> MeterFinding {
    let reason = "the hypervisor offers no cycle counter (perf_event_open: No such file or directory)";
    let available = name != "pmu";
    MeterFinding {
        name: name.to_owned(),
        available,
        reason: (!available).then(|| reason.to_owned()),
        sees: available.then(|| "the whole machine".to_owned()),
    }
}

fn background() -> Background {
    let task = |name: &str, busy_fraction| BackgroundTask { name: name.to_owned(), busy_fraction };
    Background {
        busy_fraction: Some(0.0213),
        busy_fraction_low: Some(0.0181),
        busy_fraction_high: Some(0.0244),
        busy_fraction_before: Some(0.0204),
        busy_fraction_after: Some(0.0221),
        seconds: 4.0,
        context_switches_per_second: Some(312.0),
        tasks: vec![task("containerd", 0.0081), task("kworker/0:1", 0.0033), task("sshd", 0.0002)],
    }
}

fn phase(job: &str) -> PhaseFinding {
    let reading = |name: &str, value: f64, half: f64| MeterReading {
        name: name.to_owned(),
        cycles_per_io: Some(Estimate { value, low: Some(value - half), high: Some(value + half) }),
        cycles_per_execution: None,
        seconds: 9.6,
        reason: None,
    };
    PhaseFinding {
        jobs: vec![job.to_owned()],
        wall_seconds: 10.0,
        ios: Some(2_843_112),
        bytes: Some(2_843_112 * 4096),
        cycles: Some(1.9646e10),
        cycles_low: Some(1.9447e10),
        cycles_high: Some(1.9845e10),
        iops: Some(284_311.2),
        bytes_per_second: Some(284_311.2 * 4096.0),
        headline_meter: Some("idle".to_owned()),
        cycles_per_io: Some(6910.0),
        cycles_per_io_low: Some(6840.0),
        cycles_per_io_high: Some(6980.0),
        cycles_per_io_gross: Some(7304.0),
        cycles_per_io_background: Some(394.0),
        interval_from: "96 windows of 100 ms and the background's error".to_owned(),
        carried_by: None,
        correlation: None,
        cycles_per_byte: Some(1.687),
        cycles_per_byte_low: Some(1.67),
        cycles_per_byte_high: Some(1.704),
        context_switches_per_io: Some(1.72),
        context_switches_per_io_low: Some(1.68),
        context_switches_per_io_high: Some(1.76),
        busy_cpus: Some(0.757),
        busy_cpus_gross: Some(0.8),
        thread_cycles_per_io: Some(6702.0),
        threads_on_cpu_fraction: Some(0.74),
        elsewhere_cycles_per_io: Some(208.0),
        accounts: vec![
            account("the workload's own threads", TaskOwner::Workload, 6702.0),
            account("kworker", TaskOwner::Kernel, 131.0),
            account("iotoll's own meters", TaskOwner::Iotoll, 77.0),
        ],
        by_meter_detail: vec![
            reading("idle", 6910.0, 70.0),
            reading("timer_list", 6884.0, 80.0),
            reading("proc_stat", 6800.0, 310.0),
            MeterReading {
                name: "soaker".to_owned(),
                cycles_per_io: None,
                cycles_per_execution: None,
                seconds: 0.0,
                reason: Some("not chosen: it disturbs; --meters all or soaker gives it windows of its own".to_owned()),
            },
            reading("thread", 6702.0, 20.0),
        ],
        ..PhaseFinding::default()
    }
}

fn account(name: &str, owner: TaskOwner, cycles_per_io: f64) -> AccountFinding {
    AccountFinding {
        name: name.to_owned(),
        kind: None,
        owner: Some(owner),
        cycles_per_io,
        low: None,
        high: None,
        in_all_cycles_per_io: None,
        times_per_io: None,
        share: cycles_per_io / 6910.0,
    }
}

fn job(name: &str) -> JobFinding {
    let read = DirectionFinding {
        ios: 2_843_112,
        bytes: 2_843_112 * 4096,
        iops: 284_311.2,
        bytes_per_second: 284_311.2 * 4096.0,
        lost: Some(0),
        short: 0,
        latency_ns: latency(1.0),
    };
    JobFinding {
        name: name.to_owned(),
        engine: "psync".to_owned(),
        copies: 1,
        ios: read.ios,
        bytes: read.bytes,
        wall_seconds: 10.0,
        iops: read.iops,
        bytes_per_second: read.bytes_per_second,
        latency_ns: latency(1.0),
        write: DirectionFinding { lost: Some(0), ..DirectionFinding::default() },
        read,
        thread_cycles_per_io: Some(6702.0),
        ios_per_crossing: Some(1.0),
        cycles_per_io: Some(6910.0),
        usage: Some(ThreadUsage {
            user_nanos: Nanos::from_millis(1870),
            system_nanos: Nanos::from_millis(7210),
            context_switches: 311,
            ..ThreadUsage::default()
        }),
        ..JobFinding::default()
    }
}

fn latency(times: f64) -> LatencyFinding {
    LatencyFinding {
        mean: Some(3310.0 * times),
        p50: Some(3120.0 * times),
        p90: Some(4020.0 * times),
        p99: Some(8440.0 * times),
        p999: Some(21_300.0 * times),
        p9999: Some(412_000.0 * times),
        max: Some(2_204_118.0 * times),
        percentiles: vec![(50.0, Some(3120.0 * times)), (95.0, Some(5110.0 * times))],
        bucket_error_fraction: Some(0.0078),
        ..LatencyFinding::default()
    }
}
