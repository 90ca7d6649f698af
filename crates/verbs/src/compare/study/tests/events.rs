//! Explaining rounds that count events, with known counts per I/O.

use super::*;
use crate::compare::CompareFinding;
use model::events::{CONTEXT_SWITCHES, Event, Events};
use model::explained::EventChange;
use model::reading::Reading;
use model::record::{EventCounts, Mode};
use rand_distr::Distribution;
use std::collections::BTreeMap;

const WAKE: &str = "sched:sched_waking";
const TIMER: &str = "timer:timer_start";
const READ: &str = "syscalls:pread64";
const RARE: &str = "block:block_split";

const IOS: u64 = 10_000;
/// Wake-ups and timers that the machine has anyway, in a slice.
const ANYWAY: [(&str, f64); 2] = [(WAKE, 900.0), (TIMER, 400.0)];
/// What iotoll adds to every slice, whatever its length.
const OWN: [(&str, u64); 2] = [(WAKE, 6), ("syscalls:futex", 5)];
/// I/Os of a slice that ends as soon as it begins.
const FIRST: u64 = 3;

fn status(sets: &[(&str, bool, Reading<u8>)]) -> Events {
    let event = |(name, named, set): &(&str, bool, Reading<u8>)| Event {
        name: (*name).to_owned(),
        named: *named,
        set: set.clone(),
    };
    Events { asked: true, events: sets.iter().map(event).collect(), nanos_per_count: Some(30.0), reason: None }
}

fn usual() -> Events {
    let taken = || Reading::Taken(0);
    status(&[WAKE, TIMER, RARE, CONTEXT_SWITCHES, "syscalls:*"].map(|name| (name, false, taken())))
}

/// Plants counts in a slice.
fn count(slice: &mut SliceRecord, counts: BTreeMap<String, u64>) {
    let SliceReading::Slice { before, after, .. } = &mut slice.reading else { unreachable!() };
    before.mode = Mode::Events(0);
    let (begin_nanos, end_nanos) = (before.at_nanos, after.at_nanos);
    after.events = vec![EventCounts { begin_nanos, end_nanos, done: None, counts }];
}

/// A slice of a few I/Os, as short as it can be.
fn start(slice: &SliceRecord) -> SliceRecord {
    let mut start = slice.clone();
    let SliceReading::Slice { before, after, work, .. } = &mut start.reading else { unreachable!() };
    after.at_nanos = before.at_nanos + Nanos(SLICE / 100);
    (work.ios, work.wall_nanos) = (FIRST, Nanos(SLICE / 100));
    start
}

/// A comparison whose explaining rounds count these events per I/O in each case. What the machine does anyway varies; calls are exact.
fn counted(
    draft: Draft,
    seed: u64,
    rounds: usize,
    per_io: impl Fn(usize) -> Vec<(&'static str, f64)>,
) -> CompareRecord {
    let mut noise = rand_pcg::Pcg64Mcg::new(seed.into());
    let mut draw = || -> f64 { rand_distr::StandardNormal.sample(&mut noise) };
    let mut record = record(experiment(draft), rounds, |_, _| Load { nanos_per_io: 1000, ios: IOS });
    record.header.events = Some(usual());
    record.explaining = record.rounds.clone();
    for round in &mut record.explaining {
        let cases = round.slices.iter().filter(|slice| slice.case.is_some());
        round.starts = cases.map(start).collect();
        for (slice, length) in
            round.slices.iter_mut().map(|slice| (slice, 1.0)).chain(round.starts.iter_mut().map(|slice| (slice, 0.01)))
        {
            let SliceReading::Slice { work, .. } = &slice.reading else { unreachable!() };
            let ios = work.ios as f64;
            let mut counts: BTreeMap<String, f64> = BTreeMap::new();
            for (name, anyway) in ANYWAY {
                *counts.entry(name.to_owned()).or_default() += anyway * length * (1.0 + 0.03 * draw());
            }
            if let Some(case) = slice.case {
                OWN.into_iter().for_each(|(name, own)| *counts.entry(name.to_owned()).or_default() += own as f64);
                per_io(case).into_iter().for_each(|(name, often)| {
                    *counts.entry(name.to_owned()).or_default() += often * ios;
                });
            }
            count(slice, counts.into_iter().map(|(name, often)| (name, often.round() as u64)).collect());
        }
    }
    record
}

fn planted(case: usize) -> Vec<(&'static str, f64)> {
    let wakes = if case.is_multiple_of(2) { 1.0 } else { 1.5 };
    vec![(WAKE, wakes), (TIMER, 0.8), (READ, 1.0), (RARE, 0.0004)]
}

fn of<'a>(found: &'a CompareFinding, name: &str) -> &'a EventChange {
    let event = found.cells[0].cost.events.iter().find(|event| event.name == name);
    event.unwrap_or_else(|| panic!("no {name}: {:?}", found.cells[0].cost.events))
}

#[test]
fn a_planted_change_is_found_in_its_event_and_nowhere_else() {
    let mut elsewhere = 0;
    for seed in 0..40 {
        let found = study(&counted(Draft::default(), seed, 12, planted));
        let wakes = of(&found, WAKE);
        assert!(
            wakes.per_io.detected && found.cells[0].cost.events[0].name == WAKE,
            "{:?}",
            found.cells[0].cost.events
        );
        assert!((wakes.per_io.change.value - 0.5).abs() < 0.01, "{wakes:?}");
        assert!((wakes.per_io.baseline.value - 1.0).abs() < 0.01, "{wakes:?}");
        // Exact, with an interval without a width.
        let reads = of(&found, READ);
        assert_eq!((reads.per_io.baseline, reads.per_io.candidate), (Estimate::exact(1.0), Estimate::exact(1.0)));
        assert_eq!((reads.per_io.change, reads.per_io.detected), (Estimate::exact(0.0), false));
        // What iotoll does at both ends of a slice is in no event, and rare events are not tested.
        let names: Vec<&str> = found.cells[0].cost.events.iter().map(|event| event.name.as_str()).collect();
        assert!(!names.contains(&"syscalls:futex") && !names.contains(&RARE), "{names:?}");
        elsewhere += usize::from(of(&found, TIMER).per_io.detected);
        assert_eq!((found.explanation.counted_rounds, found.explanation.event_family.unwrap().comparisons), (12, 3));
        assert_eq!(found.explanation.events_reason, None);
    }
    // 1 in 60 by chance; 4 or more of 40 has a probability of 1 %.
    assert!(elsewhere <= 4, "{elsewhere} of 40");
}

#[test]
fn identical_arms_show_no_event() {
    let axis = axis("bs", &["4k", "8k", "16k"]);
    let mut shown = 0;
    for seed in 0..100 {
        let draft = Draft { against_itself: true, axes: vec![axis.clone()], ..Draft::default() };
        let found = study(&counted(draft, seed, 12, |_| planted(0)));
        shown += usize::from(found.cells.iter().flat_map(|cell| &cell.cost.events).any(|event| event.per_io.detected));
    }
    // At most 5 are expected; 11 or more has a probability of 1 %.
    assert!(shown <= 10, "{shown} of 100");
}

#[test]
fn an_event_of_one_arm_only_is_all_change() {
    let one = |case: usize| if case == 0 { vec![(READ, 1.0)] } else { vec![("syscalls:io_uring_enter", 0.25)] };
    let found = study(&counted(Draft::default(), 1, 5, one));
    let (reads, enters) = (of(&found, READ), of(&found, "syscalls:io_uring_enter"));
    assert_eq!((reads.per_io.change, reads.per_io.detected), (Estimate::exact(-1.0), true));
    assert!((enters.per_io.change.value - 0.25).abs() < 1e-3 && enters.per_io.detected, "{enters:?}");
    assert_eq!(enters.per_io.baseline, Estimate::exact(0.0));
}

/// Rounds that count see other numbers of switches than the undisturbed ones: the comparison has one figure of them.
#[test]
fn context_switches_are_those_of_the_undisturbed_rounds() {
    let mut record = counted(Draft::default(), 1, 12, |_| vec![(CONTEXT_SWITCHES, 7.0)]);
    for Parts { case, ends: [before, after], .. } in parts(&mut record.rounds) {
        let more = case.map_or(0, |case| IOS * (case as u64 + 1));
        after.system.as_mut().unwrap().context_switches = before.system.unwrap().context_switches + more;
    }
    let found = study(&record);
    let event = of(&found, CONTEXT_SWITCHES);
    let metric = &found.cells[0].metrics[Metric::ContextSwitchesPerIo.name()];
    assert_eq!((metric.baseline, metric.candidate), (Some(1.0), Some(2.0)));
    assert_eq!((event.per_io.baseline, event.per_io.candidate), (Estimate::exact(1.0), Estimate::exact(2.0)));
    assert!(event.per_io.detected);
}

/// Neither the answer nor accounts use these rounds.
#[test]
fn the_answer_does_not_use_them() {
    let record = counted(Draft::default(), 7, 12, planted);
    let mut alone = record.clone();
    alone.explaining = Vec::new();
    let (with, without) = (study(&record), study(&alone));
    let json = |found: &CompareFinding| serde_json::to_value(&found.cells[0].metrics).unwrap();
    assert_eq!(json(&with), json(&without));
    assert!(with.cells[0].cost.accounts.is_empty() && with.cells[0].cost.explained.is_none());
    assert!(with.method.contains("12 further rounds counted events, and are not in the answer"), "{}", with.method);
    let reason = without.explanation.events_reason.as_deref().unwrap();
    assert!(reason.contains("measure longer"), "{reason}");
    let told = without.head.warnings.iter().filter(|warning| warning.message == format!("no events per I/O: {reason}"));
    assert_eq!(told.count(), 1, "the user asked for them");
}

#[test]
fn rounds_without_counts_of_a_case_do_not_count() {
    let mut record = counted(Draft::default(), 3, 6, planted);
    for round in record.explaining.iter_mut().skip(4) {
        let counted = round.slices.iter_mut().find(|slice| slice.case == Some(1)).unwrap();
        let SliceReading::Slice { after, .. } = &mut counted.reading else { unreachable!() };
        after.events.clear();
    }
    assert_eq!(study(&record).explanation.counted_rounds, 4);
    record.explaining.truncate(2);
    let found = study(&record);
    assert!(
        found.cells[0].cost.events.is_empty()
            && found.explanation.event_family.is_none()
            && found.explanation.events_reason.is_some()
    );
}

#[test]
fn what_the_machine_cannot_count_has_a_reason() {
    let mut record = counted(Draft::default(), 3, 6, planted);
    let lacks = || Reading::unavailable("this kernel has no such tracepoint");
    record.header.events = Some(status(&[(WAKE, true, Reading::Taken(0)), ("net:odd", true, lacks())]));
    let found = study(&record);
    assert!(of(&found, WAKE).named);
    assert_eq!(found.cells[0].cost.events.len(), 1, "{:?}", found.cells[0].cost.events);
    let warned = |found: &CompareFinding, text: &str| found.head.warnings.iter().any(|it| it.message.contains(text));
    assert!(warned(&found, "event net:odd: this kernel has no such tracepoint"), "{:?}", found.head.warnings);
    let refused = Events { reason: Some("iotoll lacks CAP_BPF".to_owned()), asked: true, ..Events::default() };
    (record.header.events, record.explaining) = (Some(refused), Vec::new());
    assert!(warned(&study(&record), "no events per I/O: iotoll lacks CAP_BPF"));
}

/// A slice's ends may differ by an event or two, which is much for each of few I/Os.
#[test]
fn an_event_in_each_slice_is_no_event_of_an_io() {
    let one = |case: usize| vec![(READ, if case == 0 { 1.0 } else { 1.0 + 0.5 / IOS as f64 })];
    let found = study(&counted(Draft::default(), 1, 6, one));
    let reads = of(&found, READ);
    assert!(!reads.per_io.detected && reads.per_io.change.value.abs() < 2e-4, "{reads:?}");
}
