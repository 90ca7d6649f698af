//! Checks that the study of a recording finds planted periods, names the probe that moves with them, and finds nothing
//! where there is nothing.
//!
//! All series are simulated with fixed seeds. Each figure is written to `target/tmp/ftq`. By default a figure has few
//! series; `FTQ_SERIES=20 cargo test -p iotoll-model --test simulated ftq` gives it 20.

// clippy.toml allows these in test functions; everything here is one.
#![allow(clippy::unwrap_used)]

mod against;
mod hostile;
mod labels;
mod machine;

use iotoll_verbs::ftq::finding::Periodic;
use iotoll_verbs::ftq::{FtqFinding, study};
use machine::{Noise, Planted, Random, amounts, recorded, shuffled};

/// Permitted error of a period.
const NEAR: f64 = 0.02;

/// 0.5 ms every second, for 30 s.
const RARE: (Planted, f64) = (Planted { period: 1.0, stall: 0.5e-3, jitter: 0.0 }, 30.0);
/// 50 µs every 100 ms, for 30 s.
const SHALLOW: (Planted, f64) = (Planted { period: 0.1, stall: 50e-6, jitter: 0.0 }, 30.0);
/// 5 ms every 5 s, for 120 s.
const SLOW: (Planted, f64) = (Planted { period: 5.0, stall: 5e-3, jitter: 0.0 }, 120.0);
/// The sentence of the issue: 180 ms every 5 s, in a recording of 27 s, at no exact times.
const WRITEBACK: (Planted, f64) = (Planted { period: 5.0, stall: 0.18, jitter: 0.02 }, 27.0);

fn studied(noise: Noise, planted: &[Planted], seconds: f64, seed: u64) -> FtqFinding {
    let random = &mut Random::new(seed);
    let amounts = amounts(noise, planted, seconds, random);
    study(&recorded(&amounts, Vec::new(), random), None)
}

fn is(found: Option<&Periodic>, planted: &Planted) -> bool {
    found.is_some_and(|found| (found.period_seconds / planted.period - 1.0).abs() < NEAR)
}

/// Number of series of a figure: `few`, or as many as the environment asks for.
fn series(few: u64) -> u64 {
    std::env::var("FTQ_SERIES").map_or(few, |number| number.parse().unwrap())
}

/// The kinds of noise of a figure: all, or the first.
fn noises<const N: usize>(all: [Noise; N]) -> impl Iterator<Item = Noise> {
    all.into_iter().take(if crate::ALL { N } else { 1 })
}

/// Writes a figure to `target/tmp/ftq`, so that the results of passed tests can be read.
fn note(name: &str, figure: &str) {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("ftq");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name.replace(' ', "_")), format!("{name}: {figure}\n")).unwrap();
}

/// The planted period is first in the list in all series but one of 20.
fn is_first((planted, seconds): (Planted, f64), noise: Noise, few: u64) {
    let of = series(few);
    let mut missed = Vec::new();
    let mut error: f64 = 0.0;
    for seed in 0..of {
        let found = studied(noise, &[planted], seconds, seed).periodic;
        if is(found.first(), &planted) {
            error = error.max((found[0].period_seconds / planted.period - 1.0).abs());
        } else {
            missed.push((seed, found));
        }
    }
    let hits = of - missed.len() as u64;
    let name = format!("{noise:?} {} s every {} s in {seconds} s", planted.stall, planted.period);
    note(&name, &format!("first in {hits} of {of}, period wrong by {error:.1e} at most"));
    assert!(missed.len() as u64 <= of / 20, "{name}: {missed:#?}");
}

#[test]
fn planted_stalls_are_first_in_the_list() {
    std::thread::scope(|scope| {
        for (planted, few) in [(RARE, 2), (SHALLOW, 2), (SLOW, 1), (WRITEBACK, 2)] {
            scope.spawn(move || noises(Noise::ALL).for_each(|noise| is_first(planted, noise, few)));
        }
    });
}

#[test]
fn stalls_are_as_long_as_planted() {
    for (planted, seconds) in [SHALLOW, WRITEBACK, RARE, SLOW].into_iter().take(if crate::ALL { 4 } else { 2 }) {
        let found = &studied(Noise::Drift, &[planted], seconds, 5).periodic[0];
        assert!((found.stall_seconds / planted.stall - 1.0).abs() < 0.2, "{found:#?}");
        assert!(found.seen * 10 >= found.of * 6 && found.of as f64 >= seconds / planted.period - 2.0, "{found:#?}");
    }
}

/// At most one series in 20 without a period shows one.
fn alarms(name: &str, few: u64, amounts: impl Fn(Noise, &mut Random) -> Vec<f64>) {
    let each = series(few);
    let mut found = Vec::new();
    for (noise, seed) in noises(Noise::EVEN_BUSY).flat_map(|noise| (0..each).map(move |seed| (noise, seed))) {
        let random = &mut Random::new(0x5eed_0000 + seed);
        let amounts = amounts(noise, random);
        let finding = study(&recorded(&amounts, Vec::new(), random), None);
        found.extend((!finding.periodic.is_empty()).then_some((noise, seed, finding.periodic)));
    }
    let of = each * noises(Noise::EVEN_BUSY).count() as u64;
    note(name, &format!("{} of {of} series with an alarm", found.len()));
    let permitted = if crate::ALL { (of / 20).max(1) } else { 0 };
    assert!(found.len() as u64 <= permitted, "{name}: {found:#?}");
}

#[test]
fn shuffled_series_show_no_period() {
    alarms("shuffled blocks", 2, |noise, random| {
        let amounts = amounts(noise, &[SHALLOW.0, RARE.0], 30.0, random);
        shuffled(&amounts, 16, random)
    });
}

#[test]
fn noise_shows_no_period() {
    alarms("nothing planted", 2, |noise, random| amounts(noise, &[], 30.0, random));
}
