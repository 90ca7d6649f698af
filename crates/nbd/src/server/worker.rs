//! The thread that flushes a file, which would occupy an event loop, and the inbox by which it and others reach the loop.

use crate::backends::{Backend, Outcome};
use crate::socket::{Peer, Socket};
use crate::{Error, Result};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

/// A flush for one connection of an event loop.
pub(super) struct Order {
    /// The inbox of the event loop.
    pub(super) inbox: Arc<Inbox>,
    /// The connection's place in the loop.
    pub(super) place: usize,
    /// Distinguishes the orders of a loop.
    pub(super) number: u64,
}

/// Starts the thread that flushes, if the storage may take any time. It ends with the last sender, or once `ended` says so, because no event
/// loop waits for what is left then.
///
/// # Errors
/// When no thread is available.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    backend: &'scope Backend,
    ended: &'scope AtomicBool,
) -> Result<Sender<Order>> {
    let (orders, to_flush) = channel();
    if backend.may_wait() {
        let thread = std::thread::Builder::new().name("iotoll-flush".to_owned());
        let thread = thread.spawn_scoped(scope, move || flush_for_all(&to_flush, backend, ended));
        thread.map_err(|error| Error::system("starting a thread", error))?;
    }
    Ok(orders)
}

/// One flush serves all orders that came before it, so a client waits for two flushes at most, however many clients there
/// are.
fn flush_for_all(orders: &Receiver<Order>, backend: &Backend, ended: &AtomicBool) {
    while let Ok(first) = orders.recv()
        && !ended.load(Ordering::Relaxed)
    {
        let all: Vec<Order> = std::iter::once(first).chain(orders.try_iter()).collect();
        let outcome = backend.flush();
        all.into_iter()
            .for_each(|Order { inbox, place, number }| inbox.put(Message::Flushed { place, number, outcome }));
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
    /// The order with this number of the connection at this place is done.
    Flushed { place: usize, number: u64, outcome: Outcome },
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
