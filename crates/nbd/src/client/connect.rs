//! Connects to a server and negotiates an export. In: a URI; out: a socket and the export, plus bytes received beyond
//! the handshake.
//!
//! NBD URIs are `nbd://HOST[:PORT][/EXPORT]` and `nbd+unix:///[EXPORT]?socket=PATH`, the format of the NBD project's
//! `doc/uri.md`.

use super::POLL_INTERVAL;
use crate::handshake::client::{Export, INPUT_BYTES, Negotiation, Step};
use crate::socket::Socket;
use crate::{Error, Result};
use std::fmt;
use std::io::{ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
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
    let mut negotiation = Negotiation::new(name);
    negotiation.wants_checksums = checksums;
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

/// NBD's port, assigned by IANA.
const PORT: u16 = 10_809;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp {
        /// Host name or IP address.
        host: String,
        /// Port number.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

/// A server and one of its exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// Address of the server.
    pub address: Address,
    /// Name of the export; the empty name is the default export.
    pub export: String,
}

/// The text is not an NBD URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an NBD URI: expected nbd://HOST[:PORT][/EXPORT] or nbd+unix:///[EXPORT]?socket=PATH")]
pub struct BadUri(String);

impl FromStr for Uri {
    type Err = BadUri;

    fn from_str(text: &str) -> std::result::Result<Self, BadUri> {
        let bad = || BadUri(text.to_owned());
        if let Some(rest) = text.strip_prefix("nbd+unix://") {
            let (path, query) = rest.split_once('?').ok_or_else(bad)?;
            let socket = query.split('&').find_map(|pair| pair.strip_prefix("socket=")).ok_or_else(bad)?;
            let socket = decode(socket).filter(|socket| !socket.is_empty()).ok_or_else(bad)?;
            let export = decode(path.strip_prefix('/').unwrap_or(path)).ok_or_else(bad)?;
            return Ok(Self { address: Address::Unix(socket.into()), export });
        }
        let rest = text.strip_prefix("nbd://").ok_or_else(bad)?;
        let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
        let export = decode(export).ok_or_else(bad)?;
        // An IPv6 address contains colons and is written in brackets.
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(bad)?)),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map_or(Ok(PORT), str::parse).map_err(|_| bad())?;
        if host.is_empty() {
            return Err(bad());
        }
        Ok(Self { address: Address::Tcp { host: host.to_owned(), port }, export })
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let export = encode(self.export.as_bytes());
        match &self.address {
            Address::Unix(path) => {
                write!(formatter, "nbd+unix:///{export}?socket={}", encode(path.as_os_str().as_encoded_bytes()))
            }
            Address::Tcp { host, port } => {
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                write!(formatter, "nbd://{host}:{port}")?;
                if export.is_empty() { Ok(()) } else { write!(formatter, "/{export}") }
            }
        }
    }
}

/// Percent-encodes all but unreserved ASCII characters and `/`.
fn encode(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let one = |&byte: &u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    bytes.iter().map(one).collect()
}

/// Decodes percent-encoding; `None` if it is malformed or not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut found = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            found.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        found.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(found).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_exports() {
        let tcp = |host: &str, port, export: &str| {
            Ok(Uri { address: Address::Tcp { host: host.into(), port }, export: export.into() })
        };
        assert_eq!("nbd://localhost".parse(), tcp("localhost", 10_809, ""));
        assert_eq!("nbd://127.0.0.1:1234/disk%20one".parse(), tcp("127.0.0.1", 1234, "disk one"));
        assert_eq!("nbd://[::1]:5/x/y".parse(), tcp("::1", 5, "x/y"));
        let unix = |path: &str, export: &str| Ok(Uri { address: Address::Unix(path.into()), export: export.into() });
        assert_eq!("nbd+unix:///?socket=/tmp/s".parse(), unix("/tmp/s", ""));
        assert_eq!("nbd+unix:///e?socket=%2Ftmp%2Fs".parse(), unix("/tmp/s", "e"));
    }

    #[test]
    fn display_and_parse_round_trip() {
        let unix = Address::Unix("/tmp/a b%c?d&e=ü".into());
        let tcp = |host: &str| Address::Tcp { host: host.into(), port: 7 };
        for (address, export) in [(unix, "x y"), (tcp("localhost"), ""), (tcp("::1"), "e?f/g")] {
            let uri = Uri { address, export: export.into() };
            assert_eq!(uri.to_string().parse(), Ok(uri));
        }
    }

    #[test]
    fn malformed_uris_are_refused() {
        for text in [
            "",
            "http://x",
            "nbd://",
            "nbd://:1",
            "nbd://h:99999",
            "nbd+unix:///",
            "nbd+unix:///?socket=",
            "nbd://h/%zz",
            "nbd://[::1]x",
        ] {
            assert!(text.parse::<Uri>().is_err(), "{text}");
        }
    }
}
