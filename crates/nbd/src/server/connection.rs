//! One client's connection from the greeting to its end: received bytes go to the handshake or to the requests, their
//! output is sent. Never waits.

use super::Export;
use super::receive_coalescing::{MAX_BYTES, Target};
use super::requests::{Next, Requests, TURN};
use crate::handshake::server::{Negotiation, State, Step, greeting};
use crate::socket::{LowWater, Socket};
use crate::tuning::Tuning;
use crate::wire::REQUEST_BYTES;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::Shutdown;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use sys::byte_store::Waiting;
use sys::receive_batch::ReceiveBatch;
use sys::send_batch::SendBatch;

/// Requests of a client that disconnects without waiting for the replies are still executed, for this long at most.
const ABANDONED_FOR: Duration = Duration::from_secs(5);
/// The client closed the connection before it had received all replies.
const ABANDONED: &str = "client disconnected before it received all replies";

/// One client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) peer: String,
    /// What the event loop waits for.
    pub(super) interest: EventFlags,
    /// State of the handshake, and when it started.
    handshake: State,
    pub(super) since: Instant,
    /// The transmission phase, once it has started.
    pub(super) requests: Option<Box<Requests>>,
    /// Replies that have not been sent.
    batch: SendBatch,
    /// What the connection needs once the batch is sent.
    next: Next,
    /// Received bytes that have not been used: the start of a message, or everything behind a client that does not take
    /// its replies.
    unparsed: Vec<u8>,
    /// Scatter list for payloads that are received in place.
    places: Option<ReceiveBatch>,
    coalescing: Coalescing,
    /// When the client stopped receiving replies.
    abandoned_since: Option<Instant>,
}

/// State of receive coalescing.
#[derive(Debug, Default)]
struct Coalescing {
    target: Target,
    low_water: LowWater,
}

impl Connection {
    /// A new client's connection. The greeting is ready to be sent.
    pub(super) fn new(socket: Socket, peer: String) -> Self {
        let mut batch = SendBatch::new(None);
        batch.put(&greeting());
        Self {
            socket,
            peer,
            interest: EventFlags::IN,
            handshake: State::default(),
            since: Instant::now(),
            requests: None,
            batch,
            next: Next::Receive,
            unparsed: Vec::new(),
            places: None,
            coalescing: Coalescing::default(),
            abandoned_since: None,
        }
    }

    /// Whether replies wait for the client to receive.
    pub(super) fn is_sending(&self) -> bool {
        self.batch.unsent() > 0
    }

    /// Whether everything that has arrived is executed and replied to.
    pub(super) fn is_done(&self) -> bool {
        let between = self.requests.as_deref().is_none_or(Requests::is_between_requests) && self.unparsed.is_empty();
        between && !self.is_sending() && self.abandoned_since.is_none() && self.socket.unread() == 0
    }

    /// Sends pending replies, receives once (with page-at-a-time framing: until nothing is left), and executes the
    /// requests received. Never waits. `memory` is the receive buffer, which all connections of a thread share.
    pub(super) fn advance(&mut self, export: &Export, tuning: Tuning, memory: &mut [u8]) -> Next {
        if tuning.framing.most_received().is_none() {
            return self.advance_once(export, tuning, memory);
        }
        let begun = Instant::now();
        loop {
            let before = self.receives();
            let next = self.advance_once(export, tuning, memory);
            // The next poll reports what is left after a turn.
            if next != Next::Receive || self.receives() == before || begun.elapsed() >= TURN {
                return next;
            }
        }
    }

    fn receives(&self) -> u64 {
        self.requests.as_ref().map_or(0, |requests| requests.counters.receives)
    }

    fn advance_once(&mut self, export: &Export, tuning: Tuning, memory: &mut [u8]) -> Next {
        // Pending replies are sent, and the requests held back behind them executed.
        match (self.flush(), self.next) {
            (Next::Receive, Next::Send | Next::Yield) => {
                let unparsed = std::mem::take(&mut self.unparsed);
                match self.consume(&unparsed, export, tuning) {
                    Next::Receive => {}
                    next => return next,
                }
            }
            (Next::Receive, _) => {}
            (next, _) => return next,
        }
        match self.lay_out_places(tuning) {
            Some(length) => self.receive_in_place(length, export, tuning),
            None => self.receive(memory, export, tuning),
        }
    }

    /// Receives, appending to the start of a message that is already there.
    fn receive(&mut self, memory: &mut [u8], export: &Export, tuning: Tuning) -> Next {
        let there = self.unparsed.len();
        let Some((front, back)) = memory.split_at_mut_checked(there).filter(|(_, back)| !back.is_empty()) else {
            return Next::End(Some("message exceeds the maximum size"));
        };
        front.copy_from_slice(&self.unparsed);
        let most =
            self.requests.as_ref().map_or(usize::MAX, |requests| requests.most_to_receive(there)).min(back.len());
        let received = self.socket.receive(back.get_mut(..most).unwrap_or_default(), Waiting::Never);
        let count = match received {
            Ok(count @ 1..) => count,
            nothing => return self.nothing_received(nothing),
        };
        self.count_received(count);
        let input = memory.get(..there + count).unwrap_or_default();
        self.unparsed.clear();
        let asked = |connection: &Self| connection.requests.as_ref().map_or(0, |requests| requests.counters.requests);
        let (before, now) = (asked(self), Instant::now());
        let next = self.consume(input, export, tuning);
        self.coalescing.target.received(count, asked(self) - before, now);
        next
    }

    /// Prepares to receive the rest of a write's payload in place, and behind it only one request header, because the
    /// payload of that request may be received in place too. Returns the length of the first part; `None` if the
    /// payload cannot be received in place.
    fn lay_out_places(&mut self, tuning: Tuning) -> Option<usize> {
        let requests = self.requests.as_deref()?;
        debug_assert!(requests.in_place().is_none() || self.unparsed.is_empty(), "unparsed was consumed");
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

    /// Receives into the scatter list, whose first part has this length.
    fn receive_in_place(&mut self, length: usize, export: &Export, tuning: Tuning) -> Next {
        let received = self.places.as_mut().map(|places| places.receive(&self.socket, Waiting::Never));
        let count = match received.unwrap_or(Ok(0)) {
            Ok(count @ 1..) => count,
            nothing => return self.nothing_received(nothing),
        };
        if let Some(requests) = &mut self.requests {
            requests.received_in_place(count.min(length), &mut self.batch);
        }
        let (mut behind, there) = ([0; REQUEST_BYTES], count.saturating_sub(length).min(REQUEST_BYTES));
        let (behind, _) = behind.split_at_mut(there);
        let own = self.places.as_ref().map(ReceiveBatch::own).unwrap_or_default();
        behind.copy_from_slice(own.get(..there).unwrap_or_default());
        self.count_received(count);
        self.consume(behind, export, tuning)
    }

    /// Handles a receive call that returned no bytes.
    fn nothing_received(&mut self, received: io::Result<usize>) -> Next {
        self.coalescing.target.cancel();
        match received {
            _ if self.abandoned_since.is_some() => Next::End(Some(ABANDONED)),
            Ok(_) => Next::End(None),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Next::Receive,
            Err(_) => Next::End(Some("client reset the connection")),
        }
    }

    fn count_received(&mut self, bytes: usize) {
        if let Some(requests) = &mut self.requests {
            requests.counters.receives += 1;
            requests.counters.received_bytes += bytes as u64;
        }
    }

    /// Consumes `input`, sends the output, and keeps the unused rest.
    fn consume(&mut self, input: &[u8], export: &Export, tuning: Tuning) -> Next {
        let (mut rest, mut begun) = (input, None);
        let next = loop {
            let (taken, next) = self.use_up(rest, export, tuning);
            rest = rest.get(taken..).unwrap_or_default();
            self.next = next;
            match (self.flush(), next) {
                // Without this limit, a client that takes replies as fast as they are produced could occupy the thread.
                (Next::Receive, Next::Send) if begun.get_or_insert_with(Instant::now).elapsed() < TURN => {}
                (Next::Receive, Next::Send | Next::Yield) => break Next::Yield,
                (next, _) => break next,
            }
        };
        self.unparsed.extend_from_slice(rest);
        next
    }

    /// Returns the number of bytes used, and what the connection needs next.
    fn use_up(&mut self, input: &[u8], export: &Export, tuning: Tuning) -> (usize, Next) {
        if let Some(requests) = &mut self.requests {
            return requests.advance(input, &mut self.batch);
        }
        let (state, offers_checksums) = (self.handshake, tuning.checksums);
        let mut negotiation = Negotiation { export: &export.info, state, offers_checksums };
        let mut out = Vec::new();
        let (taken, step) = negotiation.advance(input, &mut out);
        self.handshake = negotiation.state;
        self.batch.put(&out);
        let next = match step {
            Step::Continue if taken > 0 && !out.is_empty() => Next::Send,
            Step::Continue => Next::Receive,
            Step::End(why) => Next::End(why),
            Step::Agreed { checksums } => {
                let requests = export.requests(checksums, tuning);
                // The handshake's last output is sent first.
                let mut batch = requests.batch();
                batch.put(self.batch.own());
                self.batch = batch;
                self.requests = Some(Box::new(requests));
                Next::Send
            }
        };
        (taken, next)
    }

    /// Sends the batch. Returns [`Next::Send`] while the client does not take all of it, [`Next::End`] if that was the
    /// last output, else [`Next::Receive`].
    fn flush(&mut self) -> Next {
        if let Some(since) = self.abandoned_since {
            self.batch.clear();
            if !matches!(self.next, Next::End(_)) && since.elapsed() >= ABANDONED_FOR {
                return Next::End(Some("client disconnected before its requests finished"));
            }
        }
        let corked = self.batch.has_pages() && self.socket.cork(true).is_ok();
        let next = self.send();
        if corked {
            // Fails only if the connection is closed.
            let _ = self.socket.cork(false);
        }
        next
    }

    fn send(&mut self) -> Next {
        while self.batch.unsent() > 0 {
            let pages = self.batch.sends_pages();
            match self.batch.send(&self.socket) {
                Ok(count) => {
                    if let Some(requests) = &mut self.requests {
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
                    // The data that the header promised cannot be read or sent. The client is still connected; closing
                    // the connection is the only way to report it.
                    let unmapped = error.raw_os_error() == Some(Errno::FAULT.raw_os_error());
                    let storage = pages || unmapped;
                    let why = if storage { FAILED_IN_THE_MIDDLE } else { "cannot send its replies" };
                    return Next::End(Some(why));
                }
            }
        }
        if let Next::End(_) = self.next { self.next } else { Next::Receive }
    }

    /// The client has disconnected. It may rely on requests sent before (a disconnect follows all requests and need not
    /// wait for replies), so requests that have arrived are still executed.
    fn abandon(&mut self) -> Next {
        let Some(requests) = &mut self.requests else { return Next::End(Some(ABANDONED)) };
        requests.suppress_replies();
        self.batch.clear();
        self.socket.shut_down(Shutdown::Both);
        self.abandoned_since = Some(Instant::now());
        Next::Receive
    }
}

/// The storage failed after the header had promised data.
pub(super) const FAILED_IN_THE_MIDDLE: &str = "the storage failed in the middle of a reply";

/// Receive coalescing.
impl Connection {
    /// Called before the thread waits. Returns the deadline until which to wait for the rest of a payload or for more
    /// requests as one, `most` from now at the latest; `None` without coalescing (always if `may` is false, and on a Unix
    /// socket, which wakes at the first byte whatever its low-water mark).
    ///
    /// # Errors
    /// As setsockopt(2).
    pub(super) fn coalesce(&mut self, may: bool, most: Duration) -> io::Result<Option<Instant>> {
        let Some(requests) = &self.requests else { return Ok(None) };
        if !self.socket.is_tcp {
            return Ok(None);
        }
        let Coalescing { target, low_water } = &mut self.coalescing;
        let rest = requests.in_place().map(|(_, _, rest)| rest);
        if let Some(rest) = rest.filter(|_| may) {
            // The rest of the payload is certain to arrive, and the client sees one message.
            low_water.about(&self.socket, rest.min(MAX_BYTES))?;
            return Ok(Some(Instant::now() + most));
        }
        // The request target does not apply to the rest of a payload.
        let wait = if may && rest.is_none() {
            let now = Instant::now();
            target.wait(most, now).map(|wait| (wait, now + wait.timeout))
        } else {
            target.cancel();
            None
        };
        low_water.set(&self.socket, wait.map_or(1, |(wait, _)| wait.bytes))?;
        Ok(wait.map(|(_, until)| until))
    }
}

/// Whether the error means that the client has disconnected.
fn is_of_peer(error: &io::Error) -> bool {
    use ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, NetworkDown, NetworkUnreachable, NotConnected,
        TimedOut,
    };
    // A client whose machine or network is down is reported with the network's last error.
    let no_network = matches!(error.kind(), HostUnreachable | NetworkDown | NetworkUnreachable);
    no_network || matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut)
}
