//! Sends the requests that a shared connection's queue passes. It receives nothing.

use super::Inner;
use super::table::Table;
use crate::client::Ask;
use crate::tuning::{Sending, Tuning};
use crate::wire::{Command, Request};
use rustix::event::PollFlags;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Instant;
use sys::clock::ticks;
use sys::send_batch::SendBatch;

/// The sending state, used by the thread that drains the queue.
#[derive(Debug)]
pub(super) struct Sender {
    batch: SendBatch,
    tuning: Tuning,
    /// Reused memory for the drained slots.
    pub(super) scratch: Vec<u32>,
}

impl Sender {
    pub(super) fn new(table: &Table, tuning: Tuning) -> Self {
        Self { batch: SendBatch::new(Some(table.arena().clone())), tuning, scratch: Vec::new() }
    }

    /// Sends the requests of these slots with as few system calls as the socket buffer allows. Waits while the server
    /// accepts no data; another thread receives replies meanwhile.
    pub(super) fn send(&mut self, slots: &[u32], inner: &Inner) {
        let now = ticks();
        for slot in slots {
            let Some((request, ask)) = inner.table.request(*slot) else { continue };
            self.batch.put(&request.encode());
            if ask == Ask::Write {
                let (begin, length) = (inner.table.begin(*slot), request.length as usize);
                match self.tuning.sending(request.length) {
                    Sending::PullUp => self.batch.pull_up(begin, length),
                    Sending::Gather | Sending::ZeroCopy => self.batch.gather(begin, length),
                }
            }
            inner.table.hand_over(*slot, now);
        }
        self.flush(inner);
    }

    fn flush(&mut self, inner: &Inner) {
        let mut taken = Instant::now();
        while self.batch.unsent() > 0 {
            match self.batch.send(&inner.socket) {
                Ok(_) => {
                    inner.sends.fetch_add(1, Ordering::Relaxed);
                    taken = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if inner.ended.load(Ordering::Acquire) {
                        return;
                    }
                    if taken.elapsed() >= inner.silence {
                        self.batch.clear();
                        let seconds = inner.silence.as_secs_f64();
                        return inner.lose(format!("the server has accepted no data for {seconds:.1} s"));
                    }
                    let _ = inner.socket.wait_for(PollFlags::OUT, super::POLL_INTERVAL);
                }
                Err(error) => {
                    self.batch.clear();
                    return inner.lose(error.to_string());
                }
            }
        }
    }

    /// Sends a disconnect request as a courtesy; without it, the server sees the connection close.
    pub(super) fn disconnect(&mut self, inner: &Inner) {
        if self.batch.unsent() == 0 {
            let bye = Request { flags: 0, command: Command::Disconnect, cookie: 0, offset: 0, length: 0 };
            self.batch.put(&bye.encode());
            let _ = self.batch.send(&inner.socket);
        }
    }
}
