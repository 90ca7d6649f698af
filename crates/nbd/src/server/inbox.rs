//! What the accepting thread passes to an event loop: new clients, requests for counters, and the request to shut down.

use super::counters::Counters;
use super::waker::Waker;
use crate::socket::{Peer, Socket};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The inbox of one event loop.
#[derive(Debug)]
pub(super) struct Inbox {
    clients: Mutex<Vec<(Socket, Peer)>>,
    /// Where to send the counters, if they were requested.
    asked: Mutex<Option<Sender<Counters>>>,
    closed: AtomicBool,
    /// Wakes the event loop.
    pub(super) waker: Waker,
}

/// No code panics while it changes the data under the lock, so a poisoned lock still protects valid data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let closed = AtomicBool::new(false);
        Ok(Self { clients: Mutex::default(), asked: Mutex::default(), closed, waker: Waker::new()? })
    }

    pub(super) fn put(&self, socket: Socket, peer: Peer) {
        lock(&self.clients).push((socket, peer));
        self.waker.wake();
    }

    /// Takes the new clients.
    pub(super) fn take(&self) -> Vec<(Socket, Peer)> {
        self.waker.clear();
        std::mem::take(&mut *lock(&self.clients))
    }

    /// Asks the event loop to finish what has arrived and shut down.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Requests the counters; the event loop answers once it has finished its current work.
    pub(super) fn ask(&self) -> Receiver<Counters> {
        let (asked, answer) = channel();
        *lock(&self.asked) = Some(asked);
        self.waker.wake();
        answer
    }

    /// Where to send the counters, if they were requested.
    pub(super) fn asked(&self) -> Option<Sender<Counters>> {
        lock(&self.asked).take()
    }
}
