//! Connections beside the plain one: I/Os that exceed the largest request are split into several, and jobs share one connection.

use super::{SILENCE_TIMEOUT, place, unreachable_server, uri};
use lab::error::{Error, Result};
use model::plan::{JobPlan, PathTxQueue, TxTaskCpus};
use nbd::client::shared_client::{Queueing, SharedClient, SharedOptions, Submitter};
use nbd::client::{Accounting, Ask, Connection, Done, Options, Wire};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use sys::byte_store::ByteStore;

/// A connection whose slots form groups, one for each I/O.
pub(super) struct Split<C> {
    inner: C,
    /// Slots of a group.
    parts: u32,
    /// Bytes of a slot.
    part_bytes: u32,
    groups: Vec<Group>,
}

/// One I/O.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Requests without a reply yet.
    rest: u32,
    /// The result to report after the last one.
    done: Done,
}

impl<C: Connection> Split<C> {
    /// `inner` has `parts` slots of `part_bytes` for each of `slots` I/Os.
    pub(super) fn new(inner: C, slots: u32, parts: u32, part_bytes: u32) -> Self {
        let nothing = Done { slot: 0, length: 0, error: None, handed_over: 0, answered: 0 };
        Self { inner, parts, part_bytes, groups: vec![Group { rest: 0, done: nothing }; slots as usize] }
    }
}

/// Counts a finished request of a group; returns the result of the I/O after the last one.
fn note(groups: &mut [Group], parts: u32, part: Done) -> Option<Done> {
    let group = groups.get_mut((part.slot / parts) as usize)?;
    group.rest = group.rest.saturating_sub(1);
    let whole = &mut group.done;
    whole.error = whole.error.or(part.error);
    whole.handed_over = whole.handed_over.min(part.handed_over);
    whole.answered = whole.answered.max(part.answered);
    (group.rest == 0).then_some(group.done)
}

impl<C: Connection> Connection for Split<C> {
    fn arena(&self) -> &ByteStore {
        self.inner.arena()
    }

    fn begin(&self, slot: u32) -> usize {
        self.inner.begin(slot * self.parts)
    }

    fn takes(&self, ask: Ask) -> bool {
        self.inner.takes(ask)
    }

    fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> nbd::Result<()> {
        let part = match ask {
            Ask::Read | Ask::Write => self.part_bytes,
            // These have no payload.
            Ask::Trim | Ask::Flush => u32::MAX,
        };
        let count = length.div_ceil(part).max(1);
        if let Some(group) = self.groups.get_mut(slot as usize) {
            *group =
                Group { rest: count, done: Done { slot, length, error: None, handed_over: u64::MAX, answered: 0 } };
        }
        for number in 0..count {
            let before = number * part;
            self.inner.stage(slot * self.parts + number, ask, offset + u64::from(before), part.min(length - before))?;
        }
        Ok(())
    }

    fn staged_bytes(&self) -> usize {
        self.inner.staged_bytes()
    }

    fn submit(&mut self, mut each: impl FnMut(Done)) -> nbd::Result<bool> {
        let Self { inner, groups, parts, .. } = self;
        inner.submit(|part| note(groups, *parts, part).into_iter().for_each(&mut each))
    }

    fn exchange(&mut self, mut each: impl FnMut(Done)) -> nbd::Result<bool> {
        let Self { inner, groups, parts, .. } = self;
        inner.exchange(|part| note(groups, *parts, part).into_iter().for_each(&mut each))
    }

    fn in_flight(&self) -> u32 {
        self.inner.in_flight()
    }

    fn calls(&self) -> u64 {
        self.inner.calls()
    }
}

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
    let refused = |why: &str| Err(Error::refused(plan, why));
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
        Error::refused(plan, why)
    };
    let own = &plan.thread.cpus_allowed;
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

#[cfg(test)]
mod tests {
    use super::*;
    use nbd::wire::WireError;

    /// Replies only when told to, and in reverse order.
    struct Late {
        arena: ByteStore,
        staged: Vec<(u32, Ask, u64, u32)>,
    }

    impl Connection for Late {
        fn arena(&self) -> &ByteStore {
            &self.arena
        }

        fn begin(&self, slot: u32) -> usize {
            slot as usize * 1000
        }

        fn takes(&self, _: Ask) -> bool {
            true
        }

        fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> nbd::Result<()> {
            self.staged.push((slot, ask, offset, length));
            Ok(())
        }

        fn staged_bytes(&self) -> usize {
            0
        }

        fn submit(&mut self, _: impl FnMut(Done)) -> nbd::Result<bool> {
            Ok(true)
        }

        fn exchange(&mut self, mut each: impl FnMut(Done)) -> nbd::Result<bool> {
            let Some((slot, _, offset, length)) = self.staged.pop() else { return Ok(false) };
            let error = (offset == 2000).then_some(WireError::EIO);
            each(Done { slot, length, error, handed_over: 10 + u64::from(slot), answered: 100 - u64::from(slot) });
            Ok(true)
        }

        fn in_flight(&self) -> u32 {
            self.staged.len() as u32
        }

        fn calls(&self) -> u64 {
            0
        }
    }

    #[test]
    fn an_io_is_done_when_all_of_its_requests_are_and_fails_if_one_does() {
        let late = Late { arena: ByteStore::zeroed(1).unwrap(), staged: Vec::new() };
        let mut split = Split::new(late, 2, 3, 1000);
        split.stage(0, Ask::Read, 0, 2500).unwrap();
        split.stage(1, Ask::Write, 1000, 2000).unwrap();
        let parts = [(0, 0, 1000), (1, 1000, 1000), (2, 2000, 500), (3, 1000, 1000), (4, 2000, 1000)];
        let staged: Vec<_> =
            split.inner.staged.iter().map(|(slot, _, offset, length)| (*slot, *offset, *length)).collect();
        assert_eq!(staged, parts);
        assert_eq!(split.begin(1), 3000);
        let mut done = Vec::new();
        while split.exchange(|whole| done.push(whole)).unwrap() {}
        let failed = Some(WireError::EIO);
        let [second, first] = done[..] else { panic!("{done:?}") };
        assert_eq!(second, Done { slot: 1, length: 2000, error: failed, handed_over: 13, answered: 97 });
        assert_eq!(first, Done { slot: 0, length: 2500, error: failed, handed_over: 10, answered: 100 });
        split.stage(0, Ask::Trim, 0, 5000).unwrap();
        assert_eq!(split.inner.staged, [(0, Ask::Trim, 0, 5000)]);
        split.exchange(|whole| assert_eq!((whole.length, whole.error), (5000, None))).unwrap();
        split.stage(0, Ask::Flush, 0, 0).unwrap();
        assert_eq!(split.inner.staged, [(0, Ask::Flush, 0, 0)]);
    }
}
