//! A client that belongs to one thread.

mod in_place;
mod receive_coalescing;
mod replies;

use super::accounting::Account;
use super::connect::{is_nothing, negotiate, reach};
use super::{Ask, Done, GLANCE, MEMORY_BYTES, Options, Syscalls, Uri, Wire, apart, lost, simple_header, together};
use crate::error::{Error, Result};
use crate::filters::crc::{CHECKSUM_BYTES, Checksum};
use crate::handshake::client::Export;
use crate::socket::Socket;
use crate::tuning::{Sending, Tuning};
use crate::wire::{Command, REQUEST_BYTES, Request, SIMPLE_REPLY_BYTES};
use in_place::InPlace;
use receive_coalescing::{Coalescing, Outcome};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Instant;
use sys::byte_store::{ByteStore, Waiting};
use sys::clock::ticks;
use sys::send_batch::SendBatch;

/// With fewer in flight receive coalescing cost more than it saved: both were equal at 3.4 [2.8, 4.0] (RESULTS.md).
const MIN_IN_FLIGHT: u32 = 4;
/// More than so many bytes are not waited for: a wake-up for each costs little then, and they still lie in the cache.
const MAX_COALESCED: usize = 256 << 10;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// What the request is; `None` while there is none.
    ask: Option<Ask>,
    length: u32,
    /// Counts requests of this slot.
    generation: u32,
    /// When its first byte was handed over, in ticks.
    handed_over: u64,
}

/// A connection to one export.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    /// Whether pages of the arena can be sent, and the socket never waits.
    zero_copy: bool,
    export: Export,
    arena: Arc<ByteStore>,
    slot_bytes: usize,
    slots: Vec<Slot>,
    in_flight: u32,
    tuning: Tuning,
    batch: SendBatch,
    /// What is in the batch and was not handed over: slot, and how many bytes of the batch are before it.
    staged: VecDeque<(u32, usize)>,
    /// Bytes of the replies to all that is in flight, of which some may have arrived.
    expected: usize,
    coalescing: Coalescing,
    /// Received to.
    memory: Vec<u8>,
    /// The part of `memory` that was received and not used yet.
    begin: usize,
    end: usize,
    /// A read whose data are arriving, or their checksum: slot, bytes that are there.
    arriving: Option<(u32, usize)>,
    /// Of what has arrived of it.
    sum: Checksum,
    /// Where payloads are not copied out of `memory`.
    in_place: Option<InPlace>,
    account: Account,
    wire: Wire,
    syscalls: Syscalls,
}

impl Client {
    /// Connects, agrees, and provides `slots` slots of `slot_bytes` each.
    ///
    /// # Errors
    /// When there is no server, or it does not agree, or there is no memory.
    pub fn connect(uri: &Uri, slots: u32, slot_bytes: usize, options: Options) -> Result<Self> {
        let socket = reach(uri, options.handshake_timeout)?;
        let mut memory = vec![0; MEMORY_BYTES];
        let (export, begin, end) = {
            let checksums = options.tuning.checksums;
            negotiate(&socket, &uri.export, checksums, options.handshake_timeout, &mut memory)?
        };
        let length = slot_bytes.saturating_mul(slots as usize);
        let zero_copy = slot_bytes > options.tuning.zero_copy as usize;
        let arena = if zero_copy { ByteStore::in_file(length) } else { ByteStore::zeroed(length) };
        let arena = arena.map_err(|error| Error::system("memory for payloads", error))?;
        let arena = arena.copied(options.tuning.copying);
        if zero_copy {
            // Where pages are sent nothing else keeps a call from waiting.
            socket.never_wait().map_err(|error| Error::system("setting up", error))?;
        }
        let (arena, slots) = (Arc::new(arena), vec![Slot::default(); slots as usize]);
        let framing = options.tuning.framing;
        let batch = SendBatch::new(Some(arena.clone())).with_pages_of(arena.file().cloned());
        let batch = batch.in_pieces_of(options.tuning.most_sent()).in_segments_of(options.tuning.segment as usize);
        let copied = options.tuning.copy_out as usize;
        // What is summed is copied: the sum and the copy take it from the cache then.
        let guesses = slot_bytes > copied
            && framing.most_received().is_none()
            && !options.tuning.checksums
            && options.wire == Wire::Real;
        let in_place = guesses.then(|| InPlace::new(arena.clone(), slots.len(), copied));
        Ok(Self {
            socket,
            zero_copy,
            export,
            arena,
            slot_bytes,
            slots,
            in_flight: 0,
            tuning: options.tuning,
            batch,
            staged: VecDeque::new(),
            expected: 0,
            coalescing: Coalescing::new(options.tuning.coalesce, options.tuning.busy_poll),
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

    /// What the server said of the export.
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// Whether the server takes what this asks for.
    pub fn takes(&self, ask: Ask) -> bool {
        self.export.takes(ask)
    }

    /// The memory of all slots; slot `n` begins at `n` times the bytes of a slot. What lies in the slot of a read that is in
    /// flight or has failed may be another's bytes.
    pub fn arena(&self) -> &ByteStore {
        &self.arena
    }

    /// Bytes of requests that were staged and not handed over.
    pub fn staged_bytes(&self) -> usize {
        self.batch.unsent()
    }

    /// Requests that were staged and not replied to.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Requests that were staged and not replied to, of all that count with it ([`Options::in_flight`]).
    pub fn counted_in_flight(&self) -> Option<u64> {
        self.account.in_flight()
    }

    /// System calls so far.
    pub fn syscalls(&self) -> Syscalls {
        self.syscalls
    }

    /// Adds a request to those that the next [`submit`](Self::submit) hands over.
    ///
    /// # Errors
    /// When the slot has a request already, does not exist, or is too small.
    #[inline]
    pub fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
        let (index, slot_bytes) = (slot as usize, self.slot_bytes);
        let state = self.slots.get_mut(index).filter(|state| state.ask.is_none());
        let fits = length as usize <= slot_bytes || matches!(ask, Ask::Trim | Ask::Flush);
        let (Some(state), true) = (state, fits) else {
            return Err(Error::Server(format!("slot {slot} is in use, or is smaller than {length} bytes")));
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
                // Nobody changes a slot before its request is replied to.
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

    /// Hands over what was staged. Waits while the server takes nothing, and receives meanwhile what it sends. Whether all
    /// went: if not, nothing has moved for [`GLANCE`].
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn submit(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        if self.wire == Wire::Null {
            self.claim(&mut each);
        }
        let corked = self.batch.has_pages() && self.socket.cork(true).is_ok();
        let all = self.send(&mut each);
        if corked {
            // It can only fail on a socket that has gone.
            let _ = self.socket.cork(false);
        }
        all
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

    /// What was staged is done, by claim.
    fn claim(&mut self, each: &mut impl FnMut(Done)) {
        self.batch.clear();
        let now = ticks();
        while let Some((slot, _)) = self.staged.pop_front() {
            if let Some(state) = self.slots.get_mut(slot as usize) {
                state.handed_over = now;
            }
            self.finish(slot, None, each);
        }
    }

    /// What there is of these within a [`GLANCE`]; after a signal, whatever may be.
    fn glance(&self, wanted: PollFlags) -> PollFlags {
        let mut fds = [PollFd::new(&self.socket, wanted)];
        let limit = Timespec { tv_sec: 0, tv_nsec: GLANCE.subsec_nanos().into() };
        if poll(&mut fds, Some(&limit)).is_err() {
            return wanted;
        }
        let [socket] = fds;
        socket.revents()
    }

    /// What was sent until now and was not before went at this time.
    fn note_handed_over(&mut self, now: u64) {
        // A batch that is all sent begins anew.
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

    /// Hands over what was staged and waits until at least one more reply has come, unless nothing is in flight; gives all that have.
    /// Whether anything came: if not, nothing has moved for [`GLANCE`].
    ///
    /// # Errors
    /// When the connection is lost, or the server says what it must not.
    pub fn exchange(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        let before = self.in_flight;
        if !self.submit(&mut each)? {
            return Ok(false);
        }
        if self.in_flight < before {
            return Ok(true);
        }
        self.wait(each)
    }

    /// Waits until at least one more reply has come, unless nothing is in flight, and gives all that have. Whether anything
    /// came: if not, the server has been silent for [`GLANCE`].
    ///
    /// # Errors
    /// When the connection is lost, or the server says what it must not.
    pub fn wait(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        let (before, mut came) = (self.in_flight, false);
        // What was received already, when a wait ended in the middle of it.
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

    /// Looks for something as long as it is wanted. Whether there was something.
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

    /// Waits for half of what is in flight if that is worth it. How to receive then.
    fn coalesce(&mut self) -> Result<Waiting> {
        let worth = self.worth_waiting_for();
        let outcome = self.coalescing.wait(&self.socket, worth, &mut self.syscalls.receives);
        outcome.map(Outcome::receiving).map_err(|error| Error::system("waiting for replies", error))
    }

    /// How many more bytes are worth waiting for.
    fn worth_waiting_for(&self) -> Option<usize> {
        let there = self.end - self.begin + self.arriving.map_or(0, |(_, there)| there);
        let half = (self.expected / 2).min(MAX_COALESCED).saturating_sub(there);
        let framed = self.tuning.framing.most_received().is_some();
        (self.in_flight >= MIN_IN_FLIGHT && half > 1 && !framed).then_some(half)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        (0..self.in_flight).for_each(|_| self.account.end());
        // A disconnect is a courtesy: a server that does not hear it sees the connection end.
        if self.batch.sent() > 0 {
            // A part of a request has gone: whatever follows would be taken for the rest of it.
            return;
        }
        let bye = Request { flags: 0, command: Command::Disconnect, cookie: 0, offset: 0, length: 0 }.encode();
        debug_assert_eq!(bye.len(), REQUEST_BYTES);
        self.batch.clear();
        self.batch.put(&bye);
        let _ = self.batch.send(&self.socket);
    }
}
