//! One server thread with its connections: waits for any of them (epoll) and lets it advance. In: clients from the
//! inbox; out: counters and log lines. No other thread touches its connections. At the end it executes and replies to what
//! has arrived, within five seconds, and disconnects every client.

use super::connection::Connection;
use super::inbox::{Inbox, Waker};
use super::requests::{Next, TURN};
use super::{Counters, Server};
use crate::socket::{Socket, timespec};
use crate::{Error, Result};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::Shutdown;
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Size of the receive buffer: more than a hundred requests, or several writes.
const MEMORY_BYTES: usize = 256 << 10;
/// Interval at which handshakes are checked for their time limit.
const HANDSHAKE_CHECK: Duration = Duration::from_secs(1);
/// Epoll events taken per call.
const MAX_EVENTS: usize = 256;
/// The epoll data value of the inbox.
const INBOX: usize = usize::MAX;

/// Time limit of the shutdown, exceeded at most by a request of the storage that has begun.
const LIMIT: Duration = Duration::from_secs(5);
/// Clients in the middle of a request are then disconnected after this long without any event.
const QUIET: Duration = Duration::from_millis(100);
/// Minimum time for the last replies to reach the clients, if executing the requests took the whole time limit.
const DELIVERY: Duration = Duration::from_millis(200);

/// The state of one thread.
pub(super) struct EventLoop<'a> {
    pub(super) inbox: Arc<Inbox>,
    clients: Receiver<Option<(Socket, String)>>,
    /// The server ends.
    closed: bool,
    epoll: OwnedFd,
    server: &'a Server<'a>,
    slots: Vec<Option<Connection>>,
    memory: Vec<u8>,
    /// The one connection on which requests are being coalesced, and the deadline.
    coalescing: Option<(usize, Instant)>,
    /// Whether coalescing may start now.
    may_coalesce: bool,
    /// Connections that yielded and have more to do, in the order of their turns.
    runnable: VecDeque<usize>,
    /// No request starts after this time.
    deadline: Option<Instant>,
    done: Counters,
}

/// An epoll event: the place of a connection, or the inbox.
type Ready = usize;

impl<'a> EventLoop<'a> {
    pub(super) fn new(server: &'a Server<'a>) -> Result<Self> {
        let (sender, clients) = channel();
        let waker = Waker::new().map_err(|error| Error::system("making an eventfd", error))?;
        let failed = |error: rustix::io::Errno| Error::system("creating an epoll instance", error.into());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        epoll::add(&epoll, &waker, EventData::new_u64(INBOX as u64), EventFlags::IN).map_err(failed)?;
        Ok(Self {
            inbox: Arc::new(Inbox { clients: sender, waker }),
            clients,
            closed: false,
            epoll,
            server,
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
        let mut ready = Vec::with_capacity(MAX_EVENTS);
        let (mut checked, mut handshakes) = (Instant::now(), false);
        while !self.closed {
            // A connecting client wakes this loop; until its handshake is finished, waits have a timeout.
            self.wait(&mut ready, handshakes);
            if let Some((place, until)) = self.coalescing
                && Instant::now() >= until
            {
                // Do not coalesce again before something arrives.
                self.may_coalesce = false;
                self.advance(place);
            }
            // With several clients ready, requests accumulate without a wait.
            let (tuning, alone) = (&self.server.options.tuning, ready.len() == 1);
            self.may_coalesce = alone && !tuning.coalesce.is_zero() && tuning.framing.most_received().is_none();
            handshakes |= ready.contains(&INBOX);
            self.attend(&mut ready);
            if checked.elapsed() >= HANDSHAKE_CHECK {
                checked = Instant::now();
                handshakes = self.end_slow_handshakes();
            }
        }
        self.shut_down(&mut ready);
        self.done
    }

    /// Advances the connections that are ready, and then those that yielded: for one turn, whatever their number, so that
    /// a client that becomes ready waits no longer than that.
    fn attend(&mut self, ready: &mut Vec<Ready>) {
        let yielded = self.runnable.len();
        for place in ready.drain(..) {
            match place {
                INBOX => self.welcome(),
                // It takes its turn below; so does anything it sent since, including its disconnect.
                place if self.runnable.contains(&place) => {}
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
        let busy_poll = self.server.options.tuning.busy_poll;
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
    fn poll(&mut self, ready: &mut Vec<Ready>, timeout: Option<Duration>) {
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
            Ok((events, _)) => ready.extend(events.iter().map(|&epoll::Event { data, .. }| data.u64() as usize)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                self.server.log.note(&format!("epoll_wait failed: {}", io::Error::from(error)));
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Reads the inbox: admits new clients.
    fn welcome(&mut self) {
        // Before the clients are taken: what comes later wakes the loop again.
        self.inbox.waker.clear();
        while let Ok(client) = self.clients.try_recv() {
            match client {
                Some(_) if self.closed => {}
                Some((socket, peer)) => {
                    if let Err(why) = self.admit(socket, &peer) {
                        self.server.clients.fetch_sub(1, Ordering::Relaxed);
                        self.server.log.note(&format!("{peer} refused: {why}"));
                    }
                }
                None => self.closed = true,
            }
        }
    }

    fn admit(&mut self, socket: Socket, peer: &str) -> io::Result<()> {
        let place = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        epoll::add(&self.epoll, &socket, EventData::new_u64(place as u64), EventFlags::IN)?;
        if place >= self.slots.len() {
            self.slots.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Some(Connection::new(socket, peer.to_owned()));
        }
        self.advance(place);
        Ok(())
    }

    fn advance(&mut self, place: usize) {
        let Some(Some(connection)) = self.slots.get_mut(place) else { return };
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return;
        }
        if self.coalescing.is_some_and(|(other, _)| other == place) {
            self.coalescing = None;
        }
        let tuning = self.server.options.tuning;
        let next = connection.advance(self.server.export, tuning, &mut self.memory);
        let interest = if next == Next::Send { EventFlags::OUT } else { EventFlags::IN };
        match next {
            Next::Receive | Next::Send => {}
            Next::Yield => {
                if !self.runnable.contains(&place) {
                    self.runnable.push_back(place);
                }
            }
            Next::End(why) => return self.end(place, why),
        }
        let may = next == Next::Receive && self.may_coalesce && self.coalescing.is_none();
        let waits = connection.coalesce(may, tuning.coalesce);
        if let Ok(Some(until)) = waits {
            self.coalescing = Some((place, until));
        }
        let mut modified = Ok(());
        if connection.interest != interest {
            connection.interest = interest;
            let data = EventData::new_u64(place as u64);
            modified = epoll::modify(&self.epoll, &connection.socket, data, interest);
        }
        if waits.is_err() || modified.is_err() {
            self.end(place, Some("cannot wait for events of its socket"));
        }
    }

    fn end(&mut self, place: usize, why: Option<&str>) {
        drop(self.release(place, why));
    }

    /// Removes a connection from the loop. Dropping it closes the socket.
    fn release(&mut self, place: usize, why: Option<&str>) -> Option<Connection> {
        let connection = self.slots.get_mut(place).and_then(Option::take)?;
        if self.coalescing.is_some_and(|(other, _)| other == place) {
            self.coalescing = None;
        }
        let _ = epoll::delete(&self.epoll, &connection.socket);
        self.server.clients.fetch_sub(1, Ordering::Relaxed);
        if let Some(requests) = &connection.requests {
            self.done.add(&requests.counters);
        }
        if let Some(why) = why {
            self.server.log.note(&format!("{}: connection closed: {why}", connection.peer));
        }
        Some(connection)
    }

    /// Closes connections whose handshake exceeds the time limit. Returns whether any handshake is in progress.
    fn end_slow_handshakes(&mut self) -> bool {
        let timeout = self.server.options.handshake_timeout;
        let mut in_progress = false;
        for place in 0..self.slots.len() {
            let shaking = |known: &&Connection| known.requests.is_none();
            match self.slots.get(place).and_then(Option::as_ref).filter(shaking) {
                Some(slow) if slow.since.elapsed() >= timeout => self.end(place, Some("handshake timed out")),
                Some(_) => in_progress = true,
                None => {}
            }
        }
        in_progress
    }

    fn shut_down(&mut self, ready: &mut Vec<Ready>) {
        let deadline = Instant::now() + LIMIT;
        (self.deadline, self.may_coalesce) = (Some(deadline), false);
        // Advance every connection once, without waiting for its client to send more.
        self.runnable = (0..self.slots.len()).collect();
        let mut ended = Vec::new();
        while self.slots.iter().any(Option::is_some) && Instant::now() < deadline {
            self.poll(ready, Some(if self.runnable.is_empty() { QUIET } else { Duration::ZERO }));
            let quiet = ready.is_empty() && self.runnable.is_empty();
            self.attend(ready);
            ended.extend(self.disconnect_the_done(quiet));
        }
        for place in 0..self.slots.len() {
            ended.extend(self.disconnect(place, Some("the server shut down before its requests finished")));
        }
        // Closing a socket with unread data resets the connection, which loses replies that have not been delivered.
        let delivered_by = deadline.max(Instant::now() + DELIVERY);
        while Instant::now() < delivered_by && ended.iter().any(|connection| connection.socket.has_unacknowledged()) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Disconnects clients whose requests are all finished and, when `quiet`, those that stopped in the middle of a
    /// request.
    fn disconnect_the_done(&mut self, quiet: bool) -> Vec<Connection> {
        let mut ended = Vec::new();
        for place in 0..self.slots.len() {
            let Some(Some(connection)) = self.slots.get(place) else { continue };
            if connection.is_done() {
                ended.extend(self.disconnect(place, None));
            } else if quiet && !connection.is_sending() {
                ended.extend(self.disconnect(place, Some("the server shut down in the middle of a request")));
            }
        }
        ended
    }

    /// Shuts down sending. Replies may not have been delivered yet.
    fn disconnect(&mut self, place: usize, why: Option<&str>) -> Option<Connection> {
        let connection = self.release(place, why)?;
        connection.socket.shut_down(Shutdown::Write);
        Some(connection)
    }
}
