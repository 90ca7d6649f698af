//! The accounts as a meter: attached for windows of their own, because the programs add time to each switch and interrupt.
//!
//! They are attached before the first reading of such a window, and detached after its last, so that neither is in it. Attaching takes
//! some milliseconds, in which the load runs on; the time before the window is a gap anyway. Rounds of slices hold them from before the
//! first slice until after the last.

use super::accounts::{AccountTimes, Accounts, Use};
use super::tasks::{OwnedTask, Owners};
use crate::proc_files::descends;
use model::account::{self, AccountKind, BUSY_OTHERS, TaskOwner};
use model::meter::Meter;
use model::record::{Count, Mode};
use model::unit::Nanos;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use sys::clock::monotonic_nanos;

/// The mode of their windows.
const KEPT: Mode = Mode::Alone(Meter::Accounts);

/// Accounts, and what they had when the latest window began.
pub(super) struct AccountWindows {
    accounts: Accounts,
    /// They stay attached between windows.
    held: bool,
    open: Option<AccountTimes>,
    /// When they were closed last, if they were.
    closed: Option<Nanos>,
    /// Busy time in all windows so far, at the end of the latest.
    count: Count,
    /// What is known of each load that takes turns, and of the machine without one.
    loads: HashMap<LoadKey, Load>,
    /// The present one.
    load: LoadKey,
    pub(super) relations: Relations,
}

/// Tells loads apart: whether one runs, and the process of a command.
type LoadKey = (bool, Option<u32>);

/// What is known since a load began, or ended.
#[derive(Default)]
struct Load {
    /// Time of other processes, and the time that passed, in nanoseconds.
    others: f64,
    passed: f64,
    /// Wake-ups by waker and process.
    wakes: HashMap<(Option<u32>, u32), u64>,
}

/// Who works for whom, as the latest window with accounts found it.
#[derive(Default)]
pub(super) struct Relations {
    /// The parents of processes.
    pub(super) parents: HashMap<u32, u32>,
    /// Processes that work for the workload.
    pub(super) peers: BTreeSet<u32>,
}

/// What was read at a snapshot.
#[derive(Default)]
pub(super) struct AccountReading {
    /// The busy time of all CPUs.
    pub count: Option<Count>,
    /// What the window that ends here was charged to.
    pub accounts: Option<Box<account::Accounts>>,
}

impl AccountWindows {
    /// Opens them, and shows that they can be attached here.
    pub(super) fn open() -> Result<Self, String> {
        let mut accounts = Accounts::open()?;
        if accounts.own_process() != std::process::id() {
            return Err(
                "iotoll runs in a namespace of processes of its own; use the host's (docker: --pid=host)".to_owned()
            );
        }
        if !accounts.knows_parents() {
            return Err(
                "the kernel does not let programs read its memory (lockdown), so children of a command are unknown"
                    .to_owned(),
            );
        }
        accounts.attach()?;
        accounts.detach();
        Ok(Self {
            accounts,
            held: false,
            open: None,
            closed: None,
            count: Count::default(),
            loads: HashMap::new(),
            load: LoadKey::default(),
            relations: Relations::default(),
        })
    }

    /// Keeps them attached from now on, also between windows. Returns whether they are.
    pub(super) fn hold(&mut self) -> bool {
        self.held = self.accounts.attach().is_ok();
        self.loads.clear();
        self.held
    }

    /// Detaches them.
    pub(super) fn release(&mut self) {
        (self.held, self.open, self.closed) = (false, None, None);
        self.accounts.detach();
    }

    /// Before a snapshot that is followed by time in this mode.
    pub(super) fn before(&mut self, next: Mode) {
        if next == KEPT && self.open.is_none() && !self.accounts.are_attached() {
            // Where it fails, the window has no accounts.
            let _ = self.accounts.attach();
        }
    }

    /// At a snapshot, beside the readings of other clocks.
    pub(super) fn close(&mut self, next: Mode) {
        let is_end = self.open.is_some() || next == KEPT;
        self.closed = (is_end && self.accounts.close().is_ok()).then(|| Nanos(monotonic_nanos()));
    }

    /// After these readings: it takes longer, and more so at the end of a window.
    pub(super) fn read(&mut self, next: Mode, owners: &Owners) -> AccountReading {
        let begun = self.open.take();
        let Some(now) = self.closed.take() else { return AccountReading::default() };
        let Ok(times) = self.accounts.read() else { return AccountReading::default() };
        // A window in which the programs missed something has neither accounts nor a busy time.
        let missed = |times: &AccountTimes| (times.left_out, times.forks_lost);
        if begun.as_ref().is_some_and(|begun| missed(begun) != missed(&times)) {
            self.open = (next == KEPT).then_some(times);
            return AccountReading::default();
        }
        let mut reading = AccountReading::default();
        if let Some(begun) = &begun {
            let found = self.since(&times, begun, owners);
            let cpus = times.cpus.len().max(1) as u64;
            let idle = times.of(AccountKind::Idle).nanos.since(begun.of(AccountKind::Idle).nanos);
            let busy = found.passed_nanos.since(idle);
            self.count.at_nanos += Nanos(found.passed_nanos.0 / cpus);
            self.count.total = self.count.total.saturating_add(busy.0);
            let load = self.loads.entry(self.load).or_default();
            load.others += found.others_part() * found.passed_nanos.as_f64();
            load.passed += found.passed_nanos.as_f64();
            reading.accounts = Some(Box::new(found));
        } else {
            // The instant of the first reading; later ones follow by the time that passed on the CPUs.
            let cpus = u32::try_from(times.cpus.len()).unwrap_or(u32::MAX);
            self.count = Count { at_nanos: now, cpus, ..self.count };
        }
        reading.count = Some(self.count);
        self.open = (next == KEPT).then_some(times);
        reading
    }

    /// Whether the cost will be that of the load by its name, which only these windows give.
    pub(super) fn are_needed(&self) -> bool {
        self.loads.get(&self.load).is_some_and(|load| load.others > BUSY_OTHERS * load.passed)
    }

    /// After a snapshot.
    pub(super) fn after(&mut self) {
        if self.open.is_none() && !self.held {
            self.accounts.detach();
        }
    }

    /// The accounts between two readings. Tasks of one name and owner are one account.
    fn since(&mut self, now: &AccountTimes, before: &AccountTimes, owners: &Owners) -> account::Accounts {
        let mut sums: BTreeMap<(AccountKind, Option<TaskOwner>, String), Use> = BTreeMap::new();
        let mut add = |kind, owner, name: &str, now: Use, before: Use| {
            let used = now.since(before);
            if used != Use::default() {
                let sum = sums.entry((kind, owner, name.to_owned())).or_default();
                *sum = sum.plus(used);
            }
        };
        let runs = !owners.workers.is_empty() || owners.command.is_some();
        let load = (runs, owners.command);
        if self.load != load && !self.held {
            // Loads that follow one another.
            self.loads.clear();
        }
        self.load = load;
        let known = self.loads.entry(load).or_default();
        known.add_wakes(now, before);
        let us = self.accounts.own_process();
        let mut family = Kinship { us, parents: &now.parents, owners, peers: BTreeSet::new() };
        // Without a workload nobody works for it.
        if runs {
            family.find_peers(now, known);
        }
        let of_task = |nanos| Use { nanos, count: 0 };
        let earlier: HashMap<(u32, u32), Use> =
            before.tasks.iter().map(|task| ((task.process, task.thread), of_task(task.nanos))).collect();
        for task in &now.tasks {
            let was = earlier.get(&(task.process, task.thread)).copied().unwrap_or_default();
            let owner = family.owner(task.process, task.thread, task.kernel_thread, &task.name);
            add(AccountKind::Task, Some(owner), &task.name, of_task(task.nanos), was);
        }
        for (key, used) in &now.others {
            add(key.0, None, &key.1, *used, before.others.get(key).copied().unwrap_or_default());
        }
        let lost = |times: &AccountTimes| of_task(times.lost.nanos);
        add(
            AccountKind::Task,
            Some(TaskOwner::Other),
            "tasks that found no room in the table",
            lost(now),
            lost(before),
        );
        self.relations = Relations { peers: family.peers, parents: now.parents.clone() };
        let account = |((kind, owner, name), used): (_, Use)| account::Account {
            kind,
            name,
            owner,
            nanos: used.nanos,
            count: used.count,
        };
        let accounts = sums.into_iter().map(account);
        account::Accounts { passed_nanos: now.passed().since(before.passed()), accounts: accounts.collect() }
    }
}

impl Load {
    /// Adds the wake-ups of a window: a slow load wakes its server seldom.
    fn add_wakes(&mut self, now: &AccountTimes, before: &AccountTimes) {
        for (pair, count) in &now.wakes {
            let grown = count.saturating_sub(before.wakes.get(pair).copied().unwrap_or(0));
            let sum = self.wakes.entry(*pair).or_default();
            *sum = sum.saturating_add(grown);
        }
    }
}

/// Which processes descend from which, and which work for the load.
struct Kinship<'a> {
    us: u32,
    parents: &'a HashMap<u32, u32>,
    owners: &'a Owners,
    /// Processes that work for the workload.
    peers: BTreeSet<u32>,
}

/// A process of which this part of the wake-ups comes from the workload, or from a process that works for it, works for it.
const WOKEN: f64 = 0.2;
/// Fewer wake-ups are chance.
const FEWEST_WAKE_UPS: u64 = 5;

impl Kinship<'_> {
    fn owner(&self, process: u32, thread: u32, kernel: bool, name: &str) -> TaskOwner {
        let task = OwnedTask { process, thread, kernel, name };
        self.owners.of(&task, self.us, &self.peers, |process| self.parents.get(&process).copied())
    }

    /// Finds the processes that the workload wakes, and those that they wake.
    fn find_peers(&mut self, now: &AccountTimes, load: &Load) {
        let mut woken: BTreeMap<u32, Vec<(Option<u32>, u64)>> = BTreeMap::new();
        for (&(waker, process), &count) in &load.wakes {
            woken.entry(process).or_default().push((waker, count));
        }
        let own = |process: u32| match self.owners.command {
            Some(command) => descends(process, command, |process| self.parents.get(&process).copied()),
            // The meters wake only threads of this process.
            None => process == self.us,
        };
        // A worker of the kernel works for many.
        let kernel: BTreeSet<u32> =
            now.tasks.iter().filter(|task| task.kernel_thread).map(|task| task.process).collect();
        let for_all: BTreeSet<u32> =
            now.tasks.iter().filter(|task| task.name.starts_with("ksoftirqd")).map(|task| task.process).collect();
        let mut peers = BTreeSet::new();
        loop {
            let works = |process: u32, wakers: &[(Option<u32>, u64)]| {
                // In net_rx the programs name the current process, which sends over loopback; others work for no process in particular.
                let works_for = |waker: Option<u32>| waker.is_some_and(|waker| own(waker) || peers.contains(&waker));
                // ksoftirqd receives for all: its wake-ups say nothing.
                let says = |waker: &Option<u32>| waker.is_none_or(|process| !for_all.contains(&process));
                let all: u64 = wakers.iter().filter(|(waker, _)| says(waker)).map(|(_, count)| count).sum();
                let by_it: u64 = wakers.iter().filter(|(waker, _)| works_for(*waker)).map(|(_, count)| count).sum();
                process != self.us
                    && !kernel.contains(&process)
                    && by_it >= FEWEST_WAKE_UPS
                    && by_it as f64 >= WOKEN * all as f64
            };
            let found: BTreeSet<u32> =
                woken.iter().filter(|(process, by)| works(**process, by)).map(|(it, _)| *it).collect();
            if found.len() == peers.len() {
                break;
            }
            peers = found;
        }
        self.peers = peers;
    }
}
