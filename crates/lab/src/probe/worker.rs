//! Counters of the worker of a recording, from the files and clocks of its task.

use super::text_file::TextFile;
use crate::error::{Error, Result};
use model::probe::{Field, WorkerCounter};
use std::io;
use sys::clock::{ThreadClock, monotonic_nanos, process_nanos};

/// The task that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerTask {
    /// A thread of this process.
    Thread(u32),
    /// Another process. Its CPU time is that of all its threads; its sleeps, preemptions and run delay are those of its
    /// first thread.
    Process(u32),
}

/// A source of counters of the worker.
pub(super) enum Reader {
    /// `voluntary_ctxt_switches` or `nonvoluntary_ctxt_switches` in its status.
    Status(TextFile, Field),
    /// The second number of schedstat: nanoseconds of waiting for a CPU.
    Schedstat(TextFile),
    /// Its CPU clock.
    OnCpu(WorkerTask),
    /// Time less its CPU clock.
    OffCpu(WorkerTask),
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
            WorkerCounter::RunDelay => Ok(Self::Schedstat(open("schedstat")?)),
            WorkerCounter::OnCpuTime => Ok(Self::OnCpu(task)),
            WorkerCounter::OffCpuTime => Ok(Self::OffCpu(task)),
        }
    }

    /// The number now; `None` if the task has ended.
    pub fn read(&mut self) -> Option<f64> {
        match self {
            Self::Status(file, field) => field.read(file.read().ok()?),
            Self::Schedstat(file) => Field::Word(1).read(file.read().ok()?),
            Self::OnCpu(task) => task.cpu_nanos().ok().map(|nanos| nanos as f64),
            Self::OffCpu(task) => {
                // The time after the CPU clock: a pause between the two readings makes the value too high, as a clock that
                // lags does, and later readings correct it.
                let nanos = task.cpu_nanos().ok()?;
                Some(monotonic_nanos() as f64 - nanos as f64)
            }
        }
    }
}

impl WorkerTask {
    fn cpu_nanos(self) -> io::Result<u64> {
        match self {
            Self::Thread(id) => ThreadClock::of_thread(id).nanos(),
            Self::Process(id) => process_nanos(id).ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }
}
