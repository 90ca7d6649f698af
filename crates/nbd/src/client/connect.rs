//! Connects to a server and negotiates an export. In: a URI; out: a socket and the export, plus bytes received beyond
//! the handshake.

use super::POLL_INTERVAL;
use super::uri::{Address, Uri};
use crate::error::{Error, Result};
use crate::handshake::client::{Export, INPUT_BYTES, Negotiation, Step};
use crate::socket::Socket;
use std::io::{ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use sys::byte_store::Waiting;

/// Connects to the server's address.
pub(super) fn reach(uri: &Uri, timeout: Duration) -> Result<Socket> {
    let (socket, name) = match &uri.address {
        Address::Tcp { host, port } => (dial(host, *port, timeout).map(Socket::from), format!("{host}:{port}")),
        Address::Unix(path) => (UnixStream::connect(path).map(Socket::from), path.display().to_string()),
    };
    socket.map_err(|error| Error::system(format!("connecting to {name}"), error))
}

/// Connects to the first address of the host name that accepts.
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

/// Negotiates an export. Returns the range of `memory` that was received beyond the handshake.
pub(super) fn negotiate(
    socket: &Socket,
    name: &str,
    checksums: bool,
    timeout: Duration,
    memory: &mut [u8],
) -> Result<(Export, usize, usize)> {
    let limited = |what: &str, error| Error::system(format!("{what} during the handshake"), error);
    let last = Instant::now() + timeout;
    let mut negotiation = Negotiation::new(name).with_checksums(checksums);
    let mut out = Vec::new();
    let (mut begin, mut end) = (0, 0);
    loop {
        memory.copy_within(begin..end, 0);
        (begin, end) = (0, end - begin);
        let free = memory.get_mut(end..INPUT_BYTES).filter(|free| !free.is_empty());
        let free = free.ok_or_else(|| Error::Server("the server's handshake message is too long".to_owned()))?;
        let left = last.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Lost(format!("the handshake did not finish within {:.1} s", timeout.as_secs_f64())));
        }
        socket.limit(left).map_err(|error| limited("setting a timeout", error))?;
        match socket.receive(free, Waiting::UntilSome) {
            Ok(0) => return Err(Error::Lost("the server closed the connection during the handshake".to_owned())),
            Ok(count) => end += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_nothing(&error) => {
                return Err(Error::Lost("the server sent nothing within the time limit".to_owned()));
            }
            Err(error) => return Err(limited("receiving", error)),
        }
        let (taken, step) = negotiation.advance(memory.get(begin..end).unwrap_or_default(), &mut out);
        begin += taken;
        (&mut &*socket).write_all(&out).map_err(|error| limited("sending", error))?;
        out.clear();
        match step {
            Step::Continue => {}
            Step::Failed(why) => return Err(Error::Server(why)),
            Step::Ready(export) => {
                socket
                    .limit(POLL_INTERVAL)
                    .and_then(|()| socket.set_nodelay())
                    .map_err(|error| limited("setting up", error))?;
                return Ok((export, begin, end));
            }
        }
    }
}

/// Whether the call only timed out, would block, or was interrupted.
pub(super) fn is_nothing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut)
}
