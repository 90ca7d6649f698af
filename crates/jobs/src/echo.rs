//! An echo server: returns what it receives. The other end of engine rr.

use lab::error::{Error, Result};
use model::plan::Peer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Pause after an error.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Most connections at a time, each with a thread.
const MOST_CONNECTIONS: usize = 1024;
/// Bytes of one receiving call.
const BUFFER: usize = 256 << 10;
const STACK_BYTES: usize = 128 << 10;

/// Serves until `stop` says so. Calls `ready` with the address once it listens, and returns at once if nobody could be told.
///
/// # Errors
/// When it cannot listen there.
pub fn serve(peer: &Peer, ready: impl FnOnce(Peer) -> bool, stop: &dyn Fn() -> bool) -> Result<()> {
    match peer {
        Peer::Tcp(address) => {
            let listener = TcpListener::bind(resolved(peer, address)?).map_err(|error| refused(peer, error))?;
            let at = listener.local_addr().map_err(|error| refused(peer, error))?;
            listener.set_nonblocking(true).map_err(|error| refused(peer, error))?;
            let heard = ready(Peer::Tcp(at.to_string()));
            serve_streams(&listener, heard, stop, || {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                Ok((stream.try_clone()?, stream))
            });
            Ok(())
        }
        Peer::Unix(path) => {
            let listener = UnixListener::bind(path).map_err(|error| refused(peer, error))?;
            let made = identity(path);
            let outcome = listener.set_nonblocking(true).map_err(|error| refused(peer, error));
            let heard = outcome.is_ok() && ready(peer.clone());
            serve_streams(&listener, heard, stop, || {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                Ok((stream.try_clone()?, stream))
            });
            // Another server may have replaced the socket meanwhile.
            if made.is_some() && made == identity(path) {
                let _ = fs::remove_file(path);
            }
            outcome
        }
        Peer::Udp(address) => {
            let socket = UdpSocket::bind(resolved(peer, address)?).map_err(|error| refused(peer, error))?;
            let at = socket.local_addr().map_err(|error| refused(peer, error))?;
            socket.set_read_timeout(Some(10 * POLL_INTERVAL)).map_err(|error| refused(peer, error))?;
            let heard = ready(Peer::Udp(at.to_string()));
            let mut buffer = vec![0; BUFFER];
            while heard && !stop() {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    // A reply that is lost is a lost packet to the client.
                    let _ = socket.send_to(buffer.get(..length).unwrap_or_default(), from);
                }
            }
            Ok(())
        }
    }
}

/// The address of a peer's host.
pub(crate) fn resolved(peer: &Peer, address: &str) -> Result<SocketAddr> {
    let found = address.to_socket_addrs().map(|mut addresses| addresses.next());
    found.ok().flatten().ok_or_else(|| Error::Refused(format!("{peer}: the host has no address; give an IP address")))
}

fn refused(peer: &Peer, error: std::io::Error) -> Error {
    let mend = match (peer, error.kind()) {
        (Peer::Unix(_), ErrorKind::AddrInUse) => "exists; remove it, or choose another path",
        (Peer::Unix(_), ErrorKind::InvalidInput) => "is too long; choose a path of at most 107 bytes",
        (Peer::Unix(_), _) => "cannot be made; choose another path",
        (_, ErrorKind::AddrInUse) => "is in use; choose another port, or 0 for any",
        (_, ErrorKind::AddrNotAvailable) => "is not an address of this machine",
        (_, ErrorKind::PermissionDenied) => "may not be used without root; choose a port above 1023",
        _ => "cannot be listened at; choose another address",
    };
    Error::Refused(format!("{peer}: {mend} ({error})"))
}

/// What names a file, whatever its path is.
pub fn identity(path: impl AsRef<Path>) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

/// Echoes each connection in a thread of its own, if somebody `heard` of the listener.
fn serve_streams<S: Read + Write + Send + 'static>(
    listener: &impl AsFd,
    heard: bool,
    stop: &dyn Fn() -> bool,
    accept: impl Fn() -> std::io::Result<(S, S)>,
) {
    let connections = Connections::at_most(MOST_CONNECTIONS);
    let most = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while heard && !stop() {
        // What goes wrong here, accept tells.
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&most));
        match accept() {
            Ok((from, to)) => connections.serve("echo", STACK_BYTES, move || echo(from, to)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // Too many open files, for example: not at full speed.
            Err(_) => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

/// Connections of a server, each with a thread of its own.
pub struct Connections {
    most: usize,
    open: Arc<AtomicUsize>,
}

impl Connections {
    pub fn at_most(most: usize) -> Self {
        Self { most, open: Arc::default() }
    }

    /// Does the work of a connection, which ends with it. One too many is closed.
    pub fn serve(&self, name: &str, stack: usize, work: impl FnOnce() + Send + 'static) {
        if self.open.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let open = self.open.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(stack);
        let spawned = thread.spawn(move || {
            work();
            open.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Until the other end closes.
fn echo(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) if to.write_all(buffer.get(..length).unwrap_or_default()).is_ok() => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}
