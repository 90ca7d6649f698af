//! Comparisons in which the rate steps: the last regime gives the answer, or there is none.

use super::*;
use crate::compare::TWO_REGIMES;
use model::limit::LimitState;
use model::stats::Verdict;

/// Cold until `step`: a hundred times as slow, and the candidate is not cheaper. Warm after that, and the candidate
/// costs 20 % more.
fn stepping(step: usize) -> impl Fn(usize, usize) -> Load {
    move |round, case| {
        let wobble = wobble(round, case);
        match (round < step, case) {
            (true, _) => Load { nanos_per_io: 50_000 + 10 * wobble, ios: 400 },
            (false, 0) => Load { nanos_per_io: 1000 + wobble, ios: 40_000 },
            (false, _) => Load { nanos_per_io: 1200 + wobble, ios: 36_000 },
        }
    }
}

#[test]
fn the_last_regime_gives_the_answer() {
    let found = study(&record(experiment(Draft::default()), 23, stepping(8)));
    assert_eq!(found.rounds, 15);
    let [cold, warm] = found.regimes.as_slice() else { panic!("{:?}", found.regimes) };
    assert_eq!((cold.first_round, cold.last_round, cold.counted), (1, 8, false));
    assert_eq!((warm.first_round, warm.last_round, warm.counted), (9, 23, true));
    let metric = &found.cells[0].metrics["cycles_per_io"];
    assert!((metric.change.unwrap() - 0.2).abs() < 0.01, "{metric:?}");
    assert_eq!(metric.verdict, Verdict::Worse);
    let warning = found.head.warnings.iter().find(|warning| warning.code == Code::TwoRegimes).unwrap();
    assert!(warning.message.contains("stepped after round 8"), "{}", warning.message);
}

#[test]
fn a_last_regime_that_is_too_short_gives_no_verdict() {
    let found = judged(&record(experiment(Draft::default()), 11, stepping(8)), &["cycles_per_io > +3%"]);
    for (name, metric) in &found.cells[0].metrics {
        assert_eq!((metric.change, metric.verdict), (None, Verdict::Inconclusive), "{name}");
    }
    let metric = &found.cells[0].metrics["cycles_per_io"];
    assert_eq!(metric.reason.as_deref(), Some(TWO_REGIMES));
    assert_eq!(found.head.limits[0].state, LimitState::Undecided);
    assert!(!found.regimes[1].counted);
}

/// A step in one of many cells, which is hardly visible in their sum.
#[test]
fn a_step_of_a_single_arm_counts() {
    let load = |round: usize, case| match (round < 6, case) {
        (true, 1) => Load { nanos_per_io: 50_000, ios: 400 },
        _ => Load { nanos_per_io: 1000 + wobble(round, case), ios: 40_000 },
    };
    let found = study(&record(experiment(Draft::default()), 20, load));
    assert_eq!((found.regimes.len(), found.rounds), (2, 14));
}

#[test]
fn one_level_is_one_regime_whatever_the_change() {
    let load =
        |round, case| Load { nanos_per_io: if case == 0 { 1000 } else { 4000 } + wobble(round, case), ios: 10_000 };
    let found = study(&record(experiment(Draft::default()), 20, load));
    assert!(found.regimes.is_empty() && found.rounds == 20);
    assert_eq!(found.cells[0].metrics["cycles_per_io"].verdict, Verdict::Worse);
}

#[test]
fn fewer_than_two_rounds_have_no_change() {
    for rounds in [0, 1] {
        let found = study(&record(experiment(Draft::default()), rounds, stepping(0)));
        assert!(found.cells[0].metrics.values().all(|metric| metric.change.is_none() && metric.reason.is_some()));
    }
    let two = study(&record(experiment(Draft::default()), 2, stepping(0)));
    assert!(two.cells[0].metrics["cycles_per_io"].change.is_some());
}

/// Also during the measurement: rounds of an earlier regime do not count for the decision or the budget.
#[test]
fn measuring_continues_after_the_step() {
    let record = record(experiment(Draft::default()), 23, stepping(8));
    let mut progress = Progress::new(&record.header);
    for (number, round) in record.rounds.iter().enumerate() {
        progress.add(round);
        let expected = if number >= 9 { 8 } else { 0 };
        assert_eq!(progress.before(), expected, "after round {}", number + 1);
    }
    let standing = progress.standing().unwrap();
    assert!((standing.change - 0.2).abs() < 0.2, "{standing:?}");
}

/// A file that is cached block by block, without a step: each round finds more of it in memory.
#[test]
fn a_cache_that_warms_up_is_a_regime_until_it_is_warm() {
    let measured = |rounds: usize, missing: fn(u64) -> u64| {
        let load = costing(1000, 1000);
        let mut record = record(experiment(Draft::default()), rounds, load);
        for Parts { round: number, work, .. } in parts(&mut record.rounds) {
            let missing = missing(number as u64);
            work.read_bytes = Some(work.bytes);
            work.storage_read = Some(Bytes(work.bytes.0 / 10 * missing));
        }
        study(&record)
    };
    let warming = |rounds| measured(rounds, |number| 10_u64.saturating_sub(number));
    // In the ninth round a fifth is missing, in the tenth a tenth.
    let long = warming(20);
    assert_eq!((long.rounds, long.regimes[0].last_round), (11, 9), "{:?}", long.regimes);
    assert!(long.cells[0].metrics["cycles_per_io"].change.is_some());
    let short = warming(9);
    assert_eq!(short.cells[0].metrics["iops"].reason.as_deref(), Some(TWO_REGIMES));
    // The last round still changes, so it is the end.
    let moving = measured(8, |number| if number < 7 { 10 } else { 0 });
    let ranges: Vec<_> = moving.regimes.iter().map(|regime| (regime.first_round, regime.last_round)).collect();
    assert_eq!(ranges, [(1, 7), (8, 8)]);
}

/// If the fraction of cached reads varies randomly from round to round, there is no regime.
#[test]
fn random_variation_is_not_a_regime() {
    let measured = |ios: u64| {
        let load = move |round, case| Load { nanos_per_io: 1000 + wobble(round, case), ios };
        let mut record = record(experiment(Draft::default()), 40, load);
        for Parts { round: number, work, .. } in parts(&mut record.rounds) {
            work.read_bytes = Some(work.bytes);
            // Half of them, and up to 15 % more or fewer.
            work.storage_read = Some(Bytes(work.bytes.0 * [50, 65, 42, 58, 35][number % 5] / 100));
        }
        study(&record)
    };
    let few = measured(10);
    assert!(few.regimes.is_empty() && few.rounds == 40, "{:?}", few.regimes);
    let many = measured(10_000);
    assert_eq!(many.regimes.len(), 2, "of so many reads it is no chance");
}

/// One execution that reads its file from the disk takes as long as many that find it in memory.
#[test]
fn executions_that_read_the_disk_are_not_added_to_those_that_did_not() {
    let measured = |cold: std::ops::Range<usize>| {
        let load = costing(1000, 1000);
        let mut record = record(experiment(Draft::default()), 20, load);
        record.header.schedule = Schedule::Executions;
        for Parts { round: number, work, .. } in parts(&mut record.rounds) {
            let read = if cold.contains(&number) { 256 << 20 } else { number as u64 * 4096 };
            work.storage_read = Some(Bytes(read));
        }
        study(&record)
    };
    let first = measured(0..1);
    assert_eq!((first.rounds, first.regimes[0].last_round), (19, 1), "{:?}", first.regimes);
    let between = measured(8..12);
    assert_eq!((between.rounds, between.regimes[0].last_round), (8, 12), "{:?}", between.regimes);
    assert!(measured(0..0).regimes.is_empty() && measured(0..20).regimes.is_empty());
}
