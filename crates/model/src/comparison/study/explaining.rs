//! Which accounts a change belongs to.

use super::View;
use crate::comparison::finding::FamilyFinding;
use crate::comparison::record::Schedule;
use crate::experiment::Metric;
use crate::explained::{self, AccountChange, ExplainedFinding, Explaining, Parts};
use crate::measured::Rounds;
use crate::meter::{Meter, MeterStatus};
use crate::stats::{confidence_of_each, difference};

/// The costs of all comparisons, divided into accounts.
pub(super) struct Explained {
    /// All changes of accounts; `None` without explaining rounds.
    pub family: Option<FamilyFinding>,
    /// One for each comparison.
    pub costs: Vec<Cost>,
}

/// The cost in both arms of a comparison.
#[derive(Default)]
pub(super) struct Cost {
    pub explained: Option<ExplainedFinding>,
    pub accounts: Vec<AccountChange>,
}

/// Divides the costs of these comparisons.
pub(super) fn explain(record: View, sums: &Rounds, pairs: &[(usize, usize)]) -> Explained {
    let (header, cases) = (record.header, sums.cases());
    // By a meter that never saw the machine idle, no cost is known; accounts are.
    let seen = (0..cases).all(|case| sums.never_idle(case).is_none());
    let meter = sums.meter.filter(|_| seen);
    let counter = header.work_counter.as_ref();
    let Some(explaining) = Explaining::of(cases, &header.host, counter, meter, record.explaining) else {
        return Explained { family: None, costs: pairs.iter().map(|_| Cost::default()).collect() };
    };
    let parts = |(baseline, candidate): &(usize, usize)| explaining.parts(*baseline, *candidate);
    let parts: Vec<Parts> = pairs.iter().map(parts).collect();
    let comparisons = parts.iter().map(Parts::count).sum();
    let family = FamilyFinding { comparisons, confidence: confidence_of_each(comparisons) };
    let cost = |(parts, &(baseline, candidate)): (&Parts, &(usize, usize))| {
        let undisturbed = sums.paired(Metric::CyclesPerIo, baseline, candidate);
        let undisturbed = undisturbed.and_then(|rounds| difference(&rounds));
        Cost {
            explained: parts.whole(undisturbed, explaining.known_by_name()),
            accounts: parts.changes(family.confidence),
        }
    };
    Explained { family: Some(family), costs: parts.iter().zip(pairs).map(cost).collect() }
}

/// Why there are none, if somebody could mend it.
pub(super) fn reason(record: View) -> Option<String> {
    let header = record.header;
    if !record.explaining.is_empty() || record.end.is_none() {
        return None;
    }
    let can = |status: &MeterStatus| status.meter == Meter::Accounts && status.status.taken().is_some();
    let of_boots = header.schedule == Schedule::Boots && header.meters.iter().any(can);
    let of_boots = of_boots.then(|| "each boot measures one arm, so no round has the accounts of both".to_owned());
    explained::reason(&header.meters).or(of_boots)
}
