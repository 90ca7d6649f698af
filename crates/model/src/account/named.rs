//! Exact accounts by the names that reports show, and whom they belong to.

use super::{Account, AccountKind, Accounts, TaskOwner};
use std::collections::{BTreeMap, BTreeSet};

/// Prefix of the names of the soaker's threads.
pub(crate) const SOAKER: &str = "iotoll-soak";

/// Accounts with a smaller part of the cost are combined, because they are noise compared with the rest.
pub(crate) const LEAST_SHARE: f64 = 0.01;
/// What these are called.
pub(crate) const SMALL: &str = "others, each below 1 %";

/// What is one account in a report.
pub(crate) type AccountKey = (AccountKind, Option<TaskOwner>, String);

/// The account of idle entry and exit.
pub(crate) const IDLE_ENTRY: AccountKey = (AccountKind::IdleEntry, None, String::new());

/// The time of an account in nanoseconds, and how often it began; both in a window, or per nanosecond that passes on a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub time: f64,
    pub count: f64,
}

/// Accounts that are not idle.
pub(crate) type ByAccount = BTreeMap<AccountKey, Spent>;

/// Sums by account. Soakers only use otherwise idle time.
pub(crate) fn by_account(accounts: &Accounts) -> ByAccount {
    let counts = |account: &&Account| account.kind != AccountKind::Idle && !account.name.starts_with(SOAKER);
    let mut sums = ByAccount::new();
    for account in accounts.accounts.iter().filter(counts) {
        let name = account.owner.map_or_else(|| account.name.clone(), |owner| label(owner, &account.name));
        let sum = sums.entry((account.kind, account.owner, name)).or_default();
        sum.time += account.nanos.as_f64();
        sum.count += account.count as f64;
    }
    sums
}

/// The part of the machine's time that other processes have by these rates.
pub(crate) fn others_of(rates: &ByAccount) -> f64 {
    let others = rates.iter().filter(|((_, owner, _), _)| *owner == Some(TaskOwner::Other));
    others.map(|(_, spent)| spent.time).sum()
}

/// Names of the processes that the load wakes, as other processes are called.
pub(crate) fn peers(accounts: &Accounts) -> BTreeSet<String> {
    let peers = accounts.accounts.iter().filter(|account| account.owner == Some(TaskOwner::Peer));
    peers.map(|account| label(TaskOwner::Other, &account.name)).collect()
}

/// The account of a peer that is another process without the load.
pub(crate) fn as_peer((kind, owner, name): &AccountKey, peers: &BTreeSet<String>) -> Option<AccountKey> {
    let is_peer = *owner == Some(TaskOwner::Other) && peers.contains(name);
    let raw = name.strip_suffix(OTHER_PROCESS)?;
    is_peer.then(|| (*kind, Some(TaskOwner::Peer), label(TaskOwner::Peer, raw)))
}

/// Whether an account belongs to the load by its name: its tasks and those that it wakes. What serves the load and others, the kernel's
/// threads, softirqs, interrupts and idle entry, belongs to it as far as it exceeds its rate without the load.
pub(crate) fn is_of_the_load((kind, owner, _): &AccountKey) -> bool {
    *kind != AccountKind::Task || matches!(owner, Some(TaskOwner::Workload | TaskOwner::Peer | TaskOwner::Kernel))
}

/// Ends the name of a process that is not the workload's.
const OTHER_PROCESS: &str = " (another process)";

/// Workers of one pool are one account: `kworker/u4:2-flush` and `kworker/0:1` only differ in numbers.
pub(crate) fn label(owner: TaskOwner, name: &str) -> String {
    match (owner, name.split_once('/')) {
        (TaskOwner::Kernel, Some((pool, _))) => pool.to_owned(),
        (TaskOwner::Iotoll, _) => "iotoll's own meters".to_owned(),
        // The kernel's name of the thread that takes submissions (sqthread_poll), and of a worker for requests that would block.
        (TaskOwner::Workload, _) if name.starts_with("iou-sqp") => {
            "io_uring's polling thread for it (iou-sqp)".to_owned()
        }
        (TaskOwner::Workload, _) if name.starts_with("iou-") => "io_uring's workers for it (iou-wrk)".to_owned(),
        (TaskOwner::Workload, _) => "the workload's own threads".to_owned(),
        (TaskOwner::Other, _) => format!("{name}{OTHER_PROCESS}"),
        (TaskOwner::Peer, _) => format!("{name} (woken by the workload)"),
        _ => name.to_owned(),
    }
}

/// How a report calls the account that a raw name belongs to.
pub(crate) fn account_in_words(kind: AccountKind, owner: Option<TaskOwner>, name: &str) -> String {
    let name = owner.map_or_else(|| name.to_owned(), |owner| label(owner, name));
    in_words(&(kind, owner, name))
}

/// An account as reports call it.
pub fn in_words((kind, _, name): &AccountKey) -> String {
    match kind {
        AccountKind::Task => name.clone(),
        AccountKind::Softirq => format!("softirq {name}"),
        AccountKind::Irq => format!("interrupt {name}"),
        AccountKind::IdleEntry => "idle entry and exit".to_owned(),
        AccountKind::Idle => "idle".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_kernel_for_io_uring_are_called_what_they_do() {
        assert_eq!(label(TaskOwner::Workload, "iou-sqp-31057"), "io_uring's polling thread for it (iou-sqp)");
        assert_eq!(label(TaskOwner::Workload, "iou-wrk-31057"), "io_uring's workers for it (iou-wrk)");
    }
}
