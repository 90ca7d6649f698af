//! An NBD server: accepts clients, negotiates an export with each, and executes their requests on its storage.
//!
//! The thread that calls [`serve`] accepts and hands clients to a pool of threads in turn. Each of these runs an
//! `event_loop` with its own `connection`s, so a request takes no lock; a `worker` does what would hold up a loop. Nothing
//! here prints: log lines go to an [`Observer`].

mod connection;
mod event_loop;
mod export;
mod inbox;
mod log;
mod receive_coalescing;
#[cfg(not(fuzzing))]
mod requests;
#[cfg(fuzzing)]
pub mod requests;
mod worker;

pub use export::{Access, Exports};
pub use requests::Counters;

use crate::socket::{Peer, Socket};
use crate::tuning::Tuning;
use crate::{Error, Result};
use event_loop::EventLoop;
use inbox::{Inbox, Message, Waker};
use log::Log;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::set_socket_keepalive;
use rustix::process::{Resource, getrlimit};
use std::io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use sys::socket::peer_process;
use worker::Workers;

/// Options of the server.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The switches. With `coalesce`, the server learns from each client how many requests to wait for, and for how
    /// long.
    pub tuning: Tuning,
    /// Number of event loop threads.
    pub threads: usize,
    /// Limit on connected clients, further limited by the available file descriptors. At the limit, a new client
    /// displaces the client of its thread that has been in the handshake longest; if none is in the handshake, the new
    /// client is disconnected.
    pub connections: usize,
    /// Time limit of the handshake.
    pub handshake_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { tuning: Tuning::default(), threads: 1, connections: 4096, handshake_timeout: Duration::from_secs(10) }
    }
}

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> std::io::Result<(Socket, Peer)> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, address)| (stream.into(), Peer::Tcp(address))),
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                let peer = Peer::Unix(peer_process(&stream));
                Ok((stream.into(), peer))
            }
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

/// Stops a server, or requests its counters, from another thread.
#[derive(Debug)]
pub struct ServerHandle {
    waker: Waker,
    stop: AtomicBool,
}

impl ServerHandle {
    /// A handle to pass to [`serve`].
    ///
    /// # Errors
    /// When no file descriptor is available.
    pub fn new() -> Result<Self> {
        let waker = Waker::new().map_err(|error| Error::system("making an eventfd", error))?;
        Ok(Self { waker, stop: AtomicBool::new(false) })
    }

    /// Asks the server to finish the requests that have arrived and shut down.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.report();
    }

    /// Asks the server to report its counters.
    pub fn report(&self) {
        self.waker.wake();
    }
}

/// Receives the server's log lines and reports. Nothing here may wait: an event loop calls it, and its clients would wait
/// too.
pub trait Observer: Sync {
    fn note(&self, text: &str);
    /// The counters so far, after [`ServerHandle::report`].
    fn so_far(&self, counters: &Counters);
    /// The calibrated busy work per request, in ticks; called once by each thread that adds any.
    fn delays(&self, _burnt_ticks: f64) {}
}

/// Serves until [`ServerHandle::stop`], then finishes the requests that have arrived. Returns the counters.
///
/// # Errors
/// When a thread or a file descriptor is not available at the start.
pub fn serve(
    listener: &Listener,
    exports: &Exports,
    options: &Options,
    handle: &ServerHandle,
    observer: &dyn Observer,
) -> Result<Counters> {
    ioctl_fionbio(listener, true).map_err(|error| Error::system("listening", error.into()))?;
    let options = Options { connections: options.connections.min(descriptors()), ..*options };
    let server = Server { exports, options, clients: AtomicUsize::new(0), log: Log::new(observer) };
    std::thread::scope(|scope| {
        let workers = Workers::start(scope, &exports.backend)?;
        let (mut inboxes, mut threads) = (Vec::new(), Vec::new());
        let started = (0..options.threads.max(1)).try_for_each(|number| {
            let event_loop = EventLoop::new(&server, workers.clone())?;
            inboxes.push(event_loop.inbox.clone());
            let thread = std::thread::Builder::new().name(format!("iotoll-serve{number}"));
            let thread = thread.spawn_scoped(scope, move || event_loop.run());
            threads.push(thread.map_err(|error| Error::system("starting a thread", error))?);
            Ok(())
        });
        let accepted = started.and_then(|()| server.accept(listener, handle, &inboxes));
        inboxes.iter().for_each(|inbox| inbox.put(Message::Close));
        let mut done = Counters::default();
        for thread in threads {
            match thread.join() {
                Ok(counters) => done.add(&counters),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        workers.end();
        server.log.finish();
        accepted.map(|()| done)
    })
}

/// A thread that does not answer within this time is busy with one storage request.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Clients over the limit that may wait for an event loop.
pub(crate) const BACKLOG: usize = 16;

/// The number of clients for which there are file descriptors.
fn descriptors() -> usize {
    const OWN: u64 = 64;
    sys::process::raise_open_file_limit();
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(OWN).max(1)).unwrap_or(usize::MAX)
}

/// What all threads of a server share.
struct Server<'a> {
    exports: &'a Exports,
    options: Options,
    /// Number of clients, including those that an event loop may still disconnect.
    clients: AtomicUsize,
    log: Log<'a>,
}

impl Server<'_> {
    /// Hands clients to the threads in turn until the stop flag is set.
    fn accept(&self, listener: &Listener, handle: &ServerHandle, inboxes: &[Arc<Inbox>]) -> Result<()> {
        let mut turn = inboxes.iter().cycle();
        loop {
            let mut fds = [PollFd::new(&handle.waker, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::system("waiting for clients", error.into())),
            }
            let [told, _] = &fds;
            let asked = !told.revents().is_empty();
            if asked {
                // Clear before reading the stop flag: `stop` sets the flag first and wakes this thread afterwards.
                handle.waker.clear();
            }
            if handle.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if asked {
                self.report(inboxes);
            }
            match listener.accept() {
                Ok((socket, peer)) => self.put(socket, peer, turn.next()),
                Err(error) if matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted) => {}
                Err(error) => {
                    // Out of file descriptors or memory: some become free when clients disconnect.
                    self.log.note(&format!("cannot accept a client: {error}"));
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    fn put(&self, socket: Socket, peer: Peer, inbox: Option<&Arc<Inbox>>) {
        let set_up = socket.set_nodelay().and_then(|()| Ok(ioctl_fionbio(&socket, true)?));
        // Keepalive detects a client whose machine is down after some hours (Linux: tcp_keepalive_time).
        if let Err(error) = set_up.and_then(|()| Ok(set_socket_keepalive(&socket, true)?)) {
            return self.log.note_of(peer, &format!(" refused: {error}"));
        }
        // The event loops enforce the limit, but may be busy for long.
        if self.clients.load(Ordering::Relaxed) >= self.options.connections.saturating_add(BACKLOG) {
            return self.log.note_of(
                peer,
                " refused: too many clients, and all threads are too busy to disconnect one that is still in the handshake",
            );
        }
        if let Some(inbox) = inbox {
            self.clients.fetch_add(1, Ordering::Relaxed);
            inbox.put(Message::Client(socket, peer));
        }
    }

    /// Reports the counters of all threads so far.
    fn report(&self, inboxes: &[Arc<Inbox>]) {
        let (ask, answers) = channel();
        inboxes.iter().for_each(|inbox| inbox.put(Message::Asked(ask.clone())));
        let (mut sum, mut silent) = (Counters::default(), inboxes.len());
        let end = Instant::now() + ANSWERED_WITHIN;
        while silent > 0
            && let Ok(counters) = answers.recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            sum.add(&counters);
            silent -= 1;
        }
        self.log.observer.so_far(&sum);
        if silent > 0 {
            let threads = inboxes.len();
            self.log.observer.note(&format!(
                "{silent} of {threads} threads did not answer within a second (busy with one request); the counters above do not include them"
            ));
        }
    }
}
