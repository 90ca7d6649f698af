//! Typical comparisons, for the tests of every format.

mod booted;
mod explained;
mod probes;
mod reads;
mod slices;
mod stored;

pub use booted::booted;
pub use explained::{explained, explained_sweep};
pub use probes::probed;
use slices::slices;
pub use stored::{stored, stored_sweep};

use model::comparison::CompareFinding;
use model::comparison::finding::*;
use model::experiment::{ArmPlan, Axis, Metric, Published, Rules};
use model::limit::{LimitFinding, LimitState};
use model::origin::Input;
use model::placement::{CasePlacement, Mode, ModeFinding};
use model::reading::Reading;
use model::record::{Canaries, Outcome};
use model::scaling::ScalabilityFinding;
use model::stats::{Estimate, Good, Verdict};
use model::stored::{StoredFinding, UnpairedChange};
use model::warning::{Code, Warning};
use reads::reads;
use std::collections::BTreeMap;

/// All findings with their names.
pub fn all() -> Vec<(&'static str, CompareFinding)> {
    vec![
        ("options", options()),
        ("sweep", sweep()),
        ("inconclusive", inconclusive()),
        ("identical", identical()),
        ("unmeasured", unmeasured()),
        ("executions", executions()),
        ("three_arms", three_arms()),
        ("stored", stored()),
        ("stored_sweep", stored_sweep()),
        ("booted", booted()),
        ("probed", probed()),
        ("explained", explained()),
        ("explained_sweep", explained_sweep()),
        ("empty", empty()),
        ("hostile", hostile(f64::NAN, "\u{1b}[31m読み|<b>\n書き\u{7}")),
        ("hostile_numbers", hostile(1e300, "名")),
    ]
}

/// One option, two arms, a clear answer, and a mean that hides a changed distribution.
pub fn options() -> CompareFinding {
    let mut finding = empty();
    finding.title = "bs=4k beside bs=8k".to_owned();
    finding.command_line = words(
        "iotoll compare --name=reads --ioengine=psync --rw=randread --size=512m --filename=/srv/scratch/f \
         --direct=1 --baseline bs=4k --candidate bs=8k --budget 60s --fail-on 'cycles_per_io > +3%'",
    );
    finding.cases = vec![reads("baseline", 4096), reads("candidate", 8192)];
    finding.cells = vec![cell("candidate", &[])];
    if let Some(cell) = finding.cells.first_mut() {
        cell.metrics = usual(0.031, -0.021);
        if let Some(iops) = cell.metrics.get_mut("iops") {
            iops.shape_changed = true;
            iops.typical = Some(Interval { change: -0.002, low: -0.0041, high: 0.0012 });
        }
        cell.shift = shift();
        cell.slices = slices(0.031);
    }
    finding.placement = vec![placed("baseline", 0.04), placed("candidate", 0.97)];
    finding.limits = vec![
        limit("cycles_per_io > +3%", "", LimitState::Undecided),
        limit("iops < -5%", "", LimitState::Kept),
        limit("latency_p99 > +10%", "", LimitState::Exceeded),
    ];
    finding.published = vec![Published {
        cell: BTreeMap::new(),
        arm: None,
        metric: Metric::Iops,
        baseline: Some(25_263.0),
        candidate: Some(27_617.0),
        change: Some(0.0932),
        source: "xprtrdma: pull up sometimes, linux-nfs, October 2019".to_owned(),
    }];
    finding.warnings = vec![Warning::new(
        Code::CanaryMoved,
        "a null system call took 95 ns before and 151 ns after: the machine changed speed under the measurement",
    )];
    finding
}

/// Nine sizes and two directions, as in a patch thread.
pub fn sweep() -> CompareFinding {
    const BEFORE: [[f64; 9]; 2] = [
        [62.5e3, 55.5e3, 40.6e3, 24.6e3, 14.8e3, 8687.0, 4733.0, 3156.0, 1901.0],
        [92.7e3, 85.6e3, 76.8e3, 56.7e3, 34.0e3, 21.8e3, 14.4e3, 8726.0, 4799.0],
    ];
    const AFTER: [[f64; 9]; 2] = [
        [62.6e3, 55.5e3, 43.2e3, 28.4e3, 20.2e3, 11.7e3, 6813.0, 5363.0, 2220.0],
        [94.7e3, 91.2e3, 80.4e3, 61.2e3, 40.9e3, 25.7e3, 17.3e3, 11.1e3, 6696.0],
    ];
    let sizes = ["4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m"];
    let mut finding = empty();
    finding.title = "messenger: one go beside page at a time".to_owned();
    finding.command_line = words("iotoll compare experiments/messenger.toml --budget 10m");
    let experiment = "title = \"messenger: one go beside page at a time\"\njob = \"nbd.fio\"\n";
    finding.origin.inputs = vec![Input::new("experiments/messenger.toml", experiment)];
    finding.origin.variables = [("FILE".to_owned(), "/srv/scratch/f".to_owned())].into();
    if let [baseline, candidate] = finding.arms.as_mut_slice() {
        baseline.what = "path_framing=page-at-a-time".to_owned();
        candidate.what = "path_framing=one-go".to_owned();
    }
    finding.axes = vec![axis("rw", &["randread", "randwrite"]), axis("bs", &sizes)];
    for (index, rw) in ["randread", "randwrite"].into_iter().enumerate() {
        for (step, bs) in sizes.into_iter().enumerate() {
            let (before, after) = (BEFORE[index][step], AFTER[index][step]);
            let half = [0.021, 0.0062, 0.0095, 0.0081][(index * 9 + step) % 4];
            let mut cell = cell("candidate", &[("rw", rw), ("bs", bs)]);
            let change = after / before - 1.0;
            cell.metrics = [
                metric(Metric::CyclesPerIo, 2.1e9 / before, -change * 0.55 + 0.004, half),
                metric(Metric::Iops, before, change, half * 0.8),
                metric(Metric::LatencyP99, 3.2e10 / before, -change * 0.9, half * 4.0),
            ]
            .into();
            cell.slices = slices(change).into_iter().take(60).collect();
            finding.published.push(Published {
                cell: cell.cell.clone(),
                arm: None,
                metric: Metric::Iops,
                baseline: Some(before),
                candidate: Some(after),
                change: Some(change),
                source: "libceph: use sendpage for the whole message, ceph-devel, April 2020".to_owned(),
            });
            finding.cells.push(cell);
        }
    }
    if let Some(iops) = finding.cells.get_mut(9).and_then(|cell| cell.metrics.get_mut("iops")) {
        iops.detected = false;
        iops.verdict = Verdict::Inconclusive;
        iops.seconds_to_decide = Some(1260.0);
    }
    for (index, cell) in finding.cells.iter().enumerate() {
        let state = match index {
            3 => LimitState::Exceeded,
            5 | 9 => LimitState::Undecided,
            _ => LimitState::Kept,
        };
        let place = cell.cell.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
        finding.limits.push(limit("cycles_per_io > +3%", &place, state));
    }
    finding.rounds = 22;
    finding.seconds = 594.0;
    finding.rules.budget_seconds = 600.0;
    finding.crossovers = vec![CrossoverFinding {
        axis: "bs".to_owned(),
        at: [("rw".to_owned(), "randread".to_owned())].into(),
        arm: "candidate".to_owned(),
        metric: "cycles_per_io".to_owned(),
        value: Some(9830.0),
        low: Some(7400.0),
        high: Some(13_100.0),
        words: "candidate is better above it, baseline below it".to_owned(),
    }];
    let line = |arm: &str, per_io: f64, per_byte: f64| LineFinding {
        arm: arm.to_owned(),
        at: [("rw".to_owned(), "randread".to_owned())].into(),
        per_io: estimate(per_io, 0.02),
        per_byte: estimate(per_byte, 0.01),
        misfit: 0.083,
    };
    finding.lines = vec![line("baseline", 31_200.0, 1.021), line("candidate", 31_900.0, 0.871)];
    finding.scalability = vec![ScalabilityFinding {
        arm: "candidate".to_owned(),
        axis: "numjobs".to_owned(),
        at: BTreeMap::new(),
        alone: Some(estimate(412_000.0, 0.01)),
        contention: Some(estimate(0.32, 0.1)),
        coherency: Some(estimate(0.004, 0.3)),
        peak: Some(13.04),
        misfit: Some(0.021),
        oversubscribed: vec![16.0, 32.0],
        words: "one CPU's worth of serial work per 3.1 submitters; the rate falls above 13".to_owned(),
    }];
    finding.environment.step = Some(EnvironmentStep { after_round: 14, change: -0.124 });
    finding
}

/// Half a minute on a noisy machine.
pub fn inconclusive() -> CompareFinding {
    let mut finding = options();
    finding.title = "mem_copy=plain beside mem_copy=non-temporal".to_owned();
    finding.limits.truncate(1);
    finding.published.clear();
    finding.warnings = vec![Warning::new(
        Code::BusyBackground,
        "the machine was 11 % busy with other work: stop it, or measure longer",
    )];
    finding.environment.background_busy_fraction = Some(0.113);
    finding.environment.steal_fraction = Some(0.021);
    for cell in &mut finding.cells {
        cell.metrics = [
            metric(Metric::CyclesPerIo, 6910.0, 0.0064, 0.0355),
            metric(Metric::Iops, 284_311.0, 0.0041, 0.021),
            metric(Metric::LatencyP50, 3120.0, 0.0, 0.004),
        ]
        .into();
        cell.shift.clear();
        cell.slices = slices(0.006);
    }
    finding
}

/// The baseline against itself.
pub fn identical() -> CompareFinding {
    let mut finding = options();
    finding.title = "the baseline against itself".to_owned();
    finding.limits.clear();
    finding.published.clear();
    finding.warnings.clear();
    if let Some(candidate) = finding.arms.last_mut() {
        candidate.what = "bs=4k".to_owned();
    }
    for cell in &mut finding.cells {
        cell.metrics =
            [metric(Metric::CyclesPerIo, 6910.0, 0.0009, 0.0063), metric(Metric::Iops, 284_311.0, -0.0031, 0.0052)]
                .into();
    }
    let noise = |half_width: f64, false_difference| NoiseOfMetric {
        half_width,
        false_difference,
        seconds_needed: [0.01, 0.02, 0.05]
            .map(|wanted: f64| TimeNeeded { half_width: wanted, seconds: 58.2 * (half_width / wanted).powi(2) }),
    };
    finding.noise_floor = Some(NoiseFloor {
        metrics: [("cycles_per_io".to_owned(), noise(0.0063, false)), ("iops".to_owned(), noise(0.0052, true))].into(),
    });
    finding
}

/// Commands on a machine without a meter: most metrics have only a reason.
pub fn unmeasured() -> CompareFinding {
    let mut finding = options();
    finding.title = "tar -c beside tar -c --sparse".to_owned();
    finding.outcome = Outcome::Interrupted;
    finding.slice_seconds = None;
    finding.environment.meter = None;
    finding.environment.background_busy_fraction = None;
    finding.environment.steal_fraction = None;
    finding.environment.canaries.clear();
    finding.limits.clear();
    finding.published.clear();
    for cell in &mut finding.cells {
        cell.shift.clear();
        cell.slices.clear();
        for (name, metric) in &mut cell.metrics {
            let reason = match name.as_str() {
                "iops" => continue,
                "latency_p99" | "latency_p999" => "not enough samples: 6 groups of 10 k I/Os are needed",
                _ => "no meter of the whole machine could be read",
            };
            *metric = MetricFinding::unknown(reason);
        }
    }
    finding
}

/// Commands whose I/Os are not counted: whole executions are compared.
pub fn executions() -> CompareFinding {
    let mut finding = unmeasured();
    finding.outcome = Outcome::Completed;
    finding.warnings.clear();
    finding.method =
        "12 rounds, in each every command executed once in random order, so the interval is as wide as whole \
                      executions differ; ended: the budget was used up"
            .to_owned();
    finding.environment.meter = Some("timer_list".to_owned());
    finding.targets = vec![Metric::Cycles, Metric::Seconds];
    for cell in &mut finding.cells {
        for metric in cell.metrics.values_mut() {
            *metric = MetricFinding::unknown("the number of I/Os is unknown: give it with --ios N or --bytes N");
        }
        cell.metrics
            .extend([metric(Metric::Cycles, 4.21e10, -0.118, 0.021), metric(Metric::Seconds, 13.4, -0.031, 0.034)]);
    }
    finding
}

/// Two candidates with different send methods.
pub fn three_arms() -> CompareFinding {
    let mut finding = options();
    finding.title = "three ways to send".to_owned();
    finding.limits.clear();
    finding.published.clear();
    finding.arms = vec![
        arm("pull-up", "path_send=pull-up:16k"),
        arm("gather", "path_send=gather"),
        arm("zero-copy", "path_send=zero-copy, net.ipv4.tcp_autocorking=0, net.core.optmem_max=1048576"),
    ];
    finding.cells = vec![
        CellFinding { metrics: usual(-0.082, 0.054), slices: slices(-0.08), shift: shift(), ..cell("gather", &[]) },
        CellFinding { metrics: usual(0.0123, -0.009), slices: slices(0.012), ..cell("zero-copy", &[]) },
    ];
    finding
}

/// No measurement.
pub fn empty() -> CompareFinding {
    CompareFinding {
        families: Some(Families {
            targets: FamilyFinding { comparisons: 2, confidence: 0.975 },
            others: FamilyFinding { comparisons: 8, confidence: 0.99375 },
        }),
        account_family: None,
        function_family: None,
        sampled_rounds: 0,
        event_family: None,
        counted_rounds: 0,
        events: Vec::new(),
        events_reason: None,
        event_correlations: Vec::new(),
        unexplained: None,
        unseen_fraction: Some(0.0499),
        unseen_in_spells_fraction: Some(0.2259),
        schema: SCHEMA.to_owned(),
        method_version: 1,
        title: String::new(),
        started_unix_seconds: 1_760_000_000.0,
        command_line: Vec::new(),
        seed: 20_251_009,
        rounds: 34,
        seconds: 58.2,
        slice_seconds: Some(0.05),
        method: "34 rounds with fresh worker processes, each of 10 blocks of one 50 ms slice per arm and one of the machine \
                 alone in random order, 10 ms before each discarded; ended: the precision was reached"
            .to_owned(),
        arms: vec![arm("baseline", "bs=4k"), arm("candidate", "bs=8k")],
        axes: Vec::new(),
        targets: Rules::default().targets,
        cells: Vec::new(),
        crossovers: Vec::new(),
        lines: Vec::new(),
        scalability: Vec::new(),
        noise_floor: None,
        limits: Vec::new(),
        rules: Rules::default(),
        environment: Environment {
            host: crate::cost::fixture::host(),
            meter: Some("timer_list".to_owned()),
            background_busy_fraction: Some(0.0213),
            steal_fraction: Some(0.0004),
            canaries: vec![canaries(95.0), canaries(151.0)],
            step: None,
        },
        stored: None,
        published: Vec::new(),
        cache: None,
        page_cache: Vec::new(),
        placement: Vec::new(),
        regimes: Vec::new(),
        services: Vec::new(),
        work_counter: None,
        counting_fraction: None,
        boots: Vec::new(),
        cases: Vec::new(),
        origin: crate::cost::fixture::origin(),
        outcome: Outcome::Completed,
        warnings: Vec::new(),
    }
}

/// A finding with `number` for all numbers and `text` for all names.
pub fn hostile(number: f64, text: &str) -> CompareFinding {
    let mut finding = sweep();
    let interval = Interval { change: number, low: -number, high: number };
    let unpaired = UnpairedChange { change: number, low: Some(-number), high: Some(number) };
    finding.stored =
        Some(StoredFinding { from: text.repeat(9), started_unix_seconds: number, differs: vec![text.repeat(5); 3] });
    finding.title = text.repeat(20);
    finding.command_line = vec![text.repeat(9); 5];
    finding.origin.iotoll_version = Some(text.to_owned());
    finding.origin.inputs = vec![
        Input::new(text.repeat(9), &text.replace("\n", " ").repeat(40)),
        Input { name: text.to_owned(), text: None },
    ];
    finding.origin.variables = [(text.to_owned(), text.repeat(9))].into();
    finding.environment.host.storage.iter_mut().for_each(|storage| {
        storage.files = vec![text.to_owned()];
        (storage.source, storage.model) = (Some(text.repeat(9)), Some(text.repeat(9)));
    });
    finding.method = text.repeat(9);
    finding.started_unix_seconds = number;
    (finding.seconds, finding.slice_seconds) = (number, Some(number));
    finding.outcome = Outcome::Failed(text.to_owned());
    finding.targets = Metric::ALL.to_vec();
    finding.rules = Rules {
        targets: Metric::ALL.to_vec(),
        margin: number,
        precision: -number,
        budget_seconds: number,
        hang_timeout_seconds: None,
        slice_seconds: None,
    };
    for arm in &mut finding.arms {
        arm.name = text.to_owned();
        arm.what = text.repeat(8);
    }
    finding.placement = vec![placed(&text.repeat(9), number)];
    finding.boots = vec![booted::boot((0, &"stock"))];
    for boot in &mut finding.boots {
        (boot.arm, boot.host.kernel, boot.boot_id) = (text.to_owned(), text.repeat(3), text.to_owned());
    }
    finding.axes = vec![axis(text, &[text, "4k"]), axis("bs", &["1", "2"])];
    finding.cells.truncate(3);
    for cell in &mut finding.cells {
        cell.arm = text.to_owned();
        cell.cell = [(text.to_owned(), text.to_owned()), ("bs".to_owned(), "2".to_owned())].into();
        cell.probes = probes::hostile(number, text);
        cell.shift =
            vec![ShiftPoint { percent: number, baseline_ns: number, candidate_ns: -number, change: Some(interval) }; 4];
        for slice in &mut cell.slices {
            slice.seconds = number;
            (slice.ios, slice.wall_seconds, slice.iops) = (Some(number), Some(number), Some(number));
            slice.cycles_per_io = Some(-number);
        }
        for metric in Metric::ALL {
            let found = MetricFinding {
                baseline: Some(number),
                candidate: Some(-number),
                change: Some(number),
                low: Some(-number),
                high: Some(number),
                mde80: Some(number),
                seconds_to_decide: Some(number),
                typical: Some(interval),
                shape_changed: true,
                reason: Some(text.to_owned()),
                stored: Some(AgainstStored { baseline: number, environment: unpaired, total: unpaired }),
                ..MetricFinding::unknown("")
            };
            cell.metrics.insert(metric.name().to_owned(), found);
        }
    }
    let at: BTreeMap<String, String> = [(text.to_owned(), text.to_owned())].into();
    for crossover in &mut finding.crossovers {
        crossover.words = text.to_owned();
        crossover.at = at.clone();
        (crossover.value, crossover.low, crossover.high) = (Some(number), Some(number), Some(-number));
    }
    for line in &mut finding.lines {
        line.arm = text.to_owned();
        line.misfit = number;
        line.per_io = Estimate { value: number, low: Some(number), high: Some(-number) };
    }
    for published in &mut finding.published {
        published.source = text.to_owned();
        published.cell = at.clone();
        (published.baseline, published.candidate, published.change) = (Some(number), Some(number), Some(number));
    }
    finding.limits = crate::limits::hostile(number, text);
    finding.environment.meter = Some(text.to_owned());
    finding.environment.host.cpu_model = text.repeat(10);
    finding.environment.host.tsc_hertz = number;
    finding.environment.background_busy_fraction = Some(number);
    finding.environment.steal_fraction = Some(number);
    finding.environment.canaries = vec![canaries(number); 3];
    finding.environment.step = Some(EnvironmentStep { after_round: usize::MAX, change: number });
    explained::make_hostile(&mut finding, number, text);
    finding.warnings = vec![Warning::new(Code::Unknown, text.repeat(30))];
    finding
}

fn placed(arm: &str, same_fraction: f64) -> CasePlacement {
    let mode = ModeFinding { mode: Mode::Same, windows: 9, seconds: 1.5, iops: Some(1e4), cycles_per_io: None };
    CasePlacement { arm: arm.to_owned(), cell: BTreeMap::new(), same_fraction, modes: vec![mode] }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.trim_matches('\'').to_owned()).collect()
}

fn arm(name: &str, what: &str) -> ArmFinding {
    ArmFinding {
        name: name.to_owned(),
        what: what.to_owned(),
        plan: ArmPlan { name: name.to_owned(), options: vec![what.to_owned()], ..ArmPlan::default() },
        injected_ns: None,
    }
}

fn axis(name: &str, values: &[&str]) -> Axis {
    Axis { name: name.to_owned(), values: values.iter().map(|value| (*value).to_owned()).collect() }
}

fn cell(arm: &str, values: &[(&str, &str)]) -> CellFinding {
    CellFinding {
        cell: values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        arm: arm.to_owned(),
        ..CellFinding::default()
    }
}

/// A metric with an interval of ±`half` and the verdict that follows from it.
fn metric(metric: Metric, baseline: f64, change: f64, half: f64) -> (String, MetricFinding) {
    let (low, high) = (change - half, change + half);
    let detected = low > 0.0 || high < 0.0;
    let better = (change > 0.0) == (metric.good() == Good::Higher);
    let verdict = match (detected, better) {
        (true, true) if low > Rules::MARGIN || high < -Rules::MARGIN => Verdict::Better,
        (true, false) if low > Rules::MARGIN || high < -Rules::MARGIN => Verdict::Worse,
        _ if low >= -Rules::MARGIN && high <= Rules::MARGIN => Verdict::NoDifference,
        (true, true) => Verdict::BetterMaybeSmall,
        (true, false) => Verdict::WorseMaybeSmall,
        (false, _) => Verdict::Inconclusive,
    };
    let undecided = verdict == Verdict::Inconclusive;
    let found = MetricFinding {
        baseline: Some(baseline),
        candidate: Some(baseline * (1.0 + change)),
        change: Some(change),
        low: Some(low),
        high: Some(high),
        mde80: Some(half * 1.4),
        detected,
        verdict,
        confidence: Some(0.95),
        correlation: None,
        p_value: Some(if detected { 0.0012 } else { 0.4 }),
        typical: Some(Interval { change: change * 0.98, low, high }),
        shape_changed: false,
        seconds_to_decide: undecided.then(|| 58.2 * (half / 0.01).powi(2)),
        units: 34,
        reason: None,
        stored: None,
    };
    (metric.name().to_owned(), found)
}

/// All metrics of a comparison in which costs changed by `cost` and rates by `rate`.
fn usual(cost: f64, rate: f64) -> BTreeMap<String, MetricFinding> {
    let mut metrics: BTreeMap<String, MetricFinding> = [
        metric(Metric::CyclesPerIo, 6910.0, cost, 0.0055),
        metric(Metric::CyclesPerByte, 1.687, cost, 0.0055),
        metric(Metric::Iops, 284_311.0, rate, 0.014),
        metric(Metric::BytesPerSecond, 284_311.0 * 4096.0, rate, 0.014),
        metric(Metric::ContextSwitchesPerIo, 1.72, 0.0004, 0.0031),
        metric(Metric::ThreadCyclesPerIo, 6702.0, cost * 0.9, 0.0021),
        metric(Metric::LatencyMean, 3310.0, cost * 1.2, 0.012),
        metric(Metric::LatencyP50, 3120.0, cost * 1.05, 0.004),
        metric(Metric::LatencyP99, 8440.0, 0.117, 0.062),
    ]
    .into();
    // The verdict of a cost that changed by 3.1 % with this interval, which contains the margin.
    if let Some(cycles) = metrics.get_mut("cycles_per_io").filter(|_| cost == 0.031) {
        (cycles.low, cycles.high, cycles.verdict) = (Some(0.0302), Some(0.0368), Verdict::Worse);
    }
    metrics.insert(
        "latency_p999".to_owned(),
        MetricFinding::unknown("not enough samples: 6 groups of 100 k I/Os are needed"),
    );
    metrics
}

fn shift() -> Vec<ShiftPoint> {
    let percents = [5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];
    let point = |(index, percent): (usize, f64)| {
        let (step, baseline) = (index as f64, 2400.0 * 1.25f64.powi(index as i32));
        let change = 0.012 + 0.0021 * step * step;
        let half = 0.003 + 0.0012 * step * step;
        ShiftPoint {
            percent,
            baseline_ns: baseline,
            candidate_ns: baseline * (1.0 + change),
            change: (percent < 99.9).then_some(Interval { change, low: change - half, high: change + half }),
        }
    };
    percents.into_iter().enumerate().map(point).collect()
}

fn limit(limit: &str, cell: &str, state: LimitState) -> LimitFinding {
    let (limit, cell, arm) = (limit.to_owned(), cell.to_owned(), "candidate".to_owned());
    LimitFinding { limit, cell, arm, state, ..LimitFinding::default() }
}

fn canaries(nanos: f64) -> Canaries {
    Canaries {
        null_system_call_nanos: nanos,
        context_switch_nanos: Reading::Taken(1234.0),
        wake_up_nanos: Reading::unavailable("needs two CPUs"),
        clock_read_nanos: 25.0,
        memcpy_gigabytes_per_second: 41.0,
    }
}

fn estimate(value: f64, half: f64) -> Estimate {
    Estimate { value, low: Some(value * (1.0 - half)), high: Some(value * (1.0 + half)) }
}
