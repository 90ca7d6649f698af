//! The worker process: opens the jobs of one case once, and runs them slice by slice for the scheduler. The two talk in shared memory.

use lab::engine::worker::{Control, STOP_SIGNAL, Worker};
use lab::error::{Error, Result};
use lab::placing::Placing;
use lab::worker_pool::{build_worker, with_engine};
use lab::workload::JobCopy;
use lab::workload::request_source::Kind;
use lab::workload::target::Target;
use model::histogram::Histogram;
use model::plan::{Duration, JobPlan, Phase};
use model::unit::{Hertz, Nanos};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time;
use sys::clock::ticks;
use sys::schedule::current_cpu;
use sys::shared_words::{SharedWords, wait_while, wake_all};

/// Incremented for each slice; [`QUIT`] ends the process.
pub(super) const TURN: usize = 0;
/// 1: finish the I/Os in flight and return.
pub(super) const STOP: usize = STOP_SIGNAL;
/// Number of threads that wait for their next turn.
pub(super) const ARRIVED: usize = 2;
/// 1: the latencies of this slice count.
pub(super) const KEEP: usize = 3;

/// The value of the last turn.
pub(super) const QUIT: u32 = u32::MAX;

/// Words per thread: two cache lines, so that neighbours do not disturb each other.
pub(super) const WORDS_PER_THREAD: usize = 16;
/// The places of a thread's words, which tell its work in a slice.
pub(super) const IOS: usize = 0;
pub(super) const BYTES: usize = 1;
/// Time of the first submission.
pub(super) const BEGIN_TICKS: usize = 2;
/// Time of the last completion, or of the sync after it.
pub(super) const END_TICKS: usize = 3;
pub(super) const THREAD_NANOS: usize = 4;
/// Sum of all latencies, from submission to completion.
pub(super) const LATENCY_TICKS: usize = 5;
/// The bytes that were read.
pub(super) const READ_BYTES: usize = 6;
/// Busy work added to each I/O, requested and burnt, as the bits of two numbers; 0 means none.
pub(super) const INJECTED: [usize; 2] = [7, 8];
/// The CPU at the start of the slice, and at its end, plus one: 0 means unknown.
pub(super) const CPUS: [usize; 2] = [9, 10];
const WORDS_OF_REPORT: usize = 11;

/// The job of a worker process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    /// Jobs and their copies, one thread each.
    pub phase: Phase,
    /// Files of each thread, found or made by the scheduler: a worker makes and claims no files, and does not change
    /// the page cache.
    pub targets: Vec<Vec<Target>>,
    /// Process id of the scheduler.
    pub scheduler: u32,
    /// Rate of the time-stamp counter.
    pub clock_hertz: f64,
    /// The CPUs of each thread.
    pub placing: Placing,
}

impl Assignment {
    pub fn threads(&self) -> usize {
        self.phase.jobs.iter().map(|job| job.copies.max(1) as usize).sum()
    }
}

/// A signal of a worker process.
pub(super) fn signal(words: &SharedWords, place: usize) -> &AtomicU32 {
    // There is a page of signals, of which four are used.
    #[expect(clippy::indexing_slicing, reason = "places are constants far below SIGNALS")]
    &words.signals()[place]
}

/// Runs the assignment in `memory` until the scheduler ends it. Returns the latencies of all slices that count.
///
/// # Errors
/// The first failure; the process must end then.
pub fn serve(memory: &File, threads: usize) -> Result<Histogram> {
    // End with the scheduler, also if it is killed.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let foreign =
        |error: String| Error::Refused(format!("this is an internal command that iotoll starts itself: {error}"));
    let words = threads.checked_mul(WORDS_PER_THREAD).ok_or_else(|| foreign("too many threads".to_owned()))?;
    let (words, text) = SharedWords::open(memory, words).map_err(|error| foreign(error.to_string()))?;
    let assignment: Assignment = serde_json::from_slice(&text).map_err(|error| foreign(error.to_string()))?;
    if assignment.threads() != threads {
        return Err(foreign("its assignment has another number of threads".to_owned()));
    }
    let parent = rustix::process::getppid().and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok());
    if parent != Some(assignment.scheduler) {
        // The scheduler was killed before the death signal was set.
        return Err(foreign("its parent process has ended".to_owned()));
    }
    sys::process::raise_open_file_limit();
    let words = Arc::new(words);
    let clock = Hertz(assignment.clock_hertz);
    let phase = endless(assignment.phase);
    let mut targets = assignment.targets.into_iter();
    let (tell, news) = channel();
    let mut number = 0;
    let placing = assignment.placing;
    for job in &phase.jobs {
        for copy in 0..job.copies.max(1) {
            let mut placed = job.clone();
            placing.apply(&mut placed, number);
            let targets = targets.next().ok_or_else(|| foreign("a thread has no files".to_owned()))?;
            let member =
                WorkerThread { copy: (placed, copy, targets), thread: number, threads, words: words.clone(), clock };
            let tell = tell.clone();
            let spawned = std::thread::Builder::new().name(format!("job {}", job.name)).spawn(move || {
                // The receiver has ended if another thread failed first.
                let _ = tell.send(member.serve());
            });
            spawned.map_err(|error| Error::instrument("starting a worker thread", error))?;
            number += 1;
        }
    }
    drop(tell);
    let mut all = Histogram::new();
    for latencies in news {
        all.merge(&latencies?);
    }
    Ok(all)
}

/// Removes the job's own limits: only the scheduler ends a slice.
fn endless(mut phase: Phase) -> Phase {
    for job in &mut phase.jobs {
        job.duration =
            Duration { time_based: true, number_ios: None, runtime: Nanos(0), ramp: Nanos(0), ..job.duration };
        job.together.start_delay = Nanos(0);
    }
    phase
}

/// One thread of the process.
struct WorkerThread {
    copy: (JobPlan, u32, Vec<Target>),
    thread: usize,
    /// Of the whole process.
    threads: usize,
    words: Arc<SharedWords>,
    clock: Hertz,
}

impl WorkerThread {
    fn serve(self) -> Result<Histogram> {
        let (plan, number, targets) = &self.copy;
        let copy = JobCopy { plan, number: *number, targets: targets.clone(), replay: None };
        let control = Arc::new(Control::shared(self.words.clone()));
        let mut worker = build_worker(&copy, Arc::default(), control, self.clock)?;
        let turn_signal = signal(&self.words, TURN);
        with_engine(&copy, |engine| {
            worker.calibrate();
            let (mut kept, mut pending, mut turn) = (Histogram::new(), false, 0);
            loop {
                arrive(&self.words, self.threads);
                while turn_signal.load(Ordering::Acquire) == turn {
                    wait_while(turn_signal, turn, time::Duration::from_secs(3600));
                }
                turn = turn_signal.load(Ordering::Acquire);
                if std::mem::take(&mut pending) {
                    // Here, because a warm-up follows, which does not count.
                    worker
                        .tally
                        .kinds
                        .iter()
                        .filter(|kind| kind.latency.total() > 0)
                        .for_each(|kind| kept.merge(&kind.latency));
                }
                if turn == QUIT {
                    return Ok(kept);
                }
                let begin = current_cpu();
                engine(&mut worker)?;
                let cpus =
                    begin.zip(current_cpu()).map_or([0, 0], |(begin, end)| [begin, end].map(|cpu| u64::from(cpu) + 1));
                self.publish(&report(plan, &worker, self.clock, cpus));
                pending = signal(&self.words, KEEP).load(Ordering::Relaxed) == 1;
                if !pending {
                    // Here, so that the next slice does not pay for clearing the tables.
                    worker.tally.restart(0);
                }
            }
        })
    }

    /// Writes its report into shared memory; the arrival afterwards makes it visible.
    fn publish(&self, report: &[u64; WORDS_OF_REPORT]) {
        let slot = self.words.words().iter().skip(self.thread * WORDS_PER_THREAD);
        slot.zip(report).for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
    }
}

/// What a thread tells of a slice on these CPUs, by place.
fn report(plan: &JobPlan, worker: &Worker, clock: Hertz, [begin_cpu, end_cpu]: [u64; 2]) -> [u64; WORDS_OF_REPORT] {
    let end_ticks = ticks();
    let thread_nanos = Nanos(sys::clock::own_thread_nanos()).since(worker.thread_begin).0;
    let (tally, kinds) = (&worker.tally, &worker.tally.kinds);
    let injected = worker.injected(plan, clock).map(|injected| [injected.asked, injected.burnt].map(f64::to_bits));
    let [asked, burnt] = injected.unwrap_or_default();
    let ios = kinds.iter().map(|kind| kind.latency.total()).sum();
    let bytes = kinds.iter().map(|kind| kind.bytes).sum();
    let latency_ticks = kinds.iter().map(|kind| kind.latency.sum()).sum();
    let read_bytes = kinds.get(Kind::Read as usize).map_or(0, |kind| kind.bytes);
    let begin_ticks = tally.begin_ticks;
    [ios, bytes, begin_ticks, end_ticks, thread_nanos, latency_ticks, read_bytes, asked, burnt, begin_cpu, end_cpu]
}

/// Only the last thread wakes the scheduler, which has real-time priority and would otherwise preempt threads that
/// still work.
fn arrive(words: &SharedWords, threads: usize) {
    let arrived = signal(words, ARRIVED);
    if arrived.fetch_add(1, Ordering::AcqRel) as usize + 1 >= threads {
        wake_all(arrived);
    }
}
