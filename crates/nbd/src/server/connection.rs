//! A client's connection from the greeting to the end: what arrives goes to the handshake or to the requests, what they put out is
//! sent.

use super::export::Exports;
use super::receive_coalescing::{MAX_BYTES, Target, Wait};
use super::requests::{Next, Requests, TURN};
use crate::handshake::server::{Negotiation, State, Step, greeting};
use crate::socket::{LowWater, Peer, Socket};
use crate::tuning::Tuning;
use crate::wire::REQUEST_BYTES;
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use sys::byte_store::Waiting;
use sys::receive_batch::ReceiveBatch;
use sys::send_batch::SendBatch;

/// A client that goes without waiting for the replies has what it asked for done, if it takes no longer than this.
const ABANDONED_FOR: Duration = Duration::from_secs(5);
/// The client ended the connection before it had all replies.
const ABANDONED: &str = "it went away with replies on the way";
/// On a Unix socket the thread sleeps so long at most before it looks again whether enough has come: nobody else is served meanwhile.
const SLEEP: Duration = Duration::from_micros(50);

/// One client.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    peer: Peer,
    phase: Phase,
    /// Replies that are not sent yet.
    batch: SendBatch,
    /// What it needs once the batch is sent.
    next: Next,
    /// What has arrived and was not used yet: the begin of a message, or all that waits behind a client that takes no replies.
    carry: Vec<u8>,
    /// Where payloads are received to that are not copied.
    places: Option<ReceiveBatch>,
    coalescing: Coalescing,
    /// Since when nobody receives the replies.
    abandoned_since: Option<Instant>,
}

#[derive(Debug)]
enum Phase {
    Handshake { state: State, since: Instant },
    Requests(Box<Requests>),
}

/// What is waited for as one.
#[derive(Debug, Default)]
struct Coalescing {
    target: Target,
    low_water: LowWater,
    /// What is waited for where the socket has no low-water mark.
    unmarked: Option<Wait>,
}

impl Connection {
    /// A client that has just come. The greeting waits to be sent.
    pub(super) fn new(socket: Socket, peer: Peer) -> Self {
        let mut batch = SendBatch::new(None);
        batch.put(&greeting());
        Self {
            socket,
            peer,
            phase: Phase::Handshake { state: State::default(), since: Instant::now() },
            batch,
            next: Next::Receive,
            carry: Vec::new(),
            places: None,
            coalescing: Coalescing::default(),
            abandoned_since: None,
        }
    }

    /// Its socket.
    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Who is at the other end.
    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// Since when it is in the handshake, while it is.
    pub(super) fn handshake_since(&self) -> Option<Instant> {
        match self.phase {
            Phase::Handshake { since, .. } => Some(since),
            Phase::Requests(_) => None,
        }
    }

    /// Its requests, once there may be some.
    pub(super) fn requests(&self) -> Option<&Requests> {
        match &self.phase {
            Phase::Handshake { .. } => None,
            Phase::Requests(requests) => Some(requests),
        }
    }

    /// Whether replies wait until the client takes them.
    pub(super) fn is_sending(&self) -> bool {
        self.batch.unsent() > 0
    }

    /// Whether all that has arrived is done and replied to.
    pub(super) fn is_done(&self) -> bool {
        let between = self.requests().is_none_or(Requests::is_between_requests) && self.carry.is_empty();
        between && !self.is_sending() && self.abandoned_since.is_none() && self.socket.unread() == 0
    }

    /// Sends what waits, receives once (a page at a time: until there is nothing), and does what that asks for; never waits. `memory` is
    /// where it receives to; all connections of a thread have the same.
    pub(super) fn advance(&mut self, exports: &Exports, tuning: Tuning, memory: &mut [u8]) -> Next {
        if tuning.framing.most_received().is_none() {
            return self.advance_once(exports, tuning, memory);
        }
        let begun = Instant::now();
        loop {
            let before = self.receives();
            let next = self.advance_once(exports, tuning, memory);
            // What is there after a turn is seen by the next wait.
            if next != Next::Receive || self.receives() == before || begun.elapsed() >= TURN {
                return next;
            }
        }
    }

    fn receives(&self) -> u64 {
        self.requests().map_or(0, |requests| requests.counters.receives)
    }

    fn advance_once(&mut self, exports: &Exports, tuning: Tuning, memory: &mut [u8]) -> Next {
        match self.use_carry(exports, tuning) {
            Next::Receive => {}
            next => return next,
        }
        if let Some(length) = self.lay_out_places(tuning) {
            return self.receive_in_place(length, exports, tuning);
        }
        self.receive(memory, exports, tuning)
    }

    /// Sends what waits, and does what waits behind it.
    fn use_carry(&mut self, exports: &Exports, tuning: Tuning) -> Next {
        match (self.flush(), self.next) {
            (Next::Receive, Next::Send | Next::Yield) => {
                let carry = std::mem::take(&mut self.carry);
                self.consume(&carry, exports, tuning)
            }
            (next, _) => next,
        }
    }

    /// Receives behind what is there of a message.
    fn receive(&mut self, memory: &mut [u8], exports: &Exports, tuning: Tuning) -> Next {
        let there = self.carry.len();
        let Some((front, back)) = memory.split_at_mut_checked(there).filter(|(_, back)| !back.is_empty()) else {
            return Next::End(Some("a message longer than any that is allowed"));
        };
        front.copy_from_slice(&self.carry);
        let most = self.requests().map_or(usize::MAX, |requests| requests.most_to_receive(there)).min(back.len());
        let received = self.socket.receive(back.get_mut(..most).unwrap_or_default(), Waiting::Never);
        let count = match received {
            Ok(count @ 1..) => count,
            nothing => return self.nothing_received(nothing),
        };
        self.count_received(count);
        let input = memory.get(..there + count).unwrap_or_default();
        self.carry.clear();
        let asked = |connection: &Self| connection.requests().map_or(0, |requests| requests.counters.requests);
        let (before, now) = (asked(self), Instant::now());
        let next = self.consume(input, exports, tuning);
        self.coalescing.target.received(count, asked(self) - before, now);
        next
    }

    /// Lays out places for the rest of a write's payload, where it belongs, and for the next request behind it and no more, because
    /// that one's payload may go the same way. How long the first is; `None` where that is not possible.
    fn lay_out_places(&mut self, tuning: Tuning) -> Option<usize> {
        let Phase::Requests(requests) = &mut self.phase else { return None };
        debug_assert!(requests.in_place().is_none() || self.carry.is_empty(), "what is there was used");
        let (store, begin, length) = requests.in_place()?;
        let places = self.places.get_or_insert_with(|| ReceiveBatch::new(store.clone()));
        places.clear();
        let most = tuning.framing.most_received();
        let length = length.min(most.unwrap_or(length));
        places.store(begin, length);
        if most.is_none() {
            places.keep(REQUEST_BYTES);
        }
        Some(length)
    }

    /// Receives to the places, of which the first is so long.
    fn receive_in_place(&mut self, length: usize, exports: &Exports, tuning: Tuning) -> Next {
        let received = self.places.as_mut().map(|places| places.receive(&self.socket, Waiting::Never));
        let count = match received.unwrap_or(Ok(0)) {
            Ok(count @ 1..) => count,
            nothing => return self.nothing_received(nothing),
        };
        if let Phase::Requests(requests) = &mut self.phase {
            requests.received_in_place(count.min(length), &mut self.batch);
        }
        let (mut behind, there) = ([0; REQUEST_BYTES], count.saturating_sub(length).min(REQUEST_BYTES));
        let (behind, _) = behind.split_at_mut(there);
        let own = self.places.as_ref().map(ReceiveBatch::own).unwrap_or_default();
        behind.copy_from_slice(own.get(..there).unwrap_or_default());
        self.count_received(count);
        self.consume(behind, exports, tuning)
    }

    /// What comes of a receive that brought nothing.
    fn nothing_received(&mut self, received: io::Result<usize>) -> Next {
        self.coalescing.target.cancel();
        match received {
            _ if self.abandoned_since.is_some() => Next::End(Some(ABANDONED)),
            Ok(_) => Next::End(None),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Next::Receive,
            Err(_) => Next::End(Some("it reset the connection")),
        }
    }

    fn count_received(&mut self, bytes: usize) {
        if let Phase::Requests(requests) = &mut self.phase {
            requests.counters.receives += 1;
            requests.counters.received_bytes += bytes as u64;
        }
    }

    /// Uses `input`, sends what comes of it, and keeps what is left.
    fn consume(&mut self, input: &[u8], exports: &Exports, tuning: Tuning) -> Next {
        let (mut rest, mut begun) = (input, None);
        let next = loop {
            let (taken, next) = self.use_up(rest, exports, tuning);
            rest = rest.get(taken..).unwrap_or_default();
            self.next = next;
            match (self.flush(), next) {
                // A client that takes replies as fast as they are made could have the thread for itself.
                (Next::Receive, Next::Send) if begun.get_or_insert_with(Instant::now).elapsed() < TURN => {}
                (Next::Receive, Next::Send | Next::Yield) => break Next::Yield,
                (next, _) => break next,
            }
        };
        self.carry.extend_from_slice(rest);
        next
    }

    /// Gives how many bytes were used, and what it needs then.
    fn use_up(&mut self, input: &[u8], exports: &Exports, tuning: Tuning) -> (usize, Next) {
        let state = match &mut self.phase {
            Phase::Requests(requests) => return requests.advance(input, &mut self.batch),
            Phase::Handshake { state, .. } => state,
        };
        let mut negotiation = Negotiation::resume(exports.infos(), *state).with_checksums(tuning.checksums);
        let mut out = Vec::new();
        let (taken, step) = negotiation.advance(input, &mut out);
        *state = negotiation.state();
        self.batch.put(&out);
        let next = match step {
            Step::Continue if taken > 0 && !out.is_empty() => Next::Send,
            Step::Continue => Next::Receive,
            Step::End(why) => Next::End(why),
            Step::Agreed(agreed) => match exports.requests(&agreed, tuning) {
                Some(requests) => {
                    // The last words of the handshake go first.
                    let mut batch = requests.batch();
                    batch.put(self.batch.own());
                    self.batch = batch;
                    self.phase = Phase::Requests(Box::new(requests));
                    Next::Send
                }
                None => Next::End(Some("the export is not there")),
            },
        };
        (taken, next)
    }

    /// Sends the batch: [`Next::Send`] while the client does not take all of it, [`Next::End`] when that was the last, else
    /// [`Next::Receive`].
    fn flush(&mut self) -> Next {
        if let Some(since) = self.abandoned_since {
            self.batch.clear();
            if !matches!(self.next, Next::End(_)) && since.elapsed() >= ABANDONED_FOR {
                return Next::End(Some("it went away before all that it asked for was done"));
            }
        }
        let corked = self.batch.has_pages() && self.socket.cork(true).is_ok();
        let next = self.send();
        if corked {
            // It can only fail on a socket that has gone.
            let _ = self.socket.cork(false);
        }
        next
    }

    fn send(&mut self) -> Next {
        while self.batch.unsent() > 0 {
            let pages = self.batch.sends_pages();
            match self.batch.send(&self.socket) {
                Ok(count) => {
                    if let Phase::Requests(requests) = &mut self.phase {
                        requests.counters.sends += 1;
                        requests.counters.sent_bytes += count as u64;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Send,
                Err(error) if is_of_peer(&error) => match self.abandon() {
                    Next::Receive => {}
                    next => return next,
                },
                Err(error) => {
                    // What was promised cannot be had, or not be sent; the client is still there, and has to hear of it somehow.
                    let unmapped = error.raw_os_error() == Some(Errno::FAULT.raw_os_error());
                    let storage = pages || unmapped;
                    let why = if storage { FAILED_IN_THE_MIDDLE } else { "its replies cannot be sent" };
                    return Next::End(Some(why));
                }
            }
        }
        if let Next::End(_) = self.next { self.next } else { Next::Receive }
    }

    /// The client has gone. What it has asked for before it may rely on (a disconnect comes after all requests, and need not wait
    /// for the replies), so what has arrived is still done, and then it ends.
    fn abandon(&mut self) -> Next {
        let Phase::Requests(requests) = &mut self.phase else { return Next::End(Some(ABANDONED)) };
        requests.leave_out_replies();
        self.batch.clear();
        self.socket.expect_no_more();
        self.abandoned_since = Some(Instant::now());
        Next::Receive
    }
}

/// The storage failed behind a header that had promised data.
pub(super) const FAILED_IN_THE_MIDDLE: &str = "the storage failed in the middle of a reply";

/// Receive coalescing.
impl Connection {
    /// Before it is waited for: until when the rest of a payload, or further requests, are waited for as one, `most` of the time at most.
    /// They are not unless they `may` be.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub(super) fn coalesce(&mut self, may: bool, most: Duration) -> io::Result<Option<Instant>> {
        let Phase::Requests(requests) = &self.phase else { return Ok(None) };
        let Coalescing { target, low_water, unmarked } = &mut self.coalescing;
        let (marked, rest) = (self.socket.has_low_water(), requests.in_place().map(|(_, _, rest)| rest));
        if let Some(rest) = rest.filter(|_| may && marked) {
            // It is sure to come, and as far as the client is concerned it is one.
            low_water.about(&self.socket, rest.min(MAX_BYTES))?;
            return Ok(Some(Instant::now() + most));
        }
        // What is known of requests says nothing of the rest of one.
        let wait = if may && rest.is_none() {
            let now = Instant::now();
            target.wait(most, now).map(|wait| (wait, now + wait.timeout))
        } else {
            target.cancel();
            None
        };
        *unmarked = wait.filter(|_| !marked).map(|(wait, _)| wait);
        if marked {
            low_water.set(&self.socket, wait.map_or(1, |(wait, _)| wait.bytes))?;
        }
        Ok(wait.map(|(_, until)| until))
    }

    /// Something has come on a socket without a low-water mark: how long to sleep before it is looked at again. `None`: it is used now.
    /// Where the thread is not `alone` with it, nobody sleeps.
    pub(super) fn sleep_for_more(&mut self, alone: bool) -> Option<Duration> {
        let wait = self.coalescing.unmarked?;
        if !alone {
            self.coalescing.unmarked = None;
            self.coalescing.target.cancel();
            return None;
        }
        (self.socket.unread() < wait.bytes).then(|| SLEEP.min(wait.timeout / 4))
    }
}

/// Whether the other end has gone.
fn is_of_peer(error: &io::Error) -> bool {
    use ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, NetworkDown, NetworkUnreachable, NotConnected,
        TimedOut,
    };
    // One whose machine or network has gone is told of by what the network last said of it.
    let no_network = matches!(error.kind(), HostUnreachable | NetworkDown | NetworkUnreachable);
    no_network || matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut)
}
