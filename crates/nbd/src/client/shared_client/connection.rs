//! What the threads of a shared connection share: submitters fill slots, one of them or a thread sends the requests, and a
//! thread receives the replies and delivers them. No lock guards a slot: a state word publishes each change.

use crate::client::connect::is_nothing;
use crate::client::{Ask, Done, POLL_INTERVAL, apart, not_in_flight, simple_header, together};
use crate::lock;
use crate::socket::Socket;
use crate::transmit_queue::{Then, TransmitQueue};
use crate::tuning::{Sending, Tuning};
use crate::wire::{Command, Request, SIMPLE_REPLY_BYTES, WireError};
use rustix::event::PollFlags;
use rustix::net::Shutdown;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use sys::byte_store::{ByteStore, Waiting};
use sys::clock::ticks;
use sys::send_batch::SendBatch;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) socket: Socket,
    pub(super) arena: Arc<ByteStore>,
    pub(super) slot_bytes: usize,
    pub(super) slots: Vec<Slot>,
    pub(super) queue: TransmitQueue,
    pub(super) sender: Mutex<Sender>,
    pub(super) mailboxes: Vec<Mailbox>,
    /// Slots per submitter.
    pub(super) depth: u32,
    /// Why the connection was lost, if it was.
    pub(super) lost: Mutex<Option<String>>,
    pub(super) ended: AtomicBool,
    pub(super) silence: Duration,
    pub(super) sends: AtomicU64,
    pub(super) receives: AtomicU64,
}

/// Completed requests of one submitter.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    pub(super) mail: Mutex<Mail>,
    pub(super) arrived: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct Mail {
    pub(super) done: Vec<Done>,
    /// Whether the submitter is waiting for the condition variable.
    pub(super) awaited: bool,
    pub(super) lost: bool,
}

/// Set with the operation: the request was handed to the kernel, and a reply may come.
const HANDED_OVER: u64 = 0x80;

/// The operation in a slot's state.
fn ask(state: u64) -> Option<Ask> {
    Some(match state & 0x7f {
        1 => Ask::Read,
        2 => Ask::Write,
        3 => Ask::Trim,
        4 => Ask::Flush,
        _ => return None,
    })
}

/// One slot, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Slot {
    /// Operation in the low byte (0: no request), generation above it. Written last, read first.
    state: AtomicU64,
    offset: AtomicU64,
    length: AtomicU32,
    /// When the request was handed to the kernel, in ticks.
    handed_over: AtomicU64,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    slot: u32,
    ask: Ask,
    length: u32,
    handed_over: u64,
}

impl Inner {
    /// Offset of a slot in the arena.
    pub(super) fn begin(&self, slot: u32) -> usize {
        slot as usize * self.slot_bytes
    }

    /// Fills a slot with a request. Returns false if the slot is in use or too small.
    #[inline]
    pub(super) fn fill(&self, slot: u32, ask: Ask, offset: u64, length: u32) -> bool {
        let Some(entry) = self.slots.get(slot as usize) else { return false };
        // Relaxed: only its owner fills it, and learned that it is free from the thread that freed it.
        let state = entry.state.load(Ordering::Relaxed);
        let fits = length as usize <= self.slot_bytes || matches!(ask, Ask::Trim | Ask::Flush);
        if state & 0xff != 0 || !fits {
            return false;
        }
        let (offset, length) = if ask == Ask::Flush { (0, 0) } else { (offset, length) };
        entry.offset.store(offset, Ordering::Relaxed);
        entry.length.store(length, Ordering::Relaxed);
        let generation = ((state >> 8) as u32).wrapping_add(1);
        entry.state.store(u64::from(generation) << 8 | (ask as u64 + 1), Ordering::Release);
        true
    }

    /// The request that a reply belongs to; `None` if there is none or it is still queued: a server that predicts a
    /// cookie must not free a queued slot.
    #[inline]
    fn in_flight(&self, cookie: u64) -> Option<InFlight> {
        let (slot, generation) = apart(cookie);
        let entry = self.slots.get(slot as usize)?;
        let state = entry.state.load(Ordering::Acquire);
        let ask = ask(state).filter(|_| (state >> 8) as u32 == generation && state & HANDED_OVER != 0)?;
        let (length, handed_over) = (entry.length.load(Ordering::Relaxed), entry.handed_over.load(Ordering::Relaxed));
        Some(InFlight { slot, ask, length, handed_over })
    }

    /// Queues or sends the requests in these slots.
    pub(super) fn submit(&self, slots: &[u32]) {
        match self.queue.put(slots) {
            Then::Nothing => {}
            Then::Send => lock(&self.sender).send(slots, self),
            Then::Drain => self.drain(),
        }
    }

    /// Sends everything in the queue.
    fn drain(&self) {
        let mut sender = lock(&self.sender);
        let mut scratch = std::mem::take(&mut sender.scratch);
        self.queue.drain(&mut scratch, |slots| sender.send(slots, self));
        sender.scratch = scratch;
    }

    /// The main function of the thread that drains the queue.
    pub(super) fn transmit(&self, cpus: &[u32]) {
        if !cpus.is_empty()
            && let Err(error) = sys::schedule::pin_to(cpus)
        {
            return self.lose(format!("cannot pin the transmit thread to CPU {cpus:?}: {error}"));
        }
        self.queue.run_task(|| self.ended.load(Ordering::Acquire), || self.drain());
    }

    /// Marks the connection as lost and wakes every submitter.
    fn lose(&self, why: String) {
        lock(&self.lost).get_or_insert(why);
        // Wakes a thread that waits for the socket to become writable.
        self.socket.shut_down(Shutdown::Both);
        for mailbox in &self.mailboxes {
            let mut mail = lock(&mailbox.mail);
            (mail.lost, mail.awaited) = (true, false);
            mailbox.arrived.notify_one();
        }
    }
}

/// The sending state, used by the thread that drains the queue. It receives nothing.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) batch: SendBatch,
    pub(super) tuning: Tuning,
    /// Reused memory for the drained slots.
    pub(super) scratch: Vec<u32>,
}

impl Sender {
    /// Sends the requests of these slots with as few system calls as the socket buffer allows. Waits while the server
    /// accepts no data; another thread receives replies meanwhile.
    fn send(&mut self, slots: &[u32], inner: &Inner) {
        let now = ticks();
        for &slot in slots {
            let Some(entry) = inner.slots.get(slot as usize) else { continue };
            let state = entry.state.load(Ordering::Acquire);
            let Some(command) = ask(state).map(Ask::command) else { continue };
            let (offset, length) = (entry.offset.load(Ordering::Relaxed), entry.length.load(Ordering::Relaxed));
            let cookie = together(slot, (state >> 8) as u32);
            self.batch.put(&Request { flags: 0, command, cookie, offset, length }.encode());
            if command == Command::Write {
                match self.tuning.sending(length) {
                    Sending::PullUp => self.batch.pull_up(inner.begin(slot), length as usize),
                    Sending::Gather | Sending::ZeroCopy => self.batch.gather(inner.begin(slot), length as usize),
                }
            }
            entry.handed_over.store(now, Ordering::Relaxed);
            entry.state.fetch_or(HANDED_OVER, Ordering::Release);
        }
        self.flush(inner);
    }

    fn flush(&mut self, inner: &Inner) {
        let mut taken = Instant::now();
        while self.batch.unsent() > 0 {
            match self.batch.send(&inner.socket) {
                Ok(_) => {
                    inner.sends.fetch_add(1, Ordering::Relaxed);
                    taken = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if inner.ended.load(Ordering::Acquire) {
                        return;
                    }
                    if taken.elapsed() >= inner.silence {
                        self.batch.clear();
                        let seconds = inner.silence.as_secs_f64();
                        return inner.lose(format!("the server has accepted no data for {seconds:.1} s"));
                    }
                    let _ = inner.socket.wait_for(PollFlags::OUT, POLL_INTERVAL);
                }
                Err(error) => {
                    self.batch.clear();
                    return inner.lose(error.to_string());
                }
            }
        }
    }

    /// Sends a disconnect request as a courtesy; without it, the server sees the connection close.
    pub(super) fn disconnect(&mut self, socket: &Socket) {
        if self.batch.unsent() == 0 {
            self.batch.put(&Request::DISCONNECT.encode());
            let _ = self.batch.send(socket);
        }
    }
}

/// The state of the receiving thread. It sends nothing.
pub(super) struct Receiver {
    pub(super) inner: Arc<Inner>,
    pub(super) memory: Vec<u8>,
    /// The part of `memory` that was received and not used yet.
    pub(super) there: Range<usize>,
    /// A read whose payload is arriving, and the number of bytes that have arrived.
    pub(super) arriving: Option<(InFlight, usize)>,
    /// Copy-out threshold: payload bytes still missing beyond this are received in place.
    pub(super) copied: usize,
    /// Completed requests of each submitter, not delivered yet.
    pub(super) done: Vec<Vec<Done>>,
}

impl Receiver {
    /// Receives until the connection ends.
    pub(super) fn run(mut self) {
        let why = loop {
            if let Err(why) = self.parse() {
                break why;
            }
            for (mailbox, done) in self.inner.mailboxes.iter().zip(&mut self.done) {
                if done.is_empty() {
                    continue;
                }
                let mut mail = lock(&mailbox.mail);
                mail.done.append(done);
                if std::mem::take(&mut mail.awaited) {
                    mailbox.arrived.notify_one();
                }
            }
            if let Err(why) = self.receive() {
                break why;
            }
        };
        self.inner.lose(why);
    }

    fn receive(&mut self) -> Result<(), String> {
        let Range { start, end } = self.there;
        self.memory.copy_within(start..end, 0);
        self.there = 0..end - start;
        let inner = &self.inner;
        let rest = self.arriving.map(|(read, there)| (read, there, read.length as usize - there));
        let in_place = rest.filter(|(.., rest)| *rest > self.copied);
        let received = match in_place {
            Some((read, there, rest)) => {
                inner.arena.receive(inner.begin(read.slot) + there, rest, &inner.socket, Waiting::UntilSome)
            }
            None => {
                let free = self.memory.get_mut(self.there.end..).unwrap_or_default();
                inner.socket.receive(free, Waiting::UntilSome)
            }
        };
        inner.receives.fetch_add(1, Ordering::Relaxed);
        match (received, in_place) {
            (Ok(0), _) => return Err("the server closed the connection".to_owned()),
            (Ok(count), Some((read, there, _))) => self.arrived(read, there + count),
            (Ok(count), None) => self.there.end += count,
            (Err(error), _) if is_nothing(&error) => {}
            (Err(error), _) => return Err(error.to_string()),
        }
        Ok(())
    }

    fn parse(&mut self) -> Result<(), String> {
        loop {
            let rest = self.memory.get(self.there.clone()).unwrap_or_default();
            if let Some((read, there)) = self.arriving {
                let part = rest.get(..rest.len().min(read.length as usize - there)).unwrap_or_default();
                if part.is_empty() {
                    return Ok(());
                }
                self.inner.arena.write(self.inner.begin(read.slot) + there, part);
                let count = part.len();
                self.there.start += count;
                self.arrived(read, there + count);
                continue;
            }
            let header = simple_header(rest).map_err(|error| error.to_string())?;
            let Some((cookie, error)) = header else { return Ok(()) };
            self.there.start += SIMPLE_REPLY_BYTES;
            let request = self.inner.in_flight(cookie).ok_or_else(|| not_in_flight(cookie))?;
            if request.ask == Ask::Read && error.is_none() {
                self.arrived(request, 0);
            } else {
                self.finish(request, error);
            }
        }
    }

    /// Records how many bytes of a read's payload have arrived.
    fn arrived(&mut self, read: InFlight, there: usize) {
        self.arriving = (there < read.length as usize).then_some((read, there));
        if self.arriving.is_none() {
            self.finish(read, None);
        }
    }

    fn finish(&mut self, request: InFlight, error: Option<WireError>) {
        let InFlight { slot, length, handed_over, .. } = request;
        if let Some(entry) = self.inner.slots.get(slot as usize) {
            // Relaxed: only the receiver frees.
            let state = entry.state.load(Ordering::Relaxed);
            entry.state.store(state & !0xff, Ordering::Release);
        }
        if let Some(done) = self.done.get_mut((slot / self.inner.depth.max(1)) as usize) {
            done.push(Done { slot, length, error, handed_over, answered: ticks() });
        }
    }
}
