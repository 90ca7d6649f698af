//! The worker process: opens the jobs of one case once, and runs them slice by slice for the scheduler.

use super::protocol::{Assignment, QUIT, Report, Signals, WORDS_PER_THREAD};
use crate::engine::worker::{Control, Worker};
use crate::error::{Error, Result};
use crate::worker_pool::{build_worker, with_engine};
use crate::workload::JobCopy;
use crate::workload::request_source::Kind;
use crate::workload::target::Target;
use model::histogram::Histogram;
use model::plan::{Duration, JobPlan, Phase};
use model::unit::{Hertz, Nanos};
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time;
use sys::clock::ticks;
use sys::schedule::current_cpu;
use sys::shared_words::{SharedWords, wait_while, wake_all};

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
        job.start_delay = Nanos(0);
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
        let (plan, number, targets) = self.copy;
        let copy = JobCopy { plan: &plan, number, targets, replay: None };
        let control = Arc::new(Control::shared(self.words.clone()));
        let mut worker = build_worker(&copy, Arc::default(), control, self.clock)?;
        let signals = Signals::of(&self.words);
        with_engine(&copy, self.clock, |engine| {
            worker.calibrate();
            let (mut kept, mut pending, mut turn) = (Histogram::new(), false, 0);
            loop {
                arrive(signals, self.threads);
                while signals.turn().load(Ordering::Acquire) == turn {
                    wait_while(signals.turn(), turn, time::Duration::from_secs(3600));
                }
                turn = signals.turn().load(Ordering::Acquire);
                if std::mem::take(&mut pending) {
                    // Here, because a warm-up follows, which does not count.
                    worker
                        .ledger
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
                let cpus = begin.zip(current_cpu()).map(|(begin, end)| [begin, end]);
                Report { cpus, ..report(&plan, &worker, self.clock) }.publish(&self.words, self.thread);
                pending = signals.keep().load(Ordering::Relaxed) == 1;
                if !pending {
                    // Here, so that the next slice does not pay for clearing the tables.
                    worker.ledger.restart(0);
                }
            }
        })
    }
}

fn report(plan: &JobPlan, worker: &Worker, clock: Hertz) -> Report {
    let end_ticks = ticks();
    let thread_nanos = Nanos(sys::clock::own_thread_nanos()).since(worker.thread_begin).0;
    let kinds = &worker.ledger.kinds;
    Report {
        ios: kinds.iter().map(|kind| kind.latency.total()).sum(),
        bytes: kinds.iter().map(|kind| kind.bytes).sum(),
        begin_ticks: worker.ledger.begin_ticks,
        end_ticks,
        thread_nanos,
        latency_ticks: kinds.iter().map(|kind| kind.latency.sum()).sum(),
        read_bytes: kinds.get(Kind::Read as usize).map_or(0, |kind| kind.bytes),
        injected_ns: worker.injected(plan, clock),
        cpus: None,
    }
}

/// Only the last thread wakes the scheduler, which has real-time priority and would otherwise preempt threads that
/// still work.
fn arrive(signals: Signals, threads: usize) {
    let before = signals.arrived().fetch_add(1, Ordering::AcqRel);
    if before as usize + 1 >= threads {
        wake_all(signals.arrived());
    }
}
