//! Exact accounts as shares of the cost.
//!
//! They come from windows of their own, in which switches and interrupts are dearer; the cost comes from the undisturbed windows. So an
//! account is its part of all busy time in its windows, times the cost. What the machine does without the workload is taken off each
//! account by itself.

use super::{LEAST_SHARE, NOT_EXACT, OTHER_PROCESS, SOAKER, label};
use crate::account::{Account, AccountKind, Accounts, TaskOwner};
use crate::finding::AccountFinding;
use crate::meter::Meter;
use crate::record::{Execution, IoInterval, Mode, Snapshot, Stretch};
use crate::stats::{Estimate, Neighbours, Pair, ratio_of_sums};
use crate::study::Context;
use crate::study::background::{BackgroundRates, Rate};
use crate::study::per_work::{Per, per_work};
use crate::study::windows::{Window, done_between, window};
use std::collections::{BTreeMap, BTreeSet};

/// What is one account in a report.
pub(in crate::study) type AccountKey = (AccountKind, Option<TaskOwner>, String);

/// The accounts of each window that kept them.
pub(in crate::study) fn kept(stretch: &Stretch, interval: Option<IoInterval>) -> Vec<&Accounts> {
    let snapshots = &stretch.snapshots;
    let windows = snapshots.iter().zip(snapshots.iter().skip(1));
    windows.filter_map(|(before, after)| kept_in(before, after, interval)).collect()
}

/// The accounts between two snapshots, within an interval of I/O if there is one.
fn kept_in<'a>(before: &Snapshot, after: &'a Snapshot, interval: Option<IoInterval>) -> Option<&'a Accounts> {
    let inside = interval.is_none_or(|it| before.at_nanos >= it.begin_nanos && after.at_nanos <= it.end_nanos);
    after.accounts.as_deref().filter(|_| inside && before.mode == Mode::Alone(Meter::Accounts))
}

/// What an account has without the workload.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::study) struct AccountRate {
    /// Nanoseconds per nanosecond that passes on a CPU.
    pub time: f64,
    /// Beginnings per nanosecond that passes on a CPU.
    pub count: f64,
}

/// The rates of all accounts that are not idle; `None` if none were kept.
pub(in crate::study) fn rates(stretches: &[Stretch]) -> Option<BTreeMap<AccountKey, AccountRate>> {
    let windows: Vec<&Accounts> = stretches.iter().flat_map(|stretch| kept(stretch, None)).collect();
    let passed: f64 = windows.iter().map(|window| window.passed_nanos.as_f64()).sum();
    let mut rates: BTreeMap<AccountKey, AccountRate> = BTreeMap::new();
    for account in windows.iter().flat_map(|window| &window.accounts).filter(|account| is_busy(account)) {
        let rate = rates.entry(key_of(account)).or_default();
        if passed > 0.0 {
            rate.time += account.nanos.as_f64() / passed;
            rate.count += account.count as f64 / passed;
        }
    }
    (passed > 0.0).then_some(rates)
}

/// Whether an account is not idle. Soakers only use otherwise idle time.
fn is_busy(account: &Account) -> bool {
    account.kind != AccountKind::Idle && !account.name.starts_with(SOAKER)
}

fn key_of(account: &Account) -> AccountKey {
    let name = account.owner.map_or_else(|| account.name.clone(), |owner| label(owner, &account.name));
    (account.kind, account.owner, name)
}

/// The time of each account that is not idle.
fn busy(accounts: &Accounts) -> impl Iterator<Item = (AccountKey, f64)> {
    let busy = accounts.accounts.iter().filter(|account| is_busy(account));
    busy.map(|account| (key_of(account), account.nanos.as_f64()))
}

/// Windows with the cycles of the load alone, known by its name: its tasks and those that it wakes are charged in full, other processes
/// and iotoll's meters not at all. What cannot be assigned by a name, the kernel's threads, softirqs, interrupts and idle entry, is net of
/// its rate without the load.
pub(in crate::study) fn of_the_load(execution: &Execution, rates: &BackgroundRates, context: &Context) -> Vec<Window> {
    windows_with(execution, context, |accounts| {
        let charged = busy(accounts).map(|(key, nanos)| match key.1 {
            Some(TaskOwner::Workload | TaskOwner::Peer) => nanos,
            _ if is_by_level(&key) => nanos,
            _ => 0.0,
        });
        let peers = peers(accounts);
        let counts = |key: &AccountKey| is_by_level(key) || as_peer(key, &peers).is_some();
        let anyway = rates.accounts().into_iter().flatten().filter(|(key, _)| counts(key)).map(|(_, rate)| rate.time);
        let nanos = charged.sum::<f64>() - anyway.sum::<f64>() * accounts.passed_nanos.as_f64();
        nanos / 1e9 * context.clock.0
    })
}

/// The windows that kept accounts, with something that they show instead of a meter's cycles.
fn windows_with(execution: &Execution, context: &Context, of: impl Fn(&Accounts) -> f64) -> Vec<Window> {
    let snapshots = &execution.stretch.snapshots;
    let window = |(before, after): (&Snapshot, &Snapshot)| {
        let accounts = kept_in(before, after, execution.io_interval)?;
        let measured = after.at_nanos.since(before.at_nanos);
        Some(Window {
            begin: before.at_nanos,
            end: after.at_nanos,
            measured,
            cycles: of(accounts),
            capacity_seconds: context.cpus as f64 * measured.seconds(),
            done: done_between(before, after),
        })
    };
    snapshots.iter().zip(snapshots.iter().skip(1)).filter_map(window).collect()
}

/// How often an account begins for an I/O, net of how often it does without the load; `None` for tasks, and where the I/Os are unknown.
fn per_io(executions: &[Execution], key: &AccountKey, rates: &BackgroundRates, context: &Context) -> Option<Estimate> {
    (key.0 != AccountKind::Task).then_some(())?;
    let rate = rates.accounts().and_then(|rates| rates.get(key)).copied().unwrap_or_default().count;
    let count = |accounts: &Accounts| {
        let own = accounts.accounts.iter().filter(|account| key_of(account) == *key);
        own.map(|account| account.count as f64).sum::<f64>() - rate * accounts.passed_nanos.as_f64()
    };
    let seen =
        |execution: &Execution| Some(windows_with(execution, context, count)).filter(|windows| !windows.is_empty());
    per_work(executions, Per::Io, Rate::default(), seen).map(|found| found.net)
}

/// The part of the machine's time that other processes used while the load ran, which it does not wake; `None` without accounts.
pub(in crate::study) fn others_part(executions: &[Execution]) -> Option<f64> {
    let windows: Vec<&Accounts> =
        executions.iter().flat_map(|execution| kept(&execution.stretch, execution.io_interval)).collect();
    let passed: f64 = windows.iter().map(|window| window.passed_nanos.as_f64()).sum();
    let others = windows.iter().map(|window| window.others_part() * window.passed_nanos.as_f64());
    (passed > 0.0).then(|| others.sum::<f64>() / passed)
}

/// Names of the processes that the load wakes, as other processes are called.
fn peers(accounts: &Accounts) -> BTreeSet<String> {
    let peers = accounts.accounts.iter().filter(|account| account.owner == Some(TaskOwner::Peer));
    peers.map(|account| label(TaskOwner::Other, &account.name)).collect()
}

/// The account of a peer that is another process without the load.
fn as_peer((kind, owner, name): &AccountKey, peers: &BTreeSet<String>) -> Option<AccountKey> {
    let is_peer = *owner == Some(TaskOwner::Other) && peers.contains(name);
    let raw = name.strip_suffix(OTHER_PROCESS)?;
    is_peer.then(|| (*kind, Some(TaskOwner::Peer), label(TaskOwner::Peer, raw)))
}

/// The other processes that used most while the load ran, by name.
pub(in crate::study) fn largest_others(executions: &[Execution]) -> Vec<String> {
    const NAMED: usize = 3;
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let windows = executions.iter().flat_map(|execution| kept(&execution.stretch, execution.io_interval));
    let others = windows.flat_map(|window| &window.accounts).filter(|account| account.owner == Some(TaskOwner::Other));
    others.for_each(|account| *sums.entry(&account.name).or_default() += account.nanos.as_f64());
    let mut sums: Vec<(&str, f64)> = sums.into_iter().collect();
    sums.sort_by(|one, other| other.1.total_cmp(&one.1));
    sums.into_iter().take(NAMED).map(|(name, _)| name.to_owned()).collect()
}

/// Whether an account serves the load and others.
fn is_by_level((kind, owner, _): &AccountKey) -> bool {
    *kind != AccountKind::Task || *owner == Some(TaskOwner::Kernel)
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

/// The accounts; `None` if none were kept.
///
/// Idle clocks count a part of idle entry and exit as idle. So that the rows are parts of a cost by such a clock, that row is the part that
/// the clock counts as busy, in the same windows: what remains of its busy time without the other accounts.
pub(super) fn study(
    executions: &[Execution],
    total: Total,
    rates: &BackgroundRates,
    context: &Context,
) -> Option<Vec<AccountFinding>> {
    // What the machine does anyway is in the total no more, and must not be in the rows.
    if rates.accounts().is_none() && rates.watched() {
        return None;
    }
    // In these windows another meter that disturbs does not run, and cycles of cores are not a time.
    let reads = |meter: &Meter| !meter.disturbs() && meter.counts_time();
    let meter = total.meter.filter(|meter| !total.by_name && reads(meter));
    let mut by_window: Vec<BTreeMap<AccountKey, f64>> = Vec::new();
    let mut totals: Vec<f64> = Vec::new();
    let mut idle_entries: Vec<f64> = Vec::new();
    let idle_entry: AccountKey = (AccountKind::IdleEntry, None, String::new());
    for execution in executions {
        let snapshots = &execution.stretch.snapshots;
        for (before, after) in snapshots.iter().zip(snapshots.iter().skip(1)) {
            let Some(kept) = kept_in(before, after, execution.io_interval) else { continue };
            let mut sums = net_of(kept, rates);
            if total.by_name {
                sums.retain(|key, _| is_by_level(key) || matches!(key.1, Some(TaskOwner::Workload | TaskOwner::Peer)));
            }
            idle_entries.push(sums.get(&idle_entry).copied().unwrap_or(0.0));
            if let Some(busy) = meter.and_then(|meter| {
                let window = window(before, after, meter, context)?;
                let rate = rates.of(meter).map_or(0.0, |rate| rate.cycles_per_capacity_second);
                Some((window.cycles - rate * window.capacity_seconds) / context.clock.0 * 1e9)
            }) {
                let others: f64 = sums.iter().filter(|(key, _)| **key != idle_entry).map(|(_, nanos)| nanos).sum();
                sums.insert(idle_entry.clone(), busy - others);
            }
            totals.push(sums.values().sum());
            by_window.push(sums);
        }
    }
    (totals.iter().sum::<f64>() > 0.0).then_some(())?;
    let part = |of: &dyn Fn(usize) -> f64| {
        let pair = |(place, total): (usize, &f64)| Pair { numerator: of(place), denominator: *total };
        let pairs: Vec<Pair> = totals.iter().enumerate().map(pair).collect();
        Some(ratio_of_sums(&pairs, Neighbours::Alike)?.estimate())
    };
    let mut keys: Vec<&AccountKey> = by_window.iter().flat_map(BTreeMap::keys).collect();
    keys.sort();
    keys.dedup();
    let (mut accounts, mut small) = (Vec::new(), 0.0);
    for key in keys {
        let value = |place: usize| by_window.get(place).and_then(|sums| sums.get(key)).copied().unwrap_or(0.0);
        let Some(share) = part(&value) else { continue };
        if share.value.abs() < LEAST_SHARE && *key != idle_entry {
            small += share.value;
            continue;
        }
        let (kind, owner, name) = key.clone();
        let in_all =
            if *key == idle_entry { part(&|place| idle_entries.get(place).copied().unwrap_or(0.0)) } else { None };
        accounts.push(AccountFinding {
            name: in_words(kind, name),
            kind: Some(kind),
            owner,
            cycles_per_io: share.value * total.net,
            low: share.low.map(|low| low * total.net),
            high: share.high.map(|high| high * total.net),
            in_all_cycles_per_io: in_all.map(|all| all.value * total.net),
            times_per_io: per_io(executions, key, rates, context),
            share: share.value,
        });
    }
    accounts.sort_by(|a, b| b.cycles_per_io.total_cmp(&a.cycles_per_io));
    let name = "others, each below 1 %".to_owned();
    accounts.push(AccountFinding { name, cycles_per_io: small * total.net, share: small, ..NOT_EXACT });
    Some(accounts)
}

/// The accounts of a window, net of their rates without the load.
fn net_of(kept: &Accounts, rates: &BackgroundRates) -> BTreeMap<AccountKey, f64> {
    let mut sums: BTreeMap<AccountKey, f64> = BTreeMap::new();
    for (key, nanos) in busy(kept) {
        *sums.entry(key).or_default() += nanos;
    }
    let peers = peers(kept);
    for (key, rate) in rates.accounts().into_iter().flatten() {
        // Without a load, a server is another process.
        let key = as_peer(key, &peers).unwrap_or_else(|| key.clone());
        *sums.entry(key).or_default() -= rate.time * kept.passed_nanos.as_f64();
    }
    sums
}

fn in_words(kind: AccountKind, name: String) -> String {
    match kind {
        AccountKind::Task => name,
        AccountKind::Softirq => format!("softirq {name}"),
        AccountKind::Irq => format!("interrupt {name}"),
        AccountKind::IdleEntry => "idle entry and exit".to_owned(),
        AccountKind::Idle => "idle".to_owned(),
    }
}
