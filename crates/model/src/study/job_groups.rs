//! A command whose jobs ran one group after the other: each group becomes a phase with a cost of its own.

use crate::record::{Execution, IoInterval, JobGroup, JobRecord, PhaseRecord, Record, Snapshot, Stretch};
use std::borrow::Cow;

/// The record with a phase for each group of jobs. It is the record itself if no phase has groups that all of its executions tell apart.
pub(super) fn apart(record: &Record) -> Cow<'_, Record> {
    let groups = |phase: &PhaseRecord| groups(phase).max(1);
    if record.phases.iter().all(|phase| groups(phase) == 1) {
        return Cow::Borrowed(record);
    }
    let of_phase = |phase: &PhaseRecord| -> Vec<PhaseRecord> {
        match groups(phase) {
            1 => vec![phase.clone()],
            several => (0..several)
                .map(|place| PhaseRecord {
                    executions: phase.executions.iter().filter_map(|whole| of_group(whole, place)).collect(),
                })
                .collect(),
        }
    };
    let phases = record.phases.iter().flat_map(of_phase).collect();
    Cow::Owned(Record { phases, ..record.clone() })
}

/// Number of groups that each execution of a phase has; 0 if executions differ, or if a group is too short for a window.
fn groups(phase: &PhaseRecord) -> usize {
    let of = |execution: &Execution| {
        let has_window = |group: &JobGroup| snapshots(execution, group).nth(1).is_some();
        if execution.groups.iter().all(has_window) { execution.groups.len() } else { 0 }
    };
    let mut counts = phase.executions.iter().map(of);
    let first = counts.next().unwrap_or(0);
    if counts.all(|count| count == first) { first } else { 0 }
}

/// The snapshots while a group did I/O.
fn snapshots<'a>(whole: &'a Execution, group: &JobGroup) -> impl Iterator<Item = &'a Snapshot> + use<'a> {
    let interval = Some(group.io_interval);
    whole.stretch.snapshots.iter().filter(move |at| IoInterval::covers(interval, at.at_nanos, at.at_nanos))
}

/// What an execution contains of the group at `place`.
fn of_group(whole: &Execution, place: usize) -> Option<Execution> {
    let before = whole.groups.iter().take(place).map(|group| group.jobs).sum();
    let group = whole.groups.get(place)?;
    let &JobGroup { jobs, io_interval, uncounted } = group;
    let jobs = whole.jobs.iter().skip(before).take(jobs);
    let mut snapshots: Vec<Snapshot> = snapshots(whole, group).cloned().collect();
    // What the first one counts since the snapshot before it is not of this group.
    if let Some(first) = snapshots.first_mut() {
        (first.whereabouts, first.accounts, first.profile) = (None, None, None);
        first.events.clear();
    }
    Some(Execution {
        jobs: jobs.map(|job| JobRecord { uncounted, ..job.clone() }).collect(),
        stretch: Stretch { snapshots, ..whole.stretch.clone() },
        io_interval: Some(io_interval),
        // The CPU time of the command is known only as a whole; that of its jobs is what they report.
        command_cpu_nanos: None,
        groups: vec![*group],
        ..whole.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Nanos;

    fn execution(ends: &[u64]) -> Execution {
        let snapshot = |second: u64| Snapshot {
            at_nanos: Nanos::from_secs(second),
            accounts: Some(Box::default()),
            ..Snapshot::default()
        };
        let mut begin = 0;
        let groups = ends.iter().map(|&end| {
            let io_interval = IoInterval { begin_nanos: Nanos::from_secs(begin), end_nanos: Nanos::from_secs(end) };
            begin = end;
            JobGroup { jobs: 1, io_interval, uncounted: end == 7 }
        });
        let job = |name: &str| JobRecord { name: name.to_owned(), uncounted: true, ..JobRecord::default() };
        Execution {
            jobs: ["a", "b"].map(job).to_vec(),
            groups: groups.collect(),
            stretch: Stretch { snapshots: (0..10).map(snapshot).collect(), ..Stretch::default() },
            command_cpu_nanos: Some(Nanos(5)),
            ..Execution::default()
        }
    }

    #[test]
    fn each_group_has_its_own_jobs_and_windows() {
        let whole = execution(&[3, 7]);
        let of = |place| of_group(&whole, place).unwrap();
        for (place, name, seconds, uncounted) in [(0, "a", 0..=3, false), (1, "b", 3..=7, true)] {
            let group = of(place);
            let times: Vec<Nanos> = group.stretch.snapshots.iter().map(|snapshot| snapshot.at_nanos).collect();
            assert_eq!(times, seconds.map(Nanos::from_secs).collect::<Vec<_>>());
            let [job] = group.jobs.as_slice() else { panic!("{:?}", group.jobs) };
            assert_eq!((job.name.as_str(), job.uncounted, group.command_cpu_nanos), (name, uncounted, None));
            let kept: Vec<bool> = group.stretch.snapshots.iter().map(|snapshot| snapshot.accounts.is_some()).collect();
            assert!(!kept[0] && kept[1..].iter().all(|kept| *kept), "the first one's are of the window before");
        }
        assert!(of_group(&whole, 2).is_none());
    }

    #[test]
    fn executions_that_differ_are_not_divided() {
        let phase =
            |executions: &[&[u64]]| PhaseRecord { executions: executions.iter().map(|ends| execution(ends)).collect() };
        assert_eq!(groups(&phase(&[&[3, 7], &[4, 8]])), 2);
        assert_eq!(groups(&phase(&[&[3, 7], &[4]])), 0);
        assert_eq!(groups(&phase(&[])), 0);
        let mut short = phase(&[&[3, 7]]);
        short.executions[0].groups[1].io_interval.begin_nanos = Nanos::from_millis(6500);
        assert_eq!(groups(&short), 0, "one snapshot is no window");
    }
}
