//! The periods of a recording beside those of an earlier one: which appeared, which went, which stayed.

use super::periods::SAME;
use super::{caveats, periodic};
use crate::ftq::finding::{FtqFinding, KeptPeriod, PeriodChanges};
use crate::ftq::plan::Worker;
use crate::ftq::series::Series;
use crate::ftq::{FtqPlan, FtqRecord};
use crate::stats::series::spectrum::FEWEST_PERIODS;
use crate::stored::machine::Machine;
use crate::stored::{Stored, warnings, work};

/// Adds the comparison with an earlier recording.
pub(super) fn stand_beside(finding: &mut FtqFinding, record: &FtqRecord, stored: &Stored<FtqRecord>) {
    let (then, now) = (&stored.record.header, &record.header);
    let before = periodic(&stored.record);
    let stored_seconds = Series::of(&stored.record).length();
    // One that is too long for the shorter recording has neither appeared nor gone.
    let longest = finding.seconds.min(stored_seconds) / FEWEST_PERIODS;
    let same = |one: f64, other: f64| (one / other - 1.0).abs() < SAME;
    let mut changes = PeriodChanges {
        stored: stored.from.clone(),
        started_unix_seconds: then.envelope.started_unix_seconds,
        differs: stored.record.machine().differences(&record.machine()),
        ..PeriodChanges::default()
    };
    for period in &finding.periodic {
        match before.iter().find(|before| same(period.period_seconds, before.period_seconds)) {
            Some(before) => changes.kept.push(KeptPeriod {
                period_seconds: period.period_seconds,
                stored_period_seconds: before.period_seconds,
                stall_seconds: period.stall_seconds,
                stored_stall_seconds: before.stall_seconds,
            }),
            None if period.period_seconds > longest => {}
            None => changes.appeared.push(period.period_seconds),
        }
    }
    let stayed = |before: f64| finding.periodic.iter().any(|period| same(period.period_seconds, before));
    let went =
        before.iter().map(|before| before.period_seconds).filter(|before| !stayed(*before) && *before <= longest);
    changes.went = went.collect();
    finding.against = Some(changes);
    finding.warnings.extend(warnings(&then.envelope, &now.envelope, &differing_work(&then.plan, &now.plan)));
    finding.warnings.extend(caveats::other_lengths(stored_seconds, finding.seconds));
}

impl FtqRecord {
    pub(crate) fn machine(&self) -> Machine<'_> {
        Machine::of(&self.header.host, &self.header.envelope)
    }
}

fn differing_work(then: &FtqPlan, now: &FtqPlan) -> Vec<String> {
    let mut found: Vec<String> = match (&then.worker, &now.worker) {
        (Worker::Job(then), Worker::Job(now)) => work::of_plans((then, &[]), (now, &[])),
        (Worker::Command(then), Worker::Command(now)) => work::of_words((then, &[]), (now, &[])),
        // A process has another number each time.
        (Worker::Cpu, Worker::Cpu) | (Worker::Process(_), Worker::Process(_)) => Vec::new(),
        (then, now) => work::differs("worker", kind(then), kind(now)).into_iter().collect(),
    };
    found.extend(work::differs("quantum", micros(then), micros(now)));
    work::named(found)
}

fn kind(worker: &Worker) -> &'static str {
    match worker {
        Worker::Job(_) => "a job",
        Worker::Cpu => "a thread that computes",
        Worker::Command(_) => "a command",
        Worker::Process(_) => "a process",
    }
}

fn micros(plan: &FtqPlan) -> String {
    format!("{} µs", plan.quantum.as_f64() / 1e3)
}
