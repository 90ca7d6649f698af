//! Recordings for the tests of every format, made up: a worker with the stalls of a page cache at its limit, and odd ones.

use crate::ftq::FtqFinding;
use crate::ftq::finding::Pictures;
use crate::pages::tests::examples::written;

const QUANTUM: f64 = 440e-6;
const PERIOD: f64 = 5.0;
const STALL: f64 = 0.180;
const PHASE: f64 = 0.6;
/// Readings of the seed's figure: 27 s of quanta of 440 µs.
const SEED: usize = 61_363;
/// Readings of the other ones.
const FEW: usize = 6000;

const NAMES: [&str; 8] = ["dirty_limit", "quiet", "compared", "interrupted", "stepped", "cpu", "many_periods", "empty"];

/// All findings with their names.
pub fn all() -> Vec<(&'static str, FtqFinding)> {
    let wild = [("wild_pictures", wild_pictures())];
    NAMES.into_iter().map(|name| (name, named(name))).chain(wild).collect()
}

/// One of the findings, each of which says what it is about, with its pictures.
pub fn named(name: &str) -> FtqFinding {
    let finding = written(include_str!("fixture.json"), name, |_| {});
    let amounts = |seed, of: fn(f64) -> f64| noise(seed).take(FEW).map(of).collect();
    let quiet = || Pictures {
        spans: vec![1; FEW],
        amount_per_quantum: amounts(7, |part| 262_144.0 * (0.9 + 0.1 * part)),
        ..series(FEW)
    };
    let pictures = match name {
        "empty" => Pictures::default(),
        "dirty_limit" | "compared" | "many_periods" => {
            let drawn = series(SEED);
            Pictures { probes: probe_columns(&drawn.seconds), ..drawn }
        }
        "cpu" => Pictures { amount_per_quantum: amounts(3, |part| 41_000.0 - 300.0 * part), ..quiet() },
        "interrupted" => {
            let column = (0..FEW).map(|place| (place < 2800).then_some(f64::from(u32::from(place % 50 == 0))));
            Pictures { probes: vec![column.collect(), vec![None; FEW]], ..quiet() }
        }
        _ => quiet(),
    };
    FtqFinding { pictures, ..finding }
}

/// Columns of different lengths, times that go back, numbers that no reading gives.
fn wild_pictures() -> FtqFinding {
    let mut finding = named("dirty_limit");
    let numbers = [1.0, f64::NAN, -3.0, f64::INFINITY, 2.0, 1e300, 0.0, 5.0];
    let picture = |length: usize| numbers.iter().copied().cycle().take(length).collect::<Vec<f64>>();
    finding.pictures = Pictures {
        seconds: picture(500),
        spans: vec![u32::MAX; 3],
        amount_per_quantum: picture(123),
        probes: vec![picture(700).into_iter().map(Some).collect(), Vec::new(), vec![None; 500]],
    };
    finding
}

/// The series of this many readings with stalls.
fn series(readings: usize) -> Pictures {
    let (mut seconds, mut spans, mut amount_per_quantum) = (Vec::new(), Vec::new(), Vec::new());
    let mut quantum = 0;
    for (place, part) in noise(1).take(readings).enumerate() {
        let span = if place % 331 == 330 { 2 + place as u32 % 2 } else { 1 };
        quantum += span;
        let at = f64::from(quantum) * QUANTUM;
        // Most quanta are full, some are disturbed.
        let full = if part < 0.9 { 0.94 + 0.06 * part } else { part * part };
        seconds.push(at);
        spans.push(span);
        amount_per_quantum.push(if in_stall(at, STALL) { 0.0 } else { (262_144.0 * full / 4096.0).round() * 4096.0 });
    }
    Pictures { seconds, spans, amount_per_quantum, ..Pictures::default() }
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
