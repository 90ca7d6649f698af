//! An NBD server: clients connect, agree on an export, and their requests are done to its storage.
//!
//! The thread that calls [`serve`] accepts, and hands clients to a pool of threads in turn. Each has an `event_loop` with its
//! `connection`s, which nobody else touches: no lock is taken for a request.

mod connection;
mod counters;
mod event_loop;
mod export;
mod inbox;
mod receive_coalescing;
#[cfg(not(fuzzing))]
mod requests;
#[cfg(fuzzing)]
pub mod requests;
mod shutdown;
mod waker;

pub use counters::Counters;
pub use export::{Access, Exports};

use crate::error::{Error, Result};
use crate::socket::{Peer, Socket};
use crate::tuning::Tuning;
use event_loop::EventLoop;
use inbox::Inbox;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, getrlimit};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use sys::socket::peer_process;
use waker::Waker;

/// How to serve.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Of `coalesce`: how many requests are worth waiting for, and how long that takes, is learnt from each client.
    pub tuning: Tuning,
    /// Threads.
    pub threads: usize,
    /// Clients at the same time, and not more than there are descriptors for them. When one more comes, the one of its thread
    /// that has negotiated longest goes; when all have done with that, the new one does.
    pub connections: usize,
    /// How long a client may take for the handshake.
    pub handshake_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { tuning: Tuning::default(), threads: 1, connections: 4096, handshake_timeout: Duration::from_secs(10) }
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
    fn accept(&self) -> std::io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                Ok((Socket::Tcp(stream), Peer::Tcp(address)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                let peer = Peer::Unix(peer_process(&stream));
                Ok((Socket::Unix(stream), peer))
            }
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

/// Stops a server, or asks what it did, from another thread.
#[derive(Debug)]
pub struct ServerHandle {
    waker: Waker,
    stop: AtomicBool,
}

impl ServerHandle {
    /// Nothing yet.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> Result<Self> {
        let waker = Waker::new().map_err(|error| Error::system("making an eventfd", error))?;
        Ok(Self { waker, stop: AtomicBool::new(false) })
    }

    /// To finish what has arrived, and end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.report();
    }

    /// To say what was done so far.
    pub fn report(&self) {
        self.waker.wake();
    }
}

/// Is told what happens.
pub trait Observer: Sync {
    /// Something that is worth a line.
    fn note(&self, text: &str);
    /// What was done so far; it was asked for.
    fn so_far(&self, counters: &Counters);
    /// What a thread burns with each request, in ticks, as it has calibrated it; told once by each that burns anything.
    fn delays(&self, _burnt_ticks: f64) {}
}

/// Serves until it is told to stop, then finishes what has arrived and gives what was done.
///
/// # Errors
/// When a thread or a descriptor cannot be had at the beginning.
pub fn serve(
    listener: &Listener,
    exports: &Exports,
    options: &Options,
    handle: &ServerHandle,
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
            let event_loop = EventLoop::new(inbox.clone(), exports, &options, &clients, observer);
            let started = event_loop.and_then(|event_loop| {
                let thread = std::thread::Builder::new().name(format!("iotoll-serve{number}"));
                let thread = thread.spawn_scoped(scope, move || event_loop.run());
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
        let accepted = crowd.accept(listener, handle, observer);
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
    fn accept(&self, listener: &Listener, handle: &ServerHandle, observer: &dyn Observer) -> Result<()> {
        let mut turn = self.inboxes.iter().cycle();
        loop {
            let mut fds = [PollFd::new(&handle.waker, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::system("waiting for clients", error.into())),
            }
            let [told, _] = &fds;
            let asked = !told.revents().is_empty();
            if asked {
                // Before the stop flag is read: whoever sets it wakes this thread afterwards.
                handle.waker.clear();
            }
            if handle.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if asked {
                self.report(observer);
            }
            match listener.accept() {
                Ok((socket, peer)) => self.put(socket, peer, turn.next(), observer),
                Err(error) if is_passing(&error) => {}
                Err(error) => {
                    // Out of descriptors or memory: some come back when clients go.
                    observer.note(&format!("a client could not be accepted: {error}"));
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    fn put(&self, socket: Socket, peer: Peer, inbox: Option<&Arc<Inbox>>, observer: &dyn Observer) {
        let prepared = socket.send_at_once().and_then(|()| socket.never_wait()).and_then(|()| socket.notice_the_lost());
        if let Err(error) = prepared {
            return observer.note(&format!("{peer} was turned away: {error}"));
        }
        // A thread may be busy for long.
        if self.clients.load(Ordering::Relaxed) >= self.most {
            return observer.note(&format!(
                "{peer} was turned away: there are too many, and no thread has had time to look who is still in the handshake"
            ));
        }
        if let Some(inbox) = inbox {
            self.clients.fetch_add(1, Ordering::Relaxed);
            inbox.put(socket, peer);
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

/// Whether a failed accept concerns only a client that has disconnected again.
fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}
