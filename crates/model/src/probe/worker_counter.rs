//! Counters of the worker of a recording.

/// A counter of the worker of a recording: of its thread if iotoll started it as a job, of the process otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerCounter {
    /// Voluntary context switches: it waited for something.
    Sleeps,
    /// Involuntary context switches: another task took its CPU.
    Preemptions,
    OnCpuTime,
    /// Time less CPU time: it waited, or wanted a CPU and had none.
    OffCpuTime,
    /// Time in which it wanted a CPU and had none.
    RunDelay,
}

impl WorkerCounter {
    pub const ALL: [Self; 5] = [Self::Sleeps, Self::Preemptions, Self::OnCpuTime, Self::OffCpuTime, Self::RunDelay];

    /// Finds a counter by name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.name() == name)
    }

    /// Its name after `worker.`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleeps => "sleeps",
            Self::Preemptions => "preemptions",
            Self::OnCpuTime => "on_cpu_time",
            Self::OffCpuTime => "off_cpu_time",
            Self::RunDelay => "run_delay",
        }
    }

    /// The unit of one count.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Sleeps | Self::Preemptions => "switches",
            Self::OnCpuTime | Self::OffCpuTime | Self::RunDelay => "ns",
        }
    }

    /// What it counts, in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Sleeps => "times that the worker went to sleep (voluntary context switches)",
            Self::Preemptions => "times that another task took the worker's CPU (involuntary context switches)",
            Self::OnCpuTime => "CPU time of the worker",
            Self::OffCpuTime => "time in which the worker was not on a CPU",
            Self::RunDelay => "time in which the worker wanted a CPU and had none",
        }
    }
}
