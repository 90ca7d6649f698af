//! How other threads reach an event loop.

use crate::socket::Socket;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Sender;

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

/// The inbox of one event loop.
pub(super) struct Inbox {
    pub(super) clients: Sender<Option<(Socket, String)>>,
    /// Wakes the event loop.
    pub(super) waker: Waker,
}

impl Inbox {
    /// Hands over a new client, or asks to finish what has arrived and to shut down.
    pub(super) fn put(&self, client: Option<(Socket, String)>) {
        // Fails only if the loop has ended.
        let _ = self.clients.send(client);
        self.waker.wake();
    }
}
