//! Limits of a run: what has an interval, what is exact, what is unknown.

use super::*;
use crate::kind::{self, Recorded};
use crate::limit::LimitState::{self, Exceeded, Kept, Undecided};
use crate::limit::{LimitFinding, judge};
use crate::stored::Stored;

/// 30 windows of 100 ms in which the number of I/Os, around 1000, differs by this much.
fn run(wobble: u64) -> Record {
    let background = quiet(10, Happening { busy: 10_000_000, ..NOTHING });
    let mut machine = Machine::begin(Mode::Quiet);
    for number in 0..30_u64 {
        let ios = 1000 + number * 7 % 5 * wobble;
        machine.pass(Happening { busy: 60_000_000, thread: 30_000 * ios, ios, steal: 0 }, Mode::Quiet);
    }
    let ios = machine.ios;
    let stretch = machine.stretch();
    let ends = stretch.snapshots.first().zip(stretch.snapshots.last());
    let io_interval = ends.map(|(first, last)| IoInterval { begin_nanos: first.at_nanos, end_nanos: last.at_nanos });
    let source = Source::Cost { command: vec!["a".to_owned()], counted_by: String::new() };
    Record { source, ..record(vec![background], vec![Execution { io_interval, ..execution(stretch, ios) }]) }
}

fn states(record: Record, stored: Option<Record>, text: &str) -> Vec<LimitState> {
    judged(record, stored, text).iter().map(|limit| limit.state).collect()
}

fn judged(record: Record, stored: Option<Record>, text: &str) -> Vec<LimitFinding> {
    let limits = kind::limits::<Record>(&[text.to_owned()], record.plan(), stored.is_some()).unwrap();
    let stored = stored.map(|stored| Stored::new("then", stored));
    judge(&limits, |metric| record.at_places(&record.study(stored.as_ref()), stored.as_ref(), metric))
}

#[test]
fn each_metric_decides_by_its_interval_or_exactly() {
    for (text, state) in [
        ("cycles_per_io > 120k", Kept),
        ("cycles_per_io > 80k", Exceeded),
        ("cycles_per_byte < 1", Kept),
        ("cycles > 1", Exceeded),
        ("iops < 11k", Exceeded),
        ("iops < 9k", Kept),
        ("bytes_per_second < 30M", Kept),
        ("context_switches_per_io > 3", Kept),
        ("context_switches_per_io > 1", Exceeded),
        ("thread_cycles_per_io > 61k", Kept),
        ("thread_cycles_per_io > 59k", Exceeded),
        // All took 2000 ticks of 0.5 ns: 1 µs, which the histogram knows to 0.4 %.
        ("latency_mean > 1us", Kept),
        ("latency_p50 > 990ns", Exceeded),
        ("latency_p99 > 1us", Undecided),
        ("seconds > 3.1s", Kept),
    ] {
        let found = judged(run(0), None, text);
        assert_eq!(found.iter().map(|limit| limit.state).collect::<Vec<_>>(), [state], "{found:?}");
    }
    // With 1000 to 1400 I/Os in a window, the mean of 12,000 per second is known to some percent.
    assert_eq!(states(run(100), None, "iops < 12k"), [Undecided]);
    assert_eq!(states(run(100), None, "iops < 14k"), [Exceeded]);
}

#[test]
fn changes_are_against_the_stored_record() {
    for (text, state) in [
        ("iops < +10%", Kept),
        ("iops > +10%", Exceeded),
        ("iops > +20%", Undecided),
        ("cycles_per_io < -5%", Exceeded),
        ("latency_p50 > +3%", Undecided),
    ] {
        assert_eq!(states(run(100), Some(run(0)), text), [state], "{text}");
    }
    let alone = run(0);
    let limits = kind::limits::<Record>(&["iops < -5%".to_owned()], alone.plan(), true).unwrap();
    assert_eq!(
        judge(&limits, |metric| alone.at_places(&alone.study(None), None, metric))[0].state,
        Undecided,
        "nothing to judge it by"
    );
}

/// Two executions are the units; what their snapshots do not have comes from the totals of their jobs.
#[test]
fn executions_are_units() {
    let uncounted = |windows: usize, ios: u64| {
        let mut stretch = quiet(windows, Happening { busy: 60_000_000, ..NOTHING });
        stretch.snapshots.iter_mut().for_each(forget_work);
        execution(stretch, ios)
    };
    let several = |executions| record(vec![quiet(10, NOTHING)], executions);
    let alike = || several(vec![uncounted(20, 20_000), uncounted(20, 20_000)]);
    assert_eq!(states(alike(), None, "iops < 9k"), [Kept]);
    assert_eq!(states(alike(), None, "seconds > 2.1s"), [Kept]);
    assert_eq!(states(several(vec![uncounted(20, 20_000)]), None, "iops < 9k"), [Undecided], "one shows no spread");
    assert_eq!(
        states(several(vec![uncounted(20, 20_000), uncounted(40, 40_400)]), None, "seconds > 3.1s"),
        [Undecided]
    );
}
