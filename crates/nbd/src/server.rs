//! An NBD server: accepts clients, negotiates an export with each, and executes their requests on its storage.
//!
//! The thread that calls [`serve`] accepts and hands clients to a pool of threads in turn. Each of these runs an
//! `event_loop` with its own `connection`s, so a request takes no lock; a `worker` does what would hold up a loop. Nothing
//! here prints: log lines go to an [`Observer`].

mod connection;
mod event_loop;
mod receive_coalescing;
#[cfg(not(fuzzing))]
mod requests;
#[cfg(fuzzing)]
pub mod requests;
mod worker;

use crate::backends::Backend;
use crate::handshake::server::{Agreed, ExportInfo};
use crate::handshake::transmission_flag as flag;
use crate::socket::{Peer, Socket};
use crate::tuning::Tuning;
use crate::wire::MAX_PAYLOAD;
use crate::{Error, Result, lock};
use event_loop::EventLoop;
pub use requests::Counters;
use requests::{Requests, Rights};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::set_socket_keepalive;
use rustix::process::{Resource, getrlimit};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use sys::socket::peer_process;
use worker::{Inbox, Message, Waker};

/// Options of the server.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The switches. With `coalesce`, the server learns from each client how many requests to wait for, and for how
    /// long.
    pub tuning: Tuning,
    /// Number of event loop threads.
    pub threads: usize,
    /// Limit on connected clients, further limited by the available file descriptors. At the limit, a new client is
    /// disconnected.
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

/// Stops a server from another thread.
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
        self.waker.wake();
    }
}

/// Receives the server's log lines. Nothing here may wait: an event loop calls it, and its clients would wait
/// too.
pub trait Observer: Sync {
    fn note(&self, text: &str);
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
    let ended = AtomicBool::new(false);
    let server = Server { exports, options, clients: AtomicUsize::new(0), log: Log::new(observer) };
    std::thread::scope(|scope| {
        let flushes = worker::start(scope, &exports.backend, &ended)?;
        let (mut inboxes, mut threads) = (Vec::new(), Vec::new());
        let started = (0..options.threads.max(1)).try_for_each(|number| {
            let event_loop = EventLoop::new(&server, flushes.clone())?;
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
        ended.store(true, Ordering::Relaxed);
        server.log.finish();
        accepted.map(|()| done)
    })
}

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
    /// Number of clients.
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
            if handle.stop.load(Ordering::Relaxed) {
                return Ok(());
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
        if self.clients.load(Ordering::Relaxed) >= self.options.connections {
            return self.log.note_of(peer, " refused: too many clients");
        }
        if let Some(inbox) = inbox {
            self.clients.fetch_add(1, Ordering::Relaxed);
            inbox.put(Message::Client(socket, peer));
        }
    }
}

/// Whether clients may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Clients may read and write.
    ReadWrite,
    /// Writes fail with EPERM.
    ReadOnly,
}

/// All exports of a server.
#[derive(Clone, Debug)]
pub struct Exports {
    /// The descriptions that clients get.
    infos: Vec<ExportInfo>,
    /// The storage of all exports.
    backend: Backend,
    access: Access,
}

impl Exports {
    /// Exports one storage under each of `names`.
    pub fn new(names: Vec<String>, backend: Backend, access: Access) -> Self {
        let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA;
        // All connections share one storage, so a flush on any of them covers the completed writes of all.
        flags |= flag::CAN_MULTI_CONN;
        flags |= match access {
            Access::ReadWrite => flag::SEND_TRIM | flag::SEND_WRITE_ZEROES,
            Access::ReadOnly => flag::READ_ONLY,
        };
        let description = match &backend {
            Backend::Memory(_) => "memory, lost when the server exits",
            Backend::File(_) => "a file",
            Backend::Null { .. } => "null: reads return zeros, writes are discarded",
        };
        let info = |name| ExportInfo {
            name,
            description: description.to_owned(),
            size: backend.size(),
            flags,
            preferred_block: 4096,
            max_payload: MAX_PAYLOAD,
        };
        Self { infos: names.into_iter().map(info).collect(), backend, access }
    }

    /// Sets the maximum payload: at least 4096, at most [`MAX_PAYLOAD`].
    pub fn with_max_payload(mut self, bytes: u32) -> Self {
        self.infos.iter_mut().for_each(|info| info.max_payload = bytes.clamp(info.preferred_block, MAX_PAYLOAD));
        self
    }

    /// The transmission phase of a client that negotiated an export.
    fn requests(&self, agreed: &Agreed, tuning: Tuning) -> Option<Requests> {
        let max_payload = self.infos.get(agreed.export)?.max_payload;
        let rights = Rights { read_only: self.access == Access::ReadOnly, checksums: agreed.checksums, max_payload };
        Some(Requests::new(self.backend.clone(), rights, tuning))
    }
}

/// Lines of one source that are shown in a period.
const LINES: u32 = 20;
/// The period, from the first line.
const PERIOD: Duration = Duration::from_secs(10);
/// Sources that are counted separately.
const SOURCES: usize = 256;

/// The source of lines about no client, and that of lines beyond [`SOURCES`].
const SERVER: &str = "about the server itself";
const OTHERS: &str = "about clients from other addresses";

/// The log of a server.
struct Log<'a> {
    observer: &'a dyn Observer,
    sources: Mutex<HashMap<Cow<'static, str>, Period>>,
}

/// The lines of a source since the first one.
#[derive(Clone, Copy, Debug)]
struct Period {
    begun: Instant,
    shown: u32,
    hidden: u64,
}

/// Who causes a line about a client. Ports and process IDs are left out, because a new connection has new ones.
fn source(peer: Peer) -> Cow<'static, str> {
    match peer {
        Peer::Tcp(address) => format!("about clients from {}", address.ip().to_canonical()).into(),
        Peer::Unix(_) => "about clients on the Unix socket".into(),
    }
}

impl<'a> Log<'a> {
    fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, sources: Mutex::default() }
    }

    /// A line about the server itself.
    fn note(&self, text: &str) {
        self.put(SERVER.into(), text.to_owned(), Instant::now());
    }

    /// A line about a client.
    fn note_of(&self, peer: Peer, what: &str) {
        self.put(source(peer), format!("{peer}{what}"), Instant::now());
    }

    /// Reports what has not been shown so far.
    fn finish(&self) {
        let sources = std::mem::take(&mut *lock(&self.sources));
        sources.into_iter().filter_map(hidden).for_each(|line| self.observer.note(&line));
    }

    fn put(&self, source: Cow<'static, str>, line: String, now: Instant) {
        let mut lines = Vec::new();
        let mut sources = lock(&self.sources);
        let ended = sources.extract_if(|_, period| now.saturating_duration_since(period.begun) >= PERIOD);
        lines.extend(ended.filter_map(hidden));
        let known = sources.contains_key(&source) || sources.len() < SOURCES;
        let source = if known { source } else { OTHERS.into() };
        let period = sources.entry(source).or_insert(Period { begun: now, shown: 0, hidden: 0 });
        if period.shown < LINES {
            period.shown += 1;
            lines.push(line);
        } else {
            period.hidden += 1;
        }
        drop(sources);
        lines.iter().for_each(|line| self.observer.note(line));
    }
}

/// The line that reports what has not been shown.
fn hidden((source, Period { hidden, .. }): (Cow<str>, Period)) -> Option<String> {
    let limit = PERIOD.as_secs();
    (hidden > 0).then(|| format!("{hidden} more lines {source} not shown (at most {LINES} within {limit} s)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Observer for Lines {
        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    /// Every line is shown or counted, one source does not use up the lines of another, and memory is limited.
    #[test]
    fn a_source_with_many_lines_is_shown_in_part_and_counted() {
        let lines = Lines::default();
        let log = Log::new(&lines);
        let begun = Instant::now();
        for port in 0..1000 {
            let peer = Peer::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            log.put(source(peer), format!("{peer}: bad"), begun);
        }
        log.put(source(Peer::Unix(Some(1))), "other".to_owned(), begun);
        let shown = lines.0.lock().unwrap().len();
        assert_eq!(shown, LINES as usize + 1);
        log.put(SERVER.into(), "later".to_owned(), begun + PERIOD);
        let texts = std::mem::take(&mut *lines.0.lock().unwrap());
        assert_eq!(texts[shown..].len(), 2, "{texts:?}");
        assert!(texts[shown].starts_with("980 more lines about clients from 127.0.0.1 not shown"), "{texts:?}");
        for address in 0..10_000_u32 {
            log.put(Ipv4Addr::from(address).to_string().into(), "bad".to_owned(), begun + PERIOD);
        }
        assert!(lock(&log.sources).len() <= SOURCES + 1);
        log.finish();
        let shown = lines.0.lock().unwrap();
        let counted: u64 = shown.iter().filter_map(|line| line.split_once(" more lines")?.0.parse::<u64>().ok()).sum();
        let whole = shown.iter().filter(|line| *line == "bad").count() as u64;
        assert_eq!(whole + counted, 10_000, "{shown:?}");
    }
}
