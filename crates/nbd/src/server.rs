//! An NBD server: accepts clients, negotiates an export with each, and executes their requests on its storage.
//!
//! The thread that calls [`serve`] accepts and hands clients to a pool of threads in turn. Each of these runs an
//! `event_loop` with its own `connection`s, so a request takes no lock. Nothing here prints: log lines go to an [`Observer`].

mod connection;
mod event_loop;
mod inbox;
mod receive_coalescing;
#[cfg(not(fuzzing))]
mod requests;
#[cfg(fuzzing)]
pub mod requests;

use crate::backends::Backend;
use crate::handshake::server::ExportInfo;
use crate::handshake::transmission_flag as flag;
use crate::socket::Socket;
use crate::tuning::Tuning;
use crate::wire::MAX_PAYLOAD;
use crate::{Error, Result, lock};
use event_loop::EventLoop;
use inbox::{Inbox, Waker};
pub use requests::Counters;
use requests::{Requests, Rights};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::set_socket_keepalive;
use rustix::process::{Resource, getrlimit};
use std::io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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
    /// The next client, and how log lines name it.
    fn accept(&self) -> std::io::Result<(Socket, String)> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, peer)| (stream.into(), format!("client {peer}"))),
            Self::Unix(listener) => {
                listener.accept().map(|(stream, _)| (stream.into(), "client on the Unix socket".to_owned()))
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
}

/// Serves until [`ServerHandle::stop`], then finishes the requests that have arrived. Returns the counters.
///
/// # Errors
/// When a thread or a file descriptor is not available at the start.
pub fn serve(
    listener: &Listener,
    export: &Export,
    options: &Options,
    handle: &ServerHandle,
    observer: &dyn Observer,
) -> Result<Counters> {
    ioctl_fionbio(listener, true).map_err(|error| Error::system("listening", error.into()))?;
    let options = Options { connections: options.connections.min(descriptors()), ..*options };
    let server = Server { export, options, clients: AtomicUsize::new(0), log: Log::new(observer) };
    std::thread::scope(|scope| {
        let (mut inboxes, mut threads) = (Vec::new(), Vec::new());
        let started = (0..options.threads.max(1)).try_for_each(|number| {
            let event_loop = EventLoop::new(&server)?;
            inboxes.push(event_loop.inbox.clone());
            let thread = std::thread::Builder::new().name(format!("iotoll-serve{number}"));
            let thread = thread.spawn_scoped(scope, move || event_loop.run());
            threads.push(thread.map_err(|error| Error::system("starting a thread", error))?);
            Ok(())
        });
        let accepted = started.and_then(|()| server.accept(listener, handle, &inboxes));
        inboxes.iter().for_each(|inbox| inbox.put(None));
        let mut done = Counters::default();
        for thread in threads {
            match thread.join() {
                Ok(counters) => done.add(&counters),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        server.log.report(&lock(&server.log.period));
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
    export: &'a Export,
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

    fn put(&self, socket: Socket, peer: String, inbox: Option<&Arc<Inbox>>) {
        let set_up = socket.set_nodelay().and_then(|()| Ok(ioctl_fionbio(&socket, true)?));
        // Keepalive detects a client whose machine is down after some hours (Linux: tcp_keepalive_time).
        if let Err(error) = set_up.and_then(|()| Ok(set_socket_keepalive(&socket, true)?)) {
            return self.log.note(&format!("{peer} refused: {error}"));
        }
        if self.clients.load(Ordering::Relaxed) >= self.options.connections {
            return self.log.note(&format!("{peer} refused: too many clients"));
        }
        if let Some(inbox) = inbox {
            self.clients.fetch_add(1, Ordering::Relaxed);
            inbox.put(Some((socket, peer)));
        }
    }
}

/// The export of a server.
#[derive(Clone, Debug)]
pub struct Export {
    /// The description that clients get.
    info: ExportInfo,
    backend: Backend,
    /// Writes fail with EPERM.
    read_only: bool,
}

impl Export {
    /// Exports a storage. The maximum payload is at least 4096, at most [`MAX_PAYLOAD`].
    pub fn new(name: String, backend: Backend, read_only: bool, max_payload: u32) -> Self {
        let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA;
        // All connections share one storage, so a flush on any of them covers the completed writes of all.
        flags |= flag::CAN_MULTI_CONN;
        flags |= if read_only { flag::READ_ONLY } else { flag::SEND_TRIM | flag::SEND_WRITE_ZEROES };
        let max_payload = max_payload.clamp(4096, MAX_PAYLOAD);
        let info = ExportInfo { name, size: backend.size(), flags, preferred_block: 4096, max_payload };
        Self { info, backend, read_only }
    }

    /// The transmission phase of a client that negotiated it.
    fn requests(&self, checksums: bool, tuning: Tuning) -> Requests {
        let rights = Rights { read_only: self.read_only, checksums, max_payload: self.info.max_payload };
        Requests::new(self.backend.clone(), rights, tuning)
    }
}

/// Lines that are shown in a period.
const LINES: u32 = 20;
/// The period, from the first line.
const PERIOD: Duration = Duration::from_secs(10);

/// The log of a server.
struct Log<'a> {
    observer: &'a dyn Observer,
    period: Mutex<Period>,
}

/// The lines since the first one.
struct Period {
    begun: Instant,
    shown: u32,
    hidden: u64,
}

impl<'a> Log<'a> {
    fn new(observer: &'a dyn Observer) -> Self {
        Self { observer, period: Mutex::new(Period { begun: Instant::now(), shown: 0, hidden: 0 }) }
    }

    fn note(&self, line: &str) {
        let mut period = lock(&self.period);
        if period.begun.elapsed() >= PERIOD {
            self.report(&period);
            *period = Period { begun: Instant::now(), shown: 0, hidden: 0 };
        }
        if period.shown < LINES {
            period.shown += 1;
            self.observer.note(line);
        } else {
            period.hidden += 1;
        }
    }

    /// Reports how many lines have not been shown.
    fn report(&self, Period { hidden, .. }: &Period) {
        if *hidden > 0 {
            let limit = PERIOD.as_secs();
            self.observer.note(&format!("{hidden} more lines not shown (at most {LINES} within {limit} s)"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Observer for Lines {
        fn note(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    #[test]
    fn of_many_lines_some_are_shown_and_all_counted() {
        let lines = Lines::default();
        let log = Log::new(&lines);
        (0..1000).for_each(|number| log.note(&format!("line {number}")));
        log.period.lock().unwrap().begun -= PERIOD;
        log.note("later");
        let shown = lines.0.lock().unwrap();
        assert_eq!(shown.len(), LINES as usize + 2);
        assert!(shown[20].starts_with("980 more lines not shown") && shown[21] == "later", "{shown:?}");
    }
}
