//! The threads that do what would occupy an event loop, and the inbox by which they and others reach it.

use super::Counters;
use super::requests::{Done, Work};
use crate::backends::Backend;
use crate::socket::{Peer, Socket};
use crate::{Error, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// Wakes a thread that waits in poll or epoll (an eventfd): readable after [`wake`](Self::wake).
#[derive(Debug)]
pub(super) struct Waker(OwnedFd);

impl Waker {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(super) fn wake(&self) {
        // Fails only if the eventfd is readable already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Resets it. The caller checks afterwards for the work that was announced by [`wake`](Self::wake).
    pub(super) fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(super) enum Message {
    /// A new client.
    Client(Socket, Peer),
    /// A worker has finished the order with this number of the connection at this place.
    Finished { place: usize, number: u64, done: Done },
    /// Where to send the counters, once the loop has finished its current work.
    Asked(Sender<Counters>),
    /// Finish what has arrived and shut down.
    Close,
}

/// The inbox of one event loop.
pub(super) struct Inbox {
    pub(super) messages: Sender<Message>,
    /// Wakes the event loop.
    pub(super) waker: Waker,
}

impl Inbox {
    pub(super) fn put(&self, message: Message) {
        // Fails only if the loop has ended.
        let _ = self.messages.send(message);
        self.waker.wake();
    }
}
