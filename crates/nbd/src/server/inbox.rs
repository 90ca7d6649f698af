//! What the accepting thread passes to an event loop: new clients, requests for counters, and the request to shut down;
//! and what the workers have finished for its connections.

use super::counters::Counters;
use super::requests::Done;
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
    /// Results of workers.
    finished: Mutex<Vec<Finished>>,
    /// Where to send the counters, if they were requested.
    asked: Mutex<Option<Sender<Counters>>>,
    closed: AtomicBool,
    /// Wakes the event loop.
    pub(super) waker: Waker,
}

/// A result of a worker.
#[derive(Debug)]
pub(super) struct Finished {
    /// The connection's place in the loop.
    pub(super) place: usize,
    /// The number of the order.
    pub(super) number: u64,
    pub(super) done: Done,
}

/// No code panics while it changes the data under the lock, so a poisoned lock still protects valid data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let closed = AtomicBool::new(false);
        let waker = Waker::new()?;
        Ok(Self { clients: Mutex::default(), finished: Mutex::default(), asked: Mutex::default(), closed, waker })
    }

    pub(super) fn put(&self, socket: Socket, peer: Peer) {
        lock(&self.clients).push((socket, peer));
        self.waker.wake();
    }

    /// Resets the waker, before everything else is taken: what comes later wakes the loop again.
    pub(super) fn open(&self) {
        self.waker.clear();
    }

    /// Takes the new clients.
    pub(super) fn take(&self) -> Vec<(Socket, Peer)> {
        std::mem::take(&mut *lock(&self.clients))
    }

    /// A worker has finished an order.
    pub(super) fn finish(&self, place: usize, number: u64, done: Done) {
        lock(&self.finished).push(Finished { place, number, done });
        self.waker.wake();
    }

    /// Takes the results of workers.
    pub(super) fn finished(&self) -> Vec<Finished> {
        std::mem::take(&mut *lock(&self.finished))
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
