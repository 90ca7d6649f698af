//! Two simulated sessions with a known difference and known causes.

use super::super::study;
use super::super::study::tests::{Load, axis, experiment, record, wobble};
use super::*;
use crate::hostile::Vandal;
use model::experiment::draft::Draft;
use model::kind::Recorded;
use model::reading::Reading;
use model::record::Outcome;
use model::stats::Estimate;
use model::unit::Nanos;
use model::warning::Code;

/// Nanoseconds per I/O before any change.
const BEFORE: f64 = 100_000.0;

/// A session on a machine that costs `environment` times as much as it did once, with a candidate that costs 4 % more.
/// The noise has mean 0, so the results are exact.
fn session(draft: Draft, environment: f64) -> CompareRecord {
    // 21 rounds are one period of the noise.
    let mean = 139.0 / 21.0;
    let noise = |round, case| 1e-3 * (wobble(round, case) as f64 - mean);
    record(experiment(draft), 21, |round, case| {
        let change = if case % 2 == 0 { 1.0 } else { 1.04 };
        let nanos = BEFORE * environment * change * (1.0 + noise(round, case));
        Load { nanos_per_io: nanos.round() as u64, ios: 400 }
    })
}

fn stored(record: CompareRecord) -> Stored<CompareRecord> {
    Stored::new("old", record)
}

fn holds(change: &Estimate, truth: f64) -> bool {
    change.low.unwrap() <= truth && truth <= change.high.unwrap()
}

#[test]
fn known_changes_are_split_into_change_and_environment() {
    let now = session(Draft::default(), 1.69);
    let found = now.study(Some(&stored(session(Draft::default(), 1.0))));
    let metric = &found.cells[0].metrics["cycles_per_io"];
    let against = metric.stored.unwrap();
    let (change, environment, total) = (metric.change.unwrap(), against.environment, against.total);
    assert!(((1.0 + change) * (1.0 + environment.value) - (1.0 + total.value)).abs() < 1e-12);
    assert!(
        (0.03..0.05).contains(&change) && metric.low.unwrap() <= 0.04 && metric.high.unwrap() >= 0.04,
        "{metric:?}"
    );
    assert!(holds(&environment, 0.69) && holds(&total, 1.69 * 1.04 - 1.0), "{against:?}");
    assert!((against.baseline / (2.0 * BEFORE) - 1.0).abs() < 1e-4, "{against:?}");
    let from = found.head.stored.unwrap();
    assert_eq!((from.from.as_str(), from.differs.as_slice()), ("old", [].as_slice()));
    // The same number of I/Os in every slice: no change and no variation.
    let rate = found.cells[0].metrics["iops"].stored.unwrap();
    for change in [rate.environment, rate.total] {
        assert!([Some(change.value), change.low, change.high].iter().all(|end| end.unwrap().abs() < 1e-12), "{rate:?}");
    }
    assert!(found.cells[0].metrics["latency_p99"].stored.is_none());
    assert!(!found.head.warnings.iter().any(|warning| warning.message.contains("stored")), "{:?}", found.head.warnings);
}

/// The change has the confidence of its family, so that the intervals of several metrics hold together: then those that it is
/// multiplied with have it, too.
#[test]
fn all_intervals_of_a_line_have_one_confidence() {
    let (then, now) = (session(Draft::default(), 1.0), session(Draft::default(), 1.69));
    let found = now.study(Some(&stored(then.clone())));
    let metric = &found.cells[0].metrics["cycles_per_io"];
    let confidence = metric.confidence.unwrap();
    assert!(confidence > CONFIDENCE, "{confidence}");
    let (now, then) = (Session::of(&now, None), Session::of(&then, None));
    let level = |session: &Session, arm| session.level(Metric::CyclesPerIo, &BTreeMap::new(), arm).unwrap();
    for (change, arm) in [(metric.stored.unwrap().environment, 0), (metric.stored.unwrap().total, 1)] {
        let expected = |confidence| level(&now, arm).since(&level(&then, 0), confidence);
        assert_eq!((change.low, change.high), (expected(confidence).low, expected(confidence).high));
        assert!(change.low < expected(CONFIDENCE).low && change.high > expected(CONFIDENCE).high, "{change:?}");
    }
}

#[test]
fn the_other_way_round_the_environment_is_the_inverse() {
    let (old, new) = (session(Draft::default(), 1.0), session(Draft::default(), 1.69));
    let environment = |now: &CompareRecord, then: &CompareRecord| {
        let found = now.study(Some(&stored(then.clone())));
        found.cells[0].metrics["cycles_per_io"].stored.unwrap().environment
    };
    let (there, back) = (environment(&new, &old), environment(&old, &new));
    let inverse = |one: f64, other: f64| ((1.0 + one) * (1.0 + other) - 1.0).abs() < 1e-12;
    assert!(inverse(there.value, back.value), "{there:?} {back:?}");
    assert!(inverse(there.low.unwrap(), back.high.unwrap()), "{there:?} {back:?}");
}

#[test]
fn without_a_stored_record_nothing_is_added() {
    let record = session(Draft::default(), 1.0);
    let (plain, against) = (study(&record), record.study(None));
    assert_eq!(serde_json::to_value(plain).unwrap(), serde_json::to_value(against).unwrap());
}

#[test]
fn cells_are_found_by_their_labels_and_others_are_without() {
    let swept = |values: &[&str]| Draft { axes: vec![axis("bs", values)], ..Draft::default() };
    let old = stored(session(swept(&["16k", "4k"]), 1.0));
    let now = session(swept(&["4k", "64k"]), 1.69);
    assert_eq!(fits(&old.record, &now.header.experiment), Ok(()));
    let found = now.study(Some(&old));
    let environment = |cell: usize| found.cells[cell].metrics["cycles_per_io"].stored.map(|stored| stored.environment);
    assert!(holds(&environment(0).unwrap(), 0.69) && environment(1).is_none());
    let elsewhere = experiment(swept(&["128k", "256k"]));
    let refused = fits(&old.record, &elsewhere).unwrap_err();
    assert!(refused.contains("bs=16k, bs=4k") && refused.contains("bs=128k, bs=256k"), "{refused}");
    let refused = fits(&old.record, &experiment(Draft::default())).unwrap_err();
    assert!(refused.contains("today's is at no point of a sweep"), "{refused}");
}

#[test]
fn records_without_rounds_do_not_fit() {
    let mut old = session(Draft::default(), 1.0);
    old.rounds.clear();
    assert!(fits(&old, &experiment(Draft::default())).unwrap_err().contains("no complete round"));
}

#[test]
fn a_single_round_has_a_value_and_no_interval() {
    let mut old = session(Draft::default(), 1.0);
    old.rounds.truncate(1);
    let found = session(Draft::default(), 1.69).study(Some(&stored(old)));
    let environment = found.cells[0].metrics["cycles_per_io"].stored.unwrap().environment;
    assert!((0.6..0.8).contains(&environment.value) && environment.low.is_none(), "{environment:?}");
}

/// The contents of a stored record may be arbitrary.
#[test]
fn changed_records_do_not_panic() {
    let (now, vandal) = (session(Draft::default(), 1.0), Vandal::new(&session(Draft::default(), 1.0)));
    let mut fitting = 0;
    for seed in 0..200 {
        let Ok(changed) = serde_json::from_value::<CompareRecord>(vandal.changed(seed)) else { continue };
        let stored = stored(changed);
        if fits(&stored.record, &now.header.experiment).is_ok() {
            now.study(Some(&stored));
            fitting += 1;
        }
    }
    assert!(fitting > 50, "{fitting}");
}

/// The stored session used a meter that this one does not have, so their cycles cannot be compared.
#[test]
fn cycles_of_different_meters_are_not_compared() {
    let mut now = session(Draft::default(), 1.69);
    for slice in now.rounds.iter_mut().flat_map(|round| &mut round.slices) {
        if let crate::compare::record::SliceReading::Slice { before, .. } = &mut slice.reading {
            before.counts.set(Meter::TimerList, None);
        }
    }
    let mut old = session(Draft::default(), 1.0);
    for slice in old.rounds.iter_mut().flat_map(|round| &mut round.slices) {
        if let crate::compare::record::SliceReading::Slice { before, .. } = &mut slice.reading {
            before.counts.set(Meter::Idle, None);
        }
    }
    let found = now.study(Some(&stored(old)));
    assert_eq!(found.environment.meter.as_deref(), Some("idle"));
    let metrics = &found.cells[0].metrics;
    assert!(metrics["cycles_per_io"].change.is_some() && metrics["cycles_per_io"].stored.is_none());
    assert!(metrics["iops"].stored.is_some());
}

#[test]
fn known_differences_are_listed() {
    let mut old = session(Draft::default(), 1.0);
    let now = session(Draft::default(), 1.69);
    let header = &mut old.header;
    header.envelope.started_unix_seconds = 1_777_777_777.0;
    (header.host.kernel, header.host.governor) = ("6.9.1".to_owned(), "powersave".to_owned());
    header.host.mitigations = vec!["meltdown: PTI".to_owned()];
    header.host.hypervisor = Some("KVM".to_owned());
    header.canaries.null_system_call_nanos = 80.0;
    header.canaries.context_switch_nanos = Reading::Taken(1500.0);
    old.end.as_mut().unwrap().canaries.null_system_call_nanos = 82.0;
    let found = now.study(Some(&stored(old))).head.stored.unwrap();
    assert_eq!(found.started_unix_seconds, 1_777_777_777.0);
    assert_eq!(
        found.differs,
        [
            "kernel 6.9.1 → ",
            "hypervisor KVM → none",
            "governor powersave → ",
            "mitigation of meltdown PTI → none",
            "system call 81.0 ns → 100 ns"
        ]
    );
}

#[test]
fn different_work_and_method_are_caveats() {
    let mut old = session(Draft::default(), 1.0);
    old.header.envelope.method_version += 1;
    for case in &mut old.header.experiment.cases {
        if let model::experiment::Work::Jobs(plan) = &mut case.work {
            plan.phases[0].jobs[0].pace.think_time = Nanos(5);
        }
    }
    let found = session(Draft::default(), 1.0).study(Some(&stored(old)));
    let message_of = |code| found.head.warnings.iter().find(|warning| warning.code == code).unwrap().message.as_str();
    assert!(message_of(Code::StoredWorkDiffers).contains("thinktime 5ns → 0"), "{found:?}");
    let today = format!("with method {}", found.head.method_version);
    assert!(message_of(Code::StoredMethodDiffers).contains(&today), "{found:?}");
    assert_eq!(found.head.outcome, Outcome::Completed);
}
