//! What the thread that accepts hands to the thread of an event loop: new clients, questions, and the end.

use super::counters::Counters;
use super::waker::Waker;
use crate::socket::{Peer, Socket};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of one event loop.
#[derive(Debug)]
pub(super) struct Inbox {
    clients: Mutex<Vec<(Socket, Peer)>>,
    /// Whom to tell what the event loop did so far.
    asked: Mutex<Option<Sender<Counters>>>,
    closed: AtomicBool,
    /// Wakes the event loop.
    pub(super) waker: Waker,
}

/// A thread that panicked with the lock left whole what it protects.
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

    /// Clients that have come.
    pub(super) fn take(&self) -> Vec<(Socket, Peer)> {
        self.waker.clear();
        std::mem::take(&mut *lock(&self.clients))
    }

    /// The event loop is to finish what has arrived, and to end.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Asks the event loop what it did; it answers when it is done with what it is at.
    pub(super) fn ask(&self) -> Receiver<Counters> {
        let (asked, answer) = channel();
        *lock(&self.asked) = Some(asked);
        self.waker.wake();
        answer
    }

    /// Whom to answer, if somebody has asked.
    pub(super) fn asked(&self) -> Option<Sender<Counters>> {
        lock(&self.asked).take()
    }
}
