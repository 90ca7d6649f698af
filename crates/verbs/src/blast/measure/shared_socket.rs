//! One socket for all submitters, and a transmit queue between them and it: who sends, and who waits (seed 004).

use super::submitters::{Live, UNKNOWN, WITHIN_BATCH};
use nbd::transmit_queue::{self, Queueing, Then, TransmitQueue};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;
use sys::datagrams::{ManySender, NumberedDatagrams};

/// Packets that a submitter may have in the queue; fewer if there are many submitters.
const SLOTS: usize = 256;
/// Spins before a submitter without a free slot sleeps until half of them are free: if it yielded its CPU instead, that would be most
/// of the context switches.
const SPINS: u32 = 100;
/// Longest sleep, after which a submitter looks whether it is to stop.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
/// The submitter does not sleep.
const AWAKE: u64 = u64::MAX;

/// The socket, its queue, and the packets in it.
pub(super) struct SharedSocket {
    queue: TransmitQueue,
    /// Slots of each submitter: those of the first, then those of the second, and so on.
    each: usize,
    lanes: Vec<Lane>,
    sender: Mutex<SharedSender>,
    ended: AtomicBool,
}

/// How far the packets of one submitter are. They leave the queue in the order in which it put them.
#[derive(Debug)]
#[repr(align(128))]
struct Lane {
    /// Packets that left the queue. Only the thread that sends writes it.
    done: AtomicU64,
    /// The submitter sleeps until `done` is this.
    wake_at: AtomicU64,
    submitter: OnceLock<Thread>,
}

impl Lane {
    fn new() -> Self {
        Self { done: AtomicU64::new(0), wake_at: AtomicU64::new(AWAKE), submitter: OnceLock::new() }
    }

    /// Waits until one of its slots is free, after it has put `put` packets. `false` if it is to stop.
    fn wait_for_slot(&self, put: u64, slots: u64, stop: &AtomicBool) -> bool {
        let waiting = || put.saturating_sub(self.done.load(Ordering::Acquire));
        for _ in 0..SPINS {
            if waiting() < slots {
                return !stop.load(Ordering::Relaxed);
            }
            std::hint::spin_loop();
        }
        self.submitter.get_or_init(std::thread::current);
        let half = slots / 2;
        while waiting() > half {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            self.wake_at.store(put.saturating_sub(half), Ordering::Relaxed);
            // The other fence is in `SharedSender::send`: this thread sees `done`, or the sender sees `wake_at`.
            fence(Ordering::SeqCst);
            if waiting() > half {
                std::thread::park_timeout(LONGEST_SLEEP);
            }
            self.wake_at.store(AWAKE, Ordering::Relaxed);
        }
        !stop.load(Ordering::Relaxed)
    }

    /// Wakes the submitter if it sleeps and half of its slots are free.
    fn wake(&self) {
        if self.done.load(Ordering::Relaxed) >= self.wake_at.load(Ordering::Relaxed)
            && let Some(submitter) = self.submitter.get()
        {
            self.wake_at.store(AWAKE, Ordering::Relaxed);
            submitter.unpark();
        }
    }
}

/// Sends what the queue passes.
pub(super) struct SharedSender {
    socket: UdpSocket,
    datagrams: ManySender,
    live: Arc<Live>,
    sent: u64,
    failed: BTreeMap<i32, u64>,
    scratch: Vec<u32>,
}

impl SharedSender {
    pub fn new(socket: UdpSocket, datagrams: NumberedDatagrams, live: Arc<Live>) -> Self {
        let datagrams = ManySender::new(datagrams);
        Self { socket, datagrams, live, sent: 0, failed: BTreeMap::new(), scratch: Vec::new() }
    }

    /// Sends a packet for each slot, in order, and frees the slots; `lane` finds whose slot it is. A refused packet is not sent again,
    /// as with a send for each. Numbers advance on success only.
    fn send<'a>(&mut self, slots: &[u32], lane: impl Fn(u32) -> Option<&'a Lane>) {
        for batch in slots.chunks(self.datagrams.count().max(1)) {
            let mut left = batch.len();
            while left > 0 {
                match self.datagrams.send(&self.socket, self.sent, left) {
                    Ok(taken) => {
                        self.sent += taken.count as u64;
                        left = left.saturating_sub(taken.count);
                        if taken.refused_next {
                            self.refused(WITHIN_BATCH);
                            left = left.saturating_sub(1);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.refused(error.raw_os_error().unwrap_or(UNKNOWN));
                        left -= 1;
                    }
                }
            }
            self.live.sent.store(self.sent, Ordering::Relaxed);
            let lanes = || batch.iter().filter_map(|slot| lane(*slot));
            lanes().for_each(|lane| lane.done.store(lane.done.load(Ordering::Relaxed) + 1, Ordering::Release));
            fence(Ordering::SeqCst);
            lanes().for_each(Lane::wake);
        }
    }

    /// Counts a packet that the kernel refused.
    #[cold]
    fn refused(&mut self, error: i32) {
        *self.failed.entry(error).or_default() += 1;
        let before = self.live.failed.load(Ordering::Relaxed);
        self.live.failed.store(before + 1, Ordering::Relaxed);
    }
}

impl SharedSocket {
    pub fn new(queueing: Queueing, submitters: usize, sender: SharedSender) -> Self {
        // A ring has room for twice the slots.
        let each = (transmit_queue::MOST / 2 / submitters.max(1)).clamp(1, SLOTS);
        Self {
            each,
            queue: TransmitQueue::new(queueing, submitters * each),
            lanes: (0..submitters).map(|_| Lane::new()).collect(),
            sender: Mutex::new(sender),
            ended: AtomicBool::new(false),
        }
    }

    /// Queues one packet after another until it is to stop, and sends when it is this thread's turn.
    pub fn submit(&self, submitter: usize, stop: &AtomicBool) {
        let Some(lane) = self.lanes.get(submitter) else { return };
        let (mut put, mut next) = (0, 0);
        while lane.wait_for_slot(put, self.each as u64, stop) {
            let slots = [u32::try_from(submitter * self.each + next).unwrap_or(u32::MAX)];
            (put, next) = (put + 1, if next + 1 < self.each { next + 1 } else { 0 });
            match self.queue.put(&slots) {
                Then::Nothing => {}
                Then::Send => self.sender().send(&slots, |slot| self.lane(slot)),
                Then::Drain => self.drain(),
            }
        }
    }

    fn lane(&self, slot: u32) -> Option<&Lane> {
        self.lanes.get(slot as usize / self.each)
    }

    /// The loop of the thread that drains a ring, until the end.
    pub fn run_task(&self) {
        self.queue.run_task(|| self.ended.load(Ordering::Acquire), || self.drain());
    }

    /// Ends that thread, if there is one.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.queue.wake_task();
    }

    /// Packets that the kernel refused, by error number.
    pub fn failed(&self) -> BTreeMap<i32, u64> {
        self.sender().failed.clone()
    }

    fn drain(&self) {
        let mut sender = self.sender();
        let mut scratch = std::mem::take(&mut sender.scratch);
        self.queue.drain(&mut scratch, |slots| sender.send(slots, |slot| self.lane(slot)));
        sender.scratch = scratch;
    }

    fn sender(&self) -> MutexGuard<'_, SharedSender> {
        // Its fields are valid after every statement.
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_sends_in_order_and_ends() {
        for queueing in [Queueing::Lock, Queueing::RingTask, Queueing::MpRing, Queueing::SwapAll] {
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(receiver.local_addr().unwrap()).unwrap();
            let live = Arc::new(Live::default());
            let sender = SharedSender::new(socket, NumberedDatagrams::new(8, 16), live.clone());
            let (shared, stop) = (SharedSocket::new(queueing, 3, sender), AtomicBool::new(false));
            let mut next = 0;
            std::thread::scope(|scope| {
                scope.spawn(|| shared.run_task());
                (0..3).for_each(|number| {
                    _ = scope.spawn({
                        let (shared, stop) = (&shared, &stop);
                        move || shared.submit(number, stop)
                    })
                });
                let mut numbers = 0;
                while numbers < 500 {
                    let mut bytes = [0; 8];
                    receiver.recv(&mut bytes).unwrap();
                    let number = u64::from_le_bytes(bytes);
                    assert!(number >= next, "{queueing:?}: {number} after {next}");
                    (next, numbers) = (number + 1, numbers + 1);
                }
                stop.store(true, Ordering::Relaxed);
                shared.end();
            });
            assert!(live.sent.load(Ordering::Relaxed) >= next, "{queueing:?}");
            assert!(shared.failed().is_empty());
        }
    }
}
