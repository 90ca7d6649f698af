//! The scheduler's side of a worker process: starts it, runs slices, reads the results, ends it.

use crate::compare::record::SliceWork;
use jobs::engine::worker::{Control, STOP_SIGNAL, Worker};
use jobs::worker_pool::{JobCopy, build_worker, with_engine};
use jobs::workload::request_source::Kind;
use jobs::workload::target::Target;
use lab::error::{Error, Result};
use lab::guardian::processes::Processes;
use lab::interruption::WaitLimit;
use lab::meter::Owners;
use lab::page_cache::storage_read_of;
use lab::placing::Placing;
use model::histogram::Histogram;
use model::injected::Injected;
use model::placement::{RanOn, Side};
use model::plan::{JobPlan, Phase};
use model::unit::{Bytes, Hertz, Nanos, Ticks};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use sys::clock::ticks;
use sys::schedule::current_cpu;
use sys::shared_words::{SharedWords, wait_while, wake_all};

/// Interval at which a worker that does not answer is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A worker process. Dropping it kills it.
pub(super) struct WorkerProcess {
    name: String,
    child: Child,
    words: SharedWords,
    /// One per thread.
    names: Vec<String>,
    pub threads: usize,
    clock: Hertz,
    limit: WaitLimit,
}

impl WorkerProcess {
    /// Starts a process for `assignment`. [`WorkerProcess::ready`] waits for it, so that several can start together.
    pub fn start(name: &str, assignment: &Assignment, limit: WaitLimit, processes: &Processes) -> Result<Self> {
        let failed = |error| Error::instrument(format!("starting a worker process for {name}"), error);
        let text = serde_json::to_vec(assignment).map_err(|error| failed(error.into()))?;
        let threads = assignment.threads();
        let (words, file) = SharedWords::create(threads * WORDS_PER_THREAD, &text).map_err(failed)?;
        // Not the path: another program may replace the file before the next round.
        let mut worker = Command::new("/proc/self/exe");
        worker.args(["worker", &threads.to_string()]).stdin(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C goes to the scheduler, which then ends its workers in order.
        worker.process_group(0);
        processes.mark(&mut worker);
        let child = worker.spawn().map_err(failed)?;
        let names = assignment.phase.jobs.iter();
        let names = names.flat_map(|job| std::iter::repeat_n(format!("job {}", job.name), job.copies.max(1) as usize));
        Ok(Self {
            name: name.to_owned(),
            child,
            words,
            names: names.collect(),
            threads,
            clock: Hertz(assignment.clock_hertz),
            limit,
        })
    }

    /// Waits until every thread waits for its first turn.
    pub fn ready(&mut self) -> Result<()> {
        self.gather("getting ready")
    }

    /// Starts a slice.
    pub fn go(&self, keep: bool) {
        for (place, value) in [(KEEP, keep.into()), (STOP, 0), (ARRIVED, 0)] {
            signal(&self.words, place).store(value, Ordering::Relaxed);
        }
        // Never reaches QUIT: that would take some hundred years of slices.
        signal(&self.words, TURN).fetch_add(1, Ordering::Release);
        wake_all(signal(&self.words, TURN));
    }

    /// Ends the slice, and waits until nothing is in flight.
    pub fn halt(&mut self) -> Result<()> {
        signal(&self.words, STOP).store(1, Ordering::Relaxed);
        self.gather("finishing I/Os in flight")
    }

    /// A whole slice that does not count.
    pub fn warm_up(&mut self, length: Duration) -> Result<()> {
        self.go(false);
        std::thread::sleep(length);
        self.halt()
    }

    /// The tasks that are the workload.
    pub fn owners(&self) -> Owners {
        Owners { command: Some(self.child.id()), ..Owners::default() }
    }

    /// A word of each thread's report of the last slice.
    fn each(&self, place: usize) -> impl Iterator<Item = u64> {
        let words = self.words.words().iter().skip(place).step_by(WORDS_PER_THREAD).take(self.threads);
        words.map(|word| word.load(Ordering::Relaxed))
    }

    /// The work of all threads in the last slice.
    pub fn work(&self) -> SliceWork {
        let sum = |place| self.each(place).fold(0, u64::saturating_add);
        let (begin, end) = (self.each(BEGIN_TICKS).min().unwrap_or(0), self.each(END_TICKS).max().unwrap_or(0));
        SliceWork {
            ios: sum(IOS),
            bytes: Bytes(sum(BYTES)),
            wall_nanos: self.clock.nanos(Ticks(end.saturating_sub(begin))),
            thread_nanos: Nanos(sum(THREAD_NANOS)),
            latency_nanos: self.clock.nanos(Ticks(sum(LATENCY_TICKS))),
            read_bytes: Some(Bytes(sum(READ_BYTES))),
            storage_read: None,
        }
    }

    /// Bytes read from storage for the process so far, if the kernel reports them.
    pub fn storage_read(&self) -> Option<Bytes> {
        storage_read_of(self.child.id())
    }

    /// Where its threads ran in the last slice.
    pub fn ran(&self) -> Vec<RanOn> {
        let [begins, ends] = CPUS.map(|place| self.each(place));
        let ran = self.names.iter().zip(begins.zip(ends)).zip(self.each(THREAD_NANOS));
        let ran = ran.filter(|((_, (begin, end)), _)| *begin > 0 && *end > 0);
        ran.map(|((name, (begin, end)), nanos)| RanOn {
            side: Side::Workload,
            name: name.clone(),
            process: None,
            threads: 1,
            cpu: u32::try_from(end - 1).unwrap_or(u32::MAX),
            moved: begin != end,
            nanos: Nanos(nanos),
        })
        .collect()
    }

    /// Busy work that its threads add to each I/O, if any.
    pub fn injected(&self) -> Option<Injected> {
        let [asked, burnt] = INJECTED.map(|place| self.each(place).map(f64::from_bits));
        Injected::mean(
            asked.zip(burnt).filter(|(asked, _)| *asked > 0.0).map(|(asked, burnt)| Injected { asked, burnt }),
        )
    }

    /// Ends the process and returns its latencies.
    pub fn finish(mut self) -> Result<Histogram> {
        signal(&self.words, TURN).store(QUIT, Ordering::Release);
        wake_all(signal(&self.words, TURN));
        let mut text = Vec::new();
        let read = self.child.stdout.take().map(|mut stdout| stdout.read_to_end(&mut text));
        let status = self.child.wait();
        match (read, status) {
            (Some(Ok(_)), Ok(status)) if status.success() => serde_json::from_slice(&text)
                .map_err(|error| self.failed(&format!("its latencies cannot be read: {error}"))),
            (_, Ok(status)) => Err(self.died(&status.to_string())),
            (_, Err(error)) => Err(Error::instrument(format!("waiting for the worker of {}", self.name), error)),
        }
    }

    fn gather(&mut self, doing: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            let arrived = signal(&self.words, ARRIVED).load(Ordering::Acquire);
            if arrived as usize >= self.threads {
                return Ok(());
            }
            wait_while(signal(&self.words, ARRIVED), arrived, POLL_INTERVAL);
            if begun.elapsed() < POLL_INTERVAL {
                continue;
            }
            match self.child.try_wait() {
                Ok(Some(status)) => return Err(self.died(&status.to_string())),
                Ok(None) => match self.limit.ends(begun, doing) {
                    Some(Error::Failed(why)) => return Err(self.failed(&why)),
                    Some(error) => return Err(error),
                    None => {}
                },
                Err(error) => return Err(Error::instrument("checking a worker process", error)),
            }
        }
    }

    fn died(&mut self, how: &str) -> Error {
        let mut stderr_text = String::new();
        // It has ended, so this does not block.
        let _ = self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut stderr_text));
        match stderr_text.lines().next().map(|line| line.strip_prefix("iotoll: ").unwrap_or(line)) {
            Some(line) => self.failed(line),
            None => self.failed(&format!("its worker process ended unexpectedly: {how}")),
        }
    }

    fn failed(&self, why: &str) -> Error {
        Error::Failed(format!("{}: {why}", self.name))
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // It may have ended already; either way it has ended after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
        job.duration = model::plan::Duration {
            time_based: true,
            number_ios: None,
            runtime: Nanos(0),
            ramp: Nanos(0),
            ..job.duration
        };
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
                    wait_while(turn_signal, turn, Duration::from_secs(3600));
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
