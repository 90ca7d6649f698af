//! Two threads that do for all event loops what takes a file any time and cannot be cut into pieces: one flushes, the
//! other searches for holes, because a search must not wait for a device. In: orders of event loops; out: results in
//! their inboxes. A connection has at most one order, so a queue is never longer than the list of clients.

use super::inbox::Inbox;
use super::requests::{Done, Work};
use crate::backends::Backend;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// Work for one connection of an event loop.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) work: Work,
    /// The inbox of the event loop.
    pub(super) inbox: Arc<Inbox>,
    /// The connection's place in the loop.
    pub(super) place: usize,
    /// Distinguishes the orders of a loop.
    pub(super) number: u64,
}

/// The queues of the two threads.
#[derive(Debug, Default)]
pub(super) struct Workers {
    flushes: Queue,
    searches: Queue,
}

/// Ends the threads when it is dropped, once they have finished what they are doing.
pub(super) struct Running<'a>(&'a Workers);

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    orders: VecDeque<Order>,
    closed: bool,
}

impl Workers {
    /// Starts the threads, if the storage may take any time.
    ///
    /// # Errors
    /// When no thread is available.
    pub(super) fn start<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        backend: &'env Backend,
    ) -> Result<Running<'env>> {
        let running = Running(self);
        if backend.may_wait() {
            let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
            let failed = |error| Error::system("starting a thread", error);
            thread("iotoll-flush").spawn_scoped(scope, || flush_for_all(&self.flushes, backend)).map_err(failed)?;
            thread("iotoll-search").spawn_scoped(scope, || search(&self.searches, backend)).map_err(failed)?;
        }
        Ok(running)
    }

    pub(super) fn put(&self, order: Order) {
        match order.work {
            Work::Flush => self.flushes.put(order),
            Work::FindExtents { .. } => self.searches.put(order),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.flushes.close();
        self.0.searches.close();
    }
}

/// One flush serves all orders that came before it, so a client waits for two flushes at most, however many clients there
/// are.
fn flush_for_all(queue: &Queue, backend: &Backend) {
    while let Some(orders) = queue.take(usize::MAX) {
        let outcome = backend.flush();
        for order in orders {
            order.inbox.finish(order.place, order.number, Done::Flushed(outcome));
        }
    }
}

fn search(queue: &Queue, backend: &Backend) {
    while let Some(orders) = queue.take(1) {
        for order in orders {
            if let Work::FindExtents { offset, length, most } = order.work {
                order.inbox.finish(order.place, order.number, Done::Found(backend.extents(offset, length, most)));
            }
        }
    }
}

impl Queue {
    fn put(&self, order: Order) {
        self.lock().orders.push_back(order);
        self.changed.notify_one();
    }

    /// Waits for orders and takes the first `most`. `None` once the queue is closed: nobody waits for what is left.
    fn take(&self, most: usize) -> Option<VecDeque<Order>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if !state.orders.is_empty() {
                let most = most.min(state.orders.len());
                return Some(state.orders.drain(..most).collect());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// No code panics while it changes the queue, so a poisoned lock still protects a valid one.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
