//! An NBD server: clients come, agree on an export, and their requests are done to its storage.
//!
//! A thread has its connections, and nobody else touches them: nothing is locked on the way of a request. More threads serve
//! more connections.

mod connection;
mod counters;
mod export;
mod gathering;
mod residency;
#[cfg(not(fuzzing))]
mod session;
#[cfg(fuzzing)]
pub mod session;
mod staging;
mod way;
mod worker;

pub use counters::Counters;
pub use export::{Access, Exports};

use crate::error::{Error, Result};
use crate::socket::Socket;
use crate::switches::Switches;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::process::{Resource, getrlimit};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use worker::{Inbox, Worker};

/// How to serve.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Of `hold`: how many requests are worth waiting for, and how long that takes, is learnt from each client.
    pub switches: Switches,
    /// Threads.
    pub threads: usize,
    /// Clients at the same time, and not more than there are descriptors for them. When one more comes, the one of its thread
    /// that has negotiated longest goes; when all have done with that, the new one does.
    pub connections: usize,
    /// How long a client may negotiate.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { switches: Switches::default(), threads: 1, connections: 4096, patience: Duration::from_secs(10) }
    }
}

/// Where clients come from.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> std::io::Result<Socket> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| Socket::Tcp(stream)),
            Self::Unix(listener) => listener.accept().map(|(stream, _)| Socket::Unix(stream)),
        }
    }

    fn never_wait(&self) -> std::io::Result<()> {
        match self {
            Self::Tcp(listener) => listener.set_nonblocking(true),
            Self::Unix(listener) => listener.set_nonblocking(true),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

/// What a server is told while it serves, from another thread.
#[derive(Debug)]
pub struct Orders {
    bell: OwnedFd,
    stop: AtomicBool,
}

impl Orders {
    /// Nothing yet.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bell = bell.map_err(|error| Error::system("making an eventfd", error.into()))?;
        Ok(Self { bell, stop: AtomicBool::new(false) })
    }

    /// To finish what has arrived, and end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.report();
    }

    /// To say what was done so far.
    pub fn report(&self) {
        // It can only fail when it rings already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

/// Who hears of what happens.
pub trait Observer: Sync {
    /// Something that is worth a line.
    fn note(&self, text: &str);
    /// What was done so far; it was asked for.
    fn so_far(&self, counters: &Counters);
    /// What a thread burns with each request, in ticks, as it has calibrated it; told once by each that burns anything.
    fn injects(&self, _burnt_ticks: f64) {}
}

/// Serves until it is told to stop, then finishes what has arrived and gives what was done.
///
/// # Errors
/// When a thread or a descriptor cannot be had at the beginning.
pub fn serve(
    listener: &Listener,
    exports: &Exports,
    options: &Options,
    orders: &Orders,
    observer: &dyn Observer,
) -> Result<Counters> {
    listener.never_wait().map_err(|error| Error::system("listening", error))?;
    let options = Options { connections: options.connections.min(descriptors()), ..*options };
    let clients = AtomicUsize::new(0);
    let mut inboxes = Vec::new();
    for _ in 0..options.threads.max(1) {
        inboxes.push(Arc::new(Inbox::new().map_err(|error| Error::system("making an eventfd", error))?));
    }
    let crowd = Crowd { inboxes: &inboxes, clients: &clients, most: options.connections.saturating_add(BACKLOG) };
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, inbox) in inboxes.iter().enumerate() {
            let worker = Worker::new(inbox.clone(), exports, &options, &clients, observer);
            let started = worker.and_then(|worker| {
                let thread = std::thread::Builder::new().name(format!("iotoll-serve{number}"));
                let thread = thread.spawn_scoped(scope, move || worker.run());
                thread.map_err(|error| Error::system("starting a thread", error))
            });
            match started {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    inboxes.iter().for_each(|inbox| inbox.close());
                    return Err(error);
                }
            }
        }
        let accepted = crowd.accept(listener, orders, observer);
        inboxes.iter().for_each(|inbox| inbox.close());
        let mut done = Counters::default();
        for thread in threads {
            match thread.join() {
                Ok(counters) => done.add(&counters),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        accepted.map(|()| done)
    })
}

/// A thread that says nothing for so long is busy with one request of a storage.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// So many more clients than are allowed may wait to be looked at.
pub(crate) const BACKLOG: usize = 16;

/// So many clients at most as there are descriptors for them.
fn descriptors() -> usize {
    const OWN: u64 = 64;
    sys::process::raise_open_file_limit();
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(OWN).max(1)).unwrap_or(usize::MAX)
}

/// All clients, and the threads that have them.
struct Crowd<'a> {
    inboxes: &'a [Arc<Inbox>],
    clients: &'a AtomicUsize,
    /// As many may have come, some of whom a thread may turn away when it has time for them.
    most: usize,
}

impl Crowd<'_> {
    /// Hands clients to the threads in turn until it is told to stop.
    fn accept(&self, listener: &Listener, orders: &Orders, observer: &dyn Observer) -> Result<()> {
        let mut turn = self.inboxes.iter().cycle();
        loop {
            let mut fds = [PollFd::new(&orders.bell, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::system("waiting for clients", error.into())),
            }
            let [told, _] = &fds;
            let asked = !told.revents().is_empty();
            if asked {
                // Before it is looked whether it is the end: who says so rings afterwards.
                let _ = rustix::io::read(&orders.bell, &mut [0; 8]);
            }
            if orders.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if asked {
                self.report(observer);
            }
            match listener.accept() {
                Ok(socket) => self.put(socket, turn.next(), observer),
                Err(error) if is_passing(&error) => {}
                Err(error) => {
                    // Out of descriptors or memory: some come back when clients go.
                    observer.note(&format!("a client could not be accepted: {error}"));
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    fn put(&self, socket: Socket, inbox: Option<&Arc<Inbox>>, observer: &dyn Observer) {
        let prepared = socket.send_at_once().and_then(|()| socket.never_wait()).and_then(|()| socket.notice_the_lost());
        if let Err(error) = prepared {
            return observer.note(&format!("a client was turned away: {error}"));
        }
        // A thread may be busy for long.
        if self.clients.load(Ordering::Relaxed) >= self.most {
            return observer.note(
                "a client was turned away: there are too many, and nobody has had time to look who still negotiates",
            );
        }
        if let Some(inbox) = inbox {
            self.clients.fetch_add(1, Ordering::Relaxed);
            inbox.put(socket);
        }
    }

    /// What all threads did so far.
    fn report(&self, observer: &dyn Observer) {
        let (mut sum, mut silent) = (Counters::default(), 0);
        let answers: Vec<_> = self.inboxes.iter().map(|inbox| inbox.ask()).collect();
        let end = Instant::now() + ANSWERED_WITHIN;
        for answer in answers {
            match answer.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(counters) => sum.add(&counters),
                Err(_) => silent += 1,
            }
        }
        observer.so_far(&sum);
        if silent > 0 {
            let threads = self.inboxes.len();
            observer.note(&format!(
                "{silent} of {threads} threads are busy with one request for more than a second; what they did is not in that"
            ));
        }
    }
}

/// Nothing that concerns anybody but a client that has gone again.
fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}
