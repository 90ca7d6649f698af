//! A client that belongs to one thread: stages requests, sends them, and waits for replies. It starts no thread.

mod in_place;
mod receive_coalescing;
mod replies;

use super::connect::{is_nothing, negotiate, reach};
use super::{
    Account, Ask, Connection, Done, MEMORY_BYTES, Options, POLL_INTERVAL, Syscalls, Uri, Wire, apart, lost,
    not_in_flight, simple_header, together,
};
use crate::filters::{CHECKSUM_BYTES, Checksum};
use crate::handshake::client::Export;
use crate::socket::Socket;
use crate::tuning::{Sending, Tuning};
use crate::wire::{Request, SIMPLE_REPLY_BYTES};
use crate::{Error, Result, payload_memory};
use in_place::InPlace;
use receive_coalescing::Coalescing;
use rustix::event::PollFlags;
use rustix::io::ioctl_fionbio;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Instant;
use sys::byte_store::{ByteStore, Waiting};
use sys::clock::ticks;
use sys::send_batch::SendBatch;

/// Fewest requests in flight for which receive coalescing pays: cost and savings were equal at 3.4 [2.8, 4.0]
/// (docs/validation/switches.md).
const MIN_IN_FLIGHT: u32 = 4;
/// Largest number of bytes to wait for: beyond this, a wake-up for each reply costs little in comparison, and the data
/// are still in the cache.
const MAX_COALESCED: usize = 256 << 10;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The operation of the slot's request; `None` if the slot is free.
    ask: Option<Ask>,
    length: u32,
    /// Counts the requests of this slot.
    generation: u32,
    /// When its first byte was handed to the kernel, in ticks.
    handed_over: u64,
}

/// A connection to one export.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    /// Whether pages of the arena can be sent; the socket is then nonblocking.
    zero_copy: bool,
    export: Export,
    arena: Arc<ByteStore>,
    slot_bytes: usize,
    slots: Vec<Slot>,
    in_flight: u32,
    tuning: Tuning,
    batch: SendBatch,
    /// Requests in the batch that have not been sent: slot, and the number of batch bytes before it.
    staged: VecDeque<(u32, usize)>,
    /// Bytes of the replies to all requests in flight, some of which may have arrived.
    expected: usize,
    coalescing: Coalescing,
    /// The receive buffer.
    memory: Vec<u8>,
    /// The part of `memory` that was received and not used yet.
    begin: usize,
    end: usize,
    /// A read whose payload or checksum is arriving: slot, and payload bytes that have arrived.
    arriving: Option<(u32, usize)>,
    /// Checksum of the payload that has arrived.
    sum: Checksum,
    /// In-place receiving; `None` if payloads are always copied out of `memory`.
    in_place: Option<InPlace>,
    account: Account,
    wire: Wire,
    syscalls: Syscalls,
}

impl Client {
    /// Connects, negotiates the export, and provides `slots` slots of `slot_bytes` each.
    ///
    /// # Errors
    /// When the server is unreachable or refuses, or when memory is not available.
    pub fn connect(uri: &Uri, slots: u32, slot_bytes: usize, options: Options) -> Result<Self> {
        let socket = reach(uri, options.handshake_timeout)?;
        let mut memory = vec![0; MEMORY_BYTES];
        let Options { tuning, handshake_timeout, .. } = options;
        let (export, begin, end) = negotiate(&socket, &uri.export, tuning.checksums, handshake_timeout, &mut memory)?;
        let length = slot_bytes.saturating_mul(slots as usize);
        let zero_copy = slot_bytes > tuning.zero_copy as usize;
        let arena = payload_memory(length, zero_copy, tuning.copying);
        let arena = arena.map_err(|error| Error::system("allocating memory for payloads", error))?;
        if zero_copy {
            // Sending pages has no per-call flag against blocking.
            ioctl_fionbio(&socket, true).map_err(|error| Error::system("setting up", error.into()))?;
        }
        let slots = vec![Slot::default(); slots as usize];
        let framing = tuning.framing;
        let batch = SendBatch::new(Some(arena.clone())).with_pages_of(arena.file().cloned());
        let batch = batch.in_pieces_of(tuning.most_sent()).in_segments_of(tuning.segment as usize);
        let copied = tuning.copy_out as usize;
        // A payload with a checksum is copied: the copy and the sum then share the cache.
        let guesses =
            slot_bytes > copied && framing.most_received().is_none() && !tuning.checksums && options.wire == Wire::Real;
        let in_place = guesses.then(|| InPlace::new(arena.clone(), slots.len(), copied));
        Ok(Self {
            socket,
            zero_copy,
            export,
            arena,
            slot_bytes,
            slots,
            in_flight: 0,
            tuning,
            batch,
            staged: VecDeque::new(),
            expected: 0,
            coalescing: Coalescing::new(tuning.coalesce, tuning.busy_poll),
            memory,
            begin,
            end,
            arriving: None,
            sum: Checksum::default(),
            in_place,
            account: Account::new(options.in_flight),
            wire: options.wire,
            syscalls: Syscalls::default(),
        })
    }

    /// The server's description of the export.
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// Requests staged and not completed, of all clients that use the same counter ([`Options::in_flight`]).
    #[cfg(test)]
    pub(crate) fn counted_in_flight(&self) -> Option<u64> {
        self.account.in_flight()
    }

    /// System calls so far.
    pub fn syscalls(&self) -> Syscalls {
        self.syscalls
    }

    fn send(&mut self, each: &mut impl FnMut(Done)) -> Result<bool> {
        while self.batch.unsent() > 0 {
            let now = ticks();
            match self.batch.send(&self.socket) {
                Ok(_) => {
                    self.syscalls.sends += 1;
                    self.note_handed_over(now);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let found = self.glance(PollFlags::IN | PollFlags::OUT);
                    if found.is_empty() {
                        return Ok(false);
                    }
                    if found.contains(PollFlags::IN) {
                        self.receive(each, Waiting::Never)?;
                    }
                }
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(true)
    }

    fn reply_bytes(&self, ask: Ask, length: usize) -> usize {
        let checksum = if self.tuning.checksums { CHECKSUM_BYTES } else { 0 };
        SIMPLE_REPLY_BYTES + if ask == Ask::Read { length + checksum } else { 0 }
    }

    /// Waits up to [`POLL_INTERVAL`] for these events and returns those that occurred; after a signal, all of them.
    fn glance(&self, wanted: PollFlags) -> PollFlags {
        self.socket.wait_for(wanted, POLL_INTERVAL).unwrap_or(wanted)
    }

    /// Records `now` as the send time of the requests sent since the last call.
    #[inline]
    fn note_handed_over(&mut self, now: u64) {
        // A batch that is completely sent starts over.
        let sent = if self.batch.unsent() == 0 { usize::MAX } else { self.batch.sent() };
        while let Some(&(slot, before)) = self.staged.front()
            && before < sent
        {
            self.staged.pop_front();
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                slot.handed_over = now;
            }
        }
    }

    /// Waits until at least one request is completed, unless none is in flight; passes all completed ones to `each`.
    /// Returns false if nothing was received for [`POLL_INTERVAL`].
    ///
    /// # Errors
    /// When the connection is lost or the server breaks the protocol.
    pub fn wait(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        let (before, mut came) = (self.in_flight, false);
        // Data that were already received when an earlier wait ended.
        self.parse(&mut each)?;
        while self.in_flight > 0 && self.in_flight == before {
            let waiting = self.coalesce()?;
            let received = match waiting {
                Waiting::UntilSome => self.look_for(&mut each)? || self.receive(&mut each, waiting)?,
                Waiting::Never => self.receive(&mut each, waiting)?,
            };
            came |= received;
            if !received && waiting == Waiting::UntilSome {
                return Ok(came);
            }
        }
        Ok(true)
    }

    /// Polls for data for the busy-poll time. Returns whether any were received.
    fn look_for(&mut self, each: &mut impl FnMut(Done)) -> Result<bool> {
        if self.tuning.busy_poll.is_zero() {
            return Ok(false);
        }
        let begun = Instant::now();
        while begun.elapsed() < self.tuning.busy_poll {
            if self.receive(each, Waiting::Never)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits for half of what is in flight if that pays. Returns how to receive afterwards.
    fn coalesce(&mut self) -> Result<Waiting> {
        let there = self.end - self.begin + self.arriving.map_or(0, |(_, there)| there);
        let half = (self.expected / 2).min(MAX_COALESCED).saturating_sub(there);
        let framed = self.tuning.framing.most_received().is_some();
        let worth = (self.in_flight >= MIN_IN_FLIGHT && half > 1 && !framed).then_some(half);
        let waited = self.coalescing.wait(&self.socket, worth, &mut self.syscalls.receives);
        let waited = waited.map_err(|error| Error::system("waiting for replies", error))?;
        // After a timeout there may be no data at all.
        Ok(if waited.is_some() { Waiting::Never } else { Waiting::UntilSome })
    }
}

impl Connection for Client {
    fn arena(&self) -> &ByteStore {
        &self.arena
    }

    fn begin(&self, slot: u32) -> usize {
        slot as usize * self.slot_bytes
    }

    fn takes(&self, ask: Ask) -> bool {
        self.export.takes(ask)
    }

    #[inline]
    fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
        let (index, slot_bytes) = (slot as usize, self.slot_bytes);
        let state = self.slots.get_mut(index).filter(|state| state.ask.is_none());
        let fits = length as usize <= slot_bytes || matches!(ask, Ask::Trim | Ask::Flush);
        let (Some(state), true) = (state, fits) else {
            return Err(Error::Server(format!("slot {slot} is in use or smaller than {length} bytes")));
        };
        state.generation = state.generation.wrapping_add(1);
        (state.ask, state.length) = (Some(ask), length);
        let cookie = together(slot, state.generation);
        let command = ask.command();
        let (offset, length) = if ask == Ask::Flush { (0, 0) } else { (offset, length) };
        self.staged.push_back((slot, self.batch.put_so_far()));
        if let Some(in_place) = &mut self.in_place {
            in_place.ask(slot, cookie);
        }
        self.batch.put(&Request { flags: 0, command, cookie, offset, length }.encode());
        if ask == Ask::Write {
            let (begin, bytes) = (index * slot_bytes, length as usize);
            match self.tuning.sending(length) {
                Sending::PullUp => {
                    self.batch.pull_up(begin, bytes);
                    self.syscalls.pulled_up_bytes += u64::from(length);
                }
                // Slots are not changed before their request is completed.
                Sending::ZeroCopy if self.zero_copy => self.batch.hand_over(begin, bytes),
                Sending::Gather | Sending::ZeroCopy => self.batch.gather(begin, bytes),
            }
            if self.tuning.checksums {
                self.batch.put(&Checksum::of(&self.arena, begin, bytes).bytes());
            }
        }
        self.in_flight += 1;
        self.account.begin();
        self.expected += self.reply_bytes(ask, length as usize);
        Ok(())
    }

    fn staged_bytes(&self) -> usize {
        self.batch.unsent()
    }

    fn submit(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        if self.wire == Wire::Null {
            // Claim that the staged requests are done.
            self.batch.clear();
            let now = ticks();
            while let Some((slot, _)) = self.staged.pop_front() {
                if let Some(state) = self.slots.get_mut(slot as usize) {
                    state.handed_over = now;
                }
                self.finish(slot, None, &mut each);
            }
        }
        let corked = self.batch.has_pages() && self.socket.cork(true).is_ok();
        let all = self.send(&mut each);
        if corked {
            // Fails only if the connection is closed.
            let _ = self.socket.cork(false);
        }
        all
    }

    fn exchange(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        let before = self.in_flight;
        if !self.submit(&mut each)? {
            return Ok(false);
        }
        if self.in_flight < before {
            return Ok(true);
        }
        self.wait(each)
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn calls(&self) -> u64 {
        self.syscalls.sends + self.syscalls.receives
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        (0..self.in_flight).for_each(|_| self.account.end());
        // A disconnect request is a courtesy: without it, the server sees the connection close.
        if self.batch.sent() > 0 {
            // A request is partly sent: the server would take whatever follows for the rest of it.
            return;
        }
        self.batch.clear();
        self.batch.put(&Request::DISCONNECT.encode());
        let _ = self.batch.send(&self.socket);
    }
}
