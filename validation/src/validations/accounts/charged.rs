//! The accounts of one run, from its record.

use crate::bench::Bench;
use crate::bench::iotoll::{self, Measuring};
use anyhow::{Context, ensure};
use model::meter::Meter;
use model::record::{Account, AccountKind, Accounts, Mode, Record, Snapshot, Stretch, TaskOwner};
use std::collections::BTreeMap;

/// Where time can be charged that a load can have a part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Threads of the load, without io_uring's workers.
    Own,
    RingWorkers,
    KernelWorkers,
    /// Any other thread of the kernel.
    Kernel,
    /// Processes that the load wakes.
    Peers,
    Softirq(&'static str),
    Interrupt(&'static str),
    IdleEntry,
}

/// Names that places can have; others are one.
const NAMES: [&str; 14] = [
    "timer",
    "net_tx",
    "net_rx",
    "block",
    "irq_poll",
    "tasklet",
    "sched",
    "hrtimer",
    "rcu",
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
];

impl Place {
    fn of(account: &Account) -> Option<Self> {
        let name = NAMES.into_iter().find(|name| *name == account.name).unwrap_or("others");
        Some(match (account.kind, account.owner) {
            (AccountKind::Softirq, _) => Self::Softirq(name),
            (AccountKind::Irq, _) => Self::Interrupt(name),
            (AccountKind::IdleEntry, _) => Self::IdleEntry,
            (AccountKind::Task, Some(TaskOwner::Workload)) if account.name.starts_with("iou-") => Self::RingWorkers,
            (AccountKind::Task, Some(TaskOwner::Workload)) => Self::Own,
            (AccountKind::Task, Some(TaskOwner::Kernel)) if account.name.starts_with("kworker/") => Self::KernelWorkers,
            (AccountKind::Task, Some(TaskOwner::Kernel)) => Self::Kernel,
            (AccountKind::Task, Some(TaskOwner::Peer)) => Self::Peers,
            (AccountKind::Task, _) | (AccountKind::Idle, _) => return None,
        })
    }

    pub fn words(self) -> String {
        match self {
            Self::Own => "own threads".to_owned(),
            Self::RingWorkers => "io_uring's workers".to_owned(),
            Self::KernelWorkers => "workers of the kernel".to_owned(),
            Self::Kernel => "other kernel threads".to_owned(),
            Self::Peers => "processes that it wakes".to_owned(),
            Self::Softirq(name) => format!("softirq {name}"),
            Self::Interrupt(name) => format!("interrupt {name}"),
            Self::IdleEntry => "idle entry and exit".to_owned(),
        }
    }
}

/// Everything that one run was charged.
#[derive(Clone, Debug, Default)]
pub struct Charged {
    /// Nanoseconds and counts.
    gross: BTreeMap<Place, (f64, f64)>,
    /// Per nanosecond that passes on a CPU, without the load.
    rates: BTreeMap<Place, f64>,
    passed: f64,
    /// Of all accounts, also idle ones.
    sum: f64,
    busy: f64,
    /// Wall time of the windows × CPUs.
    wall: f64,
    /// Taken away by a hypervisor: the accounts charge it to what it stopped, the scheduler to nobody.
    stolen: f64,
}

/// Keeps accounts while the command runs.
pub fn measure(bench: &Bench, command: &[String]) -> anyhow::Result<Charged> {
    let out = bench.path("kept");
    // Of only this meter the windows follow one another without gaps.
    let measuring = Measuring { meters: "accounts", background_millis: 1000, out: Some(out.clone()) };
    iotoll::cost(bench, &measuring, &["--ios=1".to_owned()], command)?;
    let record = read(&out.join("record.jsonl"));
    std::fs::remove_dir_all(&out)?;
    charged(&record?)
}

/// The record that a finished measurement saved.
pub fn read(path: &std::path::Path) -> anyhow::Result<Record> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut last: serde_json::Value = serde_json::from_str(text.lines().last().context("an empty record")?)?;
    Ok(serde_json::from_value(last.get_mut("measured").context("an unfinished record")?.take())?)
}

fn windows(stretch: &Stretch) -> impl Iterator<Item = (&Snapshot, &Snapshot, &Accounts)> {
    let pairs = stretch.snapshots.iter().zip(stretch.snapshots.iter().skip(1));
    let kept = |before: &Snapshot| before.mode == Mode::Alone(Meter::Accounts);
    pairs.filter_map(move |(before, after)| Some((before, after, after.accounts.as_deref().filter(|_| kept(before))?)))
}

fn charged(record: &Record) -> anyhow::Result<Charged> {
    let execution = record.phases.first().and_then(|phase| phase.executions.first()).context("no execution")?;
    let mut charged = Charged::default();
    for (before, after, accounts) in windows(&execution.stretch) {
        if let (Some(first), Some(last)) = (before.system, after.system) {
            charged.stolen += last.steal_nanos.since(first.steal_nanos).as_f64();
        }
        charged.passed += accounts.passed_nanos.as_f64();
        charged.wall += after.at_nanos.since(before.at_nanos).as_f64() * record.host.cpus as f64;
        for account in &accounts.accounts {
            let nanos = account.nanos.as_f64();
            charged.sum += nanos;
            charged.busy += if account.kind == AccountKind::Idle { 0.0 } else { nanos };
            if let Some(place) = Place::of(account) {
                let sum = charged.gross.entry(place).or_default();
                *sum = (sum.0 + nanos, sum.1 + account.count as f64);
            }
        }
    }
    let meter = record.meters.iter().find(|status| status.meter == Meter::Accounts);
    ensure!(charged.passed > 0.0, "no accounts were kept: {meter:?}");
    let background: Vec<&Accounts> = record.background.iter().flat_map(windows).map(|(_, _, it)| it).collect();
    let passed: f64 = background.iter().map(|accounts| accounts.passed_nanos.as_f64()).sum();
    ensure!(passed > 0.0, "no accounts were kept without the load");
    for account in background.iter().flat_map(|accounts| &accounts.accounts) {
        if let Some(place) = Place::of(account) {
            *charged.rates.entry(place).or_default() += account.nanos.as_f64() / passed;
        }
    }
    Ok(charged)
}

impl Charged {
    pub fn gross(&self, place: Place) -> f64 {
        self.gross.get(&place).map_or(0.0, |(nanos, _)| *nanos)
    }

    /// Less what it has without the load.
    pub fn net(&self, place: Place) -> f64 {
        self.gross(place) - self.rates.get(&place).copied().unwrap_or(0.0) * self.passed
    }

    pub fn count(&self, place: Place) -> f64 {
        self.gross.get(&place).map_or(0.0, |(_, count)| *count)
    }

    /// All that is not idle, of the whole machine.
    pub fn busy(&self) -> f64 {
        self.busy
    }

    /// The part of the time that a hypervisor took away.
    pub fn stolen(&self) -> f64 {
        self.stolen / self.wall
    }

    /// The sum of all accounts ÷ wall time × CPUs.
    pub fn of_all(&self) -> f64 {
        self.sum / self.wall
    }
}

/// The growth of each place over several runs.
pub fn net_of_all<'a>(runs: impl Iterator<Item = &'a Charged>) -> Vec<(Place, f64)> {
    let mut sums: BTreeMap<Place, f64> = BTreeMap::new();
    for run in runs {
        for place in run.gross.keys() {
            *sums.entry(*place).or_default() += run.net(*place);
        }
    }
    sums.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Nanos;

    fn account(kind: AccountKind, owner: Option<TaskOwner>, name: &str) -> Account {
        Account { kind, name: name.to_owned(), owner, nanos: Nanos(1), count: 0 }
    }

    #[test]
    fn accounts_have_places() {
        let task = |owner, name| Place::of(&account(AccountKind::Task, Some(owner), name));
        assert_eq!(task(TaskOwner::Workload, "iou-wrk-7"), Some(Place::RingWorkers));
        assert_eq!(task(TaskOwner::Kernel, "kworker/u4:1"), Some(Place::KernelWorkers));
        assert_eq!(task(TaskOwner::Other, "cc"), None);
        let softirq = |name| Place::of(&account(AccountKind::Softirq, None, name));
        assert_eq!(softirq("net_rx"), Some(Place::Softirq("net_rx")));
        assert_eq!(softirq("new"), Some(Place::Softirq("others")));
    }

    #[test]
    fn what_a_place_has_anyway_is_subtracted() {
        let run = Charged {
            gross: [(Place::IdleEntry, (50.0, 3.0))].into(),
            rates: [(Place::IdleEntry, 0.1)].into(),
            passed: 200.0,
            ..Charged::default()
        };
        assert_eq!(
            (run.gross(Place::IdleEntry), run.net(Place::IdleEntry), run.count(Place::IdleEntry)),
            (50.0, 30.0, 3.0)
        );
        assert_eq!(net_of_all([run.clone(), run].iter()), [(Place::IdleEntry, 60.0)]);
    }
}
