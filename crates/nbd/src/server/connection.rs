//! A client's connection from the greeting to the end: what arrives goes to the negotiation or the session, what they put
//! out is sent.

mod ringed;

use super::export::Exports;
use super::gathering::{self, Gathering, Hold};
use super::session::{Next, Session, TURN};
use crate::handshake::server::{Negotiation, State, Step, greeting};
use crate::socket::{LowWater, Socket};
use crate::switches::{Switches, Transport};
use crate::wire::REQUEST_BYTES;
use ringed::Ringed;
pub use ringed::Staged;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use sys::byte_store::Waiting;
use sys::receive_batch::ReceiveBatch;
use sys::send_batch::SendBatch;

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// Something has to arrive first.
    Receiving,
    /// The client has to take what is sent first.
    Sending,
    /// There is more to do of what has arrived, when others had their turn.
    Working,
    /// It ended as it should.
    Ended,
    /// It ended in a way that is worth a line.
    Broken(&'static str),
}

/// One client.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    low_water: LowWater,
    /// What a ring has of it, where one moves its bytes.
    ringed: Option<Ringed>,
    gathering: Gathering,
    phase: Phase,
    batch: SendBatch,
    /// Where payloads are received to that are not copied.
    places: Option<ReceiveBatch>,
    /// What has arrived and was not used yet: the begin of a message, or all that waits behind a client that does not
    /// take its replies.
    carry: Vec<u8>,
    /// Whether `carry` may hold whole messages.
    messages_wait: bool,
    /// What happens when the batch has been sent.
    then: Then,
    since: Instant,
    /// Since when nobody hears what is said.
    unheard_since: Option<Instant>,
    interest: EventFlags,
    /// What is waited for asleep, where no mark of the socket can say how much is enough.
    asleep: Option<Hold>,
    /// System calls that received something.
    received: u64,
    /// When the server goes: so many bytes of requests are heard, and what is left of the request that they end in.
    last: Option<u64>,
}

/// Who goes without waiting for the replies has what he asked for done, if it takes no longer than this.
const LAST_WILL: Duration = Duration::from_secs(5);
/// The longest hold is slept through in so many naps, of which it usually takes half.
const NAPS: u32 = 4;
/// A shorter one is over before the thread is asleep.
const SHORTEST_NAP: Duration = Duration::from_micros(5);
/// Nobody else is served meanwhile.
const LONGEST_NAP: Duration = Duration::from_micros(50);
/// What waits at the other end for room here (Linux: the largest of tcp_wmem).
const MOST_ELSEWHERE: u64 = 4 << 20;
/// The client ended the connection before it had all replies.
const UNHEARD: &str = "the client went away with replies on the way";

#[derive(Debug)]
enum Phase {
    Negotiating(State),
    Serving(Box<Session>),
}

/// What there is to do with bytes that were not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Nothing, before more have come.
    Nothing,
    /// There may be more to do at once.
    More,
    /// There is more to do when others had their turn.
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    End(Option<&'static str>),
}

impl Connection {
    /// A client that has just come. The greeting waits to be sent.
    pub fn new(socket: Socket, transport: Transport) -> Self {
        let mut batch = SendBatch::new(None);
        batch.put(&greeting());
        let phase = Phase::Negotiating(State::default());
        Self {
            socket,
            low_water: LowWater::default(),
            ringed: (transport == Transport::IoUring).then(Ringed::default),
            gathering: Gathering::default(),
            phase,
            batch,
            places: None,
            carry: Vec::new(),
            messages_wait: false,
            then: Then::GoOn,
            since: Instant::now(),
            unheard_since: None,
            interest: EventFlags::IN,
            asleep: None,
            received: 0,
            last: None,
        }
    }

    /// Its socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Since when it negotiates, while it does.
    pub fn negotiating_since(&self) -> Option<Instant> {
        matches!(self.phase, Phase::Negotiating(_)).then_some(self.since)
    }

    /// What its thread waits for.
    pub fn interest(&self) -> EventFlags {
        self.interest
    }

    /// See [`interest`](Self::interest).
    pub fn set_interest(&mut self, interest: EventFlags) {
        self.interest = interest;
    }

    /// Its session, once there is one.
    pub fn session(&self) -> Option<&Session> {
        match &self.phase {
            Phase::Negotiating(_) => None,
            Phase::Serving(session) => Some(session),
        }
    }

    /// Before it is waited for: until when the rest of a payload, or further requests, are waited for as one, `most` of the time at most. They
    /// are not unless they `may` be.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn hold(&mut self, may: bool, most: Duration) -> io::Result<Option<Instant>> {
        let Phase::Serving(session) = &self.phase else { return Ok(None) };
        // Poll of a Unix socket wakes at the first byte, whatever is asked for.
        let by_mark = matches!(self.socket, Socket::Tcp(_));
        let rest = session.in_place().map(|(_, _, rest)| rest);
        if let Some(rest) = rest.filter(|_| may && by_mark) {
            // It is sure to come, and as far as the client is concerned it is one.
            self.low_water.about(&self.socket, rest.min(gathering::MOST))?;
            return Ok(Some(Instant::now() + most));
        }
        // What is known of requests says nothing of the rest of one.
        let may = may && rest.is_none() && (by_mark || self.ringed.is_none());
        let hold = may.then(Instant::now).and_then(|now| Some((self.gathering.hold(most, now)?, now)));
        self.asleep = hold.filter(|_| !by_mark).map(|(hold, _)| hold);
        if by_mark {
            self.low_water.set(&self.socket, hold.map_or(1, |(hold, _)| hold.bytes))?;
        }
        Ok(hold.map(|(hold, now)| now + hold.limit))
    }

    /// Whether it is held where what comes wakes in any case.
    pub fn is_held_asleep(&self) -> bool {
        self.asleep.is_some()
    }

    /// What comes now is used, which says nothing of what would have come.
    pub fn is_not_held_after_all(&mut self) {
        self.asleep = None;
        self.gathering.forget();
    }

    /// Something has come to a connection that is held, where that wakes in any case: how long is slept before what has come is looked at again. `None`: it is
    /// used now.
    pub fn nap(&self) -> Option<Duration> {
        let hold = self.asleep?;
        (self.socket.unread() < hold.bytes).then(|| (hold.limit / NAPS).clamp(SHORTEST_NAP, LONGEST_NAP))
    }

    /// Sends what waits, receives once (a page at a time: until there is nothing), and does what that asks for; never waits. `memory` is where it receives to; all
    /// connections of a thread have the same.
    pub fn advance(&mut self, exports: &Exports, switches: Switches, memory: &mut [u8]) -> Going {
        if switches.framing.most_received().is_none() {
            return self.advance_once(exports, switches, memory);
        }
        let begun = Instant::now();
        loop {
            let before = self.received;
            let going = self.advance_once(exports, switches, memory);
            // What is there after a turn is seen by the next wait.
            if going != Going::Receiving || self.received == before || begun.elapsed() >= TURN {
                return going;
            }
        }
    }

    fn advance_once(&mut self, exports: &Exports, switches: Switches, memory: &mut [u8]) -> Going {
        if let Some(going) = self.use_what_waits(exports, switches) {
            return going;
        }
        if let Some(length) = self.lay_out_places(switches) {
            let received = self.places.as_mut().map(|places| places.receive(&self.socket, Waiting::Never));
            return self.placed(received.unwrap_or(Ok(0)), length, exports, switches);
        }
        let (held, most) = match self.place_behind_carry(memory) {
            Ok(place) => place,
            Err(why) => return Going::Broken(why),
        };
        let received = self.socket.receive(memory.get_mut(held..held + most).unwrap_or_default(), Waiting::Never);
        self.received_behind_carry(received, memory, exports, switches)
    }

    /// Sends what waits, and does what waits behind it. `None` when it goes on by receiving.
    fn use_what_waits(&mut self, exports: &Exports, switches: Switches) -> Option<Going> {
        let going = self.flush();
        if going.is_some() || !self.messages_wait {
            return going;
        }
        self.messages_wait = false;
        let held = std::mem::take(&mut self.carry);
        self.consume(&held, exports, switches)
    }

    /// Puts what is there of a message in front of where more is received to: how much that is, and how much more may come.
    fn place_behind_carry(&self, memory: &mut [u8]) -> Result<(usize, usize), &'static str> {
        let held = self.carry.len();
        let Some((front, back)) = memory.split_at_mut_checked(held).filter(|(_, back)| !back.is_empty()) else {
            return Err("a message longer than any that is allowed");
        };
        front.copy_from_slice(&self.carry);
        let most = self.session().map_or(usize::MAX, |session| session.most_to_receive(held));
        Ok((held, most.min(self.most_to_hear(held)).min(back.len())))
    }

    /// Uses what has come there.
    fn received_behind_carry(
        &mut self,
        received: io::Result<usize>,
        memory: &[u8],
        exports: &Exports,
        switches: Switches,
    ) -> Going {
        let count = match received {
            Ok(count @ 1..) => count,
            nothing => return self.nothing_received(nothing),
        };
        self.count_received(count);
        let input = memory.get(..self.carry.len() + count).unwrap_or_default();
        self.carry.clear();
        let (before, now) = (self.requests(), Instant::now());
        let going = self.consume(input, exports, switches);
        self.gathering.received(count, self.requests() - before, now);
        going.unwrap_or(Going::Receiving)
    }

    /// Lays out places for the rest of a write's payload, where it belongs, and for the next request behind it and no more, because that one's payload
    /// may go the same way. How long the first is; `None` where that is not possible.
    fn lay_out_places(&mut self, switches: Switches) -> Option<usize> {
        let Phase::Serving(session) = &mut self.phase else { return None };
        debug_assert!(session.in_place().is_none() || self.carry.is_empty(), "what is there was used");
        let (store, begin, length) = session.in_place()?;
        let places = self.places.get_or_insert_with(|| ReceiveBatch::new(store.clone()));
        places.clear();
        let length = length.min(switches.framing.most_received().unwrap_or(length));
        places.store(begin, length);
        if switches.framing.most_received().is_none() && self.last.is_none() {
            places.keep(REQUEST_BYTES);
        }
        Some(length)
    }

    /// Uses what has come to the places, of which the first is so long.
    fn placed(&mut self, received: io::Result<usize>, length: usize, exports: &Exports, switches: Switches) -> Going {
        let count = match received {
            Ok(count @ 1..) => count,
            nothing => return self.nothing_received(nothing),
        };
        if let Phase::Serving(session) = &mut self.phase {
            session.received_in_place(count.min(length), &mut self.batch);
        }
        let (mut behind, there) = ([0; REQUEST_BYTES], count.saturating_sub(length).min(REQUEST_BYTES));
        let (behind, _) = behind.split_at_mut(there);
        let own = self.places.as_ref().map(ReceiveBatch::own).unwrap_or_default();
        behind.copy_from_slice(own.get(..there).unwrap_or_default());
        self.count_received(count);
        self.consume(behind, exports, switches).unwrap_or(Going::Receiving)
    }

    /// What comes of a receive that brought nothing.
    fn nothing_received(&self, received: io::Result<usize>) -> Going {
        match received {
            _ if self.unheard_since.is_some() => Going::Broken(UNHEARD),
            Ok(_) => Going::Ended,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Going::Receiving,
            Err(_) => Going::Broken("the connection was reset"),
        }
    }

    fn requests(&self) -> u64 {
        self.session().map_or(0, |session| session.counters.requests)
    }

    fn count_received(&mut self, bytes: usize) {
        self.received += 1;
        if let Phase::Serving(session) = &mut self.phase {
            // The call of a ring is counted as a wait.
            session.counters.receives += u64::from(self.ringed.is_none());
            session.counters.received_bytes += bytes as u64;
        }
    }

    /// Uses `input`, sends what comes of it, and keeps what is left. Gives how it goes on when that is not by receiving more.
    fn consume(&mut self, input: &[u8], exports: &Exports, switches: Switches) -> Option<Going> {
        let mut rest = input;
        let mut begun = None;
        loop {
            let (taken, left) = self.use_up(rest, exports, switches);
            rest = rest.get(taken..).unwrap_or_default();
            let mut going = self.flush();
            if going.is_none() {
                match left {
                    // Whoever takes replies as fast as they are made could have the thread for himself.
                    Left::More if begun.get_or_insert_with(Instant::now).elapsed() < TURN => continue,
                    Left::More | Left::Later => going = Some(Going::Working),
                    Left::Nothing => {}
                }
            }
            self.carry.extend_from_slice(rest);
            self.messages_wait = left != Left::Nothing;
            return going;
        }
    }

    /// Gives how many bytes were used, and what is to be done with the rest once the batch is sent.
    fn use_up(&mut self, input: &[u8], exports: &Exports, switches: Switches) -> (usize, Left) {
        match &mut self.phase {
            Phase::Negotiating(state) => {
                let mut negotiation = Negotiation::resume(exports.infos(), *state).with_checksums(switches.checksums);
                let mut out = Vec::new();
                let (taken, step) = negotiation.advance(input, &mut out);
                *state = negotiation.state();
                self.batch.put(&out);
                match step {
                    Step::Continue if taken > 0 && !out.is_empty() => return (taken, Left::More),
                    Step::Continue => {}
                    Step::End(why) => self.then = Then::End(why),
                    Step::Agreed(agreed) => match exports.session(&agreed, switches) {
                        Some(session) => {
                            // The last words of the negotiation go first.
                            let mut batch = session.batch();
                            batch.put(self.batch.own());
                            self.batch = batch;
                            self.phase = Phase::Serving(Box::new(session));
                            return (taken, Left::More);
                        }
                        None => self.then = Then::End(Some("the export is not there")),
                    },
                }
                (taken, Left::Nothing)
            }
            Phase::Serving(session) => {
                let (taken, next) = session.advance(input, &mut self.batch);
                match next {
                    Next::Receive => {}
                    Next::Send => return (taken, Left::More),
                    Next::Yield => return (taken, Left::Later),
                    Next::Disconnect => self.then = Then::End(None),
                    Next::Lost(why) => self.then = Then::End(Some(why)),
                }
                (taken, Left::Nothing)
            }
        }
    }

    /// Sends what is in the batch. `None` when it is empty and the connection goes on.
    fn flush(&mut self) -> Option<Going> {
        if let Some(since) = self.unheard_since {
            self.batch.clear();
            if self.then == Then::GoOn && since.elapsed() >= LAST_WILL {
                return Some(Going::Broken("the client went away before all that it asked for was done"));
            }
        }
        if self.ringed.is_some() && self.batch.unsent() > 0 {
            return Some(Going::Sending);
        }
        let corked = self.batch.has_pages() && self.socket.cork(true).is_ok();
        let going = self.send();
        if corked {
            // It can only fail on a socket that has gone.
            let _ = self.socket.cork(false);
        }
        going
    }

    fn send(&mut self) -> Option<Going> {
        while self.batch.unsent() > 0 {
            let (pages, mapped) = (self.batch.sends_pages(), self.batch.has_mapped());
            match self.batch.send(&self.socket) {
                Ok(count) => {
                    if let Phase::Serving(session) = &mut self.phase {
                        session.counters.sends += 1;
                        session.counters.sent_bytes += count as u64;
                        if mapped {
                            session.sent_mapped();
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(Going::Sending),
                Err(error) => {
                    if let Some(going) = self.not_sent(&error, pages) {
                        return Some(going);
                    }
                }
            }
        }
        match self.then {
            Then::GoOn => None,
            Then::End(None) => Some(Going::Ended),
            Then::End(Some(why)) => Some(Going::Broken(why)),
        }
    }
}

/// When the server goes.
impl Connection {
    /// From now on only what was sent is heard, and the rest of the request that it ends in.
    pub fn hear_only_what_was_sent(&mut self) {
        let unread = self.socket.unread() as u64;
        // What a Unix socket took is all here. What TCP took may still be at the client, which sends it as there is room: little
        // that lies unread is no sign of the contrary where the kernel has yet to deliver what follows.
        let elsewhere = if matches!(self.socket, Socket::Tcp(_)) { MOST_ELSEWHERE } else { 0 };
        let early = self.ringed.as_ref().map_or(0, Ringed::early);
        self.last = Some(self.heard() + early + unread + elsewhere);
    }

    /// Whether there is nothing more to do for it, when nothing has happened for a while or else.
    pub fn is_done(&self, quiet: bool) -> bool {
        let nothing_more = quiet && self.socket.unread() == 0;
        let Phase::Serving(session) = &self.phase else { return nothing_more && !self.is_sending() };
        let heard = self.last.is_some_and(|last| self.heard() >= last);
        let at_rest = !self.is_sending() && self.takes_more() && self.carry.is_empty() && session.is_between_requests();
        // Who has gone ends by himself.
        at_rest && self.unheard_since.is_none() && (heard || nothing_more)
    }

    /// Whether something that was sent is lost if the connection is closed now.
    pub fn has_undelivered(&self) -> bool {
        self.unheard_since.is_none() && self.socket.has_undelivered()
    }

    /// So many bytes at most are received next, `there` being the begin of a request that has come.
    fn most_to_hear(&self, there: usize) -> usize {
        match (self.last, self.session()) {
            (Some(last), Some(session)) => match last.saturating_sub(self.heard()) {
                0 => session.rest_of_request(there),
                rest => usize::try_from(rest).unwrap_or(usize::MAX),
            },
            _ => usize::MAX,
        }
    }

    /// Bytes of requests that were received.
    fn heard(&self) -> u64 {
        self.session().map_or(0, |session| session.counters.received_bytes)
    }
}

impl Connection {
    /// Something cannot be sent. `None` when that is because the client has gone: what he has asked for before, he may rely on (a good-bye comes
    /// after all requests, and need not wait for the replies), so it is still done.
    fn not_sent(&mut self, error: &io::Error, pages: bool) -> Option<Going> {
        if !is_of_peer(error) {
            let unmapped = error.raw_os_error() == Some(Errno::FAULT.raw_os_error());
            if let (true, Phase::Serving(session)) = (unmapped, &self.phase) {
                session.map_no_more();
            }
            // What was promised cannot be had, or not be sent; the client is still there, and has to hear of it somehow.
            let why = if pages || unmapped {
                "the storage failed in the middle of a reply"
            } else {
                "its replies cannot be sent"
            };
            return Some(Going::Broken(why));
        }
        let Phase::Serving(session) = &mut self.phase else { return Some(Going::Broken(UNHEARD)) };
        session.leave_out_replies();
        self.batch.clear();
        // What has arrived is received, and then the end.
        self.socket.expect_no_more();
        self.unheard_since = Some(Instant::now());
        None
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
