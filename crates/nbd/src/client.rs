//! An NBD client: requests are staged, handed over in batches, and their replies reaped.
//!
//! A connection belongs to one thread. Payloads lie in slots of one memory ([`ByteStore`]), as many as there may be requests in
//! flight: a request's slot is its name on the wire, with a count that tells a reply to it from one to the request before.

use crate::checksum::{CHECKSUM_BYTES, Checksum};
use crate::error::{Error, Result};
use crate::handshake::client::Export;
use crate::handshake::transmission_flag;
use crate::socket::Socket;
use crate::switches::{Sending, Switches, Transport};
use crate::wire::{Command, REQUEST_BYTES, Request, SIMPLE_REPLY_BYTES, WireError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::byte_store::{ByteStore, Waiting};
use sys::clock::ticks;
use sys::send_batch::SendBatch;

mod accounting;
mod connect;
mod hold;
mod in_place;
mod replies;
mod ringed;
pub mod shared_client;
mod uri;

use accounting::Account;
pub use accounting::Accounting;
use connect::{is_nothing, negotiate, reach};
use hold::Holding;
use in_place::InPlace;
use ringed::{Goal, Ringed};
pub use uri::{Address, BadUri, Uri};

/// Received at one go.
const MEMORY_BYTES: usize = 256 << 10;
/// With fewer in flight a hold cost more than it saved when they were held: both were equal at 3.4 [2.8, 4.0] (RESULTS.md).
const FEWEST_HELD: u32 = 4;
/// More than so many bytes are not waited for: a wake-up for each costs little then, and they still lie in the cache.
const MOST_HELD: usize = 256 << 10;
/// After this long without anything, a wait returns so that its caller can see to other things.
pub const GLANCE: Duration = Duration::from_millis(250);

/// How a client goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Of `hold`: half of what is in flight is waited for, and fewer than four in flight are never held.
    pub switches: Switches,
    /// Who counts what is in flight.
    pub in_flight: Accounting,
    /// Whether requests go out at all.
    pub wire: Wire,
    /// How long a server may take to agree, from the first byte to the last.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let (switches, patience) = (Switches::default(), Duration::from_secs(10));
        Self { switches, in_flight: Accounting::None, wire: Wire::Real, patience }
    }
}

/// What is between a client and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A socket.
    Real,
    /// Nothing: after the handshake requests are claimed to have been sent and replied to. It shows what a client costs by itself.
    Null,
}

/// A request that was replied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its slot.
    pub slot: u32,
    /// Bytes that it asked for.
    pub length: u32,
    /// What went wrong, if anything.
    pub error: Option<WireError>,
    /// When its first byte was handed over, in ticks (`sys::clock::ticks`).
    pub handed_over: u64,
    /// When its reply was there and understood, in ticks.
    pub answered: u64,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Into the slot.
    Read,
    /// From the slot.
    Write,
    /// Forget the range.
    Trim,
    /// Make everything durable; the range does not matter.
    Flush,
}

impl Ask {
    #[inline]
    fn command(self) -> Command {
        match self {
            Self::Read => Command::Read,
            Self::Write => Command::Write,
            Self::Trim => Command::Trim,
            Self::Flush => Command::Flush,
        }
    }
}

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

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossings {
    /// System calls that sent something.
    pub sends: u64,
    /// System calls that received something, or waited for it; those of a ring, which may have sent something besides.
    pub receives: u64,
    /// Bytes of writes that were copied behind their header.
    pub pulled_up_bytes: u64,
    /// Bytes of reads that were received to where they belong.
    pub in_place_bytes: u64,
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
    switches: Switches,
    batch: SendBatch,
    /// What is in the batch and was not handed over: slot, and how many bytes of the batch are before it.
    staged: VecDeque<(u32, usize)>,
    /// Bytes of the replies to all that is in flight, of which some may have arrived.
    expected: usize,
    holding: Holding,
    /// Where it is not the socket's own calls that send and receive.
    ringed: Option<Box<Ringed>>,
    /// Received to; a ring has it while it receives there.
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
    /// Whether a ring failed, and nothing goes any more.
    broken: bool,
    crossings: Crossings,
}

impl Client {
    /// Connects, agrees, and provides `slots` slots of `slot_bytes` each.
    ///
    /// # Errors
    /// When there is no server, or it does not agree, or there is no memory.
    pub fn connect(uri: &Uri, slots: u32, slot_bytes: usize, options: Options) -> Result<Self> {
        let socket = reach(uri, options.patience)?;
        let mut memory = vec![0; MEMORY_BYTES];
        let (export, begin, end) = {
            let checksums = options.switches.checksums;
            negotiate(&socket, &uri.export, checksums, options.patience, &mut memory)?
        };
        let length = slot_bytes.saturating_mul(slots as usize);
        let zero_copy = slot_bytes > options.switches.zero_copy as usize;
        let arena = if zero_copy { ByteStore::in_file(length) } else { ByteStore::zeroed(length) };
        let arena = arena.map_err(|error| Error::system("memory for payloads", error))?;
        let arena = arena.copied(options.switches.copying);
        if zero_copy {
            // Where pages are sent nothing else keeps a call from waiting.
            socket.never_wait().map_err(|error| Error::system("setting up", error))?;
        }
        let ringed = match options.switches.transport {
            Transport::Sockets => None,
            Transport::IoUring => Some(Box::new(Ringed::new()?)),
        };
        let (arena, slots) = (Arc::new(arena), vec![Slot::default(); slots as usize]);
        let framing = options.switches.framing;
        let batch = SendBatch::new(Some(arena.clone())).with_pages_of(arena.file().cloned());
        let batch = batch.in_pieces_of(options.switches.most_sent()).in_segments_of(options.switches.segment as usize);
        let copied = options.switches.copy_out as usize;
        // What is summed is copied: the sum and the copy take it from the cache then.
        let guesses = slot_bytes > copied
            && framing.most_received().is_none()
            && !options.switches.checksums
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
            switches: options.switches,
            batch,
            staged: VecDeque::new(),
            expected: 0,
            holding: Holding::new(options.switches.hold, options.switches.busy_poll),
            ringed,
            memory,
            begin,
            end,
            arriving: None,
            sum: Checksum::default(),
            in_place,
            account: Account::new(options.in_flight),
            wire: options.wire,
            broken: false,
            crossings: Crossings::default(),
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
    pub fn crossings(&self) -> Crossings {
        self.crossings
    }

    /// Adds a request to those that the next [`submit`](Self::submit) hands over.
    ///
    /// # Errors
    /// When the slot has a request already, does not exist, or is too small.
    #[inline]
    pub fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
        let (index, slot_bytes) = (slot as usize, self.slot_bytes);
        if self.broken {
            return Err(Error::Lost("it failed before".to_owned()));
        }
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
            match self.switches.sending(length) {
                Sending::PullUp => {
                    self.batch.pull_up(begin, bytes);
                    self.crossings.pulled_up_bytes += u64::from(length);
                }
                // Nobody changes a slot before its request is replied to.
                Sending::ZeroCopy if self.zero_copy => self.batch.hand_over(begin, bytes),
                Sending::Gather | Sending::ZeroCopy => self.batch.gather(begin, bytes),
            }
            if self.switches.checksums {
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
        if self.ringed.is_some() {
            return self.reach_by_ring(Goal::HandedOver, &mut each);
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
                    self.crossings.sends += 1;
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
        let checksum = if self.switches.checksums { CHECKSUM_BYTES } else { 0 };
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
    /// A ring does that with one system call. Whether anything came: if not, nothing has moved for [`GLANCE`].
    ///
    /// # Errors
    /// When the connection is lost, or the server says what it must not.
    pub fn exchange(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        let before = self.in_flight;
        if self.ringed.is_none() || self.wire == Wire::Null {
            if !self.submit(&mut each)? {
                return Ok(false);
            }
            if self.in_flight < before {
                return Ok(true);
            }
        }
        self.wait(each)
    }

    /// Waits until at least one more reply has come, unless nothing is in flight, and gives all that have. Whether anything
    /// came: if not, the server has been silent for [`GLANCE`].
    ///
    /// # Errors
    /// When the connection is lost, or the server says what it must not.
    pub fn wait(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        if self.ringed.is_some() {
            return self.reach_by_ring(Goal::Replied, &mut each);
        }
        let (before, mut came) = (self.in_flight, false);
        // What was received already, when a wait ended in the middle of it.
        self.parse(&mut each)?;
        while self.in_flight > 0 && self.in_flight == before {
            let waiting = self.hold()?;
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
        if self.switches.busy_poll.is_zero() {
            return Ok(false);
        }
        let begun = Instant::now();
        while begun.elapsed() < self.switches.busy_poll {
            if self.receive(each, Waiting::Never)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits for half of what is in flight if that is worth it. How to receive then.
    fn hold(&mut self) -> Result<Waiting> {
        let held = self.holding.wait(&self.socket, self.worth_holding(), &mut self.crossings.receives);
        let held = held.map_err(|error| Error::system("waiting for replies", error))?;
        Ok(held.receiving())
    }

    /// How many more bytes are worth waiting for.
    fn worth_holding(&self) -> Option<usize> {
        let there = self.end - self.begin + self.arriving.map_or(0, |(_, there)| there);
        let half = (self.expected / 2).min(MOST_HELD).saturating_sub(there);
        let worth = self.in_flight >= FEWEST_HELD && half > 1 && self.switches.framing.most_received().is_none();
        worth.then_some(half)
    }
}

impl Export {
    /// Whether the server takes what this asks for.
    pub fn takes(&self, ask: Ask) -> bool {
        match ask {
            Ask::Read => true,
            Ask::Write => self.flags & transmission_flag::READ_ONLY == 0,
            Ask::Trim => self.flags & transmission_flag::SEND_TRIM != 0,
            Ask::Flush => self.flags & transmission_flag::SEND_FLUSH != 0,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        (0..self.in_flight).for_each(|_| self.account.end());
        // A good-bye is a courtesy: a server that does not hear it sees the connection end.
        if self.batch.sent() > 0 || self.broken {
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

/// A request's name on the wire: its slot, and which of the slot's requests it is.
fn together(slot: u32, generation: u32) -> u64 {
    u64::from(slot) | u64::from(generation) << 32
}

/// See [`together`].
fn apart(cookie: u64) -> (u32, u32) {
    (cookie as u32, (cookie >> 32) as u32)
}

fn lost(error: &std::io::Error) -> Error {
    Error::Lost(error.to_string())
}
