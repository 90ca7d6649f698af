//! The other end of engine rr: `tcp://HOST:PORT`, `udp://HOST:PORT`, `unix:PATH`.

use crate::plan::value::Wrong;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An echo server, which returns what it receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Peer {
    /// Host and port, over TCP.
    Tcp(String),
    /// Host and port, over UDP.
    Udp(String),
    /// Path of a stream socket.
    Unix(String),
}

impl Peer {
    /// The accepted values.
    pub const FORM: &'static str = "tcp://HOST:PORT, udp://HOST:PORT or unix:PATH";

    /// Parses `rr_peer`, and the address of `iotoll serve --echo`.
    ///
    /// # Errors
    /// The accepted values, in words.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let wrong =
            || Wrong::because(text, format_args!("is not the address of an echo server: expected {}", Self::FORM));
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.to_owned())) };
        }
        let (scheme, address) = text.split_once("://").ok_or_else(wrong)?;
        let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(_))) {
            return Err(wrong());
        }
        match scheme {
            "tcp" => Ok(Self::Tcp(address.to_owned())),
            "udp" => Ok(Self::Udp(address.to_owned())),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "tcp://{address}"),
            Self::Udp(address) => write!(formatter, "udp://{address}"),
            Self::Unix(path) => write!(formatter, "unix:{path}"),
        }
    }
}

impl From<Peer> for String {
    fn from(peer: Peer) -> Self {
        peer.to_string()
    }
}

impl TryFrom<String> for Peer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|wrong| wrong.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_printed() {
        for text in ["tcp://127.0.0.1:7", "udp://[::1]:5001", "tcp://a.host:65535", "unix:/run/echo"] {
            assert_eq!(Peer::parse(text).map(|peer| peer.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "tcp://", "tcp://host", "tcp://:7", "tcp://host:70000", "sctp://a:1", "unix:", "127.0.0.1:7"] {
            assert!(Peer::parse(text).is_err(), "{text}");
        }
    }
}
