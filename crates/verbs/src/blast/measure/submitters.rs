//! Threads that send packets without pause: each from a socket of its own, or all from one (`shared_socket`).

use super::shared_socket::{SharedSender, SharedSocket};
use crate::blast::plan::{BlastPlan, Method, Point};
use crate::blast::record::Counted;
use lab::error::{Error, Result};
use model::unit::Nanos;
use nbd::transmit_queue::Queueing;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::clock::ThreadClock;
use sys::datagrams::{ManySender, NumberedDatagrams, RingSender};

/// A send that finds no room for this time fails, so that a submitter can end.
const LONGEST_SEND: Duration = Duration::from_millis(100);
/// The number of an error without one: EIO.
pub(super) const UNKNOWN: i32 = 5;
/// Stands for the error number of a packet that was refused behind others of its call: no error has this number.
pub(super) const WITHIN_BATCH: i32 = 0;
/// Stack of a submitter.
const STACK_BYTES: usize = 256 << 10;

/// Written by whoever sends, read by others.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Live {
    /// Packets that the kernel accepted.
    pub sent: AtomicU64,
    /// Packets that it refused.
    pub failed: AtomicU64,
}

/// Submitters, ready or running.
#[derive(Default)]
pub(super) struct Submitters {
    start: Arc<OnceLock<()>>,
    stop: Arc<AtomicBool>,
    live: Vec<Arc<Live>>,
    /// Ids and clocks of the threads.
    clocks: Arc<Mutex<Vec<(u32, ThreadClock)>>>,
    threads: Vec<JoinHandle<BTreeMap<i32, u64>>>,
    /// The thread that drains a ring.
    task: Option<JoinHandle<BTreeMap<i32, u64>>>,
    /// The socket that all of them share, if they do.
    shared: Option<Arc<SharedSocket>>,
}

impl Submitters {
    /// Opens the sockets and starts the threads, which wait for [`go`](Self::go).
    pub fn start(plan: &BlastPlan, point: Point, target: SocketAddr) -> Result<Self> {
        let count = point.submitters as usize;
        let queueing = match point.method {
            Method::Sendto | Method::Sendmmsg | Method::Gso | Method::IoUring => None,
            Method::Lock => Some(Queueing::Lock),
            Method::RingTask => Some(Queueing::RingTask),
            Method::MpRing => Some(Queueing::MpRing),
            Method::SwapAll => Some(Queueing::SwapAll),
        };
        let mut submitters = Self::default();
        if let Some(queueing) = queueing {
            submitters.start_shared(plan, point, queueing, socket(plan, point.method, target)?)?;
            return Ok(submitters);
        }
        let sockets: Result<Vec<UdpSocket>> = (0..count).map(|_| socket(plan, point.method, target)).collect();
        for (number, socket) in sockets?.into_iter().enumerate() {
            let way = Way::open(plan, point.method, &socket)?;
            let live = Arc::new(Live::default());
            let submitter =
                Submitter { socket, live: live.clone(), stop: submitters.stop.clone(), failed: BTreeMap::new() };
            submitters.live.push(live);
            let thread =
                submitters.spawn(format!("submitter {number}"), cpu_of(plan, number), move || submitter.run(way))?;
            submitters.threads.push(thread);
        }
        Ok(submitters)
    }

    /// Submitters that share a socket, with a queue between them and it.
    fn start_shared(&mut self, plan: &BlastPlan, point: Point, queueing: Queueing, socket: UdpSocket) -> Result<()> {
        let live = Arc::new(Live::default());
        self.live.push(live.clone());
        let batch = plan.batch_of(point.method) as usize;
        let datagrams = NumberedDatagrams::new(plan.payload as usize, batch);
        let sender = SharedSender::new(socket, datagrams, live);
        let queue = Arc::new(SharedSocket::new(queueing, point.submitters as usize, sender));
        // Before the first thread: whoever ends them ends the task by it.
        self.shared = Some(queue.clone());
        if queueing == Queueing::RingTask {
            let task = queue.clone();
            self.task = Some(self.spawn("transmit task".to_owned(), point.task_cpu, move || {
                task.run_task();
                BTreeMap::new()
            })?);
        }
        for number in 0..point.submitters as usize {
            let (queue, stop) = (queue.clone(), self.stop.clone());
            let thread = self.spawn(format!("submitter {number}"), cpu_of(plan, number), move || {
                queue.submit(number, &stop);
                BTreeMap::new()
            })?;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Starts a thread that works when it may go.
    fn spawn(
        &self,
        name: String,
        cpu: Option<u32>,
        work: impl FnOnce() -> BTreeMap<i32, u64> + Send + 'static,
    ) -> Result<JoinHandle<BTreeMap<i32, u64>>> {
        let (start, clocks) = (self.start.clone(), self.clocks.clone());
        let thread = std::thread::Builder::new().name(name.clone()).stack_size(STACK_BYTES);
        let spawned = thread.spawn(move || {
            // Refused only for a CPU that was allowed when the plan was made.
            let _ = cpu.map(|cpu| sys::schedule::pin_to(&[cpu]));
            // A shared table of files costs each call two atomic operations.
            let _ = sys::process::unshare_descriptors();
            let own = (sys::schedule::thread_id().unsigned_abs(), ThreadClock::of_caller());
            clocks.lock().unwrap_or_else(PoisonError::into_inner).push(own);
            start.wait();
            work()
        });
        spawned.map_err(|error| Error::instrument(format!("starting thread '{name}'"), error))
    }

    /// Lets all of them send.
    pub fn go(&self) {
        let _ = self.start.set(());
    }

    /// Packets that the kernel accepted and refused so far.
    pub fn counts(&self) -> (u64, u64) {
        let sum = |of: fn(&Live) -> &AtomicU64| self.live.iter().map(|live| of(live).load(Ordering::Relaxed)).sum();
        (sum(|live| &live.sent), sum(|live| &live.failed))
    }

    /// CPU time of the submitters so far.
    pub fn thread_nanos(&self) -> Nanos {
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.iter().filter_map(|(_, clock)| clock.nanos().ok().map(Nanos)).sum()
    }

    /// Ids of the threads, of which all have begun.
    pub fn threads(&self) -> BTreeSet<u32> {
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.iter().map(|(thread, _)| *thread).collect()
    }

    /// Ends them. Returns the packets that the kernel accepted, and those that it refused, by reason.
    pub fn end(mut self) -> (u64, Vec<Counted>) {
        let mut failed: BTreeMap<i32, u64> = BTreeMap::new();
        let of_threads = self.joined().into_iter().flatten();
        let of_socket = self.shared.take().map(|shared| shared.failed()).unwrap_or_default();
        for (error, count) in of_threads.chain(of_socket) {
            *failed.entry(error).or_default() += count;
        }
        let named = |(error, count)| Counted { what: reason(error), count };
        (self.counts().0, failed.into_iter().map(named).collect())
    }

    /// Ends the threads. Returns their failures; of one that panicked none, and it has already printed the reason.
    fn joined(&mut self) -> Vec<BTreeMap<i32, u64>> {
        self.stop.store(true, Ordering::Relaxed);
        self.go();
        let failed = self.threads.drain(..).map(|thread| thread.join().unwrap_or_default()).collect();
        // After those who fill its ring.
        self.shared.iter().for_each(|shared| shared.end());
        if let Some(task) = self.task.take() {
            let _ = task.join();
        }
        failed
    }
}

impl Drop for Submitters {
    fn drop(&mut self) {
        self.joined();
    }
}

/// Why packets were refused, in words.
fn reason(error: i32) -> String {
    match error {
        WITHIN_BATCH => "refused behind others of its call; sendmmsg(2) does not say why".to_owned(),
        error => io::Error::from_raw_os_error(error).to_string(),
    }
}

/// The CPU of a submitter, if they are pinned.
fn cpu_of(plan: &BlastPlan, number: usize) -> Option<u32> {
    plan.submitter_cpus.get(number % plan.submitter_cpus.len().max(1)).copied()
}

/// A connected socket that reports errors.
fn socket(plan: &BlastPlan, method: Method, target: SocketAddr) -> Result<UdpSocket> {
    let any = match target {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let open = || {
        let socket = UdpSocket::bind(any)?;
        socket.connect(target)?;
        socket.set_write_timeout(Some(LONGEST_SEND))?;
        sys::socket::report_errors(&socket)?;
        Ok(socket)
    };
    let socket = open().map_err(|error: io::Error| match error.kind() {
        ErrorKind::Unsupported | ErrorKind::AddrNotAvailable | ErrorKind::NetworkUnreachable => Error::Refused(format!(
            "{target}: no route from here ({error}); check the address, and that the interface is up: ip route get {}",
            target.ip()
        )),
        _ => Error::instrument(format!("opening a UDP socket to {target}"), error),
    })?;
    if method == Method::Gso && plan.payload > 0 {
        let segment = u16::try_from(plan.payload).unwrap_or(u16::MAX);
        sys::socket::segment_sends(&socket, segment).map_err(|error| {
            Error::Refused(format!(
                "method gso: the kernel cannot cut a send into packets ({error}); it needs Linux 4.18"
            ))
        })?;
    }
    Ok(socket)
}

/// How packets are given to the kernel.
enum Way {
    /// All of them with one send: one, or what the kernel cuts into packets.
    Send(NumberedDatagrams),
    Many(ManySender),
    /// Opened by the thread that uses it, because the kernel lets only one thread submit.
    Ring(NumberedDatagrams),
}

impl Way {
    fn open(plan: &BlastPlan, method: Method, socket: &UdpSocket) -> Result<Self> {
        let datagrams = NumberedDatagrams::new(plan.payload as usize, plan.batch_of(method) as usize);
        Ok(match method {
            Method::Sendmmsg => Self::Many(ManySender::new(datagrams)),
            Method::IoUring => {
                // Tried here, where a refusal can be told.
                RingSender::new(NumberedDatagrams::new(0, 1), socket).map_err(|error| {
                    Error::Refused(format!(
                        "method io_uring: is not allowed here ({error}); set sysctl kernel.io_uring_disabled=0, or leave it out"
                    ))
                })?;
                Self::Ring(datagrams)
            }
            Method::Sendto | Method::Gso | Method::Lock | Method::RingTask | Method::MpRing | Method::SwapAll => {
                Self::Send(datagrams)
            }
        })
    }
}

struct Submitter {
    socket: UdpSocket,
    live: Arc<Live>,
    stop: Arc<AtomicBool>,
    failed: BTreeMap<i32, u64>,
}

impl Submitter {
    /// Sends until it is to stop. Returns how many packets failed, by error number. Numbers advance on success only.
    fn run(mut self, way: Way) -> BTreeMap<i32, u64> {
        let mut number = 0;
        match way {
            Way::Many(mut sender) => {
                let count = sender.count();
                while self.goes_on(number) {
                    let mut refused = false;
                    number += self.counted(1, |socket| {
                        let taken = sender.send(socket, number, count)?;
                        refused = taken.refused_next;
                        Ok(taken.count)
                    });
                    if refused {
                        self.fail(WITHIN_BATCH, 1);
                    }
                }
            }
            Way::Send(mut datagrams) => {
                let count = datagrams.count();
                while self.goes_on(number) {
                    datagrams.number(number);
                    // The kernel takes all of them or none.
                    number += self.counted(count as u64, |socket| socket.send(datagrams.bytes()).map(|_| count));
                }
            }
            Way::Ring(datagrams) => match RingSender::new(datagrams, &self.socket) {
                Ok(mut sender) => {
                    // One may be refused between others: numbers advance by the whole batch, and a gap is no step back.
                    let (mut first, count) = (0, u64::try_from(sender.count()).unwrap_or(u64::MAX));
                    while self.goes_on(number) {
                        let mut errors = Vec::new();
                        number += self.counted(1, |_| sender.send(first, |error| errors.push(error)));
                        first += count;
                        errors.into_iter().for_each(|error| self.fail(error, 1));
                    }
                }
                Err(error) => self.fail(error.raw_os_error().unwrap_or(UNKNOWN), 1),
            },
        }
        self.live.sent.store(number, Ordering::Relaxed);
        self.failed
    }

    #[inline(always)]
    fn goes_on(&self, sent: u64) -> bool {
        self.live.sent.store(sent, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }

    /// Packets that the kernel took in a call. If it took none, `lost` packets failed.
    #[inline(always)]
    fn counted(&mut self, lost: u64, send: impl FnOnce(&UdpSocket) -> io::Result<usize>) -> u64 {
        match send(&self.socket) {
            Ok(sent) => sent as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => {
                self.fail(error.raw_os_error().unwrap_or(UNKNOWN), lost);
                0
            }
        }
    }

    #[cold]
    fn fail(&mut self, error: i32, packets: u64) {
        *self.failed.entry(error).or_default() += packets;
        let before = self.live.failed.load(Ordering::Relaxed);
        self.live.failed.store(before + packets, Ordering::Relaxed);
    }
}
