//! A connection whose bytes a ring moves: batches and memory go to the ring, and come back with what was done.

use super::{Connection, Going, Phase, Then};
use crate::server::export::Exports;
use crate::switches::Switches;
use rustix::event::PollFlags;
use std::io;
use sys::send_batch::SendBatch;
use sys::stream_ring::{Receiving, StreamRing};

/// Received at one go. It is touched as far as something came.
const MEMORY_BYTES: usize = 256 << 10;

/// What a ring has of a connection, and what it brought too early.
#[derive(Debug, Default)]
pub(super) struct Ringed {
    /// Received to, while the ring does not have it.
    memory: Vec<u8>,
    /// Whether the ring has the batch.
    sending: bool,
    /// Bytes of it that are to be sent.
    unsent: usize,
    /// Whether there is something of a mapped file in it.
    mapped: bool,
    /// Whether the socket takes nothing now.
    blocked: bool,
    /// Whether a receive is in flight.
    receiving: bool,
    /// What came while replies were on the way.
    early: Option<(Receiving, io::Result<usize>)>,
}

impl Ringed {
    /// Bytes that have come and were not used yet.
    pub(super) fn early(&self) -> u64 {
        let count = self.early.as_ref().and_then(|(_, count)| count.as_ref().ok());
        count.map_or(0, |count| *count as u64)
    }
}

/// Whether a ring may wait once it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staged {
    /// Something has to come first.
    AndThatIsAll,
    /// There is more to do as soon as that was handed over.
    AndMoreFollows,
}

impl Connection {
    /// A batch has come back.
    pub fn sent(&mut self, batch: SendBatch, taken: io::Result<bool>, exports: &Exports, switches: Switches) -> Going {
        let pages = batch.sends_pages();
        self.batch = batch;
        let left = self.batch.unsent();
        if let (Phase::Serving(session), Some(ringed)) = (&mut self.phase, &self.ringed) {
            session.counters.sent_bytes += ringed.unsent.saturating_sub(left) as u64;
            if ringed.mapped {
                session.sent_mapped();
            }
        }
        if let Some(ringed) = &mut self.ringed {
            (ringed.sending, ringed.blocked) = (false, matches!(taken, Ok(false)));
        }
        if let Err(error) = taken
            && let Some(going) = self.not_sent(&error, pages)
        {
            return going;
        }
        self.go_on(exports, switches)
    }

    /// The socket may take more.
    pub fn unblock(&mut self) {
        if let Some(ringed) = &mut self.ringed {
            ringed.blocked = false;
        }
    }

    /// Something has come.
    pub fn received(
        &mut self,
        lent: Receiving,
        count: io::Result<usize>,
        exports: &Exports,
        switches: Switches,
    ) -> Going {
        if let Some(ringed) = &mut self.ringed {
            ringed.receiving = false;
            ringed.early = Some((lent, count));
        }
        self.go_on(exports, switches)
    }

    /// Does what waits, as far as the client takes the replies.
    pub fn go_on(&mut self, exports: &Exports, switches: Switches) -> Going {
        if self.ringed.as_ref().is_some_and(|ringed| ringed.sending) {
            return Going::Sending;
        }
        if let Some(going) = self.use_what_waits(exports, switches) {
            return going;
        }
        let early = self.ringed.as_mut().and_then(|ringed| ringed.early.take());
        match early {
            None => Going::Receiving,
            Some((Receiving::Bytes { memory, .. }, count)) => {
                let going = self.received_behind_carry(count, &memory, exports, switches);
                if let Some(ringed) = &mut self.ringed {
                    ringed.memory = memory;
                }
                going
            }
            Some((Receiving::Places(places), count)) => {
                self.places = Some(places);
                // Nothing was done since they were laid out.
                let length = self.session().and_then(|session| session.in_place()).map_or(0, |(_, _, length)| length);
                self.placed(count, length.min(switches.framing.most_received().unwrap_or(length)), exports, switches)
            }
        }
    }

    /// Tells the ring what is to be sent, and, if more can be used, where it is received to.
    ///
    /// # Errors
    /// In words, when it cannot go on.
    pub fn stage(&mut self, ring: &mut StreamRing, stream: u32, switches: Switches) -> Result<Staged, &'static str> {
        const FAILED: &str = "io_uring takes no more";
        let (unsent, takes_more) = (self.batch.unsent() > 0, self.takes_more());
        let Some(ringed) = &mut self.ringed else { return Ok(Staged::AndThatIsAll) };
        let receive = takes_more && !ringed.receiving;
        ringed.receiving |= receive;
        let mut all = true;
        if ringed.blocked {
            ring.look(stream, PollFlags::OUT).map_err(|_| FAILED)?;
        } else if unsent && !ringed.sending {
            (ringed.sending, ringed.unsent, ringed.mapped) = (true, self.batch.unsent(), self.batch.has_mapped());
            let batch = std::mem::replace(&mut self.batch, SendBatch::new(None));
            all = ring.send(stream, &self.socket, batch).map_err(|_| FAILED)?;
        }
        // A batch that is wholly taken wakes nobody, whenever it was staged.
        let more_follows = !all || (ringed.sending && !(takes_more && ringed.receiving));
        if receive {
            ring.receive(stream, self.lend(switches)?).map_err(|_| FAILED)?;
        }
        Ok(if more_follows { Staged::AndMoreFollows } else { Staged::AndThatIsAll })
    }

    /// Whether it uses what comes next as soon as that is there, if the socket takes all replies.
    pub fn takes_more(&self) -> bool {
        let free = |ringed: &Ringed| !ringed.blocked && ringed.early.is_none();
        !self.messages_wait && self.then == Then::GoOn && self.ringed.as_ref().is_none_or(free)
    }

    /// Whether a ring receives for it.
    pub fn is_receiving(&self) -> bool {
        self.ringed.as_ref().is_some_and(|ringed| ringed.receiving)
    }

    /// Whether replies are on the way.
    pub fn is_sending(&self) -> bool {
        self.batch.unsent() > 0 || self.ringed.as_ref().is_some_and(|ringed| ringed.sending)
    }

    /// Where the next bytes are received to.
    fn lend(&mut self, switches: Switches) -> Result<Receiving, &'static str> {
        if self.lay_out_places(switches).is_some()
            && let Some(places) = self.places.take()
        {
            return Ok(Receiving::Places(places));
        }
        let mut memory = self.ringed.as_mut().map(|ringed| std::mem::take(&mut ringed.memory)).unwrap_or_default();
        if memory.is_empty() {
            // Not resized, which would touch all of it.
            memory = vec![0; MEMORY_BYTES];
        }
        let (from, most) = self.place_behind_carry(&mut memory)?;
        Ok(Receiving::Bytes { memory, from, most })
    }
}
