//! The study of simulated records, whose truth is known.

mod caveats;
mod events;
mod explaining;
mod hostile;
mod placement;
mod regimes;

use super::{Progress, measured, study};
use crate::compare::finding::{CompareFinding, SlicePoint};
use crate::compare::record::{CompareRecord, End, Header, RoundRecord, Schedule, SliceReading, SliceRecord, SliceWork};
use model::experiment::draft::{Draft, Surroundings, Workload};
use model::experiment::{ArmPlan, Axis, Metric};
use model::kind::{self, Envelope, Recorded};
use model::limit::{LimitState, judge};
use model::reading::Reading;
use model::record::{
    ByMeter, Canaries, Count, Execution, Host, Meter, MeterStatus, Outcome, Snapshot, Stretch, SystemCounts,
};
use model::slice::Choice;
use model::stats::{Estimate, Verdict};
use model::unit::{Bytes, Nanos};
use model::warning::Code;

const CLOCK: f64 = 2e9;
const SLICE: u64 = 50_000_000;

/// The load of a case: CPU time of the machine per I/O, and I/Os per slice.
#[derive(Clone, Copy)]
pub(in crate::compare) struct Load {
    pub nanos_per_io: u64,
    pub ios: u64,
}

fn canaries() -> Canaries {
    Canaries {
        null_system_call_nanos: 100.0,
        context_switch_nanos: Reading::unavailable("made up"),
        wake_up_nanos: Reading::unavailable("made up"),
        clock_read_nanos: 20.0,
        memcpy_gigabytes_per_second: 10.0,
    }
}

pub(in crate::compare) fn experiment(draft: Draft) -> model::experiment::Experiment {
    let workload = Workload::Flags(["--ioengine=null", "--size=1m"].map(str::to_owned).to_vec());
    let arm = |name: &str, options: &[&str]| ArmPlan {
        name: name.to_owned(),
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..ArmPlan::default()
    };
    let mut arms = vec![arm("baseline", &[])];
    arms.extend((!draft.against_itself).then(|| arm("candidate", &["inject_ns=1"])));
    Draft { workload, arms, ..draft }.resolve(&Surroundings::default()).unwrap()
}

/// The study with these limits.
fn judged(record: &CompareRecord, limits: &[&str]) -> CompareFinding {
    let texts: Vec<String> = limits.iter().map(|&limit| limit.to_owned()).collect();
    let mut finding = study(record);
    let limits = kind::limits::<CompareRecord>(&texts, record.plan(), false).unwrap();
    finding.head.limits = judge(&limits, |metric| record.at_places(&finding, None, metric));
    finding
}

/// A simulated machine: the current values of its clocks, and its background.
struct Machine {
    now: u64,
    idle: u64,
    background: f64,
}

impl Machine {
    fn snapshot(&self) -> Snapshot {
        let at_nanos = Nanos(self.now);
        let counts =
            [Meter::TimerList, Meter::Idle].map(|meter| (meter, Count { at_nanos, cpus: 2, total: self.idle }));
        let system = SystemCounts { at_nanos, context_switches: self.now / 1000, ..SystemCounts::default() };
        Snapshot { at_nanos, counts: counts.into(), system: Some(system), ..Snapshot::default() }
    }

    fn slice(&mut self, case: Option<usize>, load: Load) -> SliceRecord {
        let before = Box::new(self.snapshot());
        let busy = load.nanos_per_io * load.ios + (self.background * 2.0 * SLICE as f64) as u64;
        self.now += SLICE;
        self.idle += 2 * SLICE - busy;
        let work = SliceWork {
            ios: load.ios,
            bytes: Bytes(load.ios * 4096),
            wall_nanos: Nanos(SLICE),
            thread_nanos: Nanos(load.nanos_per_io * load.ios),
            latency_nanos: Nanos(load.ios * 500),
            read_bytes: None,
            storage_read: None,
        };
        SliceRecord {
            case,
            reading: SliceReading::Slice { before, after: Box::new(self.snapshot()), work, tasks: None },
        }
    }
}

/// Rounds of one block. The callback returns the load of each case in each round.
pub(in crate::compare) fn record(
    experiment: model::experiment::Experiment,
    rounds: usize,
    load: impl Fn(usize, usize) -> Load,
) -> CompareRecord {
    let mut machine = Machine { now: 1_000_000_000, idle: 5_000_000_000, background: 0.1 };
    let cases = experiment.cases.len();
    let host = Host { cpus: 2, tsc_hertz: CLOCK, ..Host::default() };
    let header = Header {
        envelope: Envelope::new(CompareRecord::KIND, 0.0, Vec::new()),
        experiment,
        seed: 1,
        schedule: Schedule::Slices { slice_nanos: Nanos(SLICE), warm_up_nanos: Nanos(0), blocks: 1 },
        host,
        meters: Vec::new(),
        canaries: canaries(),
        page_cache: None,
        work_counter: None,
        probes: Vec::new(),
        events: None,
    };
    let rounds = (0..rounds).map(|round| {
        let begin_nanos = Nanos(machine.now);
        let mut slices: Vec<SliceRecord> =
            (0..cases).map(|case| machine.slice(Some(case), load(round, case))).collect();
        slices.push(machine.slice(None, Load { nanos_per_io: 0, ios: 0 }));
        RoundRecord { begin_nanos, end_nanos: Nanos(machine.now), slices, ..RoundRecord::default() }
    });
    let rounds = rounds.collect();
    let end = End {
        outcome: Outcome::Completed,
        reason: "precise enough".to_owned(),
        tsc_hertz: CLOCK,
        canaries: canaries(),
        warnings: Vec::new(),
    };
    CompareRecord { header, rounds, explaining: Vec::new(), end: Some(end) }
}

/// An axis of a sweep.
pub(in crate::compare) fn axis(name: &str, values: &[&str]) -> Axis {
    Axis { name: name.to_owned(), values: values.iter().map(|&value| value.to_owned()).collect() }
}

/// Nanoseconds per I/O of both arms.
fn costing(baseline: u64, candidate: u64) -> impl Fn(usize, usize) -> Load {
    move |round, case| Load { nanos_per_io: [baseline, candidate][case] + wobble(round, case), ios: 40_000 }
}

/// A slice, taken apart.
struct Parts<'a> {
    round: usize,
    case: Option<usize>,
    ends: [&'a mut Snapshot; 2],
    work: &'a mut SliceWork,
}

/// All slices of these rounds.
fn parts(rounds: &mut [RoundRecord]) -> impl Iterator<Item = Parts<'_>> {
    let slices =
        (0..).zip(rounds).flat_map(|(number, round)| round.slices.iter_mut().map(move |slice| (number, slice)));
    slices.map(|(round, SliceRecord { case, reading })| match reading {
        SliceReading::Slice { before, after, work, .. } => Parts { round, case: *case, ends: [before, after], work },
        other => panic!("no slice: {other:?}"),
    })
}

/// Makes executions of the slices of cases.
fn execute(rounds: &mut [RoundRecord], execution: impl Fn([&Snapshot; 2], &SliceWork) -> Execution) {
    for slice in rounds.iter_mut().flat_map(|round| &mut round.slices).filter(|slice| slice.case.is_some()) {
        let SliceReading::Slice { before, after, work, .. } = &slice.reading else { panic!("no slice") };
        slice.reading = SliceReading::Execution(execution([before, after], work));
    }
}

/// A stretch of one window.
fn window(ends: [&Snapshot; 2]) -> Stretch {
    Stretch { snapshots: ends.map(Clone::clone).to_vec(), tasks: None, starved: None }
}

/// Small variations between rounds, some of them common to both arms.
pub(in crate::compare) fn wobble(round: usize, case: usize) -> u64 {
    [0, 7, 3, 11, 5, 2, 9][round % 7] + [0, 1, 3][(round * 5 + case) % 3]
}

#[test]
fn cost_is_net_of_the_background_and_its_change_is_found() {
    let load = costing(1000, 1100);
    let found = study(&record(experiment(Draft::default()), 12, load));
    let metric = &found.cells[0].metrics["cycles_per_io"];
    // 1006.1 ns on average, at 2 GHz; the background of 10 ms per slice is subtracted.
    let baseline = metric.baseline.unwrap();
    assert!((2005.0..2025.0).contains(&baseline), "{baseline}");
    let change = metric.change.unwrap();
    assert!((0.09..0.11).contains(&change), "{change}");
    assert!(metric.low.unwrap() < change && change < metric.high.unwrap());
    assert_eq!((metric.verdict, metric.detected), (Verdict::Worse, true));
    let rate = &found.cells[0].metrics["iops"];
    assert_eq!((rate.baseline, rate.change), (Some(800_000.0), Some(0.0)));
    assert_eq!(found.environment.background_busy_fraction.map(|busy| (busy * 1e3).round()), Some(100.0));
    assert!(found.head.warnings.iter().any(|warning| warning.code == Code::BusyBackground));
    assert_eq!(found.environment.meter.as_deref(), Some("timer_list"));
}

#[test]
fn unread_values_are_unknown_with_a_reason() {
    let mut record = record(experiment(Draft::default()), 12, |_, _| Load { nanos_per_io: 1000, ios: 1000 });
    for snapshot in parts(&mut record.rounds).flat_map(|slice| slice.ends) {
        (snapshot.counts, snapshot.system) = (ByMeter::default(), None);
    }
    let found = study(&record);
    let metrics = &found.cells[0].metrics;
    assert!(metrics["cycles_per_io"].reason.as_deref().unwrap().contains("no meter"));
    assert!(metrics["latency_p99"].reason.is_some() && metrics["iops"].change.is_some());
    assert!(found.head.warnings.iter().any(|warning| warning.code == Code::MeterUnavailable));
}

/// A meter that reads only a part of the rounds is not used at all.
#[test]
fn a_meter_must_read_all_rounds() {
    let mut record = record(experiment(Draft::default()), 12, |_, _| Load { nanos_per_io: 1000, ios: 1000 });
    for slice in parts(&mut record.rounds) {
        let missing = if slice.round == 0 { Meter::Idle } else { Meter::TimerList };
        slice.ends.into_iter().for_each(|snapshot| snapshot.counts.set(missing, None));
    }
    for (read, reason) in [
        (Reading::Taken(String::new()), "read all slices: a CPU came or went"),
        (Reading::unavailable("not chosen; see --meters"), "--meters leaves out the meters"),
        (Reading::unavailable("this needs root"), "is available"),
    ] {
        record.header.meters =
            [Meter::Idle, Meter::TimerList].map(|meter| MeterStatus { meter, status: read.clone() }).to_vec();
        let found = study(&record);
        assert_eq!(found.environment.meter, None);
        assert!(found.head.warnings.iter().any(|warning| warning.code == Code::MeterUnavailable));
        let said = found.cells[0].metrics["cycles_per_io"].reason.as_deref();
        assert!(said.unwrap().contains(reason), "{said:?}");
    }
    // During the measurement the later rounds are unknown, so the first round decides.
    let mut progress = Progress::new(&record.header);
    record.rounds.iter().take(1).for_each(|round| progress.add(round));
    assert_eq!(progress.slices.rounds.meter.map(|meter| meter.name()), Some("timer_list"));
    let fixed = measured(&record.header, Choice::Fixed(None), &record.rounds);
    assert_eq!(fixed.rounds.meter, None);
    parts(&mut record.rounds).flat_map(|slice| slice.ends).for_each(|snapshot| snapshot.counts = ByMeter::default());
    let reason = study(&record).cells[0].metrics["cycles_per_io"].reason.clone();
    assert!(reason.as_ref().unwrap().contains("is available"), "{reason:?}");
}

/// If the number of I/Os is unknown, whole executions are compared: in the answer, in the stopping rule, and along a
/// sweep.
#[test]
fn fallback_targets_are_used_everywhere() {
    let axis = axis("bs", &["4k", "16k", "64k"]);
    let experiment = experiment(Draft { axes: vec![axis], ..Draft::default() });
    let mut record = record(experiment, 12, |round, case| Load { nanos_per_io: 1000 + wobble(round, case), ios: 1000 });
    record.header.schedule = Schedule::Executions;
    execute(&mut record.rounds, |ends, _| Execution { stretch: window(ends), ..Execution::default() });
    let found = study(&record);
    assert_eq!(found.rules.targets, [Metric::CyclesPerIo, Metric::Iops]);
    assert_eq!(found.targets, [Metric::Cycles, Metric::Seconds]);
    assert!(found.sweep.crossovers.iter().any(|place| place.metric == "cycles"), "{:?}", found.sweep.crossovers);
    let mut progress = Progress::new(&record.header);
    record.rounds.iter().for_each(|round| progress.add(round));
    assert!(found.targets.contains(&progress.standing().unwrap().metric));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["targets"], serde_json::json!(["cycles", "seconds"]));
}

#[test]
fn a_step_and_a_time_are_named() {
    let itself = experiment(Draft { against_itself: true, ..Draft::default() });
    let load = |round, case| Load {
        nanos_per_io: 1000 + wobble(round, case),
        ios: if round < 20 { 40_000 } else { 50_000 } + wobble(round, case),
    };
    let mut record = record(itself, 40, load);
    // No warm-up is searched for in these.
    record.header.schedule = Schedule::WholeRounds { slice_nanos: Nanos(SLICE) };
    let found = study(&record);
    let said = found.head.warnings.iter().find(|warning| warning.code == Code::EnvironmentStep).unwrap();
    assert!(said.message.starts_with("after round 20 the rate of all arms together changed by +2"), "{}", said.message);
    let json = serde_json::to_value(found).unwrap();
    let length = format!("every arm once for {} ms", SLICE / 1_000_000);
    assert!(json["method"].as_str().unwrap().contains(&length), "{}", json["method"]);
    assert!(json["arms"][0]["injected_ns"].is_null() && json["arms"][0].get("injected_ns").is_some());
    let needed = &json["noise_floor"]["metrics"]["cycles_per_io"]["seconds_needed"];
    assert_eq!(needed[2]["half_width"], 0.05, "{needed}");
    assert!(needed[0]["seconds"].as_f64() > needed[1]["seconds"].as_f64(), "{needed}");
}

#[test]
fn a_sweep_finds_where_the_candidate_starts_to_win() {
    let axis = axis("bs", &["4k", "16k", "64k", "256k"]);
    let experiment = experiment(Draft { axes: vec![axis], ..Draft::default() });
    // A fixed cost and a cost per byte: they cross at 32 KiB.
    let load = |round, case: usize| {
        let bytes = [4, 16, 64, 256][case / 2] * 1024;
        let nanos = if case.is_multiple_of(2) { 1000 + bytes / 16 } else { 3048 };
        Load { nanos_per_io: nanos + wobble(round, case), ios: 2000 }
    };
    let found = study(&record(experiment, 12, load));
    assert_eq!(found.cells.len(), 4);
    let place = found.sweep.crossovers.iter().find(|place| place.metric == "cycles_per_io").unwrap();
    let value = place.value.unwrap();
    assert!((24_000.0..44_000.0).contains(&value), "{place:?}");
    assert!(
        place.low.unwrap() < value
            && value < place.high.unwrap()
            && place.words.contains("candidate is better above it")
    );
    let line = found.sweep.lines.iter().find(|line| line.arm == "baseline").unwrap();
    assert!((line.per_io.value - 2012.0).abs() < 20.0 && (line.per_byte.value - 0.125).abs() < 0.001, "{line:?}");
}

#[test]
fn a_sweep_over_submitters_finds_the_serial_part() {
    const NUMBERS: [u64; 7] = [1, 2, 3, 4, 5, 6, 8];
    let axis = Axis { name: "numjobs".to_owned(), values: NUMBERS.iter().map(u64::to_string).collect() };
    let experiment = experiment(Draft { axes: vec![axis], ..Draft::default() });
    // The baseline has a serial part of 20 %, the candidate none; more submitters than CPUs do nothing.
    let load = |round, case: usize| {
        let number = NUMBERS[case / 2];
        let serial = if case.is_multiple_of(2) { 0.2 } else { 0.0 };
        let ios = 40_000.0 * number as f64 / (1.0 + serial * (number - 1) as f64);
        let ios = if number > 6 { 100 } else { ios as u64 };
        Load { nanos_per_io: 100, ios: ios + wobble(round, case) * 10 }
    };
    let mut record = record(experiment, 12, load);
    let found = study(&record).sweep.scalability;
    assert!(
        found
            .iter()
            .all(|curve| curve.words == "no fit: 2 of the numbers are within this machine's 2 CPUs, 5 are needed")
    );
    record.header.host.cpus = 6;
    let found = study(&record).sweep.scalability;
    let of = |arm: &str| found.iter().find(|curve| curve.arm == arm).unwrap();
    let (serial, free) = (of("baseline"), of("candidate"));
    assert!((serial.contention.unwrap().value - 0.2).abs() < 0.01, "{serial:?}");
    assert_eq!(serial.words, "one CPU's worth of serial work per 5.0 submitters");
    assert_eq!((free.words.as_str(), free.peak), ("no serial part", None), "{free:?}");
    assert_eq!(free.oversubscribed, [8.0]);
}

#[test]
fn limits_and_the_noise_floor_follow_from_the_interval() {
    let limits = ["cycles_per_io > +5%", "cycles_per_io > +20%", "cycles_per_io < -1%", "latency_p99 > 0.1%"];
    let load = costing(1000, 1100);
    let found = judged(&record(experiment(Draft::default()), 12, load), &limits);
    let states: Vec<LimitState> = found.head.limits.iter().map(|limit| limit.state).collect();
    assert_eq!(states, [LimitState::Exceeded, LimitState::Kept, LimitState::Kept, LimitState::Undecided]);
    let itself = experiment(Draft { against_itself: true, ..Draft::default() });
    let found = study(&record(itself, 12, costing(1000, 1000)));
    let noise = &found.noise_floor.unwrap().metrics["cycles_per_io"];
    assert!(!noise.false_difference && noise.half_width < 0.01);
}

#[test]
fn the_noise_floor_is_that_of_the_noisiest_cell() {
    let axis = axis("bs", &["4k", "64k"]);
    let itself = experiment(Draft { against_itself: true, axes: vec![axis], ..Draft::default() });
    // The second cell is much noisier than the first.
    let load = |round, case: usize| {
        let more = if case < 2 { 1 } else { 20 };
        Load { nanos_per_io: 1000 + more * wobble(round, case), ios: 40_000 }
    };
    let found = study(&record(itself, 12, load));
    let half_width = |cell: usize| {
        let metric = &found.cells[cell].metrics["cycles_per_io"];
        (metric.high.unwrap() - metric.low.unwrap()) / 2.0
    };
    assert!(half_width(1) > 5.0 * half_width(0));
    assert_eq!(found.noise_floor.as_ref().unwrap().metrics["cycles_per_io"].half_width, half_width(1));
}

#[test]
fn changes_undetected_among_many_have_a_time_to_decide() {
    let values: Vec<String> = (1..=16).map(|number| (4096 * number).to_string()).collect();
    let many = experiment(Draft { axes: vec![Axis { name: "bs".to_owned(), values }], ..Draft::default() });
    // Every cell has a change that would be detected in a single cell, but not among 16; only the last one is clearly
    // more expensive.
    let load = |round, case: usize| {
        let noise = [0_u64, 210, 90, 330, 150, 60, 270][(round + case) % 7];
        let more_expensive = match case {
            31 => 2000,
            case if case % 2 == 1 => 130,
            _ => 0,
        };
        Load { nanos_per_io: 1000 + more_expensive + noise, ios: 10_000 }
    };
    let found = study(&record(many, 14, load));
    let metric = |cell: usize| &found.cells[cell].metrics["cycles_per_io"];
    let undetected: Vec<usize> = (0..15).filter(|&cell| !metric(cell).detected).collect();
    assert!(!undetected.is_empty(), "{:?}", metric(0));
    for cell in undetected {
        assert!(metric(cell).low.unwrap() <= 0.0, "what is shown is what the verdict is read off");
        assert_eq!(metric(cell).verdict, Verdict::Inconclusive);
        assert!(metric(cell).seconds_to_decide.unwrap() > found.seconds, "{:?}", metric(cell));
    }
    assert_eq!((metric(15).verdict, metric(15).seconds_to_decide), (Verdict::Worse, None));
}

#[test]
fn progress_follows_the_widest_target() {
    let load = costing(1000, 2000);
    let record = record(experiment(Draft::default()), 60, load);
    let mut progress = Progress::new(&record.header);
    assert!(progress.standing().is_none());
    for (number, round) in record.rounds.iter().enumerate() {
        progress.add(round);
        let standing = progress.standing();
        assert_eq!(standing.is_some_and(|standing| standing.precise), number >= 48, "{standing:?}");
    }
    let standing = progress.standing().unwrap();
    // The rate does not vary at all, so the cost is furthest from its goal: a fifth of ln 2. But that it does not differ needs
    // 49 rounds.
    assert_eq!(standing.metric.name(), "cycles_per_io");
    assert!((standing.wanted - 0.2 * standing.change.ln_1p()).abs() < 1e-12 && standing.wanted > 0.1);
}

/// The hypervisor constantly steals 5 % of busy time, and reports it in ticks of 10 ms, which fall into few slices.
#[test]
fn steal_is_divided_by_busy_time() {
    const TICK: u64 = 10_000_000;
    let load = |_, case: usize| Load { nanos_per_io: if case == 0 { 1000 } else { 2000 }, ios: 20_000 };
    let clean = study(&record(experiment(Draft::default()), 12, load));
    let mut robbed = record(experiment(Draft::default()), 12, load);
    let mut stolen = 0;
    for Parts { ends: [before, after], .. } in parts(&mut robbed.rounds) {
        let idle = |snapshot: &Snapshot| snapshot.counts.get(Meter::Idle).unwrap().total;
        let busy = 2 * SLICE - (idle(after) - idle(before));
        for (snapshot, more) in [(before, 0), (after, busy / 20)] {
            snapshot.system.as_mut().unwrap().steal_nanos = Nanos((stolen + more) / TICK * TICK);
            let list = snapshot.counts.get_mut(Meter::TimerList).unwrap();
            list.total -= stolen + more;
        }
        stolen += busy / 20;
    }
    let found = study(&robbed);
    let of = |finding: &crate::compare::CompareFinding| {
        let metric = &finding.cells[0].metrics["cycles_per_io"];
        (metric.baseline.unwrap(), metric.change.unwrap(), metric.high.unwrap() - metric.low.unwrap())
    };
    let ((clean, change, _), (robbed, robbed_change, width)) = (of(&clean), of(&found));
    assert!((robbed / clean - 1.0).abs() < 0.05, "{robbed} {clean}");
    assert!((robbed_change / change - 1.0).abs() < 0.05, "{robbed_change} {change}");
    // Subtracting a tick from the slice where it falls would be half of a baseline's slice: ±30 %.
    assert!(width < 0.1, "{width}");
    assert!(found.head.warnings.iter().any(|warning| warning.code == Code::Steal));
}

/// Eighteen cells that are all nearly 3 % worse, twenty times: each is detected, and none is beyond 3 %.
#[test]
fn in_a_sweep_limits_and_margins_are_corrected() {
    use rand_distr::Distribution;
    let axes = vec![Axis { name: "bs".to_owned(), values: (1..=18).map(|bytes| format!("{bytes}k")).collect() }];
    let experiment = experiment(Draft { axes, ..Draft::default() });
    let (mut by_limit, mut by_verdict) = (0, 0);
    for seed in 0..20 {
        let mut noise = rand_pcg::Pcg64Mcg::new(seed);
        let mut draw = || -> f64 { rand_distr::StandardNormal.sample(&mut noise) };
        let table: Vec<f64> = (0..12 * 36).map(|_| draw()).collect();
        let load = |round: usize, case: usize| {
            let nanos =
                if case.is_multiple_of(2) { 100_000.0 } else { 102_990.0 } * (1.0 + 0.008 * table[round * 36 + case]);
            Load { nanos_per_io: nanos as u64, ios: 400 }
        };
        let found = judged(&record(experiment.clone(), 12, load), &["cycles_per_io > +3%"]);
        let metrics = || found.cells.iter().map(|cell| &cell.metrics["cycles_per_io"]);
        assert!(metrics().filter(|metric| metric.detected).count() > 12, "most are detected");
        for metric in metrics() {
            let [low, high] = [metric.low, metric.high].map(Option::unwrap);
            assert_eq!(metric.verdict == Verdict::Worse, low > 0.03, "{metric:?}");
            assert_eq!(metric.detected, low > 0.0 || high < 0.0, "{metric:?}");
        }
        by_limit += usize::from(found.head.limits.iter().any(|limit| limit.state == LimitState::Exceeded));
        by_verdict += usize::from(metrics().any(|metric| metric.verdict == Verdict::Worse));
    }
    // With intervals of 95 %, 1 − 0.975¹⁸ = 37 %; together, 2.5 %.
    assert!(by_limit <= 2 && by_verdict <= 2, "{by_limit} {by_verdict}");
}

#[test]
fn the_slices_of_an_arm_give_its_rate_and_cost() {
    let found = study(&record(experiment(Draft::default()), 12, |round, case| Load {
        nanos_per_io: 100_000 + 900 * wobble(round, case),
        ios: 300 + 10 * wobble(round, case),
    }));
    let cell = &found.cells[0];
    for (baseline, value) in [(true, "baseline"), (false, "candidate")] {
        let of_arm = || cell.slices.iter().filter(|slice| slice.baseline == baseline);
        let sum = |of: fn(&SlicePoint) -> f64| of_arm().map(of).sum::<f64>();
        let (ios, seconds) = (sum(|slice| slice.ios.unwrap()), sum(|slice| slice.wall_seconds.unwrap()));
        let cycles = sum(|slice| slice.cycles_per_io.unwrap() * slice.ios.unwrap());
        for (metric, own) in [("iops", ios / seconds), ("cycles_per_io", cycles / ios)] {
            let metric = &cell.metrics[metric];
            let expected = if baseline { metric.baseline } else { metric.candidate }.unwrap();
            assert!((own / expected - 1.0).abs() < 1e-9, "{value}: {own} is not {expected}");
        }
    }
}

/// Other work leaves a part of the idle time of a slice.
fn leave(slice: Parts, part: f64) {
    let [before, after] = slice.ends;
    for meter in [Meter::TimerList, Meter::Idle] {
        let (first, last) = (before.counts.get(meter).unwrap().total, after.counts.get_mut(meter).unwrap());
        last.total = first + ((last.total - first) as f64 * part) as u64;
    }
}

/// Five of six rounds beside work that leaves nothing, as two loops of dd on a busy machine: what is left of their cost is rounding.
#[test]
fn rounds_in_which_the_machine_was_never_idle_tell_no_cost() {
    let load = costing(1000, 1100);
    let whole = record(experiment(Draft::default()), 12, load);
    let filled = |every: fn(usize) -> bool| {
        let mut record = whole.clone();
        parts(&mut record.rounds).filter(|slice| every(slice.round)).for_each(|slice| leave(slice, 0.0));
        judged(&record, &["cycles_per_io > +3%"])
    };
    let most = filled(|number| !number.is_multiple_of(6));
    let cost = &most.cells[0].metrics["cycles_per_io"];
    assert_eq!(
        (cost.baseline, cost.verdict, most.head.limits[0].state),
        (None, Verdict::Inconclusive, LimitState::Undecided)
    );
    assert!(cost.reason.as_ref().unwrap().contains("cannot be seen"), "{cost:?}");
    // Two of twelve: those that remain have the cost.
    let few = filled(|number| number.is_multiple_of(6));
    let (few_cost, all) = (&few.cells[0].metrics["cycles_per_io"], &study(&whole).cells[0].metrics["cycles_per_io"]);
    assert_eq!((few_cost.units, few.cells[0].metrics["iops"].units), (10, 12));
    assert!((few_cost.baseline.unwrap() / all.baseline.unwrap() - 1.0).abs() < 0.01, "{few_cost:?} {all:?}");
    assert!(
        few.head.warnings.iter().any(|warning| warning.message.contains("2 of 12 rounds in which it was never idle"))
    );
}

/// A background that changes by more than the load costs.
#[test]
fn a_cost_within_the_error_of_its_background_has_no_change() {
    let load = |round, case| Load { nanos_per_io: 1000 + wobble(round, case), ios: 2000 };
    let mut record = record(experiment(Draft::default()), 12, load);
    assert!(study(&record).cells[0].metrics["cycles_per_io"].change.is_some());
    // 2 to 40 % of the idle time; the load takes 2 ms of 100.
    let slices = parts(&mut record.rounds).enumerate();
    slices.for_each(|(number, slice)| leave(slice, (98 - number * 17 % 39) as f64 / 100.0));
    let cost = &study(&record).cells[0].metrics["cycles_per_io"];
    assert_eq!((cost.change, cost.detected), (None, false));
    assert!(cost.reason.as_ref().unwrap().contains("below the noise of the background"), "{cost:?}");
}

/// Idle clocks that do not advance give no difference, and rounding must not look like one.
#[test]
fn on_a_machine_that_is_never_idle_the_cost_is_unknown() {
    let load = |_, _| Load { nanos_per_io: 1000, ios: 40_000 };
    let mut record = record(experiment(Draft::default()), 12, load);
    parts(&mut record.rounds).for_each(|slice| leave(slice, 0.0));
    let found = judged(&record, &["cycles_per_io > +3%"]);
    let cost = &found.cells[0].metrics["cycles_per_io"];
    assert_eq!((cost.change, cost.low, cost.detected), (None, None, false));
    assert!(cost.reason.as_ref().unwrap().contains("100 % busy without the workload"), "{cost:?}");
    assert_eq!(found.head.limits[0].state, LimitState::Undecided);
    assert!(found.cells[0].metrics["iops"].change.is_some());
    assert!(found.head.warnings.iter().all(|warning| warning.code != Code::BackgroundSqueezed), "no cost is too low");
    assert!(found.cells[0].slices.iter().all(|slice| slice.cycles_per_io.is_none()));
    let mut progress = Progress::new(&record.header);
    record.rounds.iter().for_each(|round| progress.add(round));
    assert!(progress.standing().is_none_or(|standing| standing.metric != Metric::CyclesPerIo));
}

/// With one candidate that never reports its work, a comparison is not precise, even if the other candidate is.
#[test]
fn missing_values_are_not_precise() {
    let draft = Draft {
        axes: vec![Axis { name: "bs".to_owned(), values: vec!["4k".into(), "8k".into()] }],
        ..Draft::default()
    };
    let same = |_: usize, _: usize| Load { nanos_per_io: 1000, ios: 40_000 };
    let whole = record(experiment(draft), 49, same);
    let standing = |record: &CompareRecord| {
        let mut progress = Progress::new(&record.header);
        record.rounds.iter().for_each(|round| progress.add(round));
        progress.standing().unwrap()
    };
    assert!(standing(&whole).precise);
    let mut silent = whole;
    parts(&mut silent.rounds).filter(|slice| slice.case == Some(3)).for_each(|slice| slice.work.ios = 0);
    assert!(!standing(&silent).precise);
}
