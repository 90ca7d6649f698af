//! The recorder: a thread that reads the worker's amount and the probes at absolute deadlines.
//!
//! Its loop does not allocate, lock or format. A reading that ends after later deadlines spans their quanta: they have no
//! reading of their own.

use super::amount::Amount;
use super::ring::Ring;
use crate::error::{Error, Result};
use crate::probe::ProbeSet;
use model::ftq::record::RecorderCost;
use model::unit::Nanos;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use sys::clock::{monotonic_nanos, own_thread_nanos};
use sys::schedule::{Class, pin_to, set_class};

/// The recorder keeps real-time priority only if it is awake for less than this part of the time: the kernel takes the CPU
/// from real-time threads after 950 ms of each second (sched_rt_runtime_us), which would be a period of its own.
const MOST_REAL_TIME: f64 = 0.8;
/// Sleeps and readings that are tried before the first one, to know how late this machine wakes a thread, and how long it reads.
const TRIALS: usize = 32;
/// Length of each sleep.
const TRIAL_NANOS: u64 = 100_000;
/// Longest time that the recorder waits awake after a sleep.
const LONGEST_WAIT: u64 = 60_000;
/// A shorter sleep is not worth its system call: beside quanta of 20 µs it made half of the readings late, waiting awake 1 in 250.
const SHORTEST_SLEEP: u64 = 25_000;

/// What to read, and when.
pub(super) struct Task {
    pub amount: Amount,
    pub probes: ProbeSet,
    /// Time between two deadlines.
    pub quantum: Nanos,
    /// Number of the last deadline; the first is 0.
    pub quanta: u64,
    /// The CPU to run on.
    pub cpu: u32,
}

/// A recorder that waits for its start, or runs.
pub(super) struct Recorder {
    begin: Option<Sender<()>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<RecorderCost>>,
}

struct Shared {
    ring: Ring,
    stop: AtomicBool,
    /// It will read no more.
    over: AtomicBool,
    /// Readings that found no room in the ring.
    lost: AtomicU64,
}

impl Recorder {
    /// Starts the thread, which then waits for [`begin`](Self::begin). `rows` readings fit between two drains.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(task: Task, rows: usize) -> Result<Self> {
        let shared = Arc::new(Shared {
            ring: Ring::new(rows, task.probes.len()),
            stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        });
        let (begin, begun) = channel();
        let (ready, is_ready) = channel();
        let thread = std::thread::Builder::new().name("iotoll-recorder".to_owned());
        let thread = thread.spawn({
            let shared = shared.clone();
            move || {
                let cost = record(task, &shared, &ready, &begun);
                shared.over.store(true, Ordering::Release);
                cost
            }
        });
        let thread = thread.map_err(|error| Error::instrument("starting the recorder", error))?;
        // It has ended if this fails; then there will be no reading.
        let _ = is_ready.recv();
        Ok(Self { begin: Some(begin), shared, thread: Some(thread) })
    }

    /// Lets it read. The first reading is at once.
    pub fn begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            let _ = begin.send(());
        }
    }

    pub fn ring(&self) -> &Ring {
        &self.shared.ring
    }

    /// Whether it reads no more: all deadlines have passed, or the amount cannot be read any more.
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }

    /// Readings that were lost because nobody drained the ring in time.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Ends it, and returns its cost.
    pub fn end(&mut self) -> RecorderCost {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.begin = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread: gets ready, waits for the start, reads until the end.
fn record(mut task: Task, shared: &Shared, ready: &Sender<()>, begun: &Receiver<()>) -> RecorderCost {
    // If it is refused, the scheduler chooses, and the record says so.
    let cpu = pin_to(&[task.cpu]).is_ok().then_some(task.cpu);
    // Ordinary threads are woken up to 50 µs late on purpose, to save power.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let real_time = set_class(Class::RealTime).is_ok();
    let wait = wake_up_delay();
    let reading = reading_time(&mut task);
    let sleeps = task.quantum.0 > reading + wait + SHORTEST_SLEEP;
    let awake = if sleeps { (reading + wait) as f64 / task.quantum.as_f64() } else { 1.0 };
    if real_time && awake > MOST_REAL_TIME {
        let _ = set_class(Class::Ordinary);
    }
    let _ = ready.send(());
    if begun.recv().is_err() {
        return RecorderCost { cpu, ..RecorderCost::default() };
    }
    let before = own_thread_nanos();
    let cost = read_until_the_end(&mut task, shared, wait);
    RecorderCost { cpu, cpu_nanos: Nanos(own_thread_nanos().saturating_sub(before)), ..cost }
}

fn read_until_the_end(task: &mut Task, shared: &Shared, wait: u64) -> RecorderCost {
    let mut cost = RecorderCost::default();
    let mut values = vec![None; task.probes.len()];
    let quantum = task.quantum.0.max(1);
    let begin = monotonic_nanos();
    let mut number = 0;
    while number <= task.quanta && !shared.stop.load(Ordering::Relaxed) {
        let at = wait_until(begin.saturating_add(number.saturating_mul(quantum)), wait);
        let Some(amount) = task.amount.read() else { break };
        task.probes.read_into(&mut values);
        let end = monotonic_nanos();
        if !shared.ring.push(Nanos(at - begin), amount, &values) {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        }
        let took = Nanos(end.saturating_sub(at));
        cost.reading_nanos += took;
        cost.longest_reading_nanos = cost.longest_reading_nanos.max(took);
        number = (end - begin) / quantum + 1;
    }
    cost
}

/// Sleeps until shortly before a deadline, waits awake for the rest, and returns the time.
fn wait_until(deadline: u64, wait: u64) -> u64 {
    loop {
        let now = monotonic_nanos();
        if now >= deadline {
            return now;
        }
        if deadline - now > wait + SHORTEST_SLEEP {
            sleep_until(deadline - wait);
        }
    }
}

fn sleep_until(nanos: u64) {
    const SECOND: u64 = 1_000_000_000;
    let time = Timespec { tv_sec: (nanos / SECOND).cast_signed(), tv_nsec: (nanos % SECOND).cast_signed() };
    // A signal only makes it look at the clock again.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
}

/// How much later than asked this machine wakes the calling thread, but for one time in ten.
fn wake_up_delay() -> u64 {
    let late = quantile(0.9, || {
        let deadline = monotonic_nanos() + TRIAL_NANOS;
        sleep_until(deadline);
        monotonic_nanos().saturating_sub(deadline)
    });
    late.min(LONGEST_WAIT)
}

/// How long a reading usually takes.
fn reading_time(task: &mut Task) -> u64 {
    let mut values = vec![None; task.probes.len()];
    quantile(0.5, || {
        let begin = monotonic_nanos();
        let _ = task.amount.read();
        task.probes.read_into(&mut values);
        monotonic_nanos().saturating_sub(begin)
    })
}

/// A quantile of some trials.
fn quantile(part: f64, trial: impl FnMut() -> u64) -> u64 {
    let mut found: Vec<u64> = std::iter::repeat_with(trial).take(TRIALS).collect();
    found.sort_unstable();
    found.get((TRIALS as f64 * part) as usize).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ledger::LiveCounters;
    use model::ftq::record::Chunk;
    use std::time::Duration;

    fn task(live: &Arc<LiveCounters>, quanta: u64) -> Task {
        let cpu = sys::schedule::allowed_cpus().unwrap().pop().unwrap();
        Task { amount: Amount::Bytes(live.clone()), probes: ProbeSet::default(), quantum: Nanos(500_000), quanta, cpu }
    }

    #[test]
    fn readings_are_taken_after_their_deadlines_and_show_the_amount() {
        let live = Arc::new(LiveCounters::default());
        let mut recorder = Recorder::start(task(&live, 100), 200).unwrap();
        live.add(1, 4096);
        recorder.begin();
        while !recorder.is_over() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (mut chunk, cost) = (Chunk::default(), recorder.end());
        recorder.ring().drain(&mut chunk);
        assert!(chunk.is_table(0) && (2..=101).contains(&chunk.at.len()), "{chunk:?}");
        assert!(chunk.amount.iter().all(|amount| *amount == 4096));
        // However late it is, each reading has a deadline of its own.
        let deadlines: std::collections::BTreeSet<u64> = chunk.at.iter().map(|at| at.0 / 500_000).collect();
        assert_eq!(deadlines.len(), chunk.at.len());
        assert!(cost.cpu_nanos > Nanos(0) && cost.longest_reading_nanos <= cost.reading_nanos, "{cost:?}");
        assert_eq!(recorder.lost(), 0);
    }

    #[test]
    fn it_can_be_ended_before_it_begins_and_while_it_runs() {
        let live = Arc::new(LiveCounters::default());
        assert_eq!(Recorder::start(task(&live, 100), 10).unwrap().end().reading_nanos, Nanos(0));
        let mut recorder = Recorder::start(task(&live, u64::MAX), 10).unwrap();
        recorder.begin();
        std::thread::sleep(Duration::from_millis(20));
        assert!(!recorder.is_over());
        recorder.end();
        assert!(recorder.is_over());
        let mut chunk = Chunk::default();
        recorder.ring().drain(&mut chunk);
        assert_eq!(chunk.at.len() as u64, 10, "the ring keeps what it had room for; lost: {}", recorder.lost());
    }
}
