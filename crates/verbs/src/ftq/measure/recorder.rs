//! The recorder: a thread that reads the worker's amount and the probes at absolute deadlines, and a ring that takes the readings
//! to the thread that saves them.
//!
//! Its loop does not allocate, lock or format. A reading that ends after later deadlines spans their quanta: they have no
//! reading of their own. One thread pushes to the ring, another one drains it. Neither waits for the other or allocates while it
//! does: the recorder must not be late because a disk is slow.

use super::own::Counted;
use crate::ftq::record::{Chunk, RecorderCost};
use lab::error::{Error, Result};
use lab::probe::ProbeSet;
use model::unit::Nanos;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

/// A missing value: no probe gives this number, because probes refuse what is not finite.
const MISSING: f64 = f64::NAN;

/// What to read, and when.
pub(super) struct Task {
    pub counted: Counted,
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
            ring: Ring::new(rows, task.probes.count()),
            stop: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        });
        let (begin, begun) = channel();
        let (ready, is_ready) = channel();
        let thread = std::thread::Builder::new().name("iotoll-recorder".to_owned());
        let thread = thread.spawn({
            let shared = shared.clone();
            move || record(task, &shared, &ready, &begun)
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
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
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
    let mut values = vec![None; task.probes.count()];
    let quantum = task.quantum.0.max(1);
    let begin = monotonic_nanos();
    let mut number = 0;
    while number <= task.quanta && !shared.stop.load(Ordering::Relaxed) {
        let at = wait_until(begin.saturating_add(number.saturating_mul(quantum)), wait);
        let Some(amount) = (task.counted.amount)() else { break };
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
    let mut values = vec![None; task.probes.count()];
    quantile(0.5, || {
        let begin = monotonic_nanos();
        let _ = (task.counted.amount)();
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

/// Rows of a time, an amount and the values of probes.
pub(super) struct Ring {
    words: Box<[AtomicU64]>,
    /// Words of a row.
    width: usize,
    /// Rows that fit.
    rows: usize,
    /// Rows pushed so far.
    pushed: AtomicUsize,
    /// Rows drained so far.
    drained: AtomicUsize,
}

impl Ring {
    /// A ring for `rows` rows, at least one, with this many probes. Its memory is touched now, so that no push has to wait
    /// for a page.
    fn new(rows: usize, probes: usize) -> Self {
        let (width, rows) = (probes + 2, rows.max(1));
        let words = (0..width * rows).map(|_| AtomicU64::new(1)).collect();
        Self { words, width, rows, pushed: AtomicUsize::new(0), drained: AtomicUsize::new(0) }
    }

    /// Adds a row. Returns whether there was room. Only one thread may push.
    fn push(&self, at: Nanos, amount: u64, values: &[Option<f64>]) -> bool {
        let pushed = self.pushed.load(Ordering::Relaxed);
        if pushed - self.drained.load(Ordering::Acquire) >= self.rows {
            return false;
        }
        let words = [at.0, amount].into_iter().chain(values.iter().map(|value| value.unwrap_or(MISSING).to_bits()));
        for (place, word) in self.row(pushed).iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        self.pushed.store(pushed + 1, Ordering::Release);
        true
    }

    /// Moves all rows to the end of `chunk`, which has a column for each probe. Only one thread may drain.
    pub fn drain(&self, chunk: &mut Chunk) {
        let pushed = self.pushed.load(Ordering::Acquire);
        let drained = self.drained.load(Ordering::Relaxed);
        for number in drained..pushed {
            let mut words = self.row(number).iter().map(|word| word.load(Ordering::Relaxed));
            chunk.at.push(Nanos(words.next().unwrap_or_default()));
            chunk.amount.push(words.next().unwrap_or_default());
            for (column, word) in chunk.probes.iter_mut().zip(words) {
                column.push(Some(f64::from_bits(word)).filter(|value| value.is_finite()));
            }
        }
        self.drained.store(pushed, Ordering::Release);
    }

    fn row(&self, number: usize) -> &[AtomicU64] {
        let begin = number % self.rows * self.width;
        self.words.get(begin..begin + self.width).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobs::engine::tally::LiveCounters;
    use std::time::Duration;

    fn task(live: &Arc<LiveCounters>, quanta: u64) -> Task {
        let cpu = sys::schedule::allowed_cpus().unwrap().pop().unwrap();
        let live = live.clone();
        let amount = Box::new(move || Some(live.bytes()));
        let counted = Counted { amount, by: String::new(), unit: "bytes".to_owned() };
        Task { counted, probes: ProbeSet::default(), quantum: Nanos(500_000), quanta, cpu }
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

    fn empty(probes: usize) -> Chunk {
        Chunk { probes: vec![Vec::new(); probes], ..Chunk::default() }
    }

    #[test]
    fn rows_arrive_in_order_with_their_gaps() {
        let ring = Ring::new(2, 2);
        assert!(ring.push(Nanos(5), 7, &[Some(1.5), None]));
        assert!(ring.push(Nanos(6), 8, &[None, Some(-2.0)]));
        assert!(!ring.push(Nanos(7), 9, &[None, None]), "it is full");
        let mut chunk = empty(2);
        ring.drain(&mut chunk);
        assert!(ring.push(Nanos(8), 10, &[None, None]));
        ring.drain(&mut chunk);
        assert_eq!(chunk.at, [5, 6, 8].map(Nanos));
        assert_eq!(chunk.amount, [7, 8, 10]);
        assert_eq!(chunk.probes, [vec![Some(1.5), None, None], vec![None, Some(-2.0), None]]);
        assert!(chunk.is_table(2));
    }

    #[test]
    fn two_threads_lose_nothing() {
        const ROWS: u64 = 100_000;
        let ring = Arc::new(Ring::new(64, 1));
        let pusher = {
            let ring = ring.clone();
            std::thread::spawn(move || {
                for number in 0..ROWS {
                    while !ring.push(Nanos(number), number * 2, &[Some(number as f64)]) {
                        std::thread::yield_now();
                    }
                }
            })
        };
        let mut chunk = empty(1);
        while (chunk.at.len() as u64) < ROWS {
            ring.drain(&mut chunk);
        }
        pusher.join().unwrap();
        let of_number = |number: u64| (Nanos(number), number * 2, Some(number as f64));
        for (row, number) in (0..ROWS).enumerate() {
            assert_eq!((chunk.at[row], chunk.amount[row], chunk.probes[0][row]), of_number(number));
        }
    }
}
