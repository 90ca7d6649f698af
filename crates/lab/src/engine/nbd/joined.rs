//! One connection for several jobs: the first job makes it, the others join.

use super::{SILENCE_TIMEOUT, place, unreachable_server, uri};
use crate::error::{Error, Result};
use model::plan::{JobPlan, PathTxQueue, TxTaskCpus};
use nbd::client::shared_client::{Queueing, SharedClient, SharedOptions, Submitter};
use nbd::client::{Accounting, Options, Wire};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Most slots of one connection: the capacity of its queue.
const MOST_SLOTS: u32 = 1 << 14;

/// Parameters that jobs must share to use one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sharing {
    uri: String,
    /// Most jobs.
    jobs: u32,
    depth: u32,
    slot_bytes: usize,
    options: SharedOptions,
}

/// The connections of this process that jobs can join.
static SHARED: Mutex<Vec<(Sharing, Weak<SharedClient>)>> = Mutex::new(Vec::new());

/// Joins the shared connection, or makes it.
///
/// # Errors
/// Refused, when there is no server, or an option does not suit shared connections.
pub(super) fn join(plan: &JobPlan, depth: u32, slot_bytes: usize, options: Options) -> Result<Submitter> {
    let refused = |why: &str| Err(Error::Refused(format!("job '{}': {why}", plan.name)));
    let Options { tuning, in_flight, wire, handshake_timeout } = options;
    if in_flight != Accounting::None || wire != Wire::Real {
        return refused("path_in_flight and path_null do not work with a shared connection; leave out path_tx_queue");
    }
    let queueing = match plan.path.tx_queue {
        PathTxQueue::None | PathTxQueue::Lock => Queueing::Lock,
        PathTxQueue::RingTask => Queueing::RingTask,
        PathTxQueue::MpRing => Queueing::MpRing,
        PathTxQueue::SwapAll => Queueing::SwapAll,
    };
    // Only this queue has a thread of its own.
    let task_cpus = if queueing == Queueing::RingTask { task_cpus(plan)? } else { Vec::new() };
    let options = SharedOptions { tuning, queueing, task_cpus, handshake_timeout, silence: SILENCE_TIMEOUT };
    let jobs = plan.path.submitters.min(MOST_SLOTS / depth.max(1)).max(1);
    let sharing = Sharing { uri: uri(plan).to_owned(), jobs, depth, slot_bytes, options };
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.retain(|(_, client)| client.strong_count() > 0);
    let alike = shared.iter().filter(|(other, _)| *other == sharing);
    if let Some(submitter) = alike.filter_map(|(_, client)| client.upgrade()?.submitter()).next() {
        return Ok(submitter);
    }
    let client = SharedClient::connect(&place(plan)?, jobs, depth, slot_bytes, sharing.options.clone());
    let client = client.map_err(|error| unreachable_server(plan, &error))?;
    shared.push((sharing, Arc::downgrade(&client)));
    match client.submitter() {
        Some(submitter) => Ok(submitter),
        None => refused("the shared connection has no place for a job; please report this"),
    }
}

/// CPUs of the thread that drains the queue; empty means any.
fn task_cpus(plan: &JobPlan) -> Result<Vec<u32>> {
    let relative = |word: &str| {
        let why = format!("tx_task_cpus={word} is relative to cpus_allowed; give that too, or a list of CPUs");
        Error::Refused(format!("job '{}': {why}", plan.name))
    };
    let own = &plan.cpus_allowed;
    match &plan.path.tx_task_cpus {
        TxTaskCpus::Any => Ok(Vec::new()),
        TxTaskCpus::List(cpus) => Ok(cpus.clone()),
        TxTaskCpus::Same if own.is_empty() => Err(relative("same")),
        TxTaskCpus::Same => Ok(own.clone()),
        TxTaskCpus::Other => {
            let online = sys::schedule::online_cpus().map_err(|error| Error::job(&plan.name, "tx_task_cpus", error))?;
            let others: Vec<u32> = online.into_iter().filter(|cpu| !own.contains(cpu)).collect();
            if own.is_empty() || others.is_empty() { Err(relative("other")) } else { Ok(others) }
        }
    }
}
