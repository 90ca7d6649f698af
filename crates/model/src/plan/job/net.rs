//! What engine `net` sends to or receives from.

use super::{Access, JobPlan};
use crate::plan::value::Choice;
use serde::{Deserialize, Serialize};

/// The options of engine `net`, with fio's defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetPlan {
    /// `hostname`: the host to connect to, the path of a Unix socket, or the group of datagrams that are sent to many.
    pub host: Option<String>,
    /// `port` of the first copy; each copy has the next one. 0 means not given.
    pub port: u16,
    /// `protocol`.
    pub protocol: NetProtocol,
    /// `listen`: waits for a connection instead of connecting.
    pub listens: bool,
    /// `pingpong`: each block is sent back.
    pub pingpong: bool,
    /// `nodelay`: TCP_NODELAY.
    pub nodelay: bool,
    /// `interface`: the address of the interface for datagrams that are sent to many.
    pub interface: Option<String>,
    /// `ttl` of datagrams that are sent to many.
    pub ttl: u32,
    /// `window_size`: bytes of the socket's buffers; 0 means the system's default.
    pub window_size: u32,
    /// `mss`: the largest segment of TCP; 0 means the system's default.
    pub mss: u32,
}

impl Default for NetPlan {
    fn default() -> Self {
        Self {
            host: None,
            port: 0,
            protocol: NetProtocol::default(),
            listens: false,
            pingpong: false,
            nodelay: false,
            interface: None,
            ttl: 1,
            window_size: 0,
            mss: 0,
        }
    }
}

impl NetPlan {
    /// Whether no option of these is given.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Where this copy of a job listens, or connects to: a path, or the port.
    pub fn place(&self, copy: u32) -> (NetProtocol, String) {
        let place = match self.protocol {
            NetProtocol::Unix => self.host.clone().unwrap_or_default(),
            _ => u32::from(self.port).saturating_add(copy).to_string(),
        };
        (self.protocol, place)
    }

    /// Whether the job waits for the other end: as in fio, with datagrams and Unix sockets the one that reads.
    pub fn waits(&self, access: Access) -> bool {
        if self.protocol.is_tcp() { self.listens } else { access == Access::Read }
    }
}

/// `protocol`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NetProtocol {
    /// TCP over IPv4.
    #[default]
    Tcp,
    /// TCP over IPv6.
    Tcpv6,
    /// UDP over IPv4.
    Udp,
    /// UDP over IPv6.
    Udpv6,
    /// Unix sockets.
    Unix,
}

impl NetProtocol {
    /// Its name in `protocol=`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tcpv6 => "tcpv6",
            Self::Udp => "udp",
            Self::Udpv6 => "udpv6",
            Self::Unix => "unix",
        }
    }

    /// Whether it is TCP.
    pub fn is_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Tcpv6)
    }

    /// Whether it sends datagrams.
    pub fn is_udp(self) -> bool {
        matches!(self, Self::Udp | Self::Udpv6)
    }
}

impl Choice for NetProtocol {
    fn words() -> Vec<(&'static str, Self)> {
        let all = [Self::Tcp, Self::Tcpv6, Self::Udp, Self::Udpv6, Self::Unix];
        all.into_iter().map(|protocol| (protocol.name(), protocol)).collect()
    }
}

impl JobPlan {
    /// Whether it waits for the other end of engine `net`.
    pub fn waits_for_other_end(&self) -> bool {
        self.engine == super::EngineKind::Net && self.net.waits(self.access)
    }
}
