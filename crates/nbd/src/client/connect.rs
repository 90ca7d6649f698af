//! From an address to a connection that has agreed on an export.

use super::GLANCE;
use super::uri::{Address, Uri};
use crate::error::{Error, Result};
use crate::handshake::client::{Export, INPUT_BYTES, Negotiation, Step};
use crate::socket::Socket;
use std::io::{ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use sys::byte_store::Waiting;

/// Connects.
pub(super) fn reach(uri: &Uri, timeout: Duration) -> Result<Socket> {
    match &uri.address {
        Address::Tcp { host, port } => {
            let stream = dial(host, *port, timeout);
            Ok(Socket::Tcp(stream.map_err(|error| Error::system(format!("connecting to {host}:{port}"), error))?))
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path);
            Ok(Socket::Unix(stream.map_err(|error| Error::system(format!("connecting to {}", path.display()), error))?))
        }
    }
}

/// The first address of that name that answers.
fn dial(host: &str, port: u16, timeout: Duration) -> std::io::Result<TcpStream> {
    let mut last = ErrorKind::NotFound.into();
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Agrees on an export. Gives what is left in `memory` besides.
pub(super) fn negotiate(
    socket: &Socket,
    name: &str,
    checksums: bool,
    timeout: Duration,
    memory: &mut [u8],
) -> Result<(Export, usize, usize)> {
    let limited = |what: &str, error| Error::system(format!("{what} in the handshake"), error);
    let last = Instant::now() + timeout;
    let mut negotiation = Negotiation::new(name).with_checksums(checksums);
    let mut out = Vec::new();
    let (mut begin, mut end) = (0, 0);
    loop {
        memory.copy_within(begin..end, 0);
        (begin, end) = (0, end - begin);
        let free = memory.get_mut(end..INPUT_BYTES).filter(|free| !free.is_empty());
        let free = free.ok_or_else(|| Error::Server("the server's handshake makes no sense".to_owned()))?;
        let left = last.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Lost(format!("the handshake did not end within {:.1} s", timeout.as_secs_f64())));
        }
        socket.limit(Some(left)).map_err(|error| limited("setting a limit", error))?;
        match socket.receive(free, Waiting::UntilSome) {
            Ok(0) => return Err(Error::Lost("the server closed it in the handshake".to_owned())),
            Ok(count) => end += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_nothing(&error) => return Err(Error::Lost("the server says nothing".to_owned())),
            Err(error) => return Err(limited("receiving", error)),
        }
        let (taken, step) = negotiation.advance(memory.get(begin..end).unwrap_or_default(), &mut out);
        begin += taken;
        socket.send_all(&out).map_err(|error| limited("sending", error))?;
        out.clear();
        match step {
            Step::Continue => {}
            Step::Failed(why) => return Err(Error::Server(why)),
            Step::Ready(export) => {
                socket
                    .limit(Some(GLANCE))
                    .and_then(|()| socket.send_at_once())
                    .map_err(|error| limited("setting up", error))?;
                return Ok((export, begin, end));
            }
        }
    }
}

/// Whether it only took too long.
pub(super) fn is_nothing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut)
}

impl Socket {
    /// How long receiving and sending may wait.
    fn limit(&self, limit: Option<Duration>) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(limit).and_then(|()| stream.set_write_timeout(limit)),
            Self::Unix(stream) => stream.set_read_timeout(limit).and_then(|()| stream.set_write_timeout(limit)),
        }
    }

    fn send_all(&self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => (&*stream).write_all(bytes),
            Self::Unix(stream) => (&*stream).write_all(bytes),
        }
    }
}
