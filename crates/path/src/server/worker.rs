//! A thread with its connections: waits for any of them, and does what they ask for.

use super::connection::{Connection, Going};
use super::counters::Counters;
use super::export::Exports;
use super::{Observer, Options};
use crate::socket::Socket;
use crate::switches::{Framing, Switches};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Received at one go: more than a hundred requests, or several writes.
const MEMORY_BYTES: usize = 256 << 10;
/// Names the inbox among what is waited for.
const INBOX: u64 = u64::MAX;
/// How often it is looked whether somebody negotiates for too long.
const LOOK: Duration = Duration::from_secs(1);
/// After the end, how long a client may take to take its last replies.
const FAREWELL: Duration = Duration::from_secs(5);

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

    /// Asks the thread what it did, and waits for the answer.
    ///
    /// `None`: it is longer than that with one request of a storage.
    pub(super) fn counters(&self) -> Option<Counters> {
        let (told, answer) = channel();
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        self.ring();
        answer.recv_timeout(Duration::from_secs(1)).ok()
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
    epoll: OwnedFd,
    exports: &'a Exports,
    options: &'a Options,
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
        options: &'a Options,
        clients: &'a AtomicUsize,
        observer: &'a dyn Observer,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &inbox.bell, EventData::new_u64(INBOX), EventFlags::IN)?;
        let (connections, memory, held, done) = (Vec::new(), vec![0; MEMORY_BYTES], None, Counters::default());
        Ok(Self {
            inbox,
            epoll,
            exports,
            options,
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
        let mut events = Vec::with_capacity(256);
        let (mut looked, mut negotiating) = (Instant::now(), false);
        while !self.inbox.closed.load(Ordering::Relaxed) {
            // Somebody may have come while nobody negotiated: the inbox rang then, and the next wait has an end.
            self.wait(&mut events, negotiating);
            self.end_a_hold_in_vain();
            // Where several clients have something to ask, requests are gathered without a wait.
            let Switches { hold, framing, .. } = self.options.switches;
            self.may_hold = events.len() == 1 && !hold.is_zero() && framing == Framing::OneGo;
            let working = std::mem::take(&mut self.working);
            for event in events.drain(..) {
                let (flags, place) = (event.flags, event.data.u64());
                match place {
                    INBOX => {
                        self.welcome();
                        negotiating = true;
                    }
                    place
                        if flags.intersects(EventFlags::HUP | EventFlags::ERR)
                            && working.contains(&(place as usize)) =>
                    {
                        self.end(place as usize, Some("the client went away before all was done"));
                    }
                    // What it sent since then waits for its turn.
                    place if working.contains(&(place as usize)) => {}
                    place => self.advance(place as usize),
                }
            }
            working.into_iter().for_each(|place| self.advance(place));
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                negotiating = self.end_the_slow(self.options.patience);
            }
        }
        self.say_farewell(&mut events);
        self.done
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>, negotiating: bool) {
        if !self.working.is_empty() {
            return self.look(events, Some(Duration::ZERO));
        }
        let busy_poll = self.options.switches.busy_poll;
        if !busy_poll.is_zero() {
            let end = Instant::now() + busy_poll;
            // A hold ends when it is over.
            let end = self.held.map_or(end, |(_, held)| end.min(held));
            while Instant::now() < end {
                self.look(events, Some(Duration::ZERO));
                if !events.is_empty() {
                    return;
                }
            }
        }
        if let Some((_, end)) = self.held {
            // epoll_wait knows milliseconds only.
            let left = timespec(end.saturating_duration_since(Instant::now()));
            self.done.waits += 1;
            let _ = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&left));
            return self.look(events, Some(Duration::ZERO));
        }
        self.look(events, negotiating.then_some(LOOK));
    }

    fn look(&mut self, events: &mut Vec<epoll::Event>, limit: Option<Duration>) {
        self.done.waits += 1;
        let limit = limit.map(timespec);
        // A signal, or out of memory: the loop goes on either way.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), limit.as_ref());
    }

    /// What came within the time of a hold is done.
    fn end_a_hold_in_vain(&mut self) {
        if let Some((place, end)) = self.held
            && Instant::now() >= end
        {
            // Who sends nothing more is not held again before something has come.
            self.may_hold = false;
            self.advance(place);
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
            let place = match self.connections.iter().position(Option::is_none) {
                Some(place) => place,
                None => {
                    self.connections.push(None);
                    self.connections.len() - 1
                }
            };
            if let Err(error) = epoll::add(&self.epoll, &socket, EventData::new_u64(place as u64), EventFlags::IN) {
                self.clients.fetch_sub(1, Ordering::Relaxed);
                self.observer.note(&format!("a client was turned away: {error}"));
                continue;
            }
            if let Some(slot) = self.connections.get_mut(place) {
                *slot = Some(Connection::new(socket));
            }
            self.advance(place);
        }
    }

    fn advance(&mut self, place: usize) {
        if self.held.is_some_and(|(held, _)| held == place) {
            self.held = None;
        }
        let Some(Some(connection)) = self.connections.get_mut(place) else { return };
        let going = connection.advance(self.exports, self.options.switches, &mut self.memory);
        let interest = match going {
            Going::Receiving => EventFlags::IN,
            Going::Sending => EventFlags::OUT,
            Going::Working => {
                self.working.push(place);
                EventFlags::IN
            }
            Going::Ended => return self.end(place, None),
            Going::Broken(why) => return self.end(place, Some(why)),
        };
        if connection.interest() != interest {
            connection.set_interest(interest);
            let modified = epoll::modify(&self.epoll, connection.socket(), EventData::new_u64(place as u64), interest);
            if modified.is_err() {
                return self.end(place, Some("it cannot be waited for"));
            }
        }
        let may = going == Going::Receiving && self.may_hold && self.held.is_none();
        match connection.hold(may) {
            Ok(true) => self.held = Some((place, Instant::now() + self.options.switches.hold)),
            Ok(false) => {}
            Err(_) => self.end(place, Some("it cannot be waited for")),
        }
    }

    fn end(&mut self, place: usize, why: Option<&str>) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::take) else { return };
        let _ = epoll::delete(&self.epoll, connection.socket().as_fd());
        self.clients.fetch_sub(1, Ordering::Relaxed);
        if let Some(session) = connection.session() {
            self.done.add(&session.counters);
        }
        if let Some(why) = why {
            self.observer.note(&format!("a client's connection was ended: {why}"));
        }
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

    /// What has arrived is finished and replied to; then everybody is let go.
    fn say_farewell(&mut self, events: &mut Vec<epoll::Event>) {
        let end = Instant::now() + FAREWELL;
        self.may_hold = false;
        for place in 0..self.connections.len() {
            self.advance(place);
        }
        let sending = |worker: &Self| {
            worker.connections.iter().flatten().any(|connection| connection.interest() == EventFlags::OUT)
        };
        while (sending(self) || !self.working.is_empty()) && Instant::now() < end {
            self.look(events, Some(Duration::from_millis(if self.working.is_empty() { 100 } else { 0 })));
            for event in events.drain(..) {
                let (flags, place) = (event.flags, event.data.u64());
                if flags.contains(EventFlags::OUT) {
                    self.advance(place as usize);
                }
            }
            std::mem::take(&mut self.working).into_iter().for_each(|place| self.advance(place));
        }
        for place in 0..self.connections.len() {
            self.end(place, None);
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}
