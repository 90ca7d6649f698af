//! Who CPU time is charged to: tasks that were read before and after, and exact accounts.

pub(crate) mod named;

use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// CPU time of tasks over a stretch: the difference between two scans.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskTimes {
    /// Time between the two scans.
    pub wall_nanos: Nanos,
    /// Tasks that ran; tasks of one process with the same name are one entry.
    pub tasks: Vec<TaskTime>,
}

/// CPU time that the scheduler charged to tasks of one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskTime {
    /// Name of the task (`comm`).
    pub name: String,
    /// Its owner.
    pub owner: TaskOwner,
    /// CPU time.
    pub nanos: Nanos,
}

/// The owner of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOwner {
    /// The workload: a worker thread, or the measured command and its children.
    Workload,
    /// iotoll itself: its meters and its progress display.
    Iotoll,
    /// A thread of the kernel.
    Kernel,
    /// Another process.
    Other,
    /// Another process that the workload wakes, or that another of these wakes: a server. Known by exact accounts only.
    Peer,
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// A task runs, without the softirqs and interrupts that come meanwhile.
    Task,
    /// A softirq, also one that ksoftirqd runs.
    Softirq,
    /// An interrupt, from its first to its last tracepoint.
    Irq,
    /// The idle task runs outside idle states: on the way there and back.
    IdleEntry,
    /// An idle state, until the interrupt that ends it.
    Idle,
}

/// What every nanosecond of every CPU was charged to, between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accounts {
    /// The time that passed, summed over CPUs: the sum of all accounts.
    pub passed_nanos: Nanos,
    /// Every account with time.
    pub accounts: Vec<Account>,
}

/// Part of the machine's time that other processes use from which on a cost is that of the load by its name: five times and more what a
/// quiet machine's daemons use.
pub const BUSY_OTHERS: f64 = 0.05;

impl Accounts {
    /// The part of the time that other processes used, which the workload does not wake.
    pub fn others_part(&self) -> f64 {
        let others = self.accounts.iter().filter(|account| account.owner == Some(TaskOwner::Other));
        let nanos: f64 = others.map(|account| account.nanos.as_f64()).sum();
        if self.passed_nanos > Nanos(0) { nanos / self.passed_nanos.as_f64() } else { 0.0 }
    }
}

/// One account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// What the CPU did.
    pub kind: AccountKind,
    /// Name of the task (`comm`), the softirq, the interrupt; empty for idling.
    pub name: String,
    /// Of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<TaskOwner>,
    /// Its time.
    pub nanos: Nanos,
    /// How often it began; 0 for a task.
    pub count: u64,
}
