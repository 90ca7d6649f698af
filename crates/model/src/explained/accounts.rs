//! Whose a cost is: exact accounts of rounds of their own.
//!
//! The programs that keep accounts add time to each switch and interrupt. In these rounds an account's cost is its CPU time, net of its rate in the
//! slices without a load.

use super::{
    BothCases, ExplainingRounds, FEWEST_ROUNDS, OfCase, Part, PartChange, ReadTime, costs, largest_first, mean_of_arms,
    read_times, times_read, with_slices,
};
use crate::account::named::{
    AccountKey, ByAccount, IDLE_ENTRY, LEAST_SHARE, SMALL, as_peer, by_account, in_words, is_of_the_load, peers,
};
use crate::account::{AccountKind, Accounts, BUSY_OTHERS, TaskOwner};
use crate::meter::{Meter, MeterStatus};
use crate::record::Mode;
use crate::slice::{RoundRecord, SliceRecord};
use crate::stats::estimate::CONFIDENCE;
use crate::stats::{Estimate, PairedRound, difference};
use crate::study::{Context, windows};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Accounts with such a part of the cost are told, whether they changed or not.
const LARGE_SHARE: f64 = 0.1;
/// A cost that is this many times as large with accounts as without them, or the other way round, is another cost.
const FAR: f64 = 10.0;

/// What explaining rounds show of the whole cost. Of a blast, an I/O is a delivered packet, the baseline is the first point, and the arm is this
/// point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedFinding {
    /// Number of explaining rounds.
    pub rounds: usize,
    /// Cycles of the whole machine per I/O of the baseline in these rounds: the sum of its accounts.
    pub baseline: Estimate,
    /// The same of the arm.
    pub candidate: Estimate,
    /// Change of cycles per I/O in these rounds: the sum of the changes of all accounts.
    pub change: Estimate,
    /// Change of cycles per I/O in the rounds of the answer, which keep no accounts; `null` if unknown.
    pub undisturbed_change: Option<Estimate>,
    /// Whether the two changes differ by more than their errors explain, or the cost of an arm by a factor of ten: the accounts then explain
    /// another change than that of the answer.
    pub differs: bool,
    /// Whether other programs were left out by their names, because they used much of the machine.
    pub known_by_name: bool,
}

/// An account in both arms; of a blast, in the first point and in this one. Sums of these are the whole cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountChange {
    /// Name of the account.
    pub name: String,
    /// What the CPUs did; `null` for the sum of small accounts.
    pub kind: Option<AccountKind>,
    /// The owner of a task; `null` for other kinds.
    pub owner: Option<TaskOwner>,
    /// Its cycles per I/O.
    #[serde(flatten)]
    pub per_io: PartChange,
    /// Whether it is at least a tenth of the cost of both arms.
    pub large: bool,
}

/// Why accounts cannot be kept although nobody chose other meters, and what would mend it; `None` if they can.
pub fn reason(meters: &[MeterStatus]) -> Option<String> {
    let meter = meters.iter().find(|status| status.meter == Meter::Accounts)?;
    meter.status.reason().filter(|reason| !reason.starts_with("not chosen")).map(str::to_owned)
}

/// Cycles of each account, net of the background, and I/Os of every case, round by round.
pub(super) struct Explaining {
    rounds: Vec<Vec<OfAccounts>>,
    /// Whether processes that do not work for the load are left out.
    by_name: bool,
}

type OfAccounts = OfCase<AccountKey, ()>;

/// What slices of one kind in a round were charged to.
#[derive(Default)]
struct Charged {
    /// In nanoseconds.
    accounts: ByAccount,
    /// The time that passed, summed over CPUs, in nanoseconds.
    passed: f64,
    /// Of other processes, in nanoseconds.
    others: f64,
    /// Busy cycles by the meter of the cost, and the capacity in which it read them; `None` if it did not read a slice.
    metered: Option<(f64, f64)>,
    slices: usize,
}

/// What the accounts of all rounds sum to.
#[derive(Clone, Copy)]
struct Scope {
    /// The cost of the load by its name: processes that do not work for it are left out.
    by_name: bool,
    /// Otherwise the busy time by the meter of the cost, if it read all slices.
    by_meter: bool,
}

/// The times of a slice that kept accounts.
fn kept(slice: &SliceRecord) -> Vec<ReadTime<'_, Accounts>> {
    read_times(slice, |before, after| {
        let read = after.accounts.as_deref().filter(|_| before.mode == Mode::Alone(Meter::Accounts))?;
        Some(ReadTime { before, after, begin: before.at_nanos, read })
    })
}

impl Explaining {
    /// `meter` is that of the cost; `None` if it is unknown. The rounds in which every case has accounts; `None` if they are too few.
    pub fn of(explaining: &ExplainingRounds, meter: Option<Meter>) -> Option<Self> {
        let context = Context::of(explaining.host);
        // A slice in which the programs missed something has none.
        let with_accounts = |round: &RoundRecord| with_slices(round, |slice| !kept(slice).is_empty());
        let rounds: Vec<RoundRecord> = explaining.rounds.iter().map(with_accounts).collect();
        let of_the_load = || rounds.iter().flat_map(|round| &round.slices).filter(|slice| slice.case.is_some());
        let peers: BTreeSet<String> = of_the_load().flat_map(kept).flat_map(|kept| peers(kept.read)).collect();
        // Idle clocks and accounts disagree on idle entry; cycles of cores are not a time.
        let meter = meter.filter(|meter| !meter.disturbs() && meter.counts_time());
        let charged = |round: &RoundRecord| -> ChargedRound {
            let of = |case: Option<usize>| {
                let slices = round.slices.iter().filter(|slice| slice.case == case);
                Some(Charged::sum(slices, meter, &peers, &context)).filter(|charged| charged.slices > 0)
            };
            Some(((0..explaining.cases).map(|case| of(Some(case))).collect::<Option<Vec<_>>>()?, of(None)?))
        };
        let charged: Vec<ChargedRound> = rounds.iter().map(charged).collect();
        let sum = |of: fn(&Charged) -> f64| charged.iter().flatten().flat_map(|(cases, _)| cases).map(of).sum::<f64>();
        let by_name = sum(|case| case.others) > BUSY_OTHERS * sum(|case| case.passed);
        // By the meter in all rounds, or in none.
        let is_metered = |charged: &Charged| charged.metered.is_some_and(|(_, capacity)| capacity > 0.0);
        let mut all = charged.iter().flatten();
        let by_meter = !by_name && all.all(|(cases, alone)| cases.iter().all(is_metered) && is_metered(alone));
        let scope = Scope { by_name, by_meter };
        let whole = |(ios, charged): (Vec<Option<f64>>, &ChargedRound)| {
            let (each, alone) = charged.as_ref()?;
            let of_case = |(charged, ios): (&Charged, Option<f64>)| {
                Some(charged.net_of(alone, scope, ios.filter(|ios| *ios > 0.0)?, &context))
            };
            each.iter().zip(ios).map(of_case).collect::<Option<Vec<OfAccounts>>>()
        };
        let rounds: Vec<_> = explaining.ios(&rounds).into_iter().zip(&charged).filter_map(whole).collect();
        (rounds.len() >= FEWEST_ROUNDS).then_some(Self { rounds, by_name })
    }

    /// Divides the costs of two cases into accounts: a row for each that is not small, and one for the rest.
    pub fn parts(&self, baseline: usize, candidate: usize) -> AccountParts {
        let both = BothCases::of(&self.rounds, baseline, candidate);
        let total = both.paired(|case| case.total);
        let least = LEAST_SHARE / 2.0 * mean_of_arms(&total).abs();
        let rows = both.parts(|_, rounds| mean_of_arms(rounds).abs() >= least);
        AccountParts { rows, total, known_by_name: self.by_name }
    }
}

/// What the cases of a round were charged, and the machine without them; `None` if one has no slice with accounts.
type ChargedRound = Option<(Vec<Charged>, Charged)>;

impl Charged {
    fn sum<'a>(
        slices: impl Iterator<Item = &'a SliceRecord>,
        meter: Option<Meter>,
        peers: &BTreeSet<String>,
        context: &Context,
    ) -> Self {
        let mut sum = Self { metered: meter.map(|_| (0.0, 0.0)), ..Self::default() };
        for slice in slices {
            let kept = kept(slice);
            let times = times_read(slice, &kept);
            if kept.is_empty() || !times.is_finite() {
                continue;
            }
            for ReadTime { before, after, read: accounts, .. } in kept {
                for (key, spent) in by_account(accounts) {
                    let key = as_peer(&key, peers).unwrap_or(key);
                    if key.1 == Some(TaskOwner::Other) {
                        sum.others += spent.time * times;
                    }
                    sum.accounts.entry(key).or_default().time += spent.time * times;
                }
                sum.passed += accounts.passed_nanos.as_f64() * times;
                let read = meter.and_then(|meter| windows::window(before, after, meter, context));
                let read = read.map(|window| (window.cycles * times, window.capacity_seconds * times));
                sum.metered = sum.metered.zip(read).map(|(sum, read)| (sum.0 + read.0, sum.1 + read.1));
            }
            sum.slices += 1;
        }
        sum
    }

    /// Cycles of a case, net of what the machine does without it.
    ///
    /// Idle clocks count a part of idle entry and exit as idle. So that the accounts sum to a cost by such a clock, that account is what
    /// remains of the clock's busy time without the others, as in `run`.
    fn net_of(&self, alone: &Self, scope: Scope, ios: f64, context: &Context) -> OfAccounts {
        let rate = |key: &AccountKey| alone.accounts.get(key).map_or(0.0, |spent| spent.time) / alone.passed;
        let net = |key: &AccountKey| {
            let nanos = self.accounts.get(key).map_or(0.0, |spent| spent.time) - rate(key) * self.passed;
            nanos / 1e9 * context.clock.0
        };
        let keys =
            self.accounts.keys().chain(alone.accounts.keys()).filter(|key| !scope.by_name || is_of_the_load(key));
        let mut cycles: BTreeMap<AccountKey, f64> = keys.map(|key| (key.clone(), net(key))).collect();
        if let Some((own, alone)) = self.metered.zip(alone.metered).filter(|_| scope.by_meter) {
            let busy = own.0 - alone.0 / alone.1 * own.1;
            cycles.remove(&IDLE_ENTRY);
            let others: f64 = cycles.values().sum();
            cycles.insert(IDLE_ENTRY, busy - others);
        }
        OfCase { total: cycles.values().sum(), amounts: cycles, ios, more: () }
    }
}

/// The costs of two cases, divided into accounts.
pub(super) struct AccountParts {
    pub rows: Vec<Part<AccountKey>>,
    total: Vec<PairedRound>,
    known_by_name: bool,
}

impl AccountParts {
    /// The changes of all accounts, each with an interval of this confidence; first those that are detected, the largest first. The last is
    /// the sum of small accounts.
    pub fn changes(&self, confidence: f64) -> Vec<AccountChange> {
        let [baseline, candidate] = costs(&self.total);
        let whole = baseline.zip(candidate).map_or(f64::INFINITY, |(one, other)| one.value + other.value);
        let change = |row: &Part<AccountKey>| {
            let per_io = row.change(confidence)?;
            let (name, kind, owner) = match &row.key {
                Some(key) => (in_words(key), Some(key.0), key.1),
                None => (SMALL.to_owned(), None, None),
            };
            let large = per_io.baseline.value + per_io.candidate.value >= LARGE_SHARE * whole;
            Some(AccountChange { name, kind, owner, per_io, large })
        };
        let mut changes: Vec<AccountChange> = self.rows.iter().filter_map(change).collect();
        largest_first(&mut changes, |it| it.per_io);
        changes.sort_by_key(|change| change.kind.is_none());
        changes
    }

    /// The whole cost and its change, beside its change in the `undisturbed` rounds, which keep no accounts.
    pub fn whole(&self, undisturbed: Option<&[PairedRound]>) -> Option<ExplainedFinding> {
        let known_by_name = self.known_by_name;
        let change = difference(&self.total)?;
        let [Some(baseline), Some(candidate)] = costs(&self.total) else { return None };
        let without = undisturbed.and_then(difference);
        // A cost by level and one by name differ anyway, but not by an order of magnitude.
        let contradicted = !known_by_name && without.and_then(|it| change.contradicts(&it, CONFIDENCE)) == Some(true);
        let is_far = |kept: Estimate, undisturbed: Option<Estimate>| {
            let times = undisturbed.map(|undisturbed| kept.value / undisturbed.value);
            kept.contains(0.0) == Some(false) && times.is_some_and(|times| !(1.0 / FAR..FAR).contains(&times))
        };
        let far = undisturbed.map(costs).is_some_and(|[one, other]| is_far(baseline, one) || is_far(candidate, other));
        Some(ExplainedFinding {
            rounds: self.total.len(),
            baseline,
            candidate,
            change: change.estimate(CONFIDENCE),
            undisturbed_change: without.map(|without| without.estimate(CONFIDENCE)),
            differs: contradicted || far,
            known_by_name,
        })
    }
}
