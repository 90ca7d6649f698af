//! One server thread with its connections: waits for any of them (epoll) and lets it advance. In: clients from the
//! inbox; out: counters and log lines. No other thread touches its connections.

use super::Options;
use super::connection::Connection;
use super::counters::Counters;
use super::export::Exports;
use super::inbox::{Finished, Inbox};
use super::log::Log;
use super::requests::{Next, TURN};
use super::worker::{Order, Workers};
use crate::error::{Error, Result};
use crate::socket::{Peer, Socket, timespec};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Size of the receive buffer: more than a hundred requests, or several writes.
const MEMORY_BYTES: usize = 256 << 10;
/// Interval at which handshakes are checked for their time limit.
const HANDSHAKE_CHECK: Duration = Duration::from_secs(1);
/// Epoll events taken per call.
const MAX_EVENTS: usize = 256;
/// The epoll data value of the inbox.
const INBOX: usize = usize::MAX;

/// The state of one thread.
pub(super) struct EventLoop<'a> {
    pub(super) inbox: Arc<Inbox>,
    epoll: OwnedFd,
    exports: &'a Exports,
    workers: &'a Workers,
    /// Number of orders given to the workers.
    orders: u64,
    /// A copy for this thread, because the busy work is calibrated per thread.
    options: Options,
    /// Number of clients of all threads.
    clients: &'a AtomicUsize,
    log: &'a Log<'a>,
    pub(super) slots: Vec<Option<Slot>>,
    memory: Vec<u8>,
    /// The one connection on which requests are being coalesced, and the deadline.
    coalescing: Option<(usize, Instant)>,
    /// Whether coalescing may start now.
    pub(super) may_coalesce: bool,
    /// Connections that yielded and have more to do, in the order of their turns.
    pub(super) runnable: VecDeque<usize>,
    /// No request starts after this time.
    pub(super) deadline: Option<Instant>,
    done: Counters,
}

/// An epoll event of a connection or of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    place: usize,
    /// The other end has closed the connection.
    hung_up: bool,
}

/// A connection and its epoll interest.
pub(super) struct Slot {
    pub(super) connection: Connection,
    interest: EventFlags,
    /// The number of the order that a worker has to finish.
    ordered: Option<u64>,
}

impl<'a> EventLoop<'a> {
    pub(super) fn new(
        inbox: Arc<Inbox>,
        exports: &'a Exports,
        workers: &'a Workers,
        options: &Options,
        clients: &'a AtomicUsize,
        log: &'a Log<'a>,
    ) -> Result<Self> {
        let failed = |error: rustix::io::Errno| Error::system("creating an epoll instance", error.into());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        epoll::add(&epoll, &inbox.waker, EventData::new_u64(INBOX as u64), EventFlags::IN).map_err(failed)?;
        Ok(Self {
            inbox,
            epoll,
            exports,
            workers,
            orders: 0,
            options: *options,
            clients,
            log,
            slots: Vec::new(),
            memory: vec![0; MEMORY_BYTES],
            coalescing: None,
            may_coalesce: false,
            runnable: VecDeque::new(),
            deadline: None,
            done: Counters::default(),
        })
    }

    /// Serves until the inbox is closed, then shuts down.
    pub(super) fn run(mut self) -> Counters {
        // By default the kernel extends a timeout by up to 50 µs. A failure leaves it at that.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        if let Some(burnt) = self.options.tuning.delay.calibrate() {
            self.log.observer().delays(burnt);
        }
        let mut ready = Vec::with_capacity(MAX_EVENTS);
        let (mut checked, mut handshakes) = (Instant::now(), false);
        while !self.inbox.is_closed() {
            // A connecting client wakes this loop; until its handshake is finished, waits have a timeout.
            self.wait(&mut ready, handshakes);
            self.end_coalescing_timeout();
            // With several clients ready, requests accumulate without a wait.
            let (tuning, alone) = (&self.options.tuning, ready.len() == 1);
            self.may_coalesce = alone && !tuning.coalesce.is_zero() && tuning.framing.most_received().is_none();
            handshakes |= ready.iter().any(|ready| ready.place == INBOX);
            self.attend(&mut ready);
            if checked.elapsed() >= HANDSHAKE_CHECK {
                checked = Instant::now();
                handshakes = self.end_slow_handshakes(self.options.handshake_timeout);
            }
        }
        self.shut_down(&mut ready);
        self.done
    }

    /// Advances the connections that are ready, and then those that yielded: for one turn, whatever their number, so that
    /// a client that becomes ready waits no longer than that.
    pub(super) fn attend(&mut self, ready: &mut Vec<Ready>) {
        let yielded = self.runnable.len();
        let alone = ready.len() == 1 && yielded == 0;
        for Ready { place, hung_up } in ready.drain(..) {
            match place {
                INBOX => self.welcome(),
                // It takes its turn below; so does anything it sent since, including its disconnect.
                place if self.runnable.contains(&place) || !hung_up && self.sleeps_for_more(place, alone) => {}
                place => self.advance(place),
            }
        }
        if yielded == 0 {
            return;
        }
        let begun = Instant::now();
        for _ in 0..yielded {
            let Some(place) = self.runnable.pop_front() else { return };
            self.advance(place);
            if begun.elapsed() >= TURN {
                return;
            }
        }
    }

    /// Waits for events.
    fn wait(&mut self, ready: &mut Vec<Ready>, handshakes: bool) {
        if !self.runnable.is_empty() {
            return self.poll(ready, Some(Duration::ZERO));
        }
        let busy_poll = self.options.tuning.busy_poll;
        if !busy_poll.is_zero() {
            let end = Instant::now() + busy_poll;
            let end = self.coalescing.map_or(end, |(_, until)| end.min(until));
            while Instant::now() < end {
                self.poll(ready, Some(Duration::ZERO));
                if !ready.is_empty() {
                    return;
                }
            }
        }
        let until = self.coalescing.map(|(_, until)| until.saturating_duration_since(Instant::now()));
        self.poll(ready, until.or(handshakes.then_some(HANDSHAKE_CHECK)));
    }

    /// Appends events to `ready`, waiting for at most `timeout`.
    pub(super) fn poll(&mut self, ready: &mut Vec<Ready>, timeout: Option<Duration>) {
        let mut timeout = timeout;
        if let Some(short) = timeout.filter(|timeout| timeout.subsec_nanos() > 0) {
            // epoll_wait has a resolution of milliseconds.
            self.done.waits += 1;
            let _ = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timespec(short)));
            timeout = Some(Duration::ZERO);
        }
        self.done.waits += 1;
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; MAX_EVENTS];
        match epoll::wait(&self.epoll, &mut events[..], timeout.map(timespec).as_ref()) {
            Ok((events, _)) => ready.extend(events.iter().map(|&epoll::Event { flags, data }| Ready {
                place: data.u64() as usize,
                hung_up: flags.intersects(EventFlags::HUP | EventFlags::ERR),
            })),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                self.log.note(&format!("epoll_wait failed: {}", io::Error::from(error)));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Executes what has arrived when a coalescing wait reaches its deadline.
    fn end_coalescing_timeout(&mut self) {
        if let Some((place, until)) = self.coalescing
            && Instant::now() >= until
        {
            // Do not coalesce again before something arrives.
            self.may_coalesce = false;
            self.advance(place);
        }
    }

    /// Sleeps if more is expected on this connection. Returns whether it did.
    fn sleeps_for_more(&mut self, place: usize, alone: bool) -> bool {
        let Some((_, until)) = self.coalescing.filter(|(other, _)| *other == place) else { return false };
        let Some(Some(slot)) = self.slots.get_mut(place) else { return false };
        let left = until.saturating_duration_since(Instant::now());
        let Some(sleep) = slot.connection.sleep_for_more(alone).filter(|_| !left.is_zero()) else { return false };
        self.done.waits += 2;
        std::thread::sleep(sleep.min(left));
        true
    }

    /// Answers a request for counters, resumes connections that a worker has finished with, and admits new clients.
    fn welcome(&mut self) {
        self.inbox.open();
        if let Some(asked) = self.inbox.asked() {
            let mut sum = self.done;
            let requests = self.slots.iter().flatten().filter_map(|slot| slot.connection.requests());
            requests.for_each(|requests| sum.add(&requests.counters));
            // The requester may have stopped waiting.
            let _ = asked.send(sum);
        }
        for Finished { place, number, done } in self.inbox.finished() {
            let Some(Some(slot)) = self.slots.get_mut(place) else { continue };
            // Another connection may have the place of the one that ordered it.
            if slot.ordered == Some(number) {
                slot.ordered = None;
                slot.connection.resume(done);
                self.advance(place);
            }
        }
        for (socket, peer) in self.inbox.take() {
            if self.inbox.is_closed() {
                continue;
            }
            if let Err(why) = self.admit(socket, peer) {
                self.clients.fetch_sub(1, Ordering::Relaxed);
                self.log.note_of(peer, &format!(" refused: {why}"));
            }
        }
    }

    fn admit(&mut self, socket: Socket, peer: Peer) -> std::result::Result<(), String> {
        let too_many = self.clients.load(Ordering::Relaxed) > self.options.connections;
        if too_many && !self.end_slowest_handshake() {
            return Err("too many clients".to_owned());
        }
        let place = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        let interest = EventFlags::IN;
        let added = epoll::add(&self.epoll, &socket, EventData::new_u64(place as u64), interest);
        added.map_err(|error| io::Error::from(error).to_string())?;
        if place >= self.slots.len() {
            self.slots.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Some(Slot { connection: Connection::new(socket, peer), interest, ordered: None });
        }
        self.advance(place);
        Ok(())
    }

    fn advance(&mut self, place: usize) {
        let Some(Some(slot)) = self.slots.get_mut(place) else { return };
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return;
        }
        if self.coalescing.is_some_and(|(other, _)| other == place) {
            self.coalescing = None;
        }
        let tuning = self.options.tuning;
        let next = slot.connection.advance(self.exports, tuning, &mut self.memory);
        if let Some(work) = slot.connection.take_work() {
            self.orders += 1;
            slot.ordered = Some(self.orders);
            self.workers.put(Order { work, inbox: self.inbox.clone(), place, number: self.orders });
        }
        let interest = match next {
            Next::Send => EventFlags::OUT,
            // A disconnect is always reported: once is enough, because the connection is not closed before the worker has
            // finished.
            Next::Wait => EventFlags::ONESHOT,
            _ => EventFlags::IN,
        };
        match next {
            Next::Receive | Next::Send | Next::Wait => {}
            Next::Yield => {
                if !self.runnable.contains(&place) {
                    self.runnable.push_back(place);
                }
            }
            Next::End(why) => return self.end(place, why),
        }
        let may = next == Next::Receive && self.may_coalesce && self.coalescing.is_none();
        let waits = slot.connection.coalesce(may, tuning.coalesce);
        if let Ok(Some(until)) = waits {
            self.coalescing = Some((place, until));
        }
        let mut modified = Ok(());
        if slot.interest != interest {
            slot.interest = interest;
            let data = EventData::new_u64(place as u64);
            modified = epoll::modify(&self.epoll, slot.connection.socket(), data, interest);
        }
        if waits.is_err() || modified.is_err() {
            self.end(place, Some("cannot wait for events of its socket"));
        }
    }

    fn end(&mut self, place: usize, why: Option<&str>) {
        drop(self.release(place, why));
    }

    /// Removes a connection from the loop. Dropping it closes the socket.
    pub(super) fn release(&mut self, place: usize, why: Option<&str>) -> Option<Connection> {
        let Slot { connection, .. } = self.slots.get_mut(place).and_then(Option::take)?;
        if self.coalescing.is_some_and(|(other, _)| other == place) {
            self.coalescing = None;
        }
        let _ = epoll::delete(&self.epoll, connection.socket());
        self.clients.fetch_sub(1, Ordering::Relaxed);
        if let Some(requests) = connection.requests() {
            self.done.add(&requests.counters);
        }
        if let Some(why) = why {
            self.log.note_of(connection.peer(), &format!(": connection closed: {why}"));
        }
        Some(connection)
    }

    fn handshake_since(&self, place: usize) -> Option<Instant> {
        self.slots.get(place)?.as_ref()?.connection.handshake_since()
    }

    /// Closes connections whose handshake exceeds the time limit. Returns whether any handshake is in progress.
    fn end_slow_handshakes(&mut self, timeout: Duration) -> bool {
        for place in 0..self.slots.len() {
            if self.handshake_since(place).is_some_and(|since| since.elapsed() >= timeout) {
                self.end(place, Some("handshake timed out"));
            }
        }
        (0..self.slots.len()).any(|place| self.handshake_since(place).is_some())
    }

    /// Closes the connection that has been in the handshake longest, to make room for a client that may have requests.
    /// Returns whether there was one.
    fn end_slowest_handshake(&mut self) -> bool {
        let places = (0..self.slots.len()).filter(|place| self.handshake_since(*place).is_some());
        let slowest = places.min_by_key(|place| self.handshake_since(*place));
        if let Some(place) = slowest {
            self.end(place, Some("still in the handshake when another client needed its place"));
        }
        slowest.is_some()
    }
}
