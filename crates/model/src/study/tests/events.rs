//! Events per I/O of simulated windows.

use super::*;
use crate::events::{Event, Events};
use crate::stats::Estimate;

const READ: &str = "syscalls:pread64";
const SWITCH: &str = "sched:sched_switch";

fn events() -> Option<Events> {
    let event = |name: &str, set| Event { name: name.to_owned(), named: false, set };
    Some(Events {
        asked: true,
        events: vec![
            event(SWITCH, Reading::Taken(0)),
            event("syscalls:*", Reading::Taken(0)),
            event("block:block_rq_issue", Reading::Taken(1)),
            event("nfs:nfs_read", Reading::unavailable("the kernel lacks it")),
        ],
        nanos_per_count: Some(30.0),
        reason: None,
    })
}

/// Quiet windows, and after each second one a window of each set of events. `counts` is the number of counts in such a window.
fn stretch(happening: Happening, sets: [&[(&str, u64)]; 2]) -> Stretch {
    let mut machine = Machine::begin(Mode::Quiet);
    for _ in 0..6 {
        for next in [Mode::Quiet, Mode::Gap, Mode::Events(0), Mode::Events(1), Mode::Gap, Mode::Quiet] {
            let (before, begin) = (machine.snapshots.last().map(|snapshot| snapshot.mode), machine.now);
            machine.pass(happening, next);
            let set = match before {
                Some(Mode::Events(set)) => sets[usize::from(set)],
                _ => continue,
            };
            // Two readings, and some time that belongs to none.
            let counts = |part: u64| EventCounts {
                begin_nanos: Nanos(begin + 10_000_000 + part * 40_000_000),
                end_nanos: Nanos(begin + 50_000_000 + part * 40_000_000),
                done: Some(Done { ios: happening.ios * 2 / 5, bytes: Bytes(0) }),
                counts: set.iter().map(|(name, count)| ((*name).to_owned(), count * 2 / 5)).collect(),
            };
            machine.snapshots.last_mut().unwrap().events = vec![counts(0), counts(1)];
        }
    }
    machine.stretch()
}

const LOAD: Happening = Happening { busy: 100_000_000, thread: 80_000_000, ios: 1000, steal: 0 };
const COUNTED: [&[(&str, u64)]; 2] = [&[(SWITCH, 2100), (READ, 1000)], &[("block:block_rq_issue", 500)]];
const ANYWAY: [&[(&str, u64)]; 2] = [&[(SWITCH, 100)], &[]];

fn studied(background: Vec<Stretch>, execution: Execution) -> RunFinding {
    study(&Record { events: events(), ..record(background, vec![execution]) })
}

#[track_caller]
fn assert_near(found: Option<&Estimate>, truth: f64) {
    let found = found.unwrap();
    let (low, high) = (found.low.unwrap(), found.high.unwrap());
    assert!((found.value - truth).abs() < 1e-9 && low <= truth && truth <= high, "{found:?}, not {truth}");
}

#[test]
fn counts_are_divided_by_the_work_of_their_own_time_net_of_the_background() {
    let background = vec![stretch(NOTHING, ANYWAY), stretch(NOTHING, ANYWAY)];
    let found = studied(background, execution(stretch(LOAD, COUNTED), 36_000));
    let phase = &found.phases[0];
    let names: Vec<&str> = phase.counted.per_io.keys().map(String::as_str).collect();
    assert_eq!(names, ["block:block_rq_issue", SWITCH, READ], "what is not known is missing");
    for (name, truth) in [(SWITCH, 2.0), (READ, 1.0), ("block:block_rq_issue", 0.5)] {
        assert_near(phase.counted.per_io.get(name), truth);
    }
    // Windows of 80 of 100 ms: 3100 and 500 counts of 30 ns.
    let part = phase.counted.counting_fraction.unwrap();
    assert!((part - 3600.0 * 0.8 * 30.0 / (2.0 * 80e6)).abs() < 1e-9, "{part}");
    assert_eq!((found.events.len(), found.events[3].reason.as_deref()), (4, Some("the kernel lacks it")));
    assert!(phase.counted.reason.is_none());
}

/// The mean rate of a load that counting slows is not reached in these windows.
#[test]
fn where_work_is_only_counted_in_total_the_interval_contains_what_counting_slows() {
    let heavy: [&[(&str, u64)]; 2] = [&[(READ, 1_000_000)], &[]];
    let slow = Happening { ios: 1_000_000, ..LOAD };
    let with = |forget: bool| {
        let mut whole = stretch(slow, heavy);
        if forget {
            whole.snapshots.iter_mut().for_each(forget_work);
            whole.snapshots.iter_mut().flat_map(|it| &mut it.events).for_each(|counts| counts.done = None);
        }
        let wall_nanos = Nanos(36 * WINDOW);
        // A tenth more than in the windows of events.
        let jobs = vec![JobRecord { wall_nanos, ..job(39_600_000) }];
        let execution = Execution { jobs, stretch: whole, ..Execution::default() };
        studied(vec![stretch(NOTHING, ANYWAY)], execution).phases[0].counted.per_io[READ]
    };
    assert_near(Some(&with(false)), 1.0);
    let blurred = with(true);
    assert!(blurred.value < 0.92 && blurred.high.unwrap() >= 1.0, "{blurred:?}");
}

#[test]
fn without_their_windows_there_are_no_events_and_the_sheet_says_why() {
    let background = || vec![stretch(NOTHING, ANYWAY)];
    let reason = |background, stretch| {
        let found = studied(background, execution(stretch, 36_000));
        let phase = &found.phases[0];
        assert!(phase.counted.per_io.is_empty());
        let reason = phase.counted.reason.clone().unwrap();
        let told = |warning: &&Warning| warning.code == Code::Unknown && warning.message.contains(&reason);
        assert!(found.head.warnings.iter().any(|warning| told(&warning)), "{:?}", found.head.warnings);
        reason
    };
    assert!(reason(background(), quiet(36, LOAD)).contains("run longer"));
    assert!(reason(vec![quiet(6, NOTHING)], stretch(LOAD, COUNTED)).contains("longer --background"));
    let mut record = record(background(), vec![execution(stretch(LOAD, COUNTED), 36_000)]);
    record.events = Some(Events { reason: Some("no right".to_owned()), ..Events::default() });
    let found = study(&record);
    assert_eq!(found.phases[0].counted.reason.as_deref(), Some("no right"));
    assert!(
        !found.head.warnings.iter().any(|warning| warning.message.contains("no right")),
        "the user asked for nothing"
    );
    let lacking = Event { name: "hw:cycles".to_owned(), named: false, set: Reading::unavailable("no counters") };
    record.events = Some(Events { asked: true, events: vec![lacking], ..Events::default() });
    assert_eq!(study(&record).phases[0].counted.reason.as_deref(), Some("no counters"));
}

#[test]
fn only_counts_within_the_time_of_io_count() {
    let mut whole = stretch(LOAD, COUNTED);
    let begin_nanos = whole.snapshots[18].at_nanos;
    for counts in whole.snapshots.iter_mut().take(18).flat_map(|snapshot| &mut snapshot.events) {
        counts.counts.insert("syscalls:mmap".to_owned(), 5000);
    }
    let end_nanos = whole.snapshots.last().unwrap().at_nanos;
    let io_interval = Some(IoInterval { begin_nanos, end_nanos });
    let execution = Execution { io_interval, ..execution(whole, 36_000) };
    let found = studied(vec![stretch(NOTHING, ANYWAY)], execution);
    assert_near(found.phases[0].counted.per_io.get(SWITCH), 2.0);
    assert!(!found.phases[0].counted.per_io.contains_key("syscalls:mmap"));
}

/// Windows that count switches see ten times as many as the others: a sheet has one figure, that of the undisturbed windows.
#[test]
fn context_switches_are_one_figure() {
    let disturbed: [&[(&str, u64)]; 2] = [&[(SWITCH, 21_000), (READ, 1000)], &[]];
    let one = |background| {
        let found = studied(vec![background], execution(stretch(LOAD, disturbed), 36_000));
        let phase = &found.phases[0];
        let of_event = phase.counted.per_io[SWITCH];
        assert_eq!(phase.figures.of(Metric::ContextSwitchesPerIo).estimate, Some(of_event));
        assert!(phase.counted.per_io.contains_key(READ));
        phase.value(Metric::ContextSwitchesPerIo)
    };
    assert!((one(stretch(NOTHING, ANYWAY)).unwrap() - 2.0).abs() < 1e-9);
    assert_eq!(one(stretch(LOAD, ANYWAY)), None, "the background has as many");
}
