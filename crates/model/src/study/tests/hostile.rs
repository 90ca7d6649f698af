//! The study of arbitrary records of one workload ends without a panic.

use super::*;
use crate::account::{AccountKind, TaskOwner};
use crate::events::{Event, Events};
use crate::hostile::{Vandal, changes};
use crate::probe::{Probe, Readings};
use crate::profile::{Function, Profile, Stack};
use crate::record::Record;

fn profile(samples: u64) -> Profile {
    let function = Function { name: "read".to_owned(), module: "libc".to_owned(), ..Function::default() };
    let stack = Stack {
        kind: AccountKind::Task,
        name: "job".to_owned(),
        owner: Some(TaskOwner::Workload),
        functions: vec![0, 0],
        whole: true,
        samples,
    };
    Profile {
        period_nanos: Nanos(1_000_000),
        functions: vec![function],
        stacks: vec![stack],
        lost: 1,
        ..Profile::default()
    }
}

/// Every meter, two probes, an event, several executions, jobs of all directions.
fn everything() -> Record {
    let load = Happening { busy: 60_000_000, thread: 30_000_000, ios: 1000, steal: 1_000_000 };
    let watched = || {
        let mut machine = Machine::begin(Mode::Quiet);
        for next in [
            Mode::Quiet,
            Mode::Gap,
            Mode::Alone(Meter::Soaker),
            Mode::Gap,
            Mode::Alone(Meter::Sampler),
            Mode::Gap,
            Mode::Events(0),
            Mode::Gap,
            Mode::Quiet,
            Mode::Quiet,
        ] {
            machine.pass(load, next);
        }
        let mut stretch = machine.stretch();
        for (count, snapshot) in (1..).zip(&mut stretch.snapshots) {
            let count = Count { at_nanos: snapshot.at_nanos, cpus: 2, total: count * 1_000_000 };
            snapshot.counts.set(Meter::Pmu, Some(count));
        }
        for [before, after] in (0..8).map(|place| [place, place + 1]) {
            let begin_nanos = stretch.snapshots[before].at_nanos;
            let after = &mut stretch.snapshots[after];
            after.events = vec![EventCounts {
                begin_nanos,
                end_nanos: after.at_nanos,
                done: after.done,
                counts: [("sched:sched_switch".to_owned(), 2000), ("syscalls:read".to_owned(), 1000)].into(),
            }];
        }
        for (count, snapshot) in (1u32..).zip(&mut stretch.snapshots) {
            let Nanos(total) = Nanos::from_millis(u64::from(count));
            snapshot.counts.set(Meter::Sampler, Some(Count { at_nanos: snapshot.at_nanos, cpus: 2, total }));
            snapshot.profile = Some(Box::new(profile(u64::from(count))));
            let values = vec![Some(100.0 * f64::from(count)), Some(f64::from(count % 3))];
            snapshot.probes = Some(Box::new(Readings { at_nanos: snapshot.at_nanos, values }));
        }
        stretch
    };
    let executions = [(); 2].map(|()| {
        let mut execution = execution(watched(), 8000);
        let mut other = job(10);
        (other.write, other.trim, other.syscalls) = (other.read.clone(), other.read.clone(), Some(100));
        execution.jobs.push(other);
        execution
    });
    let mut record = record(vec![watched(), watched()], executions.to_vec());
    let event = |name: &str| Event { name: name.to_owned(), named: false, set: Reading::Taken(0) };
    record.events = Some(Events {
        events: vec![event("sched:sched_switch"), event("syscalls:*")],
        nanos_per_count: Some(30.0),
        ..Events::default()
    });
    record.probes = ["context_switches", "dirty"].map(|name| Probe::parse(name).unwrap().descriptor).to_vec();
    record.meters = Meter::ALL.map(|meter| MeterStatus { meter, status: Reading::Taken("seen".into()) }).to_vec();
    record
}

#[test]
fn changed_records_are_studied_or_refused() {
    let vandal = Vandal::new(&everything());
    let mut studied = 0;
    for seed in 0..changes() {
        if let Ok(changed) = serde_json::from_value::<Record>(vandal.changed(seed)) {
            study(&changed);
            studied += 1;
        }
    }
    assert!((changes() / 4..changes()).contains(&studied), "{studied}");
}
