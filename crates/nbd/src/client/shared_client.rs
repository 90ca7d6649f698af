//! One connection for several threads: each thread has its own slots and submits through one transmit queue; one thread
//! receives for all.
//!
//! [`transmit_queue`] defines how the queue is filled and who drains it.

mod connection;

use super::connect::{negotiate, reach};
use super::{Ask, Connection, Done, MEMORY_BYTES, POLL_INTERVAL, Syscalls, Uri};
use crate::handshake::client::Export;
pub use crate::transmit_queue::Queueing;
use crate::transmit_queue::{self, TransmitQueue};
use crate::tuning::{Framing, Tuning};
use crate::wire::REQUEST_BYTES;
use crate::{Error, Result, lock, payload_memory};
use connection::{Inner, Mailbox, Receiver, Sender, Slot};
use rustix::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::byte_store::ByteStore;
use sys::send_batch::SendBatch;

/// Options of a shared connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedOptions {
    /// The switches. Those for sending, receiving, and copying payloads apply. Replies are not coalesced; any other
    /// switch that is not at its default is refused.
    pub tuning: Tuning,
    /// How the threads send.
    pub queueing: Queueing,
    /// Time limit for a server to accept more data while there are data to send.
    pub silence: Duration,
    /// CPUs of the thread that drains the ring of [`Queueing::RingTask`]; empty: the CPUs allowed to the connecting
    /// thread, as for the receiving thread.
    pub task_cpus: Vec<u32>,
    /// Time limit of the handshake, from the first byte to the last.
    pub handshake_timeout: Duration,
}

/// A connection that several threads share. It closes when the last of its [`Submitter`]s is dropped.
#[derive(Debug)]
pub struct SharedClient {
    inner: Arc<Inner>,
    export: Export,
    /// Which submitter numbers are in use.
    taken: Mutex<Vec<bool>>,
    threads: Vec<JoinHandle<()>>,
}

impl SharedClient {
    /// Connects, negotiates the export, and provides `depth` slots of `slot_bytes` each to up to `submitters` threads.
    ///
    /// # Errors
    /// When the server is unreachable or refuses, when memory is not available, or when the tuning is not supported on
    /// shared connections.
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
            return Err(Error::Server(format!(
                "{slots} requests in flight exceed the limit of a shared connection, {most}"
            )));
        }
        let socket = reach(uri, options.handshake_timeout)?;
        let mut memory = vec![0; MEMORY_BYTES];
        let (export, begin, end) = negotiate(&socket, &uri.export, false, options.handshake_timeout, &mut memory)?;
        let arena = payload_memory(slot_bytes.saturating_mul(slots), false, options.tuning.copying);
        let arena = arena.map_err(|error| Error::system("allocating memory for payloads", error))?;
        let batch = SendBatch::new(Some(arena.clone()));
        let inner = Arc::new(Inner {
            socket,
            arena,
            slot_bytes,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            queue: TransmitQueue::new(options.queueing, slots),
            sender: Mutex::new(Sender { batch, tuning: options.tuning, scratch: Vec::new() }),
            mailboxes: (0..submitters).map(|_| Mailbox::default()).collect(),
            depth,
            lost: Mutex::default(),
            ended: AtomicBool::new(false),
            silence: options.silence,
            sends: AtomicU64::new(0),
            receives: AtomicU64::new(0),
        });
        let taken = Mutex::new(vec![false; submitters as usize]);
        let mut shared = Self { inner: inner.clone(), export, taken, threads: Vec::new() };
        let done = (0..submitters).map(|_| Vec::new()).collect();
        let copied = options.tuning.copy_out as usize;
        let receiver = Receiver { inner: inner.clone(), memory, there: begin..end, arriving: None, copied, done };
        shared.spawn("iotoll-receive", move || receiver.run())?;
        if options.queueing == Queueing::RingTask {
            shared.spawn("iotoll-transmit", move || inner.transmit(&options.task_cpus))?;
        }
        Ok(Arc::new(shared))
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        self.threads.push(thread.map_err(|error| Error::system("starting a thread", error))?);
        Ok(())
    }

    /// System calls so far, of all threads.
    pub fn syscalls(&self) -> Syscalls {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Syscalls { sends: of(&self.inner.sends), receives: of(&self.inner.receives), ..Syscalls::default() }
    }

    /// Why the connection was lost, if it was.
    pub fn lost(&self) -> Option<String> {
        lock(&self.inner.lost).clone()
    }

    /// A submitter for one more thread; `None` if all are in use.
    pub fn submitter(self: &Arc<Self>) -> Option<Submitter> {
        let mut taken = lock(&self.taken);
        let number = taken.iter().position(|taken| !taken)?;
        *taken.get_mut(number)? = true;
        let first = number as u32 * self.inner.depth;
        let (shared, staged, done) = (self.clone(), Vec::new(), Vec::new());
        Some(Submitter { shared, number, first, staged, staged_bytes: 0, done, in_flight: 0 })
    }
}

impl Drop for SharedClient {
    fn drop(&mut self) {
        self.inner.ended.store(true, Ordering::Release);
        lock(&self.inner.sender).disconnect(&self.inner.socket);
        self.inner.socket.shut_down(Shutdown::Both);
        self.inner.queue.wake_task();
        for thread in self.threads.drain(..) {
            // The runtime has already reported a panic there.
            let _ = thread.join();
        }
    }
}

/// Refuses switches that shared connections do not support.
fn refuse(tuning: &Tuning) -> Result<()> {
    let unsupported = [
        (tuning.zero_copy != u32::MAX, "zero copy (path_send=zero-copy)"),
        (tuning.checksums, "a checksum (path_crc=on)"),
        (tuning.framing != Framing::OneGo, "a framing other than one-go (path_framing)"),
        (tuning.segment != u32::MAX, "sending in segments (path_segment)"),
        (!tuning.busy_poll.is_zero(), "busy polling"),
    ];
    match unsupported.into_iter().find(|(used, _)| *used) {
        Some((_, name)) => Err(Error::Server(format!("{name} is not supported on a connection that threads share"))),
        None => Ok(()),
    }
}

/// One thread's handle of a shared connection.
#[derive(Debug)]
pub struct Submitter {
    shared: Arc<SharedClient>,
    number: usize,
    /// Its first slot.
    first: u32,
    staged: Vec<u32>,
    staged_bytes: usize,
    done: Vec<Done>,
    in_flight: u32,
}

impl Submitter {
    pub fn shared(&self) -> &Arc<SharedClient> {
        &self.shared
    }
}

impl Connection for Submitter {
    fn arena(&self) -> &ByteStore {
        &self.shared.inner.arena
    }

    fn begin(&self, slot: u32) -> usize {
        self.shared.inner.begin(self.first + slot)
    }

    fn takes(&self, ask: Ask) -> bool {
        self.shared.export.takes(ask)
    }

    #[inline]
    fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()> {
        let own = slot < self.shared.inner.depth;
        if !own || !self.shared.inner.fill(self.first + slot, ask, offset, length) {
            return Err(Error::Server(format!("slot {slot} is in use or smaller than {length} bytes")));
        }
        self.staged.push(self.first + slot);
        self.staged_bytes += REQUEST_BYTES + if ask == Ask::Write { length as usize } else { 0 };
        self.in_flight += 1;
        Ok(())
    }

    fn staged_bytes(&self) -> usize {
        self.staged_bytes
    }

    /// This thread or another sends them.
    fn submit(&mut self, _: impl FnMut(Done)) -> Result<bool> {
        if !self.staged.is_empty() {
            self.shared.inner.submit(&self.staged);
            self.staged.clear();
            self.staged_bytes = 0;
        }
        Ok(true)
    }

    fn exchange(&mut self, mut each: impl FnMut(Done)) -> Result<bool> {
        self.submit(&mut each)?;
        if self.in_flight == 0 {
            return Ok(true);
        }
        let inner = &self.shared.inner;
        let Some(mailbox) = inner.mailboxes.get(self.number) else { return Ok(false) };
        let end = Instant::now() + POLL_INTERVAL;
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

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The first submitter reports all of them, the others 0, so that sums count each once.
    fn calls(&self) -> u64 {
        let syscalls = self.shared.syscalls();
        if self.number == 0 { syscalls.sends + syscalls.receives } else { 0 }
    }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        // Requests in flight still write to its slots, so they cannot be reused.
        if self.in_flight == 0
            && let Some(taken) = lock(&self.shared.taken).get_mut(self.number)
        {
            *taken = false;
        }
    }
}
