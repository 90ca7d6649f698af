//! A thread with its connections: waits for any of them, and does what they ask for.

mod farewell;

use super::connection::{Connection, Going};
use super::counters::Counters;
use super::export::Exports;
use super::way::{Happened, Way};
use super::{Observer, Options};
use crate::error::Result;
use crate::socket::Socket;
use crate::switches::{Switches, Transport};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Received at one go: more than a hundred requests, or several writes.
const MEMORY_BYTES: usize = 256 << 10;
/// How often it is looked whether somebody negotiates for too long.
const LOOK: Duration = Duration::from_secs(1);

/// What a thread is told by the one that accepts.
#[derive(Debug)]
pub(super) struct Inbox {
    sockets: Mutex<Vec<Socket>>,
    bell: OwnedFd,
    closed: AtomicBool,
    /// What the thread did, told when it was asked.
    asked: Mutex<Option<Sender<Counters>>>,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { sockets: Mutex::default(), bell, closed: AtomicBool::new(false), asked: Mutex::default() })
    }

    pub(super) fn put(&self, socket: Socket) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
        self.ring();
    }

    /// The end: what has arrived is finished.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.ring();
    }

    /// Asks the thread what it did; it answers when it is done with what it is at.
    pub(super) fn ask(&self) -> Receiver<Counters> {
        let (told, answer) = channel();
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        self.ring();
        answer
    }

    fn ring(&self) {
        // It can only fail when it rings already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<Socket> {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        std::mem::take(&mut *self.sockets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One thread.
pub(super) struct Worker<'a> {
    inbox: Arc<Inbox>,
    way: Way,
    exports: &'a Exports,
    /// Its own: busy work is calibrated for this thread.
    options: Options,
    clients: &'a AtomicUsize,
    observer: &'a dyn Observer,
    connections: Vec<Option<Connection>>,
    memory: Vec<u8>,
    /// The one connection whose further requests are waited for, and until when.
    held: Option<(usize, Instant)>,
    /// Whether one may be held now.
    may_hold: bool,
    /// Connections that have more to do.
    working: Vec<usize>,
    done: Counters,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        inbox: Arc<Inbox>,
        exports: &'a Exports,
        options: &Options,
        clients: &'a AtomicUsize,
        observer: &'a dyn Observer,
    ) -> Result<Self> {
        let way = Way::new(&inbox.bell, options)?;
        let (connections, held, done) = (Vec::new(), None, Counters::default());
        let memory = match options.switches.transport {
            Transport::Sockets => vec![0; MEMORY_BYTES],
            // Each connection has its own there.
            Transport::IoUring => Vec::new(),
        };
        Ok(Self {
            inbox,
            way,
            exports,
            options: *options,
            clients,
            observer,
            connections,
            memory,
            held,
            may_hold: false,
            working: Vec::new(),
            done,
        })
    }

    /// Serves until the inbox is closed.
    pub(super) fn run(mut self) -> Counters {
        // A hold is as long as it is told to be, and not 50 µs longer. Where that cannot be had, it is longer.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        if let Some(burnt) = self.options.switches.inject.calibrate() {
            self.observer.injects(burnt);
        }
        let mut happened = Vec::with_capacity(256);
        let (mut looked, mut negotiating) = (Instant::now(), false);
        while !self.inbox.closed.load(Ordering::Relaxed) {
            // Somebody may have come while nobody negotiated: the inbox rang then, and the next wait has an end.
            self.wait(&mut happened, negotiating);
            self.end_a_hold_in_vain();
            // Where several clients have something to ask, requests are gathered without a wait.
            let Switches { hold, framing, .. } = self.options.switches;
            let asking = happened.iter().filter(|(_, what)| !matches!(what, Happened::Sent(..))).count();
            self.may_hold = asking == 1 && !hold.is_zero() && framing.most_received().is_none();
            negotiating |= happened.iter().any(|(_, what)| matches!(what, Happened::Rang));
            self.attend(&mut happened);
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                negotiating = self.end_the_slow(self.options.patience);
            }
        }
        self.say_farewell(&mut happened);
        self.done
    }

    /// Does what there is to do after something happened.
    fn attend(&mut self, happened: &mut Vec<(usize, Happened)>) {
        let working = std::mem::take(&mut self.working);
        let alone = happened.len() == 1 && working.is_empty();
        for (place, what) in happened.drain(..) {
            match what {
                Happened::Rang => self.welcome(),
                // Whatever it sent since then waits for its turn, its good-bye too.
                Happened::Ready | Happened::Gone if working.contains(&place) => {}
                Happened::Ready if self.sleeps_on(place, alone) => {}
                what => self.advance(place, what),
            }
        }
        working.into_iter().for_each(|place| self.advance(place, Happened::Turn));
    }

    /// Waits for something to happen.
    fn wait(&mut self, happened: &mut Vec<(usize, Happened)>, negotiating: bool) {
        if !self.working.is_empty() {
            return self.look(happened, Some(Duration::ZERO));
        }
        let busy_poll = self.options.switches.busy_poll;
        if !busy_poll.is_zero() {
            let end = Instant::now() + busy_poll;
            // A hold ends when it is over.
            let end = self.held.map_or(end, |(_, held)| end.min(held));
            while Instant::now() < end {
                self.look(happened, Some(Duration::ZERO));
                if !happened.is_empty() {
                    return;
                }
            }
        }
        let held = self.held.map(|(_, end)| end.saturating_duration_since(Instant::now()));
        self.look(happened, held.or(negotiating.then_some(LOOK)));
    }

    /// Waits so long at most.
    fn look(&mut self, happened: &mut Vec<(usize, Happened)>, limit: Option<Duration>) {
        match self.way.wait(happened, limit) {
            Ok(calls) => self.done.waits += calls,
            Err(error) => {
                self.observer.note(&format!("waiting for clients: {error}"));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// What came within the time of a hold is done.
    fn end_a_hold_in_vain(&mut self) {
        if let Some((place, end)) = self.held
            && Instant::now() >= end
        {
            // Who sends nothing more is not held again before something has come.
            self.may_hold = false;
            self.advance(place, Happened::Turn);
        }
    }

    /// Whether it is slept on that something came to the one that is held: then some time has passed, and it is looked at again. Not
    /// where others have something to do.
    fn sleeps_on(&mut self, place: usize, alone: bool) -> bool {
        let Some((_, until)) = self.held.filter(|(held, _)| *held == place) else { return false };
        let Some(Some(connection)) = self.connections.get_mut(place) else { return false };
        if !connection.is_held_asleep() {
            return false;
        }
        if !alone {
            connection.is_not_held_after_all();
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        self.done.waits += 1;
        match connection.nap() {
            Some(nap) if !left.is_zero() => {
                self.done.waits += 1;
                std::thread::sleep(nap.min(left));
                true
            }
            _ => false,
        }
    }

    fn welcome(&mut self) {
        let asked = self.inbox.asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(asked) = asked {
            let mut sum = self.done;
            let sessions = self.connections.iter().flatten().filter_map(Connection::session);
            sessions.for_each(|session| sum.add(&session.counters));
            // Who asked may have given up waiting.
            let _ = asked.send(sum);
        }
        for socket in self.inbox.take() {
            let too_many = self.clients.load(Ordering::Relaxed) > self.options.connections;
            if too_many && !self.end_the_slowest() {
                self.clients.fetch_sub(1, Ordering::Relaxed);
                self.observer.note("a client was turned away: there are too many");
                continue;
            }
            let free = self.connections.iter().position(Option::is_none).unwrap_or(self.connections.len());
            let place = match self.way.add(&socket, free) {
                Ok(place) => place,
                Err(error) => {
                    self.clients.fetch_sub(1, Ordering::Relaxed);
                    self.observer.note(&format!("a client was turned away: {error}"));
                    continue;
                }
            };
            if place >= self.connections.len() {
                self.connections.resize_with(place + 1, || None);
            }
            if let Some(slot) = self.connections.get_mut(place) {
                *slot = Some(Connection::new(socket, self.options.switches.transport));
            }
            self.advance(place, Happened::Turn);
        }
    }

    fn advance(&mut self, place: usize, what: Happened) {
        let Some(Some(connection)) = self.connections.get_mut(place) else { return };
        let (exports, switches) = (self.exports, self.options.switches);
        // What was sent says nothing of what is waited for.
        let waits_on = matches!(what, Happened::Sent(..)) && connection.is_receiving();
        if !waits_on && self.held.is_some_and(|(held, _)| held == place) {
            self.held = None;
        }
        let going = match (what, &self.way) {
            (Happened::Sent(batch, taken), _) => connection.sent(batch, taken, exports, switches),
            (Happened::Received(lent, count), _) => connection.received(lent, count, exports, switches),
            (Happened::Ready, Way::Ring { .. }) => {
                connection.unblock();
                connection.go_on(exports, switches)
            }
            (_, Way::Ring { .. }) => connection.go_on(exports, switches),
            (_, Way::Epoll { .. }) => connection.advance(exports, switches, &mut self.memory),
        };
        match going {
            Going::Receiving | Going::Sending => {}
            Going::Working => self.working.push(place),
            Going::Ended => return self.end(place, None),
            Going::Broken(why) => return self.end(place, Some(why)),
        }
        if !waits_on {
            // A ring receives while it sends.
            let receives =
                going == Going::Receiving || (connection.takes_more() && matches!(self.way, Way::Ring { .. }));
            let may = receives && self.may_hold && self.held.is_none();
            match connection.hold(may, switches.hold) {
                Ok(Some(until)) => self.held = Some((place, until)),
                Ok(None) => {}
                Err(_) => return self.end(place, Some("it cannot be waited for")),
            }
        }
        if let Err(why) = self.way.stage(place, connection, going, switches) {
            self.end(place, Some(why));
        }
    }

    fn end(&mut self, place: usize, why: Option<&str>) {
        drop(self.release(place, why));
    }

    /// A connection that is nobody's any more, and is closed when it is dropped.
    fn release(&mut self, place: usize, why: Option<&str>) -> Option<Connection> {
        let connection = self.connections.get_mut(place).and_then(Option::take)?;
        if self.held.is_some_and(|(held, _)| held == place) {
            self.held = None;
        }
        self.way.remove(place, &connection);
        if self.clients.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.exports.rest();
        }
        if let Some(session) = connection.session() {
            self.done.add(&session.counters);
        }
        if let Some(why) = why {
            self.observer.note(&format!("a client's connection was ended: {why}"));
        }
        Some(connection)
    }

    /// Ends who negotiates for too long; whether anybody still does.
    fn end_the_slow(&mut self, patience: Duration) -> bool {
        let slow =
            |connection: &Connection| connection.negotiating_since().is_some_and(|since| since.elapsed() >= patience);
        for place in 0..self.connections.len() {
            if self.connections.get(place).is_some_and(|connection| connection.as_ref().is_some_and(slow)) {
                self.end(place, Some("it did not finish the handshake in time"));
            }
        }
        self.connections.iter().flatten().any(|connection| connection.negotiating_since().is_some())
    }

    /// One who still negotiates makes room for one who may have something to do; whether there was one.
    fn end_the_slowest(&mut self) -> bool {
        let since = |place: &usize| self.connections.get(*place)?.as_ref()?.negotiating_since();
        let slowest = (0..self.connections.len()).filter(|place| since(place).is_some()).min_by_key(since);
        if let Some(place) = slowest {
            self.end(place, Some("it made room for another client"));
        }
        slowest.is_some()
    }
}
