//! Counters of the worker of a recording, from the files and clocks of its task.

use super::source::TextFile;
use crate::error::{Error, Result};
use crate::proc_files::{numbered, tasks_of};
use model::probe::{Field, WorkerCounter};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use sys::clock::{ThreadClock, monotonic_nanos, process_nanos};

/// Most threads of a process that are read one by one: each takes 2 µs of a quantum.
const MOST_THREADS: usize = 64;

/// The task that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerTask {
    /// A thread of this process.
    Thread(u32),
    /// Another process. Its times are means of its threads, its sleeps and preemptions those of its first thread.
    Process(u32),
}

/// A source of counters of the worker.
pub(super) enum Reader {
    /// `voluntary_ctxt_switches` or `nonvoluntary_ctxt_switches` in its status.
    Status(TextFile, Field),
    /// The second number of schedstat: nanoseconds of waiting for a CPU.
    Schedstat(Mean),
    /// Its CPU clock.
    OnCpu(Clocks),
    /// Time less its CPU clock.
    OffCpu(Clocks),
}

/// What a counter of each thread has grown by on average.
pub(super) struct Mean {
    /// With its latest reading.
    threads: Vec<(TextFile, f64)>,
    sum: f64,
}

/// The clocks of a task: nanoseconds of a thread, or those that the threads of a process have on average.
pub(super) struct Clocks {
    task: WorkerTask,
    /// The folder of the threads, which has a link for each.
    threads: Option<File>,
    /// CPU time of the task and time at the latest reading.
    latest: Option<(u64, u64)>,
    on: f64,
    off: f64,
}

impl Reader {
    pub fn open(counter: WorkerCounter, task: WorkerTask) -> Result<Self> {
        let folder = match task {
            WorkerTask::Thread(id) => format!("/proc/self/task/{id}"),
            WorkerTask::Process(id) => format!("/proc/{id}"),
        };
        let open = |name: &str| {
            let path = format!("{folder}/{name}");
            TextFile::open(&path)
                .map_err(|error| Error::Refused(format!("probe 'worker.{}': {path}: {error}", counter.name())))
        };
        let status = |key: &str| Ok(Self::Status(open("status")?, Field::Row { key: key.to_owned(), column: 0 }));
        match counter {
            WorkerCounter::Sleeps => status("voluntary_ctxt_switches:"),
            WorkerCounter::Preemptions => status("nonvoluntary_ctxt_switches:"),
            WorkerCounter::RunDelay => {
                let threads = match task {
                    WorkerTask::Thread(_) => vec![open("schedstat")?],
                    WorkerTask::Process(id) => {
                        let open = |thread: u32| TextFile::open(&format!("/proc/{id}/task/{thread}/schedstat")).ok();
                        threads_of(id).into_iter().take(MOST_THREADS).filter_map(open).collect()
                    }
                };
                Ok(Self::Schedstat(Mean { threads: threads.into_iter().map(|file| (file, 0.0)).collect(), sum: 0.0 }))
            }
            WorkerCounter::OnCpuTime => Ok(Self::OnCpu(Clocks::of(task))),
            WorkerCounter::OffCpuTime => Ok(Self::OffCpu(Clocks::of(task))),
        }
    }

    /// The number now; `None` if the task has ended.
    pub fn read(&mut self) -> Option<f64> {
        match self {
            Self::Status(file, field) => field.read(file.read().ok()?),
            Self::Schedstat(mean) => mean.read(),
            Self::OnCpu(clocks) => clocks.read().map(|(on, _)| on),
            Self::OffCpu(clocks) => clocks.read().map(|(_, off)| off),
        }
    }
}

impl Mean {
    fn read(&mut self) -> Option<f64> {
        let (mut grown, mut alive) = (0.0, 0.0);
        self.threads.retain_mut(|(file, latest)| {
            let Some(now) = file.read().ok().and_then(|text| Field::Word(1).read(text)) else { return false };
            grown += now - std::mem::replace(latest, now);
            alive += 1.0;
            true
        });
        self.sum += grown / alive;
        Some(self.sum).filter(|sum| sum.is_finite())
    }
}

impl Clocks {
    fn of(task: WorkerTask) -> Self {
        let threads = match task {
            WorkerTask::Thread(_) => None,
            WorkerTask::Process(id) => File::open(format!("/proc/{id}/task")).ok(),
        };
        Self { task, threads, latest: None, on: 0.0, off: 0.0 }
    }

    fn read(&mut self) -> Option<(f64, f64)> {
        // The time after the CPU clock: a pause between the two readings makes the value too high, as a clock that lags does, and later
        // readings correct it.
        let now = (self.task.cpu_nanos().ok()?, monotonic_nanos());
        let (cpu, at) = self.latest.replace(now).unwrap_or((0, 0));
        // Beside them are the folder's own name and its parent's.
        let links = self.threads.as_ref().and_then(|folder| folder.metadata().ok()).map(|folder| folder.nlink());
        let threads = links.map_or(1, |links| links.saturating_sub(2).max(1)) as f64;
        let on = now.0.saturating_sub(cpu) as f64 / threads;
        self.on += on;
        self.off += now.1.saturating_sub(at) as f64 - on;
        Some((self.on, self.off))
    }
}

/// The threads of a process, the first one first.
fn threads_of(process: u32) -> Vec<u32> {
    let mut threads = numbered(&tasks_of(process));
    threads.sort_unstable();
    threads
}

impl WorkerTask {
    /// What a counter of this task covers, after its meaning.
    pub(super) fn scope(self, counter: WorkerCounter) -> &'static str {
        match (self, counter) {
            (Self::Thread(_), _) => "",
            (_, WorkerCounter::Sleeps | WorkerCounter::Preemptions) => ": of the process's first thread only",
            (_, WorkerCounter::RunDelay) => ": mean of the threads that the process had when the recording began",
            (_, WorkerCounter::OnCpuTime | WorkerCounter::OffCpuTime) => ": mean of the process's threads",
        }
    }

    fn cpu_nanos(self) -> io::Result<u64> {
        match self {
            Self::Thread(id) => ThreadClock::of_thread(id).nanos(),
            Self::Process(id) => process_nanos(id).ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    /// Of this process, which has the threads of the tests and some that compute: no share of the time exceeds all of it.
    #[test]
    fn the_times_of_a_process_are_means_of_its_threads() {
        let task = WorkerTask::Process(std::process::id());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let counters = [WorkerCounter::OnCpuTime, WorkerCounter::OffCpuTime, WorkerCounter::RunDelay];
            let mut readers = counters.map(|counter| Reader::open(counter, task).unwrap());
            let mut read = || readers.each_mut().map(|reader| reader.read().unwrap());
            let (begun, before) = (monotonic_nanos(), read());
            std::thread::sleep(Duration::from_millis(500));
            let (after, passed) = (read(), (monotonic_nanos() - begun) as f64);
            stop.store(true, Ordering::Relaxed);
            let parts: Vec<f64> = after.iter().zip(before).map(|(after, before)| (after - before) / passed).collect();
            // A wait that began before counts when it ends.
            assert!(parts.iter().all(|part| (0.0..=1.2).contains(part)) && parts[1] > 0.0, "{parts:?}");
        });
    }
}
