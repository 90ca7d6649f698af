//! Exact accounts as shares of the cost.
//!
//! They come from windows of their own, in which switches and interrupts are dearer; the cost comes from the undisturbed windows. So an
//! account is its part of all busy time in its windows, times the cost. What the machine does without the workload is taken off each
//! account by itself.

use super::{LEAST_SHARE, NOT_EXACT, SOAKER, label};
use crate::account::{Account, AccountKind, Accounts, TaskOwner};
use crate::finding::AccountFinding;
use crate::meter::Meter;
use crate::record::{Execution, IoInterval, Mode, Snapshot, Stretch};
use crate::stats::{Neighbours, Pair, ratio_of_sums};
use crate::study::Context;
use crate::study::background::BackgroundRates;
use crate::study::windows::{Window, done_between, window};
use std::collections::BTreeMap;

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

/// Busy time of each account per time that passed, without the workload.
pub(in crate::study) fn rates(stretches: &[Stretch]) -> BTreeMap<AccountKey, f64> {
    let windows: Vec<&Accounts> = stretches.iter().flat_map(|stretch| kept(stretch, None)).collect();
    let passed: f64 = windows.iter().map(|window| window.passed_nanos.as_f64()).sum();
    let mut sums = BTreeMap::new();
    for (key, nanos) in windows.iter().flat_map(|window| busy(window)) {
        *sums.entry(key).or_insert(0.0) += nanos;
    }
    if passed > 0.0 {
        sums.values_mut().for_each(|sum| *sum /= passed);
    }
    sums
}

/// The time of each account that is not idle. Soakers only use otherwise idle time.
fn busy(accounts: &Accounts) -> impl Iterator<Item = (AccountKey, f64)> {
    let counts = |account: &&Account| account.kind != AccountKind::Idle && !account.name.starts_with(SOAKER);
    accounts.accounts.iter().filter(counts).map(|account| {
        let name = account.owner.map_or_else(|| account.name.clone(), |owner| label(owner, &account.name));
        ((account.kind, account.owner, name), account.nanos.as_f64())
    })
}

/// Windows with the cycles of the load alone, known by its name: its tasks and those that it wakes are charged in full, other processes
/// and iotoll's meters not at all. What cannot be assigned by a name, the kernel's threads, softirqs, interrupts and idle entry, is net of
/// its rate without the load.
pub(in crate::study) fn of_the_load(execution: &Execution, rates: &BackgroundRates, context: &Context) -> Vec<Window> {
    let snapshots = &execution.stretch.snapshots;
    let pairs = snapshots.iter().zip(snapshots.iter().skip(1));
    let kept =
        pairs.filter_map(|(before, after)| kept_in(before, after, execution.io_interval).map(|it| (before, after, it)));
    let window = |(before, after, accounts): (&Snapshot, &Snapshot, &Accounts)| {
        let (passed, cpus) = (accounts.passed_nanos.as_f64(), context.cpus as f64);
        let by_name: f64 = busy(accounts)
            .filter(|(key, _)| !is_by_level(key))
            .map(|(key, nanos)| match key.1 {
                Some(TaskOwner::Workload | TaskOwner::Peer) => nanos,
                _ => 0.0,
            })
            .sum();
        let by_level: f64 = busy(accounts).filter(|(key, _)| is_by_level(key)).map(|(_, nanos)| nanos).sum();
        let anyway: f64 =
            rates.accounts().iter().filter(|(key, _)| is_by_level(key)).map(|(_, rate)| rate * passed).sum();
        Window {
            begin: before.at_nanos,
            end: after.at_nanos,
            measured: after.at_nanos.since(before.at_nanos),
            cycles: (by_name + by_level - anyway) / 1e9 * context.clock.0,
            capacity_seconds: cpus * after.at_nanos.since(before.at_nanos).seconds(),
            done: done_between(before, after),
        }
    };
    kept.map(window).collect()
}

/// The part of the machine's time that other processes used while the load ran, which it does not wake; `None` without accounts.
pub(in crate::study) fn others_part(executions: &[Execution]) -> Option<f64> {
    let windows: Vec<&Accounts> =
        executions.iter().flat_map(|execution| kept(&execution.stretch, execution.io_interval)).collect();
    let passed: f64 = windows.iter().map(|window| window.passed_nanos.as_f64()).sum();
    let others = windows.iter().map(|window| window.others_part() * window.passed_nanos.as_f64());
    (passed > 0.0).then(|| others.sum::<f64>() / passed)
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
            if let Some(busy) = total.meter.filter(|_| !total.by_name).and_then(|meter| {
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
    for (key, rate) in rates.accounts() {
        *sums.entry(key.clone()).or_default() -= rate * kept.passed_nanos.as_f64();
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
