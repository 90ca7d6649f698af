//! Recordings for the tests of every format, made up: a worker with the stalls of a page cache at its limit, and odd ones.

use model::ftq::FtqFinding;
use model::ftq::finding::*;
use model::ftq::record::RecorderCost;
use model::record::Outcome;
use model::unit::Nanos;
use model::warning::{Code, Warning};

const QUANTUM: f64 = 440e-6;
const PERIOD: f64 = 5.0;
const STALL: f64 = 0.180;
const PHASE: f64 = 0.6;
/// Readings of the seed's figure: 27 s of quanta of 440 µs.
const SEED: usize = 61_363;

/// All findings with their names.
pub fn all() -> Vec<(&'static str, FtqFinding)> {
    vec![
        ("dirty_limit", dirty_limit()),
        ("quiet", quiet()),
        ("compared", compared()),
        ("interrupted", interrupted()),
        ("stepped", stepped()),
        ("cpu", cpu()),
        ("many_periods", many_periods()),
        ("one_thread", one_thread()),
        ("empty", empty()),
        ("wild_pictures", wild_pictures()),
    ]
}

/// Buffered writes that the kernel throttles: 61,363 readings of the worker and four probes, a stall every 5 s.
pub fn dirty_limit() -> FtqFinding {
    let mut finding = recorded(SEED);
    finding.probes = vec![
        probe("dirty", "pages", false, (21_300.0, 1020.0, 41_000.0)),
        probe("writeback", "pages", false, (640.0, 0.0, 12_800.0)),
        probe("sleeps", "sleeps", true, (36.0, 0.0, 4540.0)),
        probe("net.ib0.tx_bytes", "bytes", true, (5.3e8, 0.0, 7.4e8)),
    ];
    finding.periodic = vec![every(PERIOD, STALL, "dirty", "while 41,000 dirty pages are written back")];
    finding.stalls = vec![
        stall(3.1714, 0.0221, vec![label("sleeps", "sleeps", 51.0)]),
        stall(17.004, 0.0116, Vec::new()),
        stall(9.6617, 0.0044, Vec::new()),
    ];
    finding.stall_count = 41;
    finding.pictures = Pictures { probes: probe_columns(&finding.pictures.seconds), ..pictures(&finding.pictures) };
    finding
}

/// A series in which nothing repeats.
pub fn quiet() -> FtqFinding {
    let mut finding = recorded(6000);
    finding.pictures.amount_per_quantum = noise(7).take(6000).map(|part| 262_144.0 * (0.9 + 0.1 * part)).collect();
    finding.pictures.heat_map = None;
    finding.late = 0;
    finding.longest_span = 1;
    finding.pictures.spans = vec![1; 6000];
    finding.noise.longest_stall_seconds = Some(0.0011);
    finding.noise.available_fraction = Some(0.999_63);
    finding
}

/// Beside an earlier recording: one period came, one went, one stayed.
pub fn compared() -> FtqFinding {
    let mut finding = dirty_limit();
    let kept = KeptPeriod {
        period_seconds: 5.0,
        stored_period_seconds: 5.01,
        stall_seconds: 0.18,
        stored_stall_seconds: 0.21,
    };
    finding.against = Some(PeriodChanges {
        stored: "4 KiB sequential writes to /srv/scratch/f, psync".to_owned(),
        started_unix_seconds: 1.7935e9,
        differs: vec!["kernel 6.9.1 → 6.18.44".to_owned()],
        appeared: vec![1.0],
        went: vec![0.1, 0.033],
        kept: vec![kept],
    });
    finding
}

/// Ended by the user; a probe could no longer be read.
pub fn interrupted() -> FtqFinding {
    let mut finding = quiet();
    finding.outcome = Outcome::Interrupted;
    let lost = ProbeFinding { lost_at_seconds: Some(1.234), ..probe("file:x", "", true, (12.0, 0.0, 40.0)) };
    let never = ProbeFinding { mean: None, least: None, greatest: None, ..probe("steal", "ns", true, (0.0, 0.0, 0.0)) };
    finding.probes = vec![lost, never];
    let column = (0..6000).map(|place| (place < 2800).then_some(f64::from(u32::from(place % 50 == 0))));
    finding.pictures.probes = vec![column.collect(), vec![None; 6000]];
    finding.warnings = vec![Warning::new(
        Code::Interrupted,
        "Probe file:x could not be read after 1.234 s: No such file or directory",
    )];
    finding
}

/// A writer whose file came into memory.
pub fn stepped() -> FtqFinding {
    let mut finding = quiet();
    let level = |begin_seconds, end_seconds, amount_per_second| Level { begin_seconds, end_seconds, amount_per_second };
    finding.levels = vec![level(0.0, 3.217, 4.31e8), level(3.217, 27.0, 3.24e9)];
    finding
}

/// FTQ itself: a thread that computes.
pub fn cpu() -> FtqFinding {
    let mut finding = quiet();
    finding.worker = "a thread that computes".to_owned();
    finding.counted_by = "steps of its loop".to_owned();
    finding.unit = "steps".to_owned();
    finding.bytes = None;
    finding.pictures.amount_per_quantum = noise(3).take(6000).map(|part| 41_000.0 - 300.0 * part).collect();
    finding.amount_per_second = 9.31e7;
    finding.noise.undisturbed_per_quantum = 41_000.0;
    finding.periodic = vec![every(0.004, 2.1e-6, "softirqs.timer", "while a timer interrupts it")];
    finding.recorder.cpu = None;
    finding
}

/// More periods than the answer tells.
pub fn many_periods() -> FtqFinding {
    let mut finding = dirty_limit();
    for (period, stall) in [(1.0, 0.0005), (0.1, 5e-5), (0.333, 1e-4), (0.0121, 3e-5)] {
        let mut other = every(period, stall, "", "");
        (other.probe, other.labels) = (None, Vec::new());
        finding.periodic.push(other);
    }
    finding
}

/// Of 40 threads one stalls, which the sum hides.
pub fn one_thread() -> FtqFinding {
    let mut finding = quiet();
    finding.worker = "process 4701 (server), its 40 threads together".to_owned();
    let thread = |number: u32, standstill_seconds| ThreadFinding {
        name: format!("thread {number} (io-{})", number - 4701),
        bytes: 1e9,
        seconds: finding.seconds,
        at_seconds: 1.3,
        standstill_seconds,
        periodic: Vec::new(),
    };
    let sentence = "every 2.00 s thread 4711 (io-10) stops for 300 ms".to_owned();
    let periodic = Periodic { sentence, ..every(2.0, 0.3, "", "") };
    let stalls = ThreadFinding { periodic: vec![periodic], ..thread(4711, 0.301) };
    finding.threads = std::iter::once(stalls).chain((4712..4751).map(|number| thread(number, 0.012))).collect();
    finding.probes = vec![probe("worker.run_delay", "ns", true, (0.68e9, 0.0, 3.31e8))];
    finding
}

/// No reading was taken.
pub fn empty() -> FtqFinding {
    FtqFinding {
        quanta: 0,
        readings: 0,
        late: 0,
        longest_span: 0,
        bytes: Some(0),
        amount: 0,
        seconds: 0.0,
        amount_per_second: 0.0,
        recorder: RecorderCost::default(),
        noise: Noise::default(),
        outcome: Outcome::Failed("/srv/scratch/f: No space left on device".to_owned()),
        pictures: Pictures::default(),
        ..recorded(2)
    }
}

/// Columns of different lengths, times that go back, numbers that no reading gives.
fn wild_pictures() -> FtqFinding {
    let mut finding = dirty_limit();
    let numbers = [1.0, f64::NAN, -3.0, f64::INFINITY, 2.0, 1e300, 0.0, 5.0];
    let picture = |length: usize| numbers.iter().copied().cycle().take(length).collect::<Vec<f64>>();
    finding.pictures = Pictures {
        seconds: picture(500),
        spans: vec![u32::MAX; 3],
        amount_per_quantum: picture(123),
        probes: vec![picture(700).into_iter().map(Some).collect(), Vec::new(), vec![None; 500]],
        frequencies: picture(90),
        power: picture(40),
        alarm_power: f64::NAN,
        histogram_bounds: picture(30),
        histogram: vec![u64::MAX; 20],
        heat_map: Some(HeatMap { period_seconds: 3.0, columns: 7, counts: vec![u64::MAX; 40] }),
    };
    finding
}

/// A recording of this many readings with the stalls of [`dirty_limit`], without probes and periods.
fn recorded(readings: usize) -> FtqFinding {
    let (mut seconds, mut spans, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    let mut quantum = 0;
    for (place, part) in noise(1).take(readings).enumerate() {
        let span = if place % 331 == 330 { 2 + place as u32 % 2 } else { 1 };
        quantum += span;
        let at = f64::from(quantum) * QUANTUM;
        // Most quanta are full, some are disturbed.
        let full = if part < 0.9 { 0.94 + 0.06 * part } else { part * part };
        seconds.push(at);
        spans.push(span);
        amounts.push(if in_stall(at, STALL) { 0.0 } else { (262_144.0 * full / 4096.0).round() * 4096.0 });
    }
    let all: f64 = amounts.iter().zip(&spans).map(|(amount, span)| amount * f64::from(*span)).sum();
    let length = f64::from(quantum) * QUANTUM;
    let late = spans.iter().filter(|span| **span > 1).count() as u64;
    FtqFinding {
        schema: SCHEMA.to_owned(),
        method_version: 1,
        started_unix_seconds: 1_795_600_000.0,
        command_line: "iotoll ftq --target /srv/scratch/f --rw write --bs 4k --duration 27s"
            .split(' ')
            .map(str::to_owned)
            .collect(),
        host: crate::cost::fixture::host(),
        origin: crate::cost::fixture::origin(),
        worker: "4 KiB sequential writes to /srv/scratch/f, psync".to_owned(),
        counted_by: "bytes that its I/Os completed".to_owned(),
        unit: "bytes".to_owned(),
        quantum_seconds: QUANTUM,
        quanta: u64::from(quantum),
        readings: readings as u64,
        late,
        longest_span: 3,
        bytes: Some(all as u64),
        amount: all as u64,
        seconds: length,
        amount_per_second: all / length,
        recorder: RecorderCost {
            cpu: Some(1),
            cpu_nanos: Nanos(4_200_000_000),
            reading_nanos: Nanos(3_100_000_000),
            longest_reading_nanos: Nanos(912_000),
        },
        noise: Noise {
            undisturbed_per_quantum: 258_048.0,
            available_fraction: Some(0.9412),
            lost_seconds: Some(1.588),
            longest_stall_seconds: Some(0.1826),
            by_cause: [
                ("interrupts", 41_233.0, "interrupts"),
                ("softirqs.net_rx", 9120.0, "softirqs"),
                ("steal", 1.1e7, "ns"),
            ]
            .map(|(probe, count, unit)| Cause { probe: probe.to_owned(), count, unit: unit.to_owned() })
            .to_vec(),
        },
        pictures: Pictures { seconds, spans, amount_per_quantum: amounts, ..Pictures::default() },
        ..FtqFinding::default()
    }
}

/// The pictures with a spectrum, a histogram and a heat map of their amounts.
fn pictures(drawn: &Pictures) -> Pictures {
    const BINS: usize = 60;
    const COLUMNS: usize = 100;
    let bound = |bin: usize| 266_240.0 / BINS as f64 * bin as f64;
    let bin = |amount: f64| ((amount / bound(1)) as usize).min(BINS - 1);
    let (mut histogram, mut counts) = (vec![0; BINS], vec![0; BINS * COLUMNS]);
    for (at, amount) in drawn.seconds.iter().zip(&drawn.amount_per_quantum) {
        let column = ((at / PERIOD).fract() * COLUMNS as f64) as usize;
        histogram[bin(*amount)] += 1;
        counts[bin(*amount) * COLUMNS + column] += 1;
    }
    let frequencies: Vec<f64> = (1..30_000).map(|step| f64::from(step) * 0.04).collect();
    let power = frequencies.iter().zip(noise(11)).map(|(hertz, part)| {
        let (harmonic, order) = ((hertz * PERIOD).round(), hertz * PERIOD);
        let near = (-((order - harmonic) / 0.08).powi(2)).exp();
        let peak = if harmonic > 0.0 { 300.0 / harmonic.powf(1.4) * near } else { 0.0 };
        -(1.0 - part).ln() + peak
    });
    Pictures {
        power: power.collect(),
        frequencies,
        alarm_power: 14.9,
        histogram_bounds: (0..=BINS).map(bound).collect(),
        histogram,
        heat_map: Some(HeatMap { period_seconds: PERIOD, columns: COLUMNS, counts }),
        ..drawn.clone()
    }
}

/// Dirty pages that rise until the stall, writeback after it, sleeps in it, bytes on the wire while it is written back.
fn probe_columns(seconds: &[f64]) -> Vec<Vec<Option<f64>>> {
    let column = |value: &dyn Fn(f64, f64) -> f64| {
        seconds.iter().zip(noise(5)).map(|(at, part)| Some(value(*at, part))).collect::<Vec<_>>()
    };
    let since = |at: f64| (at / PERIOD - PHASE).rem_euclid(1.0) * PERIOD;
    let dirty = |at: f64, part: f64| match since(at) {
        after if after < 0.4 => 41_000.0 - 100_000.0 * after,
        after => 1000.0 + 40_000.0 * (after - 0.4) / (PERIOD - 0.4) + 20.0 * part,
    };
    let writeback = |at: f64, part: f64| match since(at) {
        after if after < 0.5 => (12_800.0 - 25_000.0 * after).max(0.0) + 60.0 * part,
        _ => 0.0,
    };
    let sleeps = |at: f64, part: f64| f64::from(u32::from((in_stall(at, STALL) && part < 0.2) || part < 0.002));
    let sent =
        |at: f64, part: f64| if since(at) < 0.5 { 90_000.0 + 120_000.0 * part } else { 4096.0 * (part * 9.0).floor() };
    vec![column(&dirty), column(&writeback), column(&sleeps), column(&sent)]
}

fn in_stall(at: f64, stall: f64) -> bool {
    (at / PERIOD - PHASE).rem_euclid(1.0) * PERIOD < stall
}

/// Numbers from 0 to 1 that follow no rule, the same in every run.
fn noise(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    })
}

fn every(period_seconds: f64, stall_seconds: f64, probe: &str, cause: &str) -> Periodic {
    let (period, stall) = (crate::number::seconds(period_seconds), crate::number::seconds(stall_seconds));
    let of = (27.0 / period_seconds) as u64;
    Periodic {
        period_seconds,
        stall_seconds,
        depth: 0.97,
        false_alarm: 3.1e-14,
        phase: PHASE,
        seen: of,
        of,
        probe: Some(probe.to_owned()),
        labels: vec![label(probe, "pages", 23.4), label("writeback", "pages", 11.0), label("sleeps", "sleeps", 9.7)],
        sentence: format!("every {period} the worker stops for {stall} {cause}").trim_end().to_owned(),
    }
}

fn label(probe: &str, unit: &str, times_chance: f64) -> Label {
    Label {
        probe: probe.to_owned(),
        unit: unit.to_owned(),
        during: 41_000.0,
        elsewhere: 41_000.0 / times_chance,
        change: -41_000.0,
        times_chance,
        false_alarm: 2e-9,
        words: format!("{probe} falls by 41,000"),
    }
}

fn stall(at_seconds: f64, seconds: f64, labels: Vec<Label>) -> Stall {
    let sentence = format!("at {at_seconds:.3} s the writer stops for {seconds} s");
    Stall { at_seconds, seconds, lost_seconds: seconds * 0.93, labels, sentence }
}

fn probe(name: &str, unit: &str, counter: bool, (mean, least, greatest): (f64, f64, f64)) -> ProbeFinding {
    ProbeFinding {
        name: name.to_owned(),
        meaning: format!("what {name} is"),
        unit: unit.to_owned(),
        mean: Some(mean),
        least: Some(least),
        greatest: Some(greatest),
        counter,
        ..ProbeFinding::default()
    }
}
