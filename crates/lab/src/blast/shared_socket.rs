//! One socket for all submitters, and a transmit queue between them and it: who sends, and who waits (seed 004).

use super::submitters::{Live, UNKNOWN};
use nbd::transmit_queue::{self, Queueing, Then, TransmitQueue};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sys::datagrams::{ManySender, NumberedDatagrams};

/// Packets that a submitter may have in the queue; fewer if there are many submitters.
const SLOTS: usize = 64;
/// Spins before a submitter without a free slot sleeps: yielding the CPU instead would be most of the context switches.
const SPINS: u32 = 100;
/// Its first sleep; each further one is twice as long. A packet takes the kernel microseconds, and all slots were full.
const FIRST_NAP: Duration = Duration::from_micros(50);
/// Its longest.
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// The socket, its queue, and the packets in it.
pub(super) struct SharedSocket {
    queue: TransmitQueue,
    /// Slots of each submitter.
    each: usize,
    /// By slot: whether its packet waits in the queue.
    waits: Vec<AtomicBool>,
    sender: Mutex<SharedSender>,
    ended: AtomicBool,
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

    /// Sends a packet for each slot, in order, and frees the slots. The kernel numbers them by what it accepts: numbers
    /// advance on success only.
    fn send(&mut self, slots: &[u32], waits: &[AtomicBool]) {
        for batch in slots.chunks(self.datagrams.count().max(1)) {
            let mut left = batch.len();
            while left > 0 {
                match self.datagrams.send(&self.socket, self.sent, left) {
                    Ok(sent) => {
                        self.sent += sent as u64;
                        left -= sent.min(left);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => {
                        *self.failed.entry(error.raw_os_error().unwrap_or(UNKNOWN)).or_default() += 1;
                        let before = self.live.failed.load(Ordering::Relaxed);
                        self.live.failed.store(before + 1, Ordering::Relaxed);
                        left -= 1;
                    }
                }
            }
            self.live.sent.store(self.sent, Ordering::Relaxed);
            let freed = batch.iter().filter_map(|slot| waits.get(*slot as usize));
            freed.for_each(|waits| waits.store(false, Ordering::Release));
        }
    }
}

impl SharedSocket {
    pub fn new(queueing: Queueing, submitters: usize, sender: SharedSender) -> Self {
        // A ring has room for twice the slots.
        let each = (transmit_queue::MOST / 2 / submitters.max(1)).clamp(1, SLOTS);
        let slots = submitters * each;
        Self {
            each,
            queue: TransmitQueue::new(queueing, slots),
            waits: (0..slots).map(|_| AtomicBool::new(false)).collect(),
            sender: Mutex::new(sender),
            ended: AtomicBool::new(false),
        }
    }

    /// Queues one packet after another until it is to stop, and sends when it is this thread's turn.
    pub fn submit(&self, submitter: usize, stop: &AtomicBool) {
        let mut next = 0;
        loop {
            let slot = submitter * self.each + next % self.each;
            let Some(waits) = self.waits.get(slot) else { return };
            let (mut looks, mut nap) = (0, FIRST_NAP);
            while waits.load(Ordering::Acquire) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                looks += 1;
                if looks < SPINS {
                    std::hint::spin_loop();
                } else {
                    std::thread::sleep(nap);
                    nap = LONGEST_NAP.min(nap * 2);
                }
            }
            if stop.load(Ordering::Relaxed) {
                return;
            }
            waits.store(true, Ordering::Relaxed);
            let slots = [u32::try_from(slot).unwrap_or(u32::MAX)];
            match self.queue.put(&slots) {
                Then::Nothing => {}
                Then::Send => self.sender().send(&slots, &self.waits),
                Then::Drain => self.drain(),
            }
            next += 1;
        }
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
        self.queue.drain(&mut scratch, |slots| sender.send(slots, &self.waits));
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
