//! Which accounts a change belongs to.

use super::View;
use crate::comparison::finding::FamilyFinding;
use crate::comparison::record::{RoundRecord, Schedule, SliceReading};
use crate::events::Events;
use crate::experiment::Metric;
use crate::explained::{
    self, AccountChange, AccountParts, CountedEvents, EventChange, EventParts, ExplainedFinding, Explaining,
    FEWEST_ROUNDS, FunctionParts, Functions, StackChange, SymbolChange,
};
use crate::measured::Rounds;
use crate::meter::{Meter, MeterStatus};
use crate::record::{Mode, Snapshot};
use crate::stats::confidence_of_each;

/// The costs of all comparisons, divided into accounts.
pub(super) struct Explained {
    /// All changes of accounts; `None` without explaining rounds.
    pub family: Option<FamilyFinding>,
    /// All changes of functions; `None` without sampled rounds.
    pub function_family: Option<FamilyFinding>,
    pub sampled_rounds: usize,
    /// All changes of events; `None` without rounds that counted.
    pub event_family: Option<FamilyFinding>,
    pub counted_rounds: usize,
    /// Why no events were counted, if some were to be.
    pub events_reason: Option<String>,
    /// One for each comparison.
    pub costs: Vec<Cost>,
}

/// The cost in both arms of a comparison.
#[derive(Default)]
pub(super) struct Cost {
    pub explained: Option<ExplainedFinding>,
    pub accounts: Vec<AccountChange>,
    pub symbols: Vec<SymbolChange>,
    pub stacks: Vec<StackChange>,
    pub events: Vec<EventChange>,
}

/// Divides the costs of these comparisons.
pub(super) fn explain(record: View, sums: &Rounds, pairs: &[(usize, usize)]) -> Explained {
    let mut explained = Explained {
        family: None,
        function_family: None,
        sampled_rounds: 0,
        event_family: None,
        counted_rounds: 0,
        events_reason: None,
        costs: pairs.iter().map(|_| Cost::default()).collect(),
    };
    by_account(record, sums, pairs, &mut explained);
    by_function(record, sums, pairs, &mut explained);
    by_event(record, sums, pairs, &mut explained);
    explained
}

fn by_account(record: View, sums: &Rounds, pairs: &[(usize, usize)], explained: &mut Explained) {
    let (header, cases) = (record.header, sums.cases());
    // By a meter that never saw the machine idle, no cost is known; accounts are.
    let meter = sums.meter.filter(|_| sums.never_idle().is_none());
    let counter = header.work_counter.as_ref();
    let Some(explaining) = Explaining::of(cases, &header.host, counter, meter, record.explaining) else { return };
    let parts = |(baseline, candidate): &(usize, usize)| explaining.parts(*baseline, *candidate);
    let parts: Vec<AccountParts> = pairs.iter().map(parts).collect();
    let family = family(parts.iter().map(AccountParts::count).sum());
    for ((cost, parts), &(baseline, candidate)) in explained.costs.iter_mut().zip(&parts).zip(pairs) {
        let undisturbed = sums.paired(Metric::CyclesPerIo, baseline, candidate);
        cost.explained = parts.whole(undisturbed.as_deref(), explaining.known_by_name());
        cost.accounts = parts.changes(family.confidence);
    }
    explained.family = Some(family);
}

fn by_function(record: View, sums: &Rounds, pairs: &[(usize, usize)], explained: &mut Explained) {
    let (header, cases) = (record.header, sums.cases());
    let functions = Functions::of(cases, &header.host, header.work_counter.as_ref(), record.explaining);
    let Some(functions) = functions else { return };
    let parts: Vec<FunctionParts> =
        pairs.iter().map(|(baseline, candidate)| functions.parts(*baseline, *candidate)).collect();
    let family = family(parts.iter().map(FunctionParts::count).sum());
    for ((cost, parts), &(baseline, candidate)) in explained.costs.iter_mut().zip(&parts).zip(pairs) {
        cost.symbols = parts.changes(family.confidence);
        cost.stacks = functions.stacks(baseline, candidate);
    }
    (explained.function_family, explained.sampled_rounds) = (Some(family), functions.rounds());
}

fn by_event(record: View, sums: &Rounds, pairs: &[(usize, usize)], explained: &mut Explained) {
    let header = record.header;
    let Some(events) = &header.events else { return };
    let (cases, counter) = (header.experiment.cases.len(), header.work_counter.as_ref());
    let counted = CountedEvents::of(cases, &header.host, counter, events, record.explaining);
    let parts: Vec<EventParts> =
        pairs.iter().map(|(baseline, candidate)| counted.parts(sums, *baseline, *candidate)).collect();
    let family = family(parts.iter().map(EventParts::count).sum());
    for (cost, parts) in explained.costs.iter_mut().zip(&parts) {
        cost.events = parts.changes(family.confidence);
    }
    let counted_rounds = counted.rounds();
    explained.events_reason = counted_rounds.is_none().then(|| uncounted(events, record.explaining));
    explained.event_family = counted_rounds.map(|_| family);
    explained.counted_rounds = counted_rounds.unwrap_or(0);
}

/// Why no events have been counted.
fn uncounted(events: &Events, rounds: &[RoundRecord]) -> String {
    let counts = |round: &RoundRecord| does(round, |mode| matches!(mode, Mode::Events(_)));
    match events.refusal() {
        Some(reason) => reason.to_owned(),
        None if rounds.iter().filter(|round| counts(round)).count() < FEWEST_ROUNDS => {
            "there was no time for rounds that count them; use a longer --budget".to_owned()
        }
        None => "the number of I/Os is unknown, or an execution is too short for a window of theirs".to_owned(),
    }
}

/// Intervals that hold together.
fn family(comparisons: usize) -> FamilyFinding {
    FamilyFinding { comparisons, confidence: confidence_of_each(comparisons) }
}

/// Whether a slice of a round has such a mode.
fn does(round: &RoundRecord, fits: fn(Mode) -> bool) -> bool {
    let fits = |snapshot: &Snapshot| fits(snapshot.mode);
    round.slices.iter().any(|slice| match &slice.reading {
        SliceReading::Slice { before, .. } | SliceReading::Command { before, .. } => fits(before),
        SliceReading::Execution(execution) => execution.stretch.snapshots.iter().any(fits),
    })
}

/// What the rounds did, in words.
pub(super) fn done(record: View) -> Vec<&'static str> {
    let is_done = |fits: fn(Mode) -> bool| record.explaining.iter().any(|round| does(round, fits));
    let done = [
        is_done(|mode| mode == Mode::Alone(Meter::Accounts)).then_some("kept accounts"),
        is_done(|mode| matches!(mode, Mode::Events(_))).then_some("counted events"),
        is_done(|mode| mode == Mode::Alone(Meter::Sampler)).then_some("sampled stacks"),
    ];
    done.into_iter().flatten().collect()
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
