//! The sampler: at each period, the stack of what runs on each CPU.
//!
//! Its interrupts disturb what they sample, so it is enabled only in windows of its own. Meanwhile a thread empties the buffers and unwinds
//! the stacks, so that memory stays small however long the window is; functions get their names when the window has ended.

#[cfg(not(fuzzing))]
mod processes;
#[cfg(fuzzing)]
pub mod processes;
mod unwinding;

use super::account_windows::Relations;
use super::tasks::{OwnedTask, Owners};
use super::{Cpus, Opened};
use crate::names::{KernelFunctions, UNKNOWN};
use model::account::{AccountKind, TaskOwner};
use model::meter::Meter;
use model::profile::{Function, Profile, Stack};
use model::record::{Count, Mode};
use model::unit::Nanos;
use processes::{Place, Processes};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::clock::{ThreadClock, monotonic_nanos};
use sys::perf::{DEFAULT_PERIOD_NANOS, SampleEvent, StackSampler};
use sys::schedule::{Class, set_class, set_class_of, thread_id};

/// The mode of its windows.
const SAMPLED: Mode = Mode::Alone(Meter::Sampler);
/// Windows that are named together.
const TOGETHER: usize = 3;
/// Ordinary programs that share all CPUs with others wait less.
const SOON: Duration = Duration::from_millis(100);
/// A tenth of what a buffer of the usual size holds.
const DRAINED_EVERY: Duration = Duration::from_millis(20);

/// Opens one per CPU.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    let samplers = cpus.online.iter().map(|cpu| StackSampler::open_cpu(*cpu, cpus.online.len(), DEFAULT_PERIOD_NANOS));
    let samplers = samplers.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok(Opened::Sampler(Box::new(Sampling::start(samplers)?)))
}

/// The samplers of all CPUs.
pub(super) struct Sampling {
    board: Arc<Board>,
    drainer: Option<JoinHandle<()>>,
    functions: KernelFunctions,
    /// Time of all samples in all windows, at the latest reading.
    count: Count,
}

#[derive(Default)]
struct Board {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    samplers: Vec<StackSampler>,
    collected: Collected,
    running: bool,
    ending: bool,
}

/// What was sampled in consecutive windows.
#[derive(Default)]
struct Collected {
    /// When the first of them began.
    begun: Option<Nanos>,
    windows: usize,
    samples: HashMap<Sampled, u64>,
    processes: Processes,
    lost: u64,
    /// Samples of tasks in the present window, and those that were lost.
    busy: u64,
}

/// Equal samples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sampled {
    process: u32,
    thread: u32,
    /// Addresses, the innermost first.
    kernel: Vec<u64>,
    program: Vec<Place>,
    whole: bool,
}

/// What was read at a snapshot.
#[derive(Default)]
pub(super) struct SamplerReading {
    pub(super) count: Option<Count>,
    pub(super) profile: Option<Box<Profile>>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampling {
    fn start(samplers: Vec<StackSampler>) -> Result<Self, String> {
        let board = Arc::new(Board::default());
        let count = Count { cpus: u32::try_from(samplers.len()).unwrap_or(u32::MAX), ..Count::default() };
        board.lock().samplers = samplers;
        let shared = board.clone();
        let thread = std::thread::Builder::new().name("iotoll-samples".to_owned());
        let drainer = thread.spawn(move || drain_regularly(&shared)).map_err(|error| error.to_string())?;
        Ok(Self { board, drainer: Some(drainer), functions: KernelFunctions::of_this_kernel(), count })
    }

    /// At a snapshot, after everything else: ending a window takes some milliseconds.
    pub(super) fn read(&mut self, next: Mode, owners: &Owners, relations: &Relations) -> SamplerReading {
        let mut state = self.board.lock();
        if !state.running && next != SAMPLED {
            return SamplerReading::default();
        }
        let mut reading = SamplerReading::default();
        let now = Nanos(monotonic_nanos());
        if state.running {
            state.samplers.iter().for_each(|sampler| drop(sampler.disable()));
            state.drain();
            state.running = false;
            let collected = &mut state.collected;
            let busy = std::mem::take(&mut collected.busy).saturating_mul(DEFAULT_PERIOD_NANOS);
            self.count = Count { at_nanos: now, total: self.count.total.saturating_add(busy), ..self.count };
            // Consecutive windows are named together, because it takes long; not too many, because I/O may begin and end among them. What
            // runs without a load is no part of a cost.
            let loaded = !owners.workers.is_empty() || owners.command.is_some();
            let ends = next != SAMPLED || collected.windows >= TOGETHER;
            if ends && loaded {
                let naming = Naming { us: std::process::id(), functions: &self.functions, owners, relations };
                reading.profile = named(&naming, collected).map(Box::new);
            }
            if ends {
                collected.end();
            }
        }
        if next == SAMPLED {
            state.collected.begin_window(Nanos(monotonic_nanos()));
            let begun = state.samplers.iter().all(|sampler| sampler.enable().is_ok());
            state.running = begun;
            self.count.at_nanos = Nanos(monotonic_nanos());
            self.board.changed.notify_all();
            if !begun {
                state.samplers.iter().for_each(|sampler| drop(sampler.disable()));
                return reading;
            }
        }
        reading.count = Some(self.count);
        reading
    }
}

/// The profile of all that was collected, named by a thread of ordinary priority: the one that watches must not keep the load from a CPU for
/// so long, unless real-time tasks hold all CPUs.
fn named(naming: &Naming<'_>, collected: &mut Collected) -> Option<Profile> {
    if !ordinary_threads_run() {
        return Some(naming.profile(collected));
    }
    std::thread::scope(|scope| {
        let ((begins, begun), (ends, ended)) = (channel(), channel::<()>());
        let naming = std::thread::Builder::new().spawn_scoped(scope, move || {
            let _ = set_class(Class::Ordinary);
            let _ = begins.send(thread_id());
            let profile = naming.profile(collected);
            drop(ends);
            profile
        });
        if let Ok(thread) = begun.recv() {
            help_if_starved(thread, &ended);
        }
        naming.ok()?.join().ok()
    })
}

/// Waits for a thread of ordinary priority to end, and raises its priority when others leave it no CPU.
fn help_if_starved(thread: i32, ended: &Receiver<()>) {
    /// What the kernel keeps for ordinary threads beside real-time ones is half of it.
    const LEAST: u64 = 10;
    let clock = ThreadClock::of_thread(thread.unsigned_abs());
    let mut before = clock.nanos().unwrap_or(0);
    while ended.recv_timeout(SOON * 5) == Err(RecvTimeoutError::Timeout) {
        let now = clock.nanos().unwrap_or(u64::MAX);
        if now.saturating_sub(before) * LEAST < u64::try_from((SOON * 5).as_nanos()).unwrap_or(u64::MAX) {
            let _ = set_class_of(thread, Class::Watching);
            return;
        }
        before = now;
    }
}

/// Whether a thread of ordinary priority soon gets a CPU. One that does not ends later by itself.
fn ordinary_threads_run() -> bool {
    let (runs, told) = channel();
    let thread = std::thread::Builder::new().name("iotoll-asks".to_owned()).stack_size(64 << 10);
    thread.spawn(move || runs.send(()).is_ok()).is_ok() && told.recv_timeout(SOON).is_ok()
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.board.lock().ending = true;
        self.board.changed.notify_all();
        if let Some(thread) = self.drainer.take() {
            // A thread that panicked has already printed the reason.
            let _ = thread.join();
        }
    }
}

fn drain_regularly(board: &Board) {
    // Where programs keep all CPUs busy, a thread that waits for its turn loses samples. Without the right, some are lost, and counted.
    let _ = set_class(Class::Watching);
    let mut state = board.lock();
    while !state.ending {
        state = if state.running {
            let (mut state, _) =
                board.changed.wait_timeout(state, DRAINED_EVERY).unwrap_or_else(PoisonError::into_inner);
            if state.running {
                state.drain();
            }
            state
        } else {
            board.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
        };
    }
}

impl State {
    fn drain(&mut self) {
        let Self { samplers, collected, .. } = self;
        // A process may run on another CPU than that on which it began, so all that began are known first.
        for sampler in samplers.iter_mut() {
            sampler.take();
            sampler.events(|event| {
                if let SampleEvent::Forked(forked) = event {
                    collected.processes.forked(forked);
                }
            });
        }
        for sampler in samplers {
            sampler.events(|event| collected.add(event));
        }
    }
}

impl Collected {
    fn begin_window(&mut self, now: Nanos) {
        self.windows += 1;
        if self.begun.is_none() {
            self.begun = Some(now);
            self.processes.begin_window();
        }
    }

    fn end(&mut self) {
        self.samples.clear();
        (self.begun, self.windows, self.lost, self.busy) = (None, 0, 0, 0);
    }

    fn add(&mut self, event: SampleEvent<'_>) {
        match event {
            SampleEvent::Sample(sample) => {
                let (program, whole) = match sample.registers {
                    Some(registers) => self.processes.unwind(sample.process, registers, sample.stack),
                    None => (Vec::new(), true),
                };
                if sample.process != 0 {
                    self.busy += 1;
                    // Now, because the thread may have ended when the window has.
                    self.processes.thread(sample.process, sample.thread);
                }
                let sampled =
                    Sampled { process: sample.process, thread: sample.thread, kernel: sample.kernel, program, whole };
                *self.samples.entry(sampled).or_default() += 1;
            }
            SampleEvent::Forked(_) => {}
            SampleEvent::Named(named) => self.processes.named(&named),
            SampleEvent::Mapped(mapped) => self.processes.mapped(&mapped),
            SampleEvent::Lost(records) => {
                self.lost = self.lost.saturating_add(records);
                self.busy = self.busy.saturating_add(records);
            }
        }
    }
}

/// What turns addresses into names.
struct Naming<'a> {
    us: u32,
    functions: &'a KernelFunctions,
    owners: &'a Owners,
    relations: &'a Relations,
}

impl Naming<'_> {
    fn profile(&self, collected: &mut Collected) -> Profile {
        let mut profile = Profile {
            period_nanos: Nanos(DEFAULT_PERIOD_NANOS),
            lost: collected.lost,
            begin_nanos: collected.begun.unwrap_or_default(),
            kernel_unnamed: self.functions.is_empty(),
            ..Profile::default()
        };
        let mut places: HashMap<Function, u32> = HashMap::new();
        let mut stacks: BTreeMap<Stack, u64> = BTreeMap::new();
        let samples: Vec<(Sampled, u64)> = collected.samples.drain().collect();
        for (sampled, count) in samples {
            let mut kernel: Vec<Function> = self.in_kernel(&sampled.kernel);
            let Some((kind, name, owner)) = self.account(&sampled, &kernel, &mut collected.processes) else { continue };
            let interrupted = kind == AccountKind::Softirq;
            if interrupted {
                begin_at_softirq(&mut kernel);
            }
            // Whom a softirq interrupts did not call it.
            let program =
                sampled.program.iter().filter(|_| !interrupted).map(|place| collected.processes.function(*place));
            let inner_first = kernel.into_iter().chain(program).map(|function| {
                let next = u32::try_from(places.len()).unwrap_or(u32::MAX);
                let place = *places.entry(function.clone()).or_insert(next);
                if place == next {
                    profile.functions.push(function);
                }
                place
            });
            let mut functions: Vec<u32> = inner_first.collect();
            functions.reverse();
            let stack = Stack { kind, name, owner, functions, whole: interrupted || sampled.whole, samples: 0 };
            *stacks.entry(stack).or_default() += count;
        }
        profile.stacks = stacks.into_iter().map(|(stack, samples)| Stack { samples, ..stack }).collect();
        profile.refused = collected.processes.refused();
        profile
    }

    /// Functions of addresses.
    fn in_kernel(&self, addresses: &[u64]) -> Vec<Function> {
        let innermost = addresses.first().into_iter().copied();
        // The call stands before the address to which it returns.
        let callers = addresses.iter().skip(1).map(|address| address.saturating_sub(1));
        let function = |address: u64| {
            let found = self.functions.of(address);
            // What has no name is one.
            let (name, module, begin) =
                found.map_or((UNKNOWN, None, 0), |(begin, it)| (it.name.as_str(), it.module.clone(), begin));
            let module = module.unwrap_or_default();
            Function { name: name.to_owned(), module, kernel: true, begin, ..Function::default() }
        };
        innermost.chain(callers).map(function).collect()
    }

    /// The account that this time is in; `None` for an idle CPU.
    ///
    /// The timer of the samples cannot fire where interrupts are off: in an interrupt, and in nearly all of idle entry and exit. Where it
    /// fires beside them with interrupts on, their tracepoints have passed, and the account is that of the task.
    fn account(
        &self,
        sampled: &Sampled,
        kernel: &[Function],
        processes: &mut Processes,
    ) -> Option<(AccountKind, String, Option<TaskOwner>)> {
        let within = softirq_loop(kernel);
        let handler = within.and_then(|place| kernel.get(place.checked_sub(1)?));
        if let Some(vector) = handler.and_then(|function| softirq(&function.name)) {
            return Some((AccountKind::Softirq, vector.to_owned(), None));
        }
        if sampled.process == 0 {
            return None;
        }
        let name = processes.thread(sampled.process, sampled.thread);
        let owner = self.owner(sampled, &name, processes);
        Some((AccountKind::Task, name, Some(owner)))
    }

    fn owner(&self, sampled: &Sampled, name: &str, processes: &Processes) -> TaskOwner {
        let Sampled { process, thread, .. } = *sampled;
        let task = OwnedTask { process, thread, kernel: processes.is_kernel(process), name };
        let earlier = |process: u32| self.relations.parents.get(&process).copied();
        self.owners
            .of(&task, self.us, &self.relations.peers, |process| processes.parent(process).or_else(|| earlier(process)))
    }
}

/// The function that runs pending softirqs (kernel/softirq.c), under its present and its earlier name.
fn is_softirq_loop(name: &str) -> bool {
    matches!(name, "handle_softirqs" | "__do_softirq")
}

/// Where it is among functions of the kernel, the innermost first.
fn softirq_loop(kernel: &[Function]) -> Option<usize> {
    kernel.iter().position(|function| is_softirq_loop(&function.name))
}

/// Leaves out what was interrupted: the outermost function is then the softirq's handler.
fn begin_at_softirq(kernel: &mut Vec<Function>) {
    if let Some(within) = softirq_loop(kernel) {
        kernel.truncate(within);
    }
}

/// The vector of a softirq's handler, by the name in the tracepoints.
fn softirq(handler: &str) -> Option<&'static str> {
    // The compiler may have changed a copy: tasklet_action.isra.0.
    Some(match handler.split('.').next()? {
        "net_rx_action" => "net_rx",
        "net_tx_action" => "net_tx",
        "run_timer_softirq" => "timer",
        "hrtimer_run_softirq" => "hrtimer",
        "tasklet_action" => "tasklet",
        "tasklet_hi_action" => "hi",
        "blk_done_softirq" | "blk_complete_reqs" => "block",
        "irq_poll_softirq" => "irq_poll",
        "sched_balance_softirq" | "run_rebalance_domains" => "sched",
        "rcu_core_si" | "rcu_core" | "rcu_process_callbacks" => "rcu",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
