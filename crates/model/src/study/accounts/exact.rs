//! Exact accounts as parts of the cost.
//!
//! They come from windows of their own, because the programs that keep them add time to each switch and interrupt; the cost comes from the
//! undisturbed windows. So an account is its part of all busy time in its windows, times the cost. What the machine does without the
//! workload is taken off each account by itself.

use crate::account::named::{
    AccountKey, ByAccount, IDLE_ENTRY, LEAST_SHARE, SMALL, as_peer, by_account, in_words, is_of_the_load, others_of,
    peers,
};
use crate::account::{AccountKind, Accounts, TaskOwner};
use crate::finding::AccountFinding;
use crate::meter::Meter;
use crate::record::{Execution, IoInterval, Mode, Snapshot, Stretch};
use crate::stats::{Neighbours, Pair, ratio_of_sums};
use crate::study::Context;
use crate::study::net_cost::{BackgroundRates, Per, Rate, per_work};
use crate::study::windows::{Window, done_between, window};
use std::collections::{BTreeMap, BTreeSet};

/// A window that kept accounts.
struct Kept<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    /// Net of their rates without the load.
    net: ByAccount,
}

/// All windows of a stretch that kept accounts, within an interval of I/O if there is one.
fn windows_of(
    stretch: &Stretch,
    interval: Option<IoInterval>,
) -> impl Iterator<Item = (&Snapshot, &Snapshot, &Accounts)> {
    stretch.pairs().filter_map(move |(before, after)| {
        let inside = IoInterval::covers(interval, before.at_nanos, after.at_nanos);
        let accounts = after.accounts.as_deref()?;
        (inside && before.mode == Mode::Alone(Meter::Accounts)).then_some((before, after, accounts))
    })
}

/// The rates of all accounts in these windows; `None` without one.
fn rates_in<'a>(windows: impl Iterator<Item = &'a Accounts>) -> Option<ByAccount> {
    let (mut rates, mut passed) = (ByAccount::new(), 0.0);
    for accounts in windows {
        passed += accounts.passed_nanos.as_f64();
        for (key, spent) in by_account(accounts) {
            let rate = rates.entry(key).or_default();
            rate.time += spent.time;
            rate.count += spent.count;
        }
    }
    for rate in rates.values_mut() {
        rate.time /= passed;
        rate.count /= passed;
    }
    (passed > 0.0).then_some(rates)
}

/// Those of stretches without the workload.
pub(in crate::study) fn rates(stretches: &[Stretch]) -> Option<ByAccount> {
    rates_in(stretches.iter().flat_map(|stretch| windows_of(stretch, None)).map(|(_, _, accounts)| accounts))
}

/// Those while the load ran.
fn rates_beside<'a>(executions: impl Iterator<Item = &'a Execution>) -> Option<ByAccount> {
    let windows = executions.flat_map(|execution| windows_of(&execution.stretch, execution.io_interval));
    rates_in(windows.map(|(_, _, accounts)| accounts))
}

/// The accounts of each window of an execution, net of their rates. By name, nothing serves the load for less than no time: where an account
/// had more without the load, as the writeback of what an earlier load left behind, what it had beside the load is all that is taken off.
fn net_of<'a>(execution: &'a Execution, rates: &BackgroundRates, by_name: bool) -> Vec<Kept<'a>> {
    let beside = by_name.then(|| rates_beside(std::iter::once(execution))).flatten().unwrap_or_default();
    let net = |(before, after, accounts): (&'a Snapshot, &'a Snapshot, &'a Accounts)| {
        let mut net = by_account(accounts);
        let (passed, peers) = (accounts.passed_nanos.as_f64(), peers(accounts));
        for (key, rate) in rates.accounts().into_iter().flatten() {
            // Without a load, a server is another process.
            let key = as_peer(key, &peers).unwrap_or_else(|| key.clone());
            let most = beside.get(&key).copied().unwrap_or_default();
            let taken = |rate: f64, most: f64| if by_name { rate.min(most) * passed } else { rate * passed };
            let spent = net.entry(key).or_default();
            spent.time -= taken(rate.time, most.time);
            spent.count -= taken(rate.count, most.count);
        }
        Kept { before, after, net }
    };
    windows_of(&execution.stretch, execution.io_interval).map(net).collect()
}

impl Kept<'_> {
    /// The window, with something that the accounts show instead of a meter's cycles.
    fn window(&self, context: &Context, shown: f64) -> Window {
        let measured = self.after.at_nanos.since(self.before.at_nanos);
        Window {
            begin: self.before.at_nanos,
            end: self.after.at_nanos,
            measured,
            cycles: shown,
            capacity_seconds: context.cpus as f64 * measured.seconds(),
            done: done_between(self.before, self.after),
        }
    }

    /// The window, with the cycles of what belongs to the load by its name.
    fn of_the_load(&self, context: &Context) -> Window {
        let of_the_load = self.net.iter().filter(|(key, _)| is_of_the_load(key));
        let nanos: f64 = of_the_load.map(|(_, spent)| spent.time).sum();
        self.window(context, nanos / 1e9 * context.clock.0)
    }
}

/// Windows with the cycles of the load alone, known by its name.
pub(in crate::study) fn of_the_load(execution: &Execution, rates: &BackgroundRates) -> Vec<Window> {
    net_of(execution, rates, true).iter().map(|kept| kept.of_the_load(&rates.context)).collect()
}

/// Windows without a load, with the cycles of what serves a load too and is charged to it net of its rate here.
pub(in crate::study) fn shared(stretch: &Stretch, context: &Context) -> Vec<Window> {
    let kept = |(before, after, accounts)| Kept { before, after, net: by_account(accounts) };
    windows_of(stretch, None).map(|window| kept(window).of_the_load(context)).collect()
}

/// The part of the machine's time that other processes used while the load ran, which it does not wake; `None` without accounts.
pub(in crate::study) fn others_part(executions: &[Execution]) -> Option<f64> {
    Some(others_of(&rates_beside(executions.iter())?))
}

/// The other processes that used most while the load ran, by name.
pub(in crate::study) fn largest_others<'a>(executions: impl Iterator<Item = &'a Execution>) -> Vec<String> {
    const NAMED: usize = 3;
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let windows = executions.flat_map(|execution| windows_of(&execution.stretch, execution.io_interval));
    let others = windows.flat_map(|(_, _, accounts)| &accounts.accounts);
    for account in others.filter(|account| account.owner == Some(TaskOwner::Other)) {
        *sums.entry(&account.name).or_default() += account.nanos.as_f64();
    }
    let mut sums: Vec<(&str, f64)> = sums.into_iter().collect();
    sums.sort_by(|one, other| other.1.total_cmp(&one.1));
    sums.into_iter().take(NAMED).map(|(name, _)| name.to_owned()).collect()
}

/// What the rows are parts of.
#[derive(Clone, Copy)]
pub(in crate::study) struct Total {
    /// Net cycles per I/O.
    pub net: f64,
    /// Whether it is that of the load by its name: then what is left out of it is left out of the rows.
    pub by_name: bool,
    /// Otherwise the meter that it comes from.
    pub meter: Option<Meter>,
}

/// The accounts; `None` if none were kept, or their rates without the load are unknown although the total is net of them.
///
/// Idle clocks count a part of idle entry and exit as idle. So that the rows are parts of a cost by such a clock, that row is the part that
/// the clock counts as busy, in the same windows: what remains of its busy time without the other accounts.
pub(super) fn study(executions: &[Execution], total: Total, rates: &BackgroundRates) -> Option<Vec<AccountFinding>> {
    if rates.accounts().is_none() && rates.watched() {
        return None;
    }
    // In these windows another meter that disturbs does not run, and cycles of cores are not a time.
    let reads = |meter: &Meter| !meter.disturbs() && meter.counts_time();
    let meter = total.meter.filter(|meter| !total.by_name && reads(meter));
    let idle_entry = IDLE_ENTRY;
    let windows: Vec<Vec<Kept>> = executions.iter().map(|execution| net_of(execution, rates, total.by_name)).collect();
    let (mut parts, mut totals): (Vec<BTreeMap<&AccountKey, f64>>, Vec<f64>) = Default::default();
    for kept in windows.iter().flatten() {
        let counted = kept.net.iter().filter(|(key, _)| !total.by_name || is_of_the_load(key));
        let mut times: BTreeMap<&AccountKey, f64> = counted.map(|(key, spent)| (key, spent.time)).collect();
        if let Some(busy) = meter.and_then(|meter| net_busy(kept, meter, rates)) {
            times.remove(&idle_entry);
            times.insert(&idle_entry, busy - times.values().sum::<f64>());
        }
        totals.push(times.values().sum());
        parts.push(times);
    }
    (totals.iter().sum::<f64>() > 0.0).then_some(())?;
    let part = |of: &dyn Fn(usize) -> f64| {
        let pair = |(place, total): (usize, &f64)| Pair { numerator: of(place), denominator: *total };
        let pairs: Vec<Pair> = totals.iter().enumerate().map(pair).collect();
        Some(ratio_of_sums(&pairs, Neighbours::Alike)?.estimate())
    };
    let all: Vec<&Kept> = windows.iter().flatten().collect();
    let keys: BTreeSet<&AccountKey> = parts.iter().flat_map(BTreeMap::keys).copied().collect();
    let (mut accounts, mut small) = (Vec::new(), 0.0);
    for key in keys {
        let Some(share) = part(&|place| parts.get(place).and_then(|times| times.get(key)).copied().unwrap_or(0.0))
        else {
            continue;
        };
        if share.value.abs() < LEAST_SHARE && *key != idle_entry {
            small += share.value;
            continue;
        }
        let spent = |kept: &Kept| kept.net.get(key).copied().unwrap_or_default();
        let in_all =
            if *key == idle_entry { part(&|place| all.get(place).map_or(0.0, |it| spent(it).time)) } else { None };
        let seen = |execution: &Execution| {
            let place = executions.iter().position(|other| std::ptr::eq(other, execution))?;
            let windows: Vec<Window> =
                windows.get(place)?.iter().map(|it| it.window(&rates.context, spent(it).count)).collect();
            (!windows.is_empty()).then_some(windows)
        };
        // A task does not begin.
        let times =
            if key.0 == AccountKind::Task { None } else { per_work(executions, Per::Io, Rate::default(), seen) };
        accounts.push(AccountFinding {
            name: in_words(key),
            kind: Some(key.0),
            owner: key.1,
            cycles_per_io: share.value * total.net,
            low: share.low.map(|low| low * total.net),
            high: share.high.map(|high| high * total.net),
            in_all_cycles_per_io: in_all.map(|all| all.value * total.net),
            times_per_io: times.map(|found| found.net),
            share: share.value,
        });
    }
    accounts.sort_by(|a, b| b.cycles_per_io.total_cmp(&a.cycles_per_io));
    let name = SMALL.to_owned();
    accounts.push(AccountFinding { name, cycles_per_io: small * total.net, share: small, ..AccountFinding::default() });
    Some(accounts)
}

/// Busy nanoseconds of a window by a meter, net of its background.
fn net_busy(kept: &Kept, meter: Meter, rates: &BackgroundRates) -> Option<f64> {
    let window = window(kept.before, kept.after, meter, &rates.context)?;
    let rate = rates.of(meter).map_or(0.0, |rate| rate.cycles_per_capacity_second);
    Some((window.cycles - rate * window.capacity_seconds) / rates.context.clock.0 * 1e9)
}
