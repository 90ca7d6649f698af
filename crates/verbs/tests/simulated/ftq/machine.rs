//! A simulated worker on a simulated machine, and its recorder.
//!
//! Time is lost to planted stalls and to the noise of the machine; the rest is work at the machine's speed. The recorder
//! is a little late at each reading, and sometimes by quanta.

pub use crate::random::Random;
use crate::random::wander;
use iotoll_verbs::ftq::record::{Chunk, End, FtqPlan, FtqRecord, Header, QUANTUM, Worker};
use model::probe::{Descriptor, Kind as ProbeKind, Scope};
use model::record::Host;
use model::unit::Nanos;

/// Seconds of a quantum.
pub const QUANTUM_SECONDS: f64 = QUANTUM.0 as f64 / 1e9;
/// Bytes that an undisturbed worker does in a quantum.
const BYTES: f64 = 900_000.0;
/// Part of the readings that are late by quanta.
const LATE: f64 = 0.003;

/// The noise of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Each quantum has its own speed, lognormal with 5 %.
    Grain,
    /// Grain, a speed that wanders by 10 % with a memory of 20 s, and 3 % with a memory of 50 ms.
    Drift,
    /// As on a shared host: grain and drift; 20 times a second the hypervisor steals a time with a heavy tail (Pareto,
    /// 20 µs or more, exponent 1.3, at most 50 ms), in clusters.
    Bursts,
    /// Grain, and every 5 s on average the speed becomes 0.7, 1 or 1.3.
    Levels,
    /// Other programs run on the worker's CPU: for 3 s on average none, then for 3 s they take it for 4 ms, 15 times a second.
    Busy,
}

impl Noise {
    /// In which all that is planted is found.
    pub const ALL: [Self; 4] = [Self::Grain, Self::Drift, Self::Bursts, Self::Levels];
    /// In which nothing is found where nothing is planted.
    pub const EVEN_BUSY: [Self; 5] = [Self::Grain, Self::Drift, Self::Bursts, Self::Levels, Self::Busy];
}

/// A stall that repeats.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    pub period: f64,
    pub stall: f64,
    /// Standard deviation of the begin of each stall, in seconds.
    pub jitter: f64,
}

/// Amounts by quantum.
pub fn amounts(noise: Noise, planted: &[Planted], seconds: f64, random: &mut Random) -> Vec<f64> {
    let quanta = (seconds / QUANTUM_SECONDS) as usize;
    let mut lost = vec![0.0; quanta];
    for stalls in planted {
        plant(&mut lost, *stalls, random);
    }
    if noise == Noise::Bursts {
        steal(&mut lost, seconds, random);
    }
    if noise == Noise::Busy {
        share(&mut lost, seconds, random);
    }
    let (mut slow, mut fast, mut level, mut left) = (0.1 * random.normal(), 0.0, 1.0, 0.0);
    let amount = |lost: &f64| {
        if noise == Noise::Drift || noise == Noise::Bursts {
            slow = wander(slow, 0.1, 20.0, QUANTUM_SECONDS, random);
            fast = wander(fast, 0.03, 0.05, QUANTUM_SECONDS, random);
        }
        left -= QUANTUM_SECONDS;
        if noise == Noise::Levels && left < 0.0 {
            left = 5.0 * random.exponential();
            level = [0.7, 1.0, 1.3][(random.uniform() * 3.0) as usize % 3];
        }
        let speed = if noise == Noise::Levels { level } else { f64::exp(slow + fast) };
        let grain = (0.05 * random.normal()).exp();
        BYTES * speed * grain * (1.0 - lost / QUANTUM_SECONDS).max(0.0)
    };
    lost.iter().map(amount).collect()
}

fn plant(lost: &mut [f64], stalls: Planted, random: &mut Random) {
    let end = lost.len() as f64 * QUANTUM_SECONDS;
    let mut at = stalls.period * random.uniform();
    while at < end {
        lose(lost, at + stalls.jitter * random.normal(), stalls.stall);
        at += stalls.period;
    }
}

fn steal(lost: &mut [f64], seconds: f64, random: &mut Random) {
    let mut at = 0.0;
    while at < seconds {
        // In clusters: short distances within, long ones between.
        at += random.exponential() * if random.uniform() < 0.1 { 0.46 } else { 0.005 };
        let stolen = 20e-6 * (1.0 - random.uniform()).powf(-1.0 / 1.3);
        lose(lost, at, stolen.min(0.05));
    }
}

fn share(lost: &mut [f64], seconds: f64, random: &mut Random) {
    let mut at = 0.0;
    while at < seconds {
        at += 3.0 * random.exponential();
        let until = at + 3.0 * random.exponential();
        while at < until {
            lose(lost, at, 0.004);
            at += 0.004 + random.exponential() / 15.0;
        }
    }
}

/// Loses `seconds` from `at` on.
fn lose(lost: &mut [f64], at: f64, seconds: f64) {
    let (mut at, end) = (at.max(0.0), at + seconds);
    while at < end {
        let quantum = (at / QUANTUM_SECONDS + 1e-9) as usize;
        let Some(quantum_lost) = lost.get_mut(quantum) else { return };
        let until = end.min((quantum + 1) as f64 * QUANTUM_SECONDS);
        *quantum_lost += until - at;
        at = until;
    }
}

/// Cuts a series into blocks of `length` quanta and shuffles them: no period longer than a block remains.
pub fn shuffled(amounts: &[f64], length: usize, random: &mut Random) -> Vec<f64> {
    let mut blocks: Vec<&[f64]> = amounts.chunks(length).collect();
    for last in (1..blocks.len()).rev() {
        blocks.swap(last, (random.uniform() * (last + 1) as f64) as usize);
    }
    blocks.concat()
}

/// The sum so far after each step.
pub fn sums(begin: f64, steps: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = begin;
    let add = |step| {
        sum += step;
        sum
    };
    steps.map(add).collect()
}

/// A probe by quantum: counters cumulative, gauges as they are.
pub struct ProbeSeries {
    pub descriptor: Descriptor,
    pub values: Vec<f64>,
}

/// A probe with these values at the end of each quantum.
pub fn probe(name: &str, unit: &str, kind: ProbeKind, values: Vec<f64>) -> ProbeSeries {
    let (name, unit, meaning) = (name.to_owned(), unit.to_owned(), "simulated".to_owned());
    ProbeSeries { descriptor: Descriptor { name, meaning, unit, kind, scope: Scope::Machine }, values }
}

/// What a recorder reads.
pub fn recorded(amounts: &[f64], probes: Vec<ProbeSeries>, random: &mut Random) -> FtqRecord {
    let mut chunk = Chunk { probes: probes.iter().map(|_| Vec::new()).collect(), ..Chunk::default() };
    let until = sums(0.0, std::iter::once(0.0).chain(amounts.iter().copied()));
    let mut deadline = 0;
    while deadline < amounts.len() {
        let delay = 3e-6 + 4e-6 * random.exponential();
        let late = if random.uniform() < LATE { QUANTUM_SECONDS * (0.5 + 2.0 * random.exponential()) } else { 0.0 };
        let at = deadline as f64 * QUANTUM_SECONDS + delay + late;
        let quantum = (at / QUANTUM_SECONDS) as usize;
        let Some(rest) = amounts.get(quantum) else { break };
        chunk.at.push(Nanos((at * 1e9) as u64));
        chunk.amount.push((until[quantum] + rest * (at / QUANTUM_SECONDS).fract()) as u64);
        for (column, probe) in chunk.probes.iter_mut().zip(&probes) {
            column.push(Some(probe.values[quantum]));
        }
        deadline = quantum + 1;
    }
    let plan = FtqPlan {
        worker: Worker::Process(1),
        quantum: QUANTUM,
        duration: Nanos((amounts.len() as f64 * QUANTUM_SECONDS * 1e9) as u64),
        seed: 1,
        ..FtqPlan::default()
    };
    let header = Header {
        plan,
        host: Host { cpus: 2, ..Host::default() },
        unit: "bytes".to_owned(),
        probes: probes.into_iter().map(|probe| probe.descriptor).collect(),
        ..Header::default()
    };
    FtqRecord { header, chunks: vec![chunk], end: Some(End::default()) }
}
