//! Exact accounts of CPU time: every nanosecond of every CPU is charged to a task, a softirq, an interrupt, or idling.
//!
//! Programs at raw tracepoints keep a state machine per CPU. At each event they charge the time since the last one. Only
//! what has events is seen: the instructions before the first and after the last event of an interrupt are charged to
//! what it interrupted, and interrupts without events (NMIs, those of a hypervisor) are not told apart. Threaded
//! interrupts and threaded NAPI are tasks. Time that a hypervisor takes away is charged to what it stopped.
//!
//! A reading ends the accounts of each CPU on that CPU, at one instant, and later time goes to a second bank; so the sum
//! of all accounts is exactly the time that passed. The programs cost nothing unless they are attached.

mod instructions;
mod layout;
mod origins;

use super::Online;
use instructions::{Instructions, Interrupt, Maps, TASK_WORDS};
use layout::{Account, Layout, Table, header_word};
use model::account::AccountKind;
use model::unit::Nanos;
use origins::{Origins, split};
use std::collections::{BTreeMap, HashMap as StdHashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use sys::bpf::{ArrayMap, Code, Error, HashMap, Link, Program};

/// Tasks that can run between two readings.
const TASKS: u32 = 32_768;
/// Processes that can be forked between two readings.
const FORKS: u32 = 16_384;

/// Pairs of a waker and a process between two readings; what finds no room is not counted.
const WAKERS: u32 = 16_384;

const FORK: &str = "sched_process_fork";
const NOT_ATTACHED: &str = "the accounts are not attached";

/// Names of softirqs, in the order of linux/interrupt.h.
pub const SOFTIRQS: [&str; 10] =
    ["hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu"];

/// Interrupts that have a vector of their own (x86), by the names of their tracepoints, in the order of their accounts.
const VECTORS: [&str; 11] = [
    "local_timer",
    "reschedule",
    "call_function",
    "call_function_single",
    "irq_work",
    "x86_platform_ipi",
    "thermal_apic",
    "threshold_apic",
    "deferred_error_apic",
    "error_apic",
    "spurious_apic",
];

/// These names, each with its account, from the first one on.
fn from<const N: usize>(first: Account, names: [&'static str; N]) -> impl Iterator<Item = (&'static str, Account)> {
    names.into_iter().zip((first.0..).map(Account))
}

/// The accounts: programs loaded, maps made.
#[derive(Debug)]
pub struct Accounts {
    layout: Layout,
    /// The number of this process in the initial namespace of processes.
    process: u32,
    programs: Programs,
    origins: Origins,
    maps: Maps,
    attached: Option<Attached>,
    online: Online,
}

/// The programs. They are loaded once and attached again for each window.
#[derive(Debug)]
struct Programs {
    leave_interrupt: Program,
    /// The one of each vector.
    enter_vector: Vec<(&'static str, Program)>,
    /// The others, by tracepoint, in the order in which they are attached: those before the vectors and those after them.
    before: Vec<(&'static str, Program)>,
    after: Vec<(&'static str, Program)>,
    close: Program,
}

/// What exists while the programs are attached.
#[derive(Debug)]
struct Attached {
    _links: Vec<Link>,
    /// CPUs that were online.
    cpus: Vec<u32>,
    /// The bank that is written.
    bank: usize,
    /// The one that was closed last, if it was not read since.
    closed: Option<usize>,
    totals: Totals,
    /// What the kernel had left out before.
    left_out_before: u64,
}

/// Time of an account, and how often it was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub nanos: Nanos,
    pub count: u64,
}

impl Use {
    pub fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos + other.nanos, count: self.count.saturating_add(other.count) }
    }

    /// What came after an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self { nanos: self.nanos.since(earlier.nanos), count: self.count.saturating_sub(earlier.count) }
    }
}

/// Time of a task that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskUse {
    /// Thread and process have the numbers of the initial namespace of processes.
    pub thread: u32,
    pub process: u32,
    /// From its first time on a CPU since the previous reading, or its last exec.
    pub name: String,
    /// In another namespace of processes, only known of kernel threads that were made since the accounts were attached.
    pub kernel_thread: bool,
    /// Without the softirqs and interrupts that came while it ran.
    pub nanos: Nanos,
}

/// Everything since the accounts were attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountTimes {
    /// Time that passed on each CPU. Its sum is the sum of all accounts.
    pub cpus: Vec<(u32, Nanos)>,
    pub tasks: Vec<TaskUse>,
    /// What is no task, by kind and name. The idle task outside idle states, on the way there and back, counts switches to it; in idle
    /// states, until the interrupt that ends them, it counts idle states.
    pub others: BTreeMap<(AccountKind, String), Use>,
    /// Tasks that found no room in the table. Counts switches.
    pub lost: Use,
    /// Forked processes that found no room, so their parents are unknown.
    pub forks_lost: u64,
    /// Events that the kernel left out, because the same program was running.
    pub left_out: u64,
    /// The parent of each process that is known, also of those that did not run.
    pub parents: StdHashMap<u32, u32>,
    /// How often a process woke another one; `None` is a softirq or an interrupt.
    pub wakes: StdHashMap<(Option<u32>, u32), u64>,
}

impl Accounts {
    /// Makes the maps and loads the programs.
    ///
    /// # Errors
    /// Why they cannot run here, and what helps.
    pub fn open() -> Result<Self, String> {
        Self::open_with(TASKS).map_err(|error| error.to_string())
    }

    fn open_with(tasks: u32) -> Result<Self, Error> {
        let possible = sys::schedule::possible_cpus().map_err(listing)?;
        let cpus = possible.iter().max().map_or(1, |highest| highest + 1);
        let process = origins::own_process()?;
        let online = Online::open().map_err(listing)?;
        let layout = Layout::for_interrupts(origins::highest_interrupt());
        let maps = Maps {
            states: ArrayMap::create("iotoll_states", layout.words(), usize::try_from(cpus).unwrap_or(usize::MAX))?,
            tasks: HashMap::create("iotoll_tasks", tasks)?,
            parents: HashMap::create("iotoll_parents", FORKS)?,
            wakes: HashMap::create("iotoll_wakes", WAKERS)?,
        };
        let programs = Programs::load(&Instructions { maps: &maps, layout }, origins::place_in_task())?;
        let origins = Origins::new(process == std::process::id());
        Ok(Self { layout, process, programs, origins, maps, attached: None, online })
    }

    /// The number of this process in the accounts: another one than its own in a container.
    pub fn own_process(&self) -> u32 {
        self.process
    }

    /// Whether the parents of forked processes are known.
    pub fn knows_parents(&self) -> bool {
        self.programs.after.iter().any(|(tracepoint, _)| *tracepoint == FORK)
    }

    /// Attaches the programs, and starts all accounts at 0.
    ///
    /// # Errors
    /// When the kernel lacks a tracepoint that all accounts need.
    pub fn attach(&mut self) -> Result<(), String> {
        self.detach();
        self.attached = Some(self.start().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn start(&mut self) -> Result<Attached, Error> {
        self.maps.states.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.maps.tasks.drain()?;
        self.maps.parents.drain()?;
        self.maps.wakes.drain()?;
        let links = self.programs.attach()?;
        // Whatever is forked from here on is seen.
        self.origins.read_all();
        let left_out_before = self.programs.left_out()?;
        self.online.changed();
        let cpus = sys::schedule::online_cpus().map_err(listing)?;
        // The bank before the start has only counts of events while the programs were attached one by one.
        let (before, bank) = (0, 1);
        self.close_into(&cpus, bank)?;
        self.words_of(before).for_each(|words| words.iter().for_each(|word| word.store(0, Ordering::Relaxed)));
        Ok(Attached { _links: links, cpus, bank, closed: None, totals: Totals::default(), left_out_before })
    }

    /// Ends the accounts at this instant on each CPU: a matter of microseconds. Reading them may wait.
    ///
    /// # Errors
    /// When the programs are not attached, or a CPU came or went since they were; they are detached then.
    pub fn close(&mut self) -> Result<(), String> {
        let Some(mut attached) = self.attached.take() else {
            return Err(NOT_ATTACHED.to_owned());
        };
        // A CPU that came meanwhile has written to one bank only.
        if self.online.changed().is_some() {
            return Err("a CPU came or went".to_owned());
        }
        let (closed, next) = (attached.bank, 1 - attached.bank);
        self.close_into(&attached.cpus, next).map_err(|error| error.to_string())?;
        (attached.bank, attached.closed) = (next, Some(closed));
        self.attached = Some(attached);
        Ok(())
    }

    /// Reads the accounts as they were when they were closed; closes them if they were not.
    ///
    /// # Errors
    /// Likewise.
    pub fn read(&mut self) -> Result<AccountTimes, String> {
        if self.attached.as_ref().is_none_or(|attached| attached.closed.is_none()) {
            self.close()?;
        }
        let Some(mut attached) = self.attached.take() else {
            return Err(NOT_ATTACHED.to_owned());
        };
        let times = self.read_attached(&mut attached).map_err(|error| error.to_string())?;
        self.attached = Some(attached);
        Ok(times)
    }

    pub fn are_attached(&self) -> bool {
        self.attached.is_some()
    }

    /// Detaches the programs; they stay loaded.
    pub fn detach(&mut self) {
        self.attached = None;
    }

    /// On each CPU, the next time goes to `bank`.
    fn close_into(&self, cpus: &[u32], bank: usize) -> Result<(), Error> {
        let offset = if bank == 0 { 0 } else { u64::from(self.layout.bank().unsigned_abs()) };
        cpus.iter().try_for_each(|cpu| self.programs.close.run_on(*cpu, &[offset]))
    }

    fn read_attached(&mut self, attached: &mut Attached) -> Result<AccountTimes, Error> {
        let closed = attached.closed.take().unwrap_or(1 - attached.bank);
        let totals = &mut attached.totals;
        totals.close(closed, self.accounts(closed));
        totals.add_tasks(closed, &self.maps.tasks.drain()?);
        totals.add_places(&self.take_table(closed, Table::Tasks));
        totals.add_parents(&self.maps.parents.drain()?);
        let wakes = self.maps.wakes.drain()?.into_iter().map(|(key, [count])| (key, count));
        totals.add_wakes(wakes.chain(self.take_table(closed, Table::Wakes)));
        let mut times = AccountTimes {
            left_out: self.programs.left_out()?.saturating_sub(attached.left_out_before),
            ..AccountTimes::default()
        };
        for (cpu, words) in (0u32..).zip(self.maps.states.values()) {
            let word = |offset| words.get(header_word(offset)).map_or(0, |word| word.load(Ordering::Relaxed));
            if attached.cpus.contains(&cpu) {
                let nanos = word(layout::CLOSED).wrapping_sub(word(layout::STARTED));
                times.cpus.push((cpu, Nanos(nanos)));
            }
            times.forks_lost += word(layout::FORKS_LOST);
        }
        self.fill(&mut times, &attached.totals);
        Ok(times)
    }

    /// All accounts of a bank, as the sum over CPUs.
    fn accounts(&self, bank: usize) -> Vec<Sum> {
        let mut sums = vec![Sum::default(); self.layout.accounts()];
        for words in self.words_of(bank) {
            for (sum, pair) in sums.iter_mut().zip(words.chunks_exact(2)) {
                let value = |word: Option<&AtomicU64>| word.map_or(0, |word| word.load(Ordering::Relaxed));
                *sum = sum.plus(Sum { nanos: value(pair.first()), count: value(pair.last()) });
            }
        }
        sums
    }

    /// Empties a table of a closed bank: the keys and sums of all CPUs.
    fn take_table(&self, bank: usize, table: Table) -> Vec<(u64, u64)> {
        let first = self.layout.first_word_of(bank, table);
        let words = move |words: &'_ [AtomicU64]| -> Vec<(u64, u64)> {
            let places = words.get(first..first + 2 * self.layout.places()).unwrap_or_default().chunks_exact(2);
            let take = |word: Option<&AtomicU64>| word.map_or(0, |word| word.swap(0, Ordering::Relaxed));
            places.map(|place| (take(place.first()), take(place.last()))).filter(|(key, _)| *key != 0).collect()
        };
        self.maps.states.values().flat_map(words).collect()
    }

    /// A bank's words of each CPU.
    fn words_of(&self, bank: usize) -> impl Iterator<Item = &[AtomicU64]> {
        let (first, next) = (self.layout.first_word(bank), self.layout.first_word(bank + 1));
        self.maps.states.values().map(move |words| words.get(first..next).unwrap_or_default())
    }

    fn fill(&mut self, times: &mut AccountTimes, totals: &Totals) {
        let used = |account: Account| Use::from(totals.account(account.index()));
        times.lost = used(layout::LOST);
        let mut add = |kind, name: &str, used: Use| {
            if used != Use::default() {
                let sum = times.others.entry((kind, name.to_owned())).or_default();
                *sum = sum.plus(used);
            }
        };
        add(AccountKind::IdleEntry, "", used(layout::IDLE_ENTRY));
        add(AccountKind::Idle, "", used(layout::IDLE));
        for (vector, account) in from(layout::SOFTIRQS, SOFTIRQS).chain(from(layout::SOFTIRQS_FROM_IDLE, SOFTIRQS)) {
            add(AccountKind::Softirq, vector, used(account));
        }
        for (name, account) in from(layout::VECTORS, VECTORS) {
            add(AccountKind::Irq, name, used(account));
        }
        for (number, index) in (0u32..).zip(layout::DEVICES.index()..self.layout.accounts()) {
            let used = Use::from(totals.account(index));
            if used != Use::default() {
                let alone = i64::from(number) < i64::from(self.layout.devices());
                add(AccountKind::Irq, if alone { self.origins.device(number) } else { "other devices" }, used);
            }
        }
        for (&(process, thread), task) in totals.tasks.iter().filter(|(_, task)| task.nanos != 0) {
            times.tasks.push(TaskUse {
                thread,
                process,
                name: task.name.clone(),
                kernel_thread: self.origins.is_kernel(process, totals.parents.get(&process).copied()),
                nanos: nanos(task.nanos),
            });
        }
        times.parents = self.origins.parents();
        times.parents.extend(&totals.parents);
        for (&key, count) in &totals.wakes {
            let (waker, process) = split(key);
            let waker = Some(waker).filter(|waker| *waker < layout::NO_PROCESS.unsigned_abs());
            *times.wakes.entry((waker, process)).or_default() += count;
        }
    }
}

impl AccountTimes {
    /// The time that passed, summed over CPUs.
    pub fn passed(&self) -> Nanos {
        Nanos(self.cpus.iter().map(|(_, nanos)| nanos.0).sum())
    }

    /// What is no task and has no name.
    pub fn of(&self, kind: AccountKind) -> Use {
        self.others.get(&(kind, String::new())).copied().unwrap_or_default()
    }
}

impl From<Sum> for Use {
    fn from(sum: Sum) -> Self {
        Self { nanos: nanos(sum.nanos), count: sum.count }
    }
}

/// A sum that wrapped below 0 is 0.
fn nanos(wrapping: u64) -> Nanos {
    Nanos(i64::try_from(wrapping).map_or(0, i64::unsigned_abs))
}

fn listing(error: std::io::Error) -> Error {
    Error::because(format!("listing CPUs failed: {error}"))
}

impl Programs {
    fn load(instructions: &Instructions<'_>, numbers: Option<i32>) -> Result<Self, Error> {
        let load = |name: &str, code: Code<'_>| Program::load(&format!("iotoll_{name}"), &code);
        let vector = |(name, account): (&'static str, Account)| {
            let code = instructions.enter_interrupt(Interrupt::Vector(account));
            Ok((name, load(name, code)?))
        };
        // Ends before starts, so that no start is seen without its end.
        let before = vec![
            ("irq_handler_entry", load("enter_device", instructions.enter_interrupt(Interrupt::Device))?),
            ("softirq_exit", load("leave_softirq", instructions.leave_softirq())?),
            ("softirq_entry", load("enter_softirq", instructions.enter_softirq())?),
        ];
        let mut after = vec![("sched_process_exec", load("rename", instructions.rename())?)];
        // Where it is unknown where a task has its numbers, the accounts work without these.
        if let Some(offset) = numbers {
            after.extend(load("fork", instructions.fork(offset)).ok().map(|fork| (FORK, fork)));
            after.extend(load("wake", instructions.wake(offset)).ok().map(|wake| ("sched_waking", wake)));
        }
        after.push(("sched_switch", load("switch", instructions.switch())?));
        after.push(("cpu_idle", load("idle", instructions.idle())?));
        Ok(Self {
            leave_interrupt: load("leave_interrupt", instructions.leave_interrupt())?,
            enter_vector: from(layout::VECTORS, VECTORS).map(vector).collect::<Result<_, Error>>()?,
            before,
            after,
            close: load("close", instructions.close())?,
        })
    }

    fn attach(&self) -> Result<Vec<Link>, Error> {
        let mut links = vec![self.leave_interrupt.attach("irq_handler_exit")?];
        for (tracepoint, program) in &self.before {
            links.push(program.attach(tracepoint)?);
        }
        for (name, enter) in &self.enter_vector {
            // Not every machine has every vector.
            let leave = self.leave_interrupt.attach(&format!("{name}_exit")).ok();
            let enter = leave.as_ref().and_then(|_| enter.attach(&format!("{name}_entry")).ok());
            if enter.is_some() {
                links.extend(leave.into_iter().chain(enter));
            }
        }
        for (tracepoint, program) in &self.after {
            links.push(program.attach(tracepoint)?);
        }
        Ok(links)
    }

    fn all(&self) -> impl Iterator<Item = &Program> {
        let named = self.enter_vector.iter().chain(&self.before).chain(&self.after);
        named.map(|(_, program)| program).chain([&self.leave_interrupt, &self.close])
    }

    fn left_out(&self) -> Result<u64, Error> {
        self.all().map(Program::left_out).sum()
    }
}

/// Nanoseconds and count of an account; sums wrap, as the kernel's clock may step back by some nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    nanos: u64,
    count: u64,
}

impl Sum {
    fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.wrapping_add(other.nanos), count: self.count.wrapping_add(other.count) }
    }
}

/// Everything since the start.
#[derive(Debug, Default)]
struct Totals {
    /// All accounts at the latest closing of each bank.
    closed: [Vec<Sum>; 2],
    /// By process and thread.
    tasks: BTreeMap<(u32, u32), TaskTotal>,
    /// The parent of each process that was forked.
    parents: StdHashMap<u32, u32>,
    /// By waker and process.
    wakes: StdHashMap<u64, u64>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct TaskTotal {
    name: String,
    nanos: u64,
    /// Time after the boundary of the latest reading that was read with it.
    ahead: u64,
}

impl Totals {
    /// A bank was closed with these accounts.
    fn close(&mut self, bank: usize, accounts: Vec<Sum>) {
        if let Some(closed) = self.closed.get_mut(bank) {
            *closed = accounts;
        }
    }

    /// An account: what each bank had when it was last closed.
    fn account(&self, index: usize) -> Sum {
        let closed = self.closed.iter().filter_map(|bank| bank.get(index));
        closed.fold(Sum::default(), |sum, other| sum.plus(*other))
    }

    /// Tasks that were taken out of the kernel's table after `bank` was closed.
    fn add_tasks(&mut self, bank: usize, drained: &[(u64, [u64; TASK_WORDS])]) {
        for task in self.tasks.values_mut() {
            task.nanos = task.nanos.wrapping_add(std::mem::take(&mut task.ahead));
        }
        for &(key, [first, second, name @ ..]) in drained {
            let task = self.tasks.entry(split(key)).or_default();
            let (closed, ahead) = if bank == 0 { (first, second) } else { (second, first) };
            task.nanos = task.nanos.wrapping_add(closed);
            task.ahead = task.ahead.wrapping_add(ahead);
            task.name = text(name);
        }
    }

    /// What a closed bank's table of tasks had. Each has an entry, which was made when it got its place.
    fn add_places(&mut self, places: &[(u64, u64)]) {
        for &(key, nanos) in places {
            let task = self.tasks.entry(split(key)).or_default();
            task.nanos = task.nanos.wrapping_add(nanos);
        }
    }

    /// Processes that were forked.
    fn add_parents(&mut self, drained: &[(u64, [u64; 1])]) {
        self.parents.extend(drained.iter().map(|&(child, [parent])| (split(child).1, split(parent).1)));
    }

    /// Wake-ups since the last reading.
    fn add_wakes(&mut self, counts: impl Iterator<Item = (u64, u64)>) {
        for (key, count) in counts {
            let sum = self.wakes.entry(key).or_default();
            *sum = sum.wrapping_add(count);
        }
    }
}

/// A name that ends with 0.
fn text(words: [u64; 2]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
