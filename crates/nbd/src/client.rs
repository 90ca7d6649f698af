//! NBD clients: requests are staged, handed over in batches, and their replies reaped.
//!
//! A `single_client` belongs to one thread; a `shared_client` has a connection for several threads, with a `transmit_queue`
//! between them. Payloads lie in slots of one memory, as many as there may be requests in flight: a request's slot is its cookie on
//! the wire, with a count that tells a reply to it from one to the request before.

mod accounting;
mod connect;
pub mod shared_client;
mod single_client;
pub mod transmit_queue;
mod uri;

use crate::error::{Error, Result};
pub use crate::filters::null::Wire;
use crate::handshake::client::Export;
use crate::handshake::transmission_flag;
use crate::tuning::Tuning;
use crate::wire::{Command, ReplyHeader, WireError};
pub use accounting::Accounting;
pub use single_client::Client;
use std::time::Duration;
pub use uri::{Address, BadUri, Uri};

/// Received at one go.
const MEMORY_BYTES: usize = 256 << 10;
/// After this long without anything, a wait returns so that its caller can see to other things.
pub const GLANCE: Duration = Duration::from_millis(250);

/// How a client goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Of `coalesce`: half of what is in flight is waited for, and where fewer than four are, nothing is.
    pub tuning: Tuning,
    /// Who counts what is in flight.
    pub in_flight: Accounting,
    /// Whether requests go out at all.
    pub wire: Wire,
    /// How long a server may take to agree, from the first byte to the last.
    pub handshake_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let (tuning, handshake_timeout) = (Tuning::default(), Duration::from_secs(10));
        Self { tuning, in_flight: Accounting::None, wire: Wire::Real, handshake_timeout }
    }
}

/// A request that was replied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its slot.
    pub slot: u32,
    /// Bytes that it asked for.
    pub length: u32,
    /// What went wrong, if anything.
    pub error: Option<WireError>,
    /// When its first byte was handed over, in ticks (`sys::clock::ticks`).
    pub handed_over: u64,
    /// When its reply was there and understood, in ticks.
    pub answered: u64,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Into the slot.
    Read,
    /// From the slot.
    Write,
    /// Forget the range.
    Trim,
    /// Make everything durable; the range does not matter.
    Flush,
}

impl Ask {
    #[inline]
    fn command(self) -> Command {
        match self {
            Self::Read => Command::Read,
            Self::Write => Command::Write,
            Self::Trim => Command::Trim,
            Self::Flush => Command::Flush,
        }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syscalls {
    /// System calls that sent something.
    pub sends: u64,
    /// System calls that received something, or waited for it.
    pub receives: u64,
    /// Bytes of writes that were copied behind their header.
    pub pulled_up_bytes: u64,
    /// Bytes of reads that were received to where they belong.
    pub in_place_bytes: u64,
}

impl Export {
    /// Whether the server takes what this asks for.
    pub fn takes(&self, ask: Ask) -> bool {
        match ask {
            Ask::Read => true,
            Ask::Write => self.flags & transmission_flag::READ_ONLY == 0,
            Ask::Trim => self.flags & transmission_flag::SEND_TRIM != 0,
            Ask::Flush => self.flags & transmission_flag::SEND_FLUSH != 0,
        }
    }
}

/// A request's name on the wire: its slot, and which of the slot's requests it is.
fn together(slot: u32, generation: u32) -> u64 {
    u64::from(slot) | u64::from(generation) << 32
}

/// See [`together`].
fn apart(cookie: u64) -> (u32, u32) {
    (cookie as u32, (cookie >> 32) as u32)
}

fn lost(error: &std::io::Error) -> Error {
    Error::Lost(error.to_string())
}

/// What a reply begins with: whom it is to, and the error. `None` when not all of it is there.
///
/// # Errors
/// When it is no simple reply.
#[inline]
fn simple_header(bytes: &[u8]) -> Result<Option<(u64, Option<WireError>)>> {
    match ReplyHeader::decode(bytes) {
        Ok(None) => Ok(None),
        Ok(Some((ReplyHeader::Simple { cookie, error }, _))) => Ok(Some((cookie, error))),
        Ok(Some(_)) => Err(Error::Server("the server sends structured replies, which were not agreed on".to_owned())),
        Err(magic) => Err(Error::Server(format!("the server sends no reply (magic {:#x})", magic.0))),
    }
}
