//! One connection for many threads: each has slots of its own and submits through one transmit queue; one thread receives for all.
//!
//! How the queue is filled and who drains it is [`transmit_queue`]'s.

mod receiver;
mod sender;
mod table;

use super::connect::{negotiate, reach};
pub use super::transmit_queue::Queueing;
use super::transmit_queue::{self, Then, TransmitQueue};
use super::{Ask, Done, GLANCE, MEMORY_BYTES, Uri};
use crate::error::{Error, Result};
use crate::handshake::client::Export;
use crate::socket::Socket;
use crate::tuning::{Framing, Tuning};
use crate::wire::REQUEST_BYTES;
use receiver::Receiver;
use rustix::net::{Shutdown, shutdown};
use sender::Sender;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::byte_store::ByteStore;
use table::Table;

/// How a shared connection goes about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedOptions {
    /// Of these, how payloads are sent, received and copied. Nothing is coalesced; whatever else is not the default is refused.
    pub tuning: Tuning,
    /// Which thread sends.
    pub queueing: Queueing,
    /// For how long a server may take nothing while there is something to send.
    pub silence: Duration,
    /// Where the thread runs that drains the ring of [`Queueing::RingTask`]; none: where the thread may run that connects, as the one that
    /// receives does.
    pub task_cpus: Vec<u32>,
    /// How long a server may take to agree, from the first byte to the last.
    pub handshake_timeout: Duration,
}

/// What was done on a shared connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedSyscalls {
    /// System calls that sent something.
    pub sends: u64,
    /// System calls that received something.
    pub receives: u64,
}

/// A connection that several threads share. It ends with the last of its [`Submitter`]s.
#[derive(Debug)]
pub struct SharedClient {
    inner: Arc<Inner>,
    export: Export,
    depth: u32,
    /// Which submitters are taken.
    taken: Mutex<Vec<bool>>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Inner {
    socket: Socket,
    table: Table,
    queue: TransmitQueue,
    sender: Mutex<Sender>,
    mailboxes: Vec<Mailbox>,
    /// Slots of each submitter.
    depth: u32,
    /// Why nothing goes any more.
    lost: Mutex<Option<String>>,
    ended: AtomicBool,
    silence: Duration,
    sends: AtomicU64,
    receives: AtomicU64,
}

/// What was replied to one submitter.
#[derive(Debug, Default)]
struct Mailbox {
    mail: Mutex<Mail>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Mail {
    done: Vec<Done>,
    /// Whether its owner sleeps until there is some.
    awaited: bool,
    lost: bool,
}

/// A thread that panicked with the lock left whole what it protects.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedClient {
    /// Connects, agrees, and provides `depth` slots of `slot_bytes` each to at most `submitters` threads.
    ///
    /// # Errors
    /// When there is no server, or it does not agree, or there is no memory, or the tuning is not for shared connections.
    pub fn connect(
        uri: &Uri,
        submitters: u32,
        depth: u32,
        slot_bytes: usize,
        options: SharedOptions,
    ) -> Result<Arc<Self>> {
        refuse(&options.tuning)?;
        let slots = submitters as usize * depth as usize;
        if 2 * slots > transmit_queue::MOST {
            let most = transmit_queue::MOST / 2;
            return Err(Error::Server(format!("{slots} slots are more than one connection has, {most}")));
        }
        let socket = reach(uri, options.handshake_timeout)?;
        let mut memory = vec![0; MEMORY_BYTES];
        let (export, begin, end) = negotiate(&socket, &uri.export, false, options.handshake_timeout, &mut memory)?;
        let arena = ByteStore::zeroed(slot_bytes.saturating_mul(slots));
        let arena = arena.map_err(|error| Error::system("memory for payloads", error))?;
        let table = Table::new(Arc::new(arena.copied(options.tuning.copying)), slots, slot_bytes);
        let inner = Arc::new(Inner {
            socket,
            sender: Mutex::new(Sender::new(&table, options.tuning)),
            table,
            queue: TransmitQueue::new(options.queueing, slots),
            mailboxes: (0..submitters).map(|_| Mailbox::default()).collect(),
            depth,
            lost: Mutex::default(),
            ended: AtomicBool::new(false),
            silence: options.silence,
            sends: AtomicU64::new(0),
            receives: AtomicU64::new(0),
        });
        let mut shared =
            Self { inner, export, depth, taken: Mutex::new(vec![false; submitters as usize]), threads: Vec::new() };
        let receiver = Receiver::new(shared.inner.clone(), memory, begin..end, options.tuning.copy_out as usize);
        shared.spawn("iotoll-receive", move || receiver.run())?;
        if options.queueing == Queueing::RingTask {
            let inner = shared.inner.clone();
            shared.spawn("iotoll-transmit", move || inner.transmit(&options.task_cpus))?;
        }
        Ok(Arc::new(shared))
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(thread.map_err(|error| Error::system("starting a thread", error))?);
        Ok(())
    }

    /// What the server said of the export.
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// System calls so far, of all.
    pub fn syscalls(&self) -> SharedSyscalls {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SharedSyscalls { sends: of(&self.inner.sends), receives: of(&self.inner.receives) }
    }

    /// Why nothing goes any more, if that is so.
    pub fn lost(&self) -> Option<String> {
        lock(&self.inner.lost).clone()
    }

    /// A place for one more thread; `None` when all are taken.
    pub fn submitter(self: &Arc<Self>) -> Option<Submitter> {
        let mut taken = lock(&self.taken);
        let number = taken.iter().position(|taken| !taken)?;
        *taken.get_mut(number)? = true;
        let first = number as u32 * self.depth;
        let (shared, staged, done) = (self.clone(), Vec::new(), Vec::new());
        Some(Submitter { shared, number, first, staged, staged_bytes: 0, done, in_flight: 0 })
    }
}

impl Drop for SharedClient {
    fn drop(&mut self) {
        self.inner.ended.store(true, Ordering::Release);
        lock(&self.inner.sender).disconnect(&self.inner);
        // It can only fail where there is no connection any more.
        let _ = shutdown(&self.inner.socket, Shutdown::Both);
        self.inner.queue.wake_task();
        for thread in self.threads.drain(..) {
            // A panic there was printed; nothing is to be had from it.
            let _ = thread.join();
        }
    }
}

/// What is not for shared connections.
fn refuse(tuning: &Tuning) -> Result<()> {
    let Tuning {
        pull_up: _,
        zero_copy,
        copy_out: _,
        copying: _,
        checksums,
        framing,
        segment,
        coalesce: _,
        busy_poll,
        delay,
    } = tuning;
    let wrong = if *zero_copy != u32::MAX {
        "zero copy"
    } else if *checksums {
        "a checksum"
    } else if *framing != Framing::OneGo {
        "another framing"
    } else if *segment != u32::MAX {
        "sending in segments"
    } else if !busy_poll.is_zero() {
        "busy polling"
    } else if delay.burner.is_some() {
        "busy work (inject_at=wire)"
    } else {
        return Ok(());
    };
    Err(Error::Server(format!("{wrong} is not for a connection that threads share")))
}

impl Inner {
    /// Sees to it that slots are sent, which are filled in.
    fn submit(&self, slots: &[u32]) {
        match self.queue.put(slots) {
            Then::Nothing => {}
            Then::Send => lock(&self.sender).send(slots, self),
            Then::Drain => self.drain(),
        }
    }

    /// Sends what is in the queue.
    fn drain(&self) {
        let mut sender = lock(&self.sender);
        let mut scratch = sender.take_scratch();
        self.queue.drain(&mut scratch, |slots| sender.send(slots, self));
        sender.give_scratch(scratch);
    }

    /// The thread that drains the queue.
    fn transmit(&self, cpus: &[u32]) {
        if !cpus.is_empty()
            && let Err(error) = sys::schedule::pin_to(cpus)
        {
            return self.lose(format!("no thread can be had on CPU {cpus:?}: {error}"));
        }
        self.queue.run_task(&self.ended, || self.drain());
    }

    /// Nothing goes any more: everybody is told.
    fn lose(&self, why: String) {
        lock(&self.lost).get_or_insert(why);
        // A thread that waits for the socket to take more waits no longer.
        let _ = shutdown(&self.socket, Shutdown::Both);
        for mailbox in &self.mailboxes {
            let mut mail = lock(&mailbox.mail);
            (mail.lost, mail.awaited) = (true, false);
            mailbox.arrived.notify_one();
        }
    }

    /// Gives a submitter what was replied to it.
    fn deliver(&self, number: usize, done: &mut Vec<Done>) {
        let Some(mailbox) = self.mailboxes.get(number).filter(|_| !done.is_empty()) else { return };
        let mut mail = lock(&mailbox.mail);
        mail.done.append(done);
        if std::mem::take(&mut mail.awaited) {
            mailbox.arrived.notify_one();
        }
    }
}

/// One thread's part of a shared connection.
#[derive(Debug)]
pub struct Submitter {
    shared: Arc<SharedClient>,
    number: usize,
    /// The first of its slots.
    first: u32,
    staged: Vec<u32>,
    staged_bytes: usize,
    done: Vec<Done>,
    in_flight: u32,
}

impl Submitter {
    /// The connection.
    pub fn shared(&self) -> &Arc<SharedClient> {
        &self.shared
    }

    /// The memory of all slots, of all threads. What lies in the slot of a read that is in flight or has failed may be another's bytes.
    pub fn arena(&self) -> &ByteStore {
        self.shared.inner.table.arena()
    }

    /// Where one of its slots begins there.
    pub fn begin(&self, slot: u32) -> usize {
        self.shared.inner.table.begin(self.first + slot)
    }

    /// Requests that were staged and not replied to.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Bytes of requests that were staged and not handed over.
    pub fn staged_bytes(&self) -> usize {
        self.staged_bytes
    }

    /// System calls so far that sent or received for all; the first submitter tells them, and the others none.
    pub fn calls(&self) -> u64 {
        let syscalls = self.shared.syscalls();
        if self.number == 0 { syscalls.sends + syscalls.receives } else { 0 }
    }

    /// Adds a request to those that the next [`submit`](Self::submit) hands over.
    ///
    /// # Errors
    /// When the slot has a request already, does not exist, or is too small.
    #[inline]
    pub fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
        let own = slot < self.shared.depth;
        if !own || !self.shared.inner.table.fill(self.first + slot, ask, offset, length) {
            return Err(Error::Server(format!("slot {slot} is in use, or is smaller than {length} bytes")));
        }
        self.staged.push(self.first + slot);
        self.staged_bytes += REQUEST_BYTES + if ask == Ask::Write { length as usize } else { 0 };
        self.in_flight += 1;
        Ok(())
    }

    /// Hands over what was staged: it is sent now or soon, by this thread or another.
    pub fn submit(&mut self) {
        if !self.staged.is_empty() {
            self.shared.inner.submit(&self.staged);
            self.staged.clear();
            self.staged_bytes = 0;
        }
    }

    /// Waits until at least one more reply has come, unless nothing is in flight, and gives all that have. Whether any has: if not,
    /// the server has been silent for [`GLANCE`].
    ///
    /// # Errors
    /// When the connection is lost, or the server says what it must not.
    pub fn wait(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        self.submit();
        if self.in_flight == 0 {
            return Ok(true);
        }
        let inner = &self.shared.inner;
        let Some(mailbox) = inner.mailboxes.get(self.number) else { return Ok(false) };
        let end = Instant::now() + GLANCE;
        let mut mail = lock(&mailbox.mail);
        while mail.done.is_empty() {
            if mail.lost {
                drop(mail);
                return Err(Error::Lost(self.shared.lost().unwrap_or_default()));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                mail.awaited = false;
                return Ok(false);
            }
            mail.awaited = true;
            mail = mailbox.arrived.wait_timeout(mail, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut mail.done, &mut self.done);
        drop(mail);
        self.in_flight -= self.done.len() as u32;
        self.done.drain(..).for_each(|done| each(Done { slot: done.slot - self.first, ..done }));
        Ok(true)
    }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        // What is in flight still writes to its slots: nobody gets them then.
        if self.in_flight == 0
            && let Some(taken) = lock(&self.shared.taken).get_mut(self.number)
        {
            *taken = false;
        }
    }
}
