//! The study of simulated records, whose truth is known.

mod accounts;
mod clocks;
mod copies;
mod coverage;
mod events;
mod limited;
mod limits;
mod placement;
mod reported;
mod starved;
mod stepping;
mod symbols;

use super::study;
use crate::experiment::Metric;
use crate::finding::RunFinding;
use crate::histogram::Histogram;
use crate::kind::{Envelope, Recorded};
use crate::limit::{Limit, LimitState, judge};
use crate::plan::Plan;
use crate::reading::Reading;
use crate::record::*;
use crate::unit::{Bytes, Nanos};
use crate::warning::{Code, Warning};

const CLOCK: f64 = 2e9;
const CPUS: usize = 2;
const WINDOW: u64 = 100_000_000;

/// A simulated machine: the current values of its counters.
struct Machine {
    now: u64,
    idle: u64,
    soaked: u64,
    steal: u64,
    switches: u64,
    thread: u64,
    ios: u64,
    storage_read: u64,
    snapshots: Vec<Snapshot>,
}

/// The load in a window.
#[derive(Clone, Copy)]
struct Happening {
    /// CPU time used on the whole machine, nanoseconds.
    busy: u64,
    thread: u64,
    ios: u64,
    steal: u64,
}

impl Machine {
    fn begin(mode: Mode) -> Self {
        let (idle, soaked) = (5_000_000_000, 7_000_000_000);
        let mut machine = Self {
            now: 1_000_000_000,
            idle,
            soaked,
            steal: 0,
            switches: 100,
            thread: 0,
            ios: 0,
            storage_read: 0,
            snapshots: vec![],
        };
        machine.look(mode);
        machine
    }

    fn look(&mut self, mode: Mode) {
        let at = Nanos(self.now);
        let steal_nanos = Nanos(self.steal);
        let system = SystemCounts { at_nanos: at, steal_nanos, busy_nanos: None, context_switches: self.switches };
        let count = |total: u64| Count { at_nanos: at, cpus: 2, total };
        let counts = [
            (Meter::Idle, self.idle),
            (Meter::Soaker, self.soaked),
            (Meter::ProcStat, self.idle),
            (Meter::Thread, self.thread),
        ];
        self.snapshots.push(Snapshot {
            mode,
            at_nanos: at,
            counts: counts.map(|(meter, total)| (meter, count(total))).into(),
            system: Some(system),
            done: Some(Done { ios: self.ios, bytes: Bytes(self.ios * 4096) }),
            storage_read: Some(Bytes(self.storage_read)),
            ..Snapshot::default()
        });
    }

    fn pass(&mut self, happening: Happening, next: Mode) {
        let soaking = self.snapshots.last().is_some_and(|snapshot| snapshot.mode == Mode::Alone(Meter::Soaker));
        let free = 2 * WINDOW - happening.busy - happening.steal;
        *(if soaking { &mut self.soaked } else { &mut self.idle }) += free;
        self.steal += happening.steal;
        self.now += WINDOW;
        self.thread += happening.thread;
        self.ios += happening.ios;
        self.switches += 2 * happening.ios + 10;
        self.look(next);
    }

    fn stretch(self) -> Stretch {
        Stretch { snapshots: self.snapshots, tasks: Some(TaskTimes::default()), starved: None }
    }
}

const NOTHING: Happening = Happening { busy: 0, thread: 0, ios: 0, steal: 0 };

fn quiet(windows: usize, happening: Happening) -> Stretch {
    let mut machine = Machine::begin(Mode::Quiet);
    (0..windows).for_each(|_| machine.pass(happening, Mode::Quiet));
    machine.stretch()
}

/// The value of the idle clock, from its previous value.
fn set_idle(snapshot: &mut Snapshot, change: impl Fn(u64) -> u64) {
    let count = snapshot.counts.get_mut(Meter::Idle).unwrap();
    count.total = change(count.total);
}

/// The workload's I/Os and CPU time are not counted live.
fn forget_work(snapshot: &mut Snapshot) {
    snapshot.done = None;
    snapshot.counts.set(Meter::Thread, None);
}

fn job(ios: u64) -> JobRecord {
    let mut latency = Histogram::new();
    latency.record(2000, ios);
    let read = Direction { ios, bytes: Bytes(ios * 4096), short: 0, latency: Latency::Ticks(latency) };
    JobRecord { name: "a".into(), engine: "psync".into(), read, wall_nanos: Nanos(WINDOW), ..JobRecord::default() }
}

fn record(background: Vec<Stretch>, executions: Vec<Execution>) -> Record {
    let meter = |meter| MeterStatus { meter, status: Reading::Taken("seen".into()) };
    let missing = |meter, why: &str| MeterStatus { meter, status: Reading::unavailable(why) };
    Record {
        envelope: Envelope::new(Record::KIND, 0.0, vec![]),
        source: Source::Run(Plan::default()),
        host: Host { cpus: CPUS, tsc_hertz: CLOCK, ..Host::default() },
        meters: vec![
            missing(Meter::Pmu, "no counters"),
            meter(Meter::Idle),
            missing(Meter::TimerList, "not root"),
            meter(Meter::ProcStat),
            meter(Meter::Soaker),
            missing(Meter::Sampler, "not chosen"),
            meter(Meter::Thread),
        ],
        probes: vec![],
        events: None,
        canaries: vec![],
        background,
        phases: vec![PhaseRecord { executions }],
        outcome: Outcome::Completed,
        warnings: vec![],
        place: None,
        services: vec![],
    }
}

fn execution(stretch: Stretch, ios: u64) -> Execution {
    Execution { jobs: vec![job(ios)], stretch, ..Execution::default() }
}

fn has(finding: &RunFinding, code: Code) -> bool {
    finding.head.warnings.iter().any(|warning| warning.code == code)
}

/// 60 ms busy of 200 ms, of which 10 ms would be busy anyway; 1000 I/Os: (60 − 10) ms × 2 GHz / 1000.
#[test]
fn the_cost_is_busy_time_less_the_background_per_io() {
    let background = quiet(10, Happening { busy: 10_000_000, ..NOTHING });
    let load = Happening { busy: 60_000_000, thread: 30_000_000, ios: 1000, steal: 0 };
    let finding = study(&record(vec![background], vec![execution(quiet(30, load), 30_000)]));
    let phase = &finding.phases[0];
    let near = |found: Option<f64>, expected: f64| assert!((found.unwrap() / expected - 1.0).abs() < 1e-9, "{found:?}");
    near(phase.cycles_per_io(), 100_000.0);
    near(phase.others.cycles_per_io_gross, 120_000.0);
    near(phase.value(Metric::CyclesPerByte), 100_000.0 / 4096.0);
    near(phase.by_meter["proc_stat"], 100_000.0);
    near(phase.busy_cpus, 0.5);
    near(phase.value(Metric::Cycles), 100_000.0 * 30_000.0);
    near(phase.value(Metric::ContextSwitchesPerIo), 2.0);
    near(finding.background.busy_fraction, 0.05);
    near(finding.jobs[0].all.latency_ns.p50, 1000.0);
    near(finding.jobs[0].cycles_per_io, 100_000.0);
    assert_eq!(phase.headline_meter.as_deref(), Some("idle"));
    assert!(phase.told(Metric::CyclesPerIo).unwrap().low.unwrap() <= 100_000.0 + 1e-6);
}

#[test]
fn on_a_machine_that_is_never_idle_the_cost_is_unknown() {
    for (busy, known) in [(180_000_000, true), (196_000_000, false)] {
        let background = quiet(10, Happening { busy, ..NOTHING });
        let load = Happening { busy: 199_000_000, thread: 30_000_000, ios: 1000, steal: 0 };
        let finding = study(&record(vec![background], vec![execution(quiet(30, load), 30_000)]));
        let phase = &finding.phases[0];
        assert_eq!(phase.cycles_per_io().is_some(), known, "{busy}");
        assert_eq!((phase.value(Metric::Cycles).is_some(), phase.busy_cpus.is_some()), (known, known));
        let points = &phase.series;
        assert!(points.len() > 5 && points.iter().all(|point| point.iops.is_some()), "{points:?}");
        assert!(points.iter().all(|point| point.cycles_per_io.is_some() == known), "{points:?}");
        let told = finding
            .head
            .warnings
            .iter()
            .any(|warning| warning.message.contains("the cost of a workload cannot be seen"));
        assert_eq!(told, !known, "{:?}", finding.head.warnings);
    }
}

/// A CPU that waits for the hypervisor after a halt is idle for the guest's clocks, and stolen for KVM: it is
/// subtracted once.
#[test]
fn steal_in_idle_time_is_taken_off_once_and_steal_in_busy_time_all() {
    // Milliseconds in each window: idle, stolen, busy according to the columns, charged to tasks, and truly busy.
    let cases = [
        ("idle, and nobody knows more", 200, 10, None, None, -10.0),
        ("idle, by the columns", 200, 10, Some(0), None, 0.0),
        ("busy, by the columns", 0, 10, Some(190), None, 190.0),
        ("half of the stolen lies in idle time", 100, 10, Some(95), None, 95.0),
        ("idle, by the tasks", 200, 10, Some(0), Some(0), 0.0),
        ("busy, by the tasks", 0, 10, None, Some(190), 190.0),
        ("a sleeper: the columns lose what was stolen from idle CPUs", 170, 50, Some(5), Some(20), 20.0),
        ("interrupts beside little steal", 170, 4, Some(5), Some(20), 26.0),
        ("tasks are read a little later", 170, 50, None, Some(31), 30.0),
    ];
    for (name, idle, stolen, columns, charged, expected) in cases {
        let mut stretch = quiet(20, NOTHING);
        let nanos = |millis: u64, number: u64| Nanos(millis * 1_000_000 * number);
        for (number, snapshot) in (0..).zip(&mut stretch.snapshots) {
            snapshot.counts.get_mut(Meter::ProcStat).unwrap().total = nanos(idle, number).0;
            let system = snapshot.system.as_mut().unwrap();
            system.steal_nanos = nanos(stolen, number);
            system.busy_nanos = columns.map(|busy| nanos(busy, number));
            set_idle(snapshot, |_| nanos(idle, number).0);
        }
        // A soaker's time is idle time.
        let tasks = |millis| {
            let task = |name: &str, owner, millis| TaskTime { name: name.into(), owner, nanos: nanos(millis, 20) };
            let tasks = [task("a", TaskOwner::Other, millis), task("iotoll-soak0", TaskOwner::Iotoll, 30)];
            TaskTimes { wall_nanos: Nanos(20 * WINDOW), tasks: tasks.into() }
        };
        stretch.tasks = charged.map(tasks);
        let context = super::Context { clock: crate::unit::Hertz(CLOCK), cpus: CPUS, steal_in_task_clocks: false };
        let found = super::windows::windows(&stretch, Meter::Idle, None, &context);
        let busy = found.iter().map(|window| window.cycles / CLOCK * 1e3).sum::<f64>() / found.len() as f64;
        assert!((busy - expected).abs() < 0.001, "{name}: {busy} ms, not {expected}");
    }
}

/// Laying out files keeps a CPU busy, and the I/O after it sleeps: time stolen from the layout is not subtracted from
/// the I/O.
#[test]
fn steal_is_taken_off_where_the_i_o_was() {
    let mut machine = Machine::begin(Mode::Quiet);
    let (layout, io) = (
        Happening { busy: 80_000_000, thread: 0, ios: 0, steal: 20_000_000 },
        Happening { busy: 10_000_000, thread: 0, ios: 1000, steal: 30_000_000 },
    );
    (0..20).for_each(|_| machine.pass(layout, Mode::Quiet));
    (0..20).for_each(|_| machine.pass(io, Mode::Quiet));
    let mut execution = execution(machine.stretch(), 20_000);
    let snapshots = &mut execution.stretch.snapshots;
    let interval = IoInterval { begin_nanos: snapshots[20].at_nanos, end_nanos: snapshots[40].at_nanos };
    // The time stolen during the I/O is idle time.
    let stolen = snapshots[20].system.unwrap().steal_nanos.0;
    for snapshot in &mut snapshots[20..] {
        let later = snapshot.system.unwrap().steal_nanos.0 - stolen;
        set_idle(snapshot, |idle| idle + later / 2);
    }
    execution.io_interval = Some(interval);
    execution.jobs[0].thread_nanos = Some(Nanos(20 * 9_000_000));
    execution.command_cpu_nanos = Some(Nanos(20 * (80_000_000 + 9_000_000)));
    let tasks = vec![TaskTime { name: "other".into(), owner: TaskOwner::Other, nanos: Nanos(40 * 1_000_000) }];
    execution.stretch.tasks = Some(TaskTimes { wall_nanos: Nanos(40 * WINDOW), tasks });
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution]));
    let millis = finding.phases[0].cycles_per_io().unwrap() * 1000.0 / CLOCK * 1e3;
    assert!((millis - 10.0).abs() < 1e-6, "{millis} ms a window: 9 of the threads, 1 of another");
}

/// One job counts from the beginning, another one after it: the I/O of the first is not combined with the cost of the
/// second.
#[test]
fn the_threads_cost_covers_the_same_time_as_the_machine_s() {
    let mut machine = Machine::begin(Mode::Quiet);
    let (many, few) = (
        Happening { busy: 10_000_000, thread: 10_000_000, ios: 1_000_000, steal: 0 },
        Happening { busy: 50_000_000, thread: 50_000_000, ios: 1000, steal: 0 },
    );
    (0..20).for_each(|_| machine.pass(many, Mode::Quiet));
    (0..20).for_each(|_| machine.pass(few, Mode::Quiet));
    let mut execution = execution(machine.stretch(), 20 * 1_001_000);
    let snapshots = &execution.stretch.snapshots;
    execution.io_interval = Some(IoInterval { begin_nanos: snapshots[20].at_nanos, end_nanos: snapshots[40].at_nanos });
    execution.jobs[0].thread_nanos = Some(Nanos(20 * 60_000_000));
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution]));
    assert!(has(&finding, Code::IosOutside), "{:?}", finding.head.warnings);
    let phase = &finding.phases[0];
    let truth = 50_000.0 * CLOCK / 1e9;
    for found in [phase.cycles_per_io(), phase.value(Metric::ThreadCyclesPerIo)] {
        assert!((found.unwrap() / truth - 1.0).abs() < 1e-6, "{found:?}, not {truth}");
    }
    let own = phase.accounts.iter().find(|account| account.name == "the workload's own threads").unwrap();
    assert!((own.share - 1.0).abs() < 1e-6, "accounts are of the same time too: {own:?}");
}

/// The machine's cost cannot be below that of the workload's threads, unless the clock is known to be unable to show
/// it.
#[test]
fn a_cost_below_the_threads_own_is_a_caveat() {
    let load = |thread| Happening { busy: 40_000_000, thread, ios: 1000, steal: 0 };
    let doubted = |thread: u64, idle_is_read: bool, steal_in_task_clocks| {
        let stretch = |mut stretch: Stretch| {
            let unread = stretch.snapshots.iter_mut().filter(|_| !idle_is_read);
            unread.for_each(|snapshot| snapshot.counts.set(Meter::Idle, None));
            stretch
        };
        let mut execution = execution(stretch(quiet(20, load(thread))), 20_000);
        execution.jobs[0].thread_nanos = Some(Nanos(20 * thread));
        let mut record = record(vec![stretch(quiet(10, NOTHING))], vec![execution]);
        record.host.steal_in_task_clocks = Some(steal_in_task_clocks);
        let limit = Limit::parse("cycles_per_io > 1M", &Metric::quantities()).unwrap();
        let mut finding = record.study(None);
        finding.head.limits = judge(&[limit], |metric| record.at_places(&finding, None, metric));
        let impossible = |code, text: &str| code == Code::MetersDisagree && text.contains("net of its background");
        let doubted = finding.head.warnings.iter().any(|warning| impossible(warning.code, &warning.message));
        // A gate does not pass on what cannot be.
        assert_eq!(finding.head.limits[0].state == LimitState::Undecided, doubted, "{:?}", finding.head.limits);
        doubted
    };
    assert!(doubted(60_000_000, false, false));
    assert!(!doubted(39_000_000, false, false), "it may");
    assert!(!doubted(60_000_000, false, true), "what was stolen is in the threads' clocks");
    assert!(!doubted(60_000_000, true, false), "interrupts that wake a sleeper are idle to cpuidle");
}

/// Task clocks that include steal do not show where it is; the columns do, approximately.
#[test]
fn clocks_that_include_steal_do_not_locate_it() {
    let load = Happening { busy: 90_000_000, thread: 0, ios: 1000, steal: 10_000_000 };
    let mut execution = execution(quiet(20, load), 20_000);
    let task = TaskTime { name: "a".into(), owner: TaskOwner::Other, nanos: Nanos(20 * 100_000_000) };
    execution.stretch.tasks = Some(TaskTimes { wall_nanos: Nanos(20 * WINDOW), tasks: vec![task] });
    let cost = |holds| {
        let mut record = record(vec![quiet(10, NOTHING)], vec![execution.clone()]);
        record.host.steal_in_task_clocks = holds;
        study(&record).phases[0].cycles_per_io().unwrap() * 1000.0 / CLOCK * 1e3
    };
    assert!((cost(Some(true)) - 90.0).abs() < 1e-6, "{}", cost(Some(true)));
    assert!((cost(Some(false)) - 100.0).abs() < 1e-6, "{}", cost(Some(false)));
}

/// The tasks of a command have ended, or are about to, when tasks are read: its own sum includes them, and they count
/// once.
#[test]
fn a_command_that_slept_is_not_charged_less_than_its_threads_used() {
    let load = Happening { busy: 30_000_000, thread: 0, ios: 1000, steal: 50_000_000 };
    let mut execution = execution(quiet(20, load), 20_000);
    execution.stretch.snapshots.iter_mut().for_each(|snapshot| {
        // All stolen time is idle time.
        let stolen = snapshot.system.unwrap().steal_nanos.0;
        set_idle(snapshot, |idle| idle + stolen / 2);
    });
    execution.command_cpu_nanos = Some(Nanos(20 * 25_000_000));
    let task = |name: &str, owner, millis: u64| TaskTime { name: name.into(), owner, nanos: Nanos(millis * 1_000_000) };
    let tasks = vec![task("fio", TaskOwner::Workload, 400), task("other", TaskOwner::Other, 20)];
    execution.stretch.tasks = Some(TaskTimes { wall_nanos: Nanos(20 * WINDOW), tasks });
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution]));
    let cost = finding.phases[0].cycles_per_io().unwrap() * 20_000.0 / CLOCK * 1e3 / 20.0;
    assert!((cost - 26.0).abs() < 1e-6, "{cost} ms a window: 25 of the command, 1 of another");
    let told = finding.head.warnings.iter().find(|warning| warning.code == Code::Steal).unwrap();
    assert!(told.message.contains("8000 cycles per I/O that no task"), "{told:?}");
}

#[test]
fn unread_values_are_null_with_a_reason() {
    let load = Happening { busy: 60_000_000, thread: 30_000_000, ios: 1000, steal: 0 };
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution(quiet(30, load), 30_000)]));
    let phase = &finding.phases[0];
    for (name, why) in [("pmu", "no counters"), ("timer_list", "not root"), ("soaker", "too few own windows")] {
        assert_eq!(phase.by_meter[name], None);
        let detail = phase.by_meter_detail.iter().find(|reading| reading.name == name).unwrap();
        assert!(detail.reason.as_ref().unwrap().contains(why), "{detail:?}");
    }
    let json = serde_json::to_value(&finding).unwrap();
    assert!(json["phases"][0]["by_meter"]["pmu"].is_null());
}

/// The soaker has its own windows, which do not affect any other meter's figure.
#[test]
fn windows_of_different_modes_are_never_mixed() {
    let cheap = Happening { busy: 50_000_000, thread: 40_000_000, ios: 1000, steal: 0 };
    let dear = Happening { busy: 150_000_000, thread: 99_000_000, ios: 1000, steal: 0 };
    let mut machine = Machine::begin(Mode::Quiet);
    for _ in 0..8 {
        machine.pass(cheap, Mode::Quiet);
        machine.pass(cheap, Mode::Gap);
        machine.pass(Happening { busy: 190_000_000, ..cheap }, Mode::Alone(Meter::Soaker));
        machine.pass(dear, Mode::Gap);
        machine.pass(cheap, Mode::Quiet);
    }
    let finding = study(&record(vec![], vec![execution(machine.stretch(), 40_000)]));
    let by = &finding.phases[0].by_meter;
    assert!((by["idle"].unwrap() - 100_000.0).abs() < 1e-6, "{by:?}");
    assert!((by["soaker"].unwrap() - 300_000.0).abs() < 1e-6, "{by:?}");
    // The headline is of the quiet windows, and so is the threads' part that stands beside it.
    assert!((finding.phases[0].value(Metric::ThreadCyclesPerIo).unwrap() - 80_000.0).abs() < 1e-6);
}

#[test]
fn stolen_time_is_excluded_and_reported() {
    let load = Happening { busy: 50_000_000, thread: 50_000_000, ios: 1000, steal: 20_000_000 };
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution(quiet(20, load), 20_000)]));
    assert!((finding.phases[0].cycles_per_io().unwrap() - 100_000.0).abs() < 1e-6);
    assert!(has(&finding, Code::Steal));
}

/// Fewer context switches with the load than without, or no more than its noise: a dash with an interval, and limits can be judged.
#[test]
fn switches_that_are_not_told_from_the_background_are_unknown_and_have_an_interval() {
    let busy = |ios| Happening { busy: 50_000_000, ios, ..NOTHING };
    let found = |background: u64, execution: &Execution| {
        let finding = study(&record(vec![quiet(10, busy(background))], vec![execution.clone()]));
        let figure = finding.phases[0].figures.of(Metric::ContextSwitchesPerIo);
        (figure.told().map(|told| told.value), figure.estimate, figure.why_not.unwrap_or_default())
    };
    let mut execution = execution(quiet(20, busy(100)), 2000);
    let (value, known, reason) = found(1000, &execution);
    assert_eq!((value, &*reason), (None, "not different from 0"));
    let truth = (210.0 - 2010.0) / 100.0;
    let (low, high) = known.unwrap().ends().unwrap();
    assert!(low <= truth + 1e-9 && high >= truth - 1e-9, "{known:?}");
    // 110 of the 210 in a window are the background's, then 90.
    assert!(found(50, &execution).2.contains("the background's are more"));
    assert!((found(40, &execution).0.unwrap() - 1.2).abs() < 1e-9);
    let at = execution.stretch.snapshots[5].at_nanos;
    execution.io_interval = Some(IoInterval { begin_nanos: at, end_nanos: at + Nanos(1000) });
    let (value, known, reason) = found(0, &execution);
    assert_eq!((value, known), (None, None));
    assert!(reason.contains("no window"), "{reason}");
}

#[test]
fn the_gravest_caveat_is_first() {
    let mut record = record(vec![quiet(10, NOTHING)], vec![execution(quiet(20, NOTHING), 0)]);
    record.warnings = vec![Warning::new(Code::Interrupted, "seen while measuring")];
    let codes: Vec<Code> = study(&record).head.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, [Code::Interrupted, Code::WorkUnknown]);
}

/// A command that lays out a file first: the cost of an I/O excludes what is outside the time of its I/O.
#[test]
fn only_the_time_of_io_counts_where_it_is_known() {
    let mut machine = Machine::begin(Mode::Quiet);
    let blind = |mut stretch: Stretch| {
        stretch.snapshots.iter_mut().for_each(forget_work);
        stretch
    };
    (0..10).for_each(|_| machine.pass(Happening { busy: 200_000_000, ..NOTHING }, Mode::Quiet));
    let begin_nanos = Nanos(machine.now);
    (0..20).for_each(|_| machine.pass(Happening { busy: 50_000_000, ..NOTHING }, Mode::Quiet));
    let end_nanos = Nanos(machine.now);
    let mut execution = execution(blind(machine.stretch()), 20_000);
    execution.io_interval = Some(IoInterval { begin_nanos, end_nanos });
    execution.command_cpu_nanos = Some(Nanos::from_secs(2));
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution]));
    let phase = &finding.phases[0];
    assert!((phase.cycles_per_io().unwrap() - 100_000.0).abs() < 1e-6, "{:?}", phase.cycles_per_io());
    assert!((phase.cycles_outside_io.unwrap() - 4e9).abs() < 1.0, "{:?}", phase.cycles_outside_io);
    assert!((phase.wall_seconds - 2.0).abs() < 1e-9);
    assert!(!has(&finding, Code::IosOutside), "without live counts, all I/O is in this time");
}

#[test]
fn executions_are_the_units_where_there_are_several() {
    let load = |busy| Happening { busy, thread: 0, ios: 1000, steal: 0 };
    let executions = [49, 50, 51].map(|millis| execution(quiet(10, load(millis * 1_000_000)), 10_000));
    let finding = study(&record(vec![quiet(10, NOTHING)], executions.to_vec()));
    let phase = &finding.phases[0];
    assert!((phase.cycles_per_io().unwrap() - 100_000.0).abs() < 1e-6);
    // sd of the three is 2,000 cycles: half-width t(0.975, 2) × 2000 / √3.
    let half = phase.told(Metric::CyclesPerIo).unwrap().half_width().unwrap();
    assert!((half - 4.302652729749464 * 2000.0 / 3f64.sqrt()).abs() < 1.0, "{half}");
    assert!(phase.spread.interval_from.contains("3 executions"));
    assert_eq!(finding.jobs.len(), 1);
    assert_eq!(finding.jobs[0].all.ios, 30_000);
}

#[test]
fn without_a_count_there_are_cycles_but_no_cost_per_io() {
    let mut stretch = quiet(20, Happening { busy: 50_000_000, ..NOTHING });
    stretch.snapshots.iter_mut().for_each(|snapshot| snapshot.done = None);
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![Execution { stretch, ..Execution::default() }]));
    let phase = &finding.phases[0];
    assert_eq!((phase.ios, phase.cycles_per_io(), phase.value(Metric::CyclesPerByte)), (None, None, None));
    assert!((phase.value(Metric::Cycles).unwrap() - 2e9).abs() < 1.0);
    assert!(has(&finding, Code::WorkUnknown));
}

#[test]
fn accounts_sum_to_the_cost() {
    let load = Happening { busy: 60_000_000, thread: 30_000_000, ios: 1000, steal: 0 };
    let mut stretch = quiet(20, load);
    let task = |name: &str, owner, millis| TaskTime { name: name.into(), owner, nanos: Nanos::from_millis(millis) };
    stretch.tasks = Some(TaskTimes {
        wall_nanos: Nanos::from_secs(2),
        tasks: vec![
            task("job a", TaskOwner::Workload, 600),
            task("kworker/0:1", TaskOwner::Kernel, 200),
            task("kworker/1:3-x", TaskOwner::Kernel, 100),
            task("cron", TaskOwner::Other, 1),
            task("iotoll-soak0", TaskOwner::Iotoll, 900),
        ],
    });
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution(stretch, 20_000)]));
    let phase = &finding.phases[0];
    let of = |name: &str| phase.accounts.iter().find(|account| account.name.starts_with(name)).unwrap().cycles_per_io;
    assert!((of("the workload's own threads") - 60_000.0).abs() < 1e-6);
    assert!((of("kworker") - 30_000.0).abs() < 1e-6, "pools of workers are one account");
    assert!((of("other tasks") - 100.0).abs() < 1e-6);
    let sum: f64 = phase.accounts.iter().map(|account| account.cycles_per_io).sum();
    assert!((sum / phase.cycles_per_io().unwrap() - 1.0).abs() < 1e-9);
}

/// fio's own figure covers its I/O threads; io_uring's workers and the setup are only in that of the command.
#[test]
fn helpers_of_a_command_exclude_its_io_threads_and_setup() {
    let mut machine = Machine::begin(Mode::Quiet);
    (0..10).for_each(|_| machine.pass(Happening { busy: 100_000_000, ..NOTHING }, Mode::Quiet));
    let begin_nanos = Nanos(machine.now);
    (0..20).for_each(|_| machine.pass(Happening { busy: 50_000_000, ..NOTHING }, Mode::Quiet));
    let end_nanos = Nanos(machine.now);
    let mut stretch = machine.stretch();
    stretch.snapshots.iter_mut().for_each(forget_work);
    let mut execution = execution(stretch, 20_000);
    execution.io_interval = Some(IoInterval { begin_nanos, end_nanos });
    // 1 s of setup, 0.4 s in the I/O thread, 0.5 s in workers.
    execution.jobs[0].thread_nanos = Some(Nanos::from_millis(400));
    execution.command_cpu_nanos = Some(Nanos::from_millis(1900));
    let finding = study(&record(vec![quiet(10, NOTHING)], vec![execution]));
    let of = |name: &str| {
        let account = finding.phases[0].accounts.iter().find(|account| account.name.starts_with(name));
        account.unwrap().cycles_per_io
    };
    assert!((of("the command's I/O threads") - 40_000.0).abs() < 1e-6);
    assert!((of("the command's other threads") - 50_000.0).abs() < 1e-6);
    assert!((of("no task") - 10_000.0).abs() < 1e-6);
}

#[test]
fn an_empty_record_is_studied_too() {
    let finding = study(&record(vec![], vec![]));
    assert_eq!(finding.phases[0].cycles_per_io(), None);
    let mut nothing = record(vec![], vec![]);
    nothing.phases.clear();
    nothing.host = Host::default();
    study(&nothing);
}

#[test]
fn a_loss_that_the_program_cannot_know_is_not_0() {
    use crate::record::Lost;
    let found = |lost: Option<Lost>| {
        let mut execution = execution(quiet(10, NOTHING), 1000);
        execution.jobs[0].lost = lost;
        study(&record(Vec::new(), vec![execution]))
    };
    let unknown = found(Some(Lost { read: Some(0), write: None }));
    assert_eq!((unknown.jobs[0].read.lost, unknown.jobs[0].write.lost), (Some(0), None));
    assert!(has(&unknown, Code::LossUnknown));
    for known in [None, Some(Lost { read: Some(1), write: Some(2) })] {
        let finding = found(known);
        assert_eq!(finding.jobs[0].write.lost, Some(known.map_or(0, |_| 2)));
        assert!(!has(&finding, Code::LossUnknown));
    }
}
