//! Checks that the study of a recording finds planted periods, names the probe that moves with them, and finds nothing
//! where there is nothing.
//!
//! All series are simulated with fixed seeds. `cargo test -p iotoll-model --test ftq` runs a few of each kind;
//! `cargo test -p iotoll-model --test ftq -- --ignored --nocapture` runs 20 and more and prints what it found.

// clippy.toml allows these in test functions; everything here is one.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod against;
mod hostile;
mod labels;
mod machine;

use iotoll_model::ftq::finding::Periodic;
use iotoll_model::ftq::{FtqFinding, study};
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

/// How many of `runs` series have the planted period first in the list.
fn first_in_list((planted, seconds): (Planted, f64), noise: Noise, runs: u64) -> u64 {
    let first = |seed: &u64| {
        let finding = studied(noise, &[planted], seconds, *seed);
        let found = is(finding.periodic.first(), &planted);
        if std::env::var("SHOW").is_ok() || !found {
            for period in finding.periodic.iter().take(4) {
                println!(
                    "  {noise:?} {seed}: {} {:?}",
                    period.sentence,
                    (period.false_alarm, period.depth, period.seen, period.of)
                );
            }
            if finding.periodic.is_empty() {
                println!("  {noise:?} {seed}: none")
            }
        }
        found
    };
    let found = (0..runs).filter(first).count() as u64;
    println!("{noise:?}: {} s every {} s in {seconds} s: {found} of {runs}", planted.stall, planted.period);
    found
}

#[test]
fn planted_periods_are_first_in_the_list() {
    for noise in Noise::ALL {
        assert_eq!(first_in_list(RARE, noise, 2), 2, "{noise:?}");
        assert_eq!(first_in_list(SHALLOW, noise, 2), 2, "{noise:?}");
        assert_eq!(first_in_list(SLOW, noise, 1), 1, "{noise:?}");
        assert_eq!(first_in_list(WRITEBACK, noise, 1), 1, "{noise:?}");
    }
}

/// Prints a table; takes minutes.
#[test]
#[ignore = "takes minutes; run it with -- --ignored --nocapture"]
fn planted_periods_are_first_in_the_list_19_of_20_times() {
    for noise in Noise::ALL {
        for planted in [RARE, SHALLOW, SLOW, WRITEBACK] {
            let found = first_in_list(planted, noise, 20);
            assert!(found >= 19, "{noise:?} {planted:?}: {found} of 20");
        }
    }
}

/// How many of `runs` series whose blocks were shuffled show a period.
fn alarms(noise: Noise, runs: u64) -> u64 {
    let alarm = |seed: &u64| {
        let random = &mut Random::new(0x5eed_0000 + seed);
        let amounts = amounts(noise, &[SHALLOW.0, RARE.0], 30.0, random);
        let amounts = shuffled(&amounts, 16, random);
        let finding = study(&recorded(&amounts, Vec::new(), random), None);
        for period in &finding.periodic {
            println!("  {noise:?} {seed}: {} {:e}", period.sentence, period.false_alarm);
        }
        !finding.periodic.is_empty()
    };
    let found = (0..runs).filter(alarm).count() as u64;
    println!("{noise:?}: {found} of {runs} shuffled series with an alarm");
    found
}

#[test]
fn shuffled_series_show_no_period() {
    let found: u64 = Noise::ALL.iter().map(|noise| alarms(*noise, 2)).sum();
    assert!(found <= 1, "{found}");
}

/// Prints a table; takes minutes.
#[test]
#[ignore = "takes minutes; run it with -- --ignored --nocapture"]
fn shuffled_series_show_at_most_one_period_in_20() {
    for noise in Noise::ALL {
        let found = alarms(noise, 40);
        assert!(found <= 2, "{noise:?}: {found}");
    }
}
