//! What the exact accounts of one run charged to places.

use super::{record, stretch, windows};
use crate::bench::Bench;
use anyhow::ensure;
use model::meter::Meter;
use model::record::{Account, AccountKind, Accounts, Mode, Snapshot, Stretch, TaskOwner};
use std::collections::BTreeMap;

/// The words are the places where the planted time belongs, and after `inherent` those in which the load has a part that no clock knows.
/// Nanoseconds: of these places without what they have anyway, with it, and of all that is not idle; how often, the largest growth of
/// any other place; the sum of all accounts ÷ wall time × CPUs, and the part that a hypervisor took.
pub(super) fn read(bench: &Bench, words: &[String]) -> anyhow::Result<Vec<f64>> {
    let record = record(bench)?;
    let mut gross: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    let (mut passed, mut wall, mut stolen, mut sum, mut busy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (before, after, accounts) in kept(stretch(&record)?) {
        if let (Some(first), Some(last)) = (before.system, after.system) {
            stolen += last.steal_nanos.since(first.steal_nanos).as_f64();
        }
        passed += accounts.passed_nanos.as_f64();
        wall += after.at_nanos.since(before.at_nanos).as_f64() * record.host.cpus as f64;
        for account in &accounts.accounts {
            let nanos = account.nanos.as_f64();
            sum += nanos;
            busy += if account.kind == AccountKind::Idle { 0.0 } else { nanos };
            if let Some(place) = place(account) {
                let sums = gross.entry(place).or_default();
                *sums = (sums.0 + nanos, sums.1 + account.count as f64);
            }
        }
    }
    let background: Vec<&Accounts> = record.background.iter().flat_map(kept).map(|(_, _, it)| it).collect();
    let passed_without: f64 = background.iter().map(|accounts| accounts.passed_nanos.as_f64()).sum();
    ensure!(passed > 0.0 && passed_without > 0.0, "no accounts were kept: {:?}", record.meters);
    let mut net: BTreeMap<&String, f64> = gross.iter().map(|(place, (nanos, _))| (place, *nanos)).collect();
    for account in background.iter().flat_map(|accounts| &accounts.accounts) {
        if let Some(net) = place(account).and_then(|place| net.get_mut(&place)) {
            *net -= account.nanos.as_f64() / passed_without * passed;
        }
    }
    let planted = words.split(|word| word == "inherent").next().unwrap_or_default();
    let of = |wanted: &dyn Fn(&str) -> f64| planted.iter().map(|place| wanted(place)).sum::<f64>();
    let others = net.iter().filter(|(place, _)| !words.contains(**place)).map(|(_, nanos)| *nanos);
    Ok(vec![
        of(&|wanted| net.iter().find(|(place, _)| place.as_str() == wanted).map_or(0.0, |(_, nanos)| *nanos)),
        of(&|wanted| gross.get(wanted).map_or(0.0, |sums| sums.0)),
        busy,
        of(&|wanted| gross.get(wanted).map_or(0.0, |sums| sums.1)),
        others.fold(0.0, f64::max),
        sum / wall,
        stolen / wall,
    ])
}

fn kept(stretch: &Stretch) -> impl Iterator<Item = (&Snapshot, &Snapshot, &Accounts)> {
    let kept = windows(stretch).filter(|(before, _)| before.mode == Mode::Alone(Meter::Accounts));
    kept.filter_map(|(before, after)| Some((before, after, after.accounts.as_deref()?)))
}

/// Where time can be charged that a load can have a part in.
fn place(account: &Account) -> Option<String> {
    let name = account.name.as_str();
    Some(match (account.kind, account.owner) {
        (AccountKind::Softirq, _) => format!("softirq {name}"),
        (AccountKind::Irq, _) => format!("interrupt {name}"),
        (AccountKind::IdleEntry, _) => "idle entry".to_owned(),
        (AccountKind::Task, Some(TaskOwner::Workload)) if name.starts_with("iou-") => "io_uring's workers".to_owned(),
        (AccountKind::Task, Some(TaskOwner::Workload)) => "own threads".to_owned(),
        (AccountKind::Task, Some(TaskOwner::Kernel)) if name.starts_with("kworker/") => {
            "workers of the kernel".to_owned()
        }
        (AccountKind::Task, Some(TaskOwner::Kernel)) => "other kernel threads".to_owned(),
        (AccountKind::Task, Some(TaskOwner::Peer)) => "processes that it wakes".to_owned(),
        (AccountKind::Task, _) | (AccountKind::Idle, _) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Nanos;

    #[test]
    fn accounts_have_places() {
        let of =
            |kind, owner, name: &str| place(&Account { kind, name: name.to_owned(), owner, nanos: Nanos(1), count: 0 });
        let task = |owner, name| of(AccountKind::Task, Some(owner), name);
        assert_eq!(task(TaskOwner::Workload, "iou-wrk-7").unwrap(), "io_uring's workers");
        assert_eq!(task(TaskOwner::Kernel, "kworker/u4:1").unwrap(), "workers of the kernel");
        assert_eq!(task(TaskOwner::Other, "cc"), None);
        assert_eq!(of(AccountKind::Softirq, None, "net_rx").unwrap(), "softirq net_rx");
    }
}
