//! The scheduler's side of a worker process: starts it, runs slices, reads the results, ends it.

use super::worker::{
    ARRIVED, Assignment, BEGIN_TICKS, BYTES, CPUS, END_TICKS, INJECTED, IOS, KEEP, LATENCY_TICKS, QUIT, READ_BYTES,
    STOP, THREAD_NANOS, TURN, WORDS_PER_THREAD, signal,
};
use crate::compare::record::SliceWork;
use lab::error::{Error, Result};
use lab::guardian::processes::Processes;
use lab::interruption::WaitLimit;
use lab::meter::Owners;
use lab::page_cache::storage_read_of;
use model::histogram::Histogram;
use model::injected::Injected;
use model::placement::{RanOn, Side};
use model::unit::{Bytes, Hertz, Nanos, Ticks};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
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
