//! Two threads that do for all event loops what takes a file any time and cannot be cut into pieces: one flushes, the
//! other searches for holes, because a search must not wait for a device. In: orders of event loops; out: results in
//! their inboxes. A connection has at most one order, so a queue is never longer than the list of clients.

use super::inbox::{Inbox, Message};
use super::requests::{Done, Work};
use crate::backends::Backend;
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

/// Work for one connection of an event loop.
pub(super) struct Order {
    pub(super) work: Work,
    /// The inbox of the event loop.
    pub(super) inbox: Arc<Inbox>,
    /// The connection's place in the loop.
    pub(super) place: usize,
    /// Distinguishes the orders of a loop.
    pub(super) number: u64,
}

impl Order {
    fn finish(self, done: Done) {
        self.inbox.put(Message::Finished { place: self.place, number: self.number, done });
    }
}

/// The queues of the two threads, which end with the last copy, once they have finished what they are doing.
#[derive(Clone)]
pub(super) struct Workers {
    flushes: Sender<Order>,
    searches: Sender<Order>,
    ended: Arc<AtomicBool>,
}

impl Workers {
    /// Starts the threads, if the storage may take any time.
    ///
    /// # Errors
    /// When no thread is available.
    pub(super) fn start<'scope>(scope: &'scope Scope<'scope, '_>, backend: &'scope Backend) -> Result<Self> {
        let ((flushes, to_flush), (searches, to_search)) = (channel(), channel());
        let workers = Self { flushes, searches, ended: Arc::default() };
        if backend.may_wait() {
            let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
            let failed = |error| Error::system("starting a thread", error);
            let (ended, also_ended) = (workers.ended.clone(), workers.ended.clone());
            let flush = move || flush_for_all(&to_flush, backend, &ended);
            thread("iotoll-flush").spawn_scoped(scope, flush).map_err(failed)?;
            let search = move || search(&to_search, backend, &also_ended);
            thread("iotoll-search").spawn_scoped(scope, search).map_err(failed)?;
        }
        Ok(workers)
    }

    pub(super) fn put(&self, order: Order) {
        // Fails only if the thread has panicked.
        let _ = match order.work {
            Work::Flush => self.flushes.send(order),
            Work::FindExtents { .. } => self.searches.send(order),
        };
    }

    /// No event loop waits for what is left.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// One flush serves all orders that came before it, so a client waits for two flushes at most, however many clients there
/// are.
fn flush_for_all(orders: &Receiver<Order>, backend: &Backend, ended: &AtomicBool) {
    while let Ok(first) = orders.recv()
        && !ended.load(Ordering::Relaxed)
    {
        let all: Vec<Order> = std::iter::once(first).chain(orders.try_iter()).collect();
        let outcome = backend.flush();
        all.into_iter().for_each(|order| order.finish(Done::Flushed(outcome)));
    }
}

fn search(orders: &Receiver<Order>, backend: &Backend, ended: &AtomicBool) {
    while let Ok(order) = orders.recv()
        && !ended.load(Ordering::Relaxed)
    {
        let done = order.work.run(backend);
        order.finish(done);
    }
}
