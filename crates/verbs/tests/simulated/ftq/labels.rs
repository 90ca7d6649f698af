//! Probes that move with stalls, and probes that do not.

use super::machine::{Noise, Planted, ProbeSeries, QUANTUM_SECONDS, Random, amounts, probe, recorded, sums};
use iotoll_verbs::ftq::{FtqFinding, study};
use model::probe::Kind;

/// Pages that are written back in each stall.
const PAGES: f64 = 41_000.0;

/// A random walk of a gauge.
fn walk(name: &str, quanta: usize, random: &mut Random) -> ProbeSeries {
    probe(name, "pages", Kind::Gauge, sums(5000.0, (0..quanta).map(|_| 10.0 * random.normal())))
}

/// A counter whose events come at random, `rate` a second on average.
fn events(name: &str, rate: f64, quanta: usize, random: &mut Random) -> ProbeSeries {
    let step = |_| f64::from(u8::from(random.uniform() < rate * QUANTUM_SECONDS));
    probe(name, "events", Kind::Counter, sums(0.0, (0..quanta).map(step)))
}

/// A counter that grows by `each` in every stalled quantum, and by noise.
fn in_stalls(name: &str, stalled: &[bool], each: f64, random: &mut Random) -> ProbeSeries {
    let step = |stalled: &bool| if *stalled { each } else { 0.0 } + f64::from(u8::from(random.uniform() < 0.01));
    probe(name, "requests", Kind::Counter, sums(0.0, stalled.iter().map(step)))
}

/// Dirty pages: a sawtooth that falls in the stalls, and wanders.
fn dirty(stalled: &[bool], random: &mut Random) -> ProbeSeries {
    let in_stalls = stalled.iter().filter(|stalled| **stalled).count().max(1);
    let stalls = stalled.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
    let fall = PAGES * stalls / in_stalls as f64;
    let rise = fall * in_stalls as f64 / (stalled.len() - in_stalls) as f64;
    let mut level = 2.0 * PAGES;
    let values = stalled.iter().map(|stalled| {
        level += if *stalled { -fall } else { rise } + 3.0 * random.normal();
        level.max(0.0)
    });
    probe("dirty", "pages", Kind::Gauge, values.collect())
}

/// A recording of 27 s with a stall of 180 ms every 5 s, dirty pages and block requests that move with it, and six
/// probes that do not.
fn writeback(seed: u64) -> FtqFinding {
    let random = &mut Random::new(seed);
    let planted = Planted { period: 5.0, stall: 0.18, jitter: 0.01 };
    let amounts = amounts(Noise::Drift, &[planted], 27.0, random);
    let stalled: Vec<bool> = amounts.iter().map(|amount| *amount < 1000.0).collect();
    let quanta = amounts.len();
    let probes = vec![
        walk("walk1", quanta, random),
        walk("walk2", quanta, random),
        dirty(&stalled, random),
        events("events", 300.0, quanta, random),
        walk("walk3", quanta, random),
        in_stalls("block.vda.write_ios", &stalled, 0.5, random),
        walk("walk4", quanta, random),
        probe("still", "pages", Kind::Gauge, vec![7.0; quanta]),
    ];
    study(&recorded(&amounts, probes, random), None)
}

#[test]
fn the_probe_that_moves_with_a_period_is_named_and_random_walks_are_not() {
    for seed in 0..if crate::ALL { 3 } else { 1 } {
        let finding = writeback(seed);
        let period = &finding.periodic[0];
        let mut names: Vec<&str> = period.labels.iter().map(|label| label.probe.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["block.vda.write_ios", "dirty"], "{period:#?}");
        let sentence = &period.sentence;
        assert!(sentence.starts_with("every 5.0") && sentence.contains(" s the process stops for 1"), "{period:#?}");
        let dirty = period.labels.iter().find(|label| label.probe == "dirty").unwrap();
        assert!((dirty.change / -PAGES - 1.0).abs() < 0.1, "{dirty:#?}");
        assert!(dirty.words.starts_with("dirty pages fall by "), "{dirty:#?}");
        assert!(dirty.times_chance > 3.0 && dirty.false_alarm <= 0.01, "{dirty:#?}");
        assert_eq!(finding.stall_count, 0, "{:#?}", finding.stalls);
    }
}

#[test]
fn labels_are_right_in_most_recordings() {
    let of = super::series(2);
    let (mut right, mut wrong) = (0, 0);
    for seed in 100..100 + of {
        let finding = writeback(seed);
        let labels = finding.periodic.first().map(|period| period.labels.clone()).unwrap_or_default();
        let planted = |name: &str| ["dirty", "block.vda.write_ios"].contains(&name);
        right += labels.iter().filter(|label| planted(&label.probe)).count() as u64;
        wrong += labels.iter().filter(|label| !planted(&label.probe)).count() as u64;
    }
    let planted = 2 * of;
    super::note("labels", &format!("{right} of {planted} planted, and {wrong} of {} others", 6 * of));
    assert!(right >= planted - planted / 20 && wrong <= of / 10, "{right} of {planted} right, {wrong} wrong");
}

#[test]
fn a_single_stall_is_found_with_its_probe() {
    let random = &mut Random::new(7);
    let mut amounts = amounts(Noise::Grain, &[], 30.0, random);
    let stalled: Vec<bool> = (0..amounts.len()).map(|quantum| (30_000..30_700).contains(&quantum)).collect();
    amounts.iter_mut().zip(&stalled).filter(|(_, stalled)| **stalled).for_each(|(amount, _)| *amount = 0.0);
    let quanta = amounts.len();
    let probes = vec![walk("walk", quanta, random), in_stalls("block.vda.flush_ios", &stalled, 0.1, random)];
    let finding = study(&recorded(&amounts, probes, random), None);
    assert_eq!((finding.periodic.len(), finding.stall_count), (0, 1), "{:#?} {:#?}", finding.periodic, finding.stalls);
    let stall = &finding.stalls[0];
    let labels: Vec<&str> = stall.labels.iter().map(|label| label.probe.as_str()).collect();
    assert_eq!(labels, ["block.vda.flush_ios"]);
    assert!((stall.at_seconds - 30_000.0 * QUANTUM_SECONDS).abs() < 2e-3, "{stall:#?}");
    assert!((stall.lost_seconds - 700.0 * QUANTUM_SECONDS).abs() < 2e-3, "{stall:#?}");
    assert!((finding.noise.longest_stall_seconds.unwrap() - 0.308).abs() < 0.002);
}
