//! NBD URIs: `nbd://HOST[:PORT][/EXPORT]`, `nbd+unix:///[EXPORT]?socket=PATH`.
//!
//! The format is that of the NBD project's `doc/uri.md`. No name is resolved here.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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

    fn from_str(text: &str) -> Result<Self, BadUri> {
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
