//! A connection through io_uring: requests are handed over and replies received with the one system call that waits for them.

use super::{Client, Done, GLANCE, lost};
use crate::error::{Error, Result};
use crate::socket::Socket;
use rustix::event::PollFlags;
use std::io;
use std::time::{Duration, Instant};
use sys::clock::ticks;
use sys::send_batch::SendBatch;
use sys::stream_ring::{Event, StreamRing, Wait};

/// A connection's ring.
#[derive(Debug)]
pub(super) struct Ringed {
    ring: StreamRing,
    /// The connection's name there, once it is used.
    stream: Option<u32>,
    /// Whether a receive is in flight.
    receiving: bool,
    /// Whether the socket takes nothing now.
    blocked: bool,
    /// System calls that were counted.
    counted: u64,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// All that was staged is handed over.
    HandedOver,
    /// That, and one more request is replied to.
    Replied,
}

impl Ringed {
    pub(super) fn new() -> Result<Self> {
        let ring =
            StreamRing::new(1).map_err(|error| Error::system("making an io_uring (it takes Linux 6.1)", error))?;
        Ok(Self { ring, stream: None, receiving: false, blocked: false, counted: 0 })
    }

    fn stream(&mut self, socket: &Socket) -> io::Result<u32> {
        match self.stream {
            Some(stream) => Ok(stream),
            None => Ok(*self.stream.insert(self.ring.add(socket)?)),
        }
    }

    /// Hands over, and waits until something has come, but not longer than `limit`. The first `busy_poll` of it is not slept.
    fn enter(&mut self, limit: Option<Duration>, busy_poll: Duration) -> io::Result<()> {
        let Some(limit) = limit else { return self.ring.enter(Wait::Never) };
        if !busy_poll.is_zero() {
            let begun = Instant::now();
            while begun.elapsed() < busy_poll.min(limit) {
                self.ring.enter(Wait::Never)?;
                if self.ring.has_events() {
                    return Ok(());
                }
            }
        }
        self.ring.enter(Wait::For(limit.saturating_sub(busy_poll.min(limit))))
    }
}

impl Client {
    /// Does what is wanted. Whether it came to that: if not, nothing has moved for [`GLANCE`].
    pub(super) fn reach_by_ring(&mut self, goal: Goal, each: &mut impl FnMut(Done)) -> Result<bool> {
        let Some(mut ringed) = self.ringed.take() else { return Ok(true) };
        let reached = self.reach_by(&mut ringed, goal, each);
        // What was staged may be with the ring.
        self.broken |= reached.is_err();
        self.ringed = Some(ringed);
        reached
    }

    fn reach_by(&mut self, ringed: &mut Ringed, goal: Goal, each: &mut impl FnMut(Done)) -> Result<bool> {
        let failed = |error: io::Error| Error::system("io_uring", error);
        let (before, mut may_hold) = (self.in_flight, true);
        let stream = ringed.stream(&self.socket).map_err(failed)?;
        loop {
            let all_sent = self.batch.unsent() == 0;
            let replied = self.in_flight == 0 || self.in_flight < before;
            if all_sent && (replied || goal == Goal::HandedOver) {
                return Ok(true);
            }
            let now = ticks();
            let mut waits = goal == Goal::Replied || ringed.blocked;
            if ringed.blocked {
                ringed.ring.look(stream, PollFlags::OUT).map_err(failed)?;
            } else if !all_sent {
                let batch = std::mem::replace(&mut self.batch, SendBatch::new(None));
                // What is not staged yet is not waited with.
                waits &= ringed.ring.send(stream, &self.socket, batch).map_err(failed)?;
            }
            if waits && !ringed.receiving {
                ringed.ring.receive(stream, self.lend()).map_err(failed)?;
                ringed.receiving = true;
            }
            let held = waits && !ringed.blocked && self.begin_hold(may_hold)?;
            let limit = if held { self.switches.hold } else { GLANCE };
            ringed.enter(waits.then_some(limit), self.switches.busy_poll).map_err(failed)?;
            let crossings = ringed.ring.crossings();
            self.crossings.receives += crossings - std::mem::replace(&mut ringed.counted, crossings);
            let (mut came, mut moved) = (false, false);
            while let Some((_, event)) = ringed.ring.take_event() {
                moved = true;
                match event {
                    Event::Sent(batch, taken) => {
                        self.batch = batch;
                        ringed.blocked = !taken.map_err(|error| lost(&error))?;
                        self.note_handed_over(now);
                    }
                    Event::Received(lent, count) => {
                        ringed.receiving = false;
                        came |= self.take_back(lent, count, each)?;
                    }
                    Event::Ready => ringed.blocked = false,
                }
            }
            if held {
                self.holding.end(came);
                // What came too late counts whatever it is.
                may_hold = came;
            } else if waits && !moved {
                return Ok(false);
            }
        }
    }

    /// Whether several replies are waited for from now on.
    fn begin_hold(&mut self, may: bool) -> Result<bool> {
        // Poll of a Unix socket wakes at the first byte, whatever is asked for.
        let worth = if may && matches!(self.socket, Socket::Tcp(_)) { self.worth_holding() } else { None };
        let held = self.holding.begin(&self.socket, worth, &mut self.crossings.receives);
        Ok(held.map_err(|error| Error::system("waiting for replies", error))?.is_some())
    }
}
