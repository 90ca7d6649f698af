//! NBD clients: callers stage requests, submit them in batches, and reap the replies.
//!
//! A `single_client` belongs to one thread; a `shared_client` serves several threads over one connection, with a
//! [`transmit_queue`](crate::transmit_queue) between them. Payloads are in the slots of one arena; each request in flight has one slot. The
//! cookie on the wire is the slot number with a generation count, which distinguishes a reply to this request from a
//! reply to an earlier one.

mod connect;
pub mod shared_client;
mod single_client;

pub use crate::filters::Wire;
use crate::handshake::client::Export;
use crate::handshake::transmission_flag;
use crate::tuning::Tuning;
use crate::wire::{CHUNK_MAGIC, Command, WireError, decode_simple_reply};
use crate::{Error, Result};
pub use connect::{Address, BadUri, Uri};
pub use single_client::Client;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use sys::byte_store::ByteStore;

/// Size of the receive buffer.
const MEMORY_BYTES: usize = 256 << 10;
/// A wait with no traffic returns after this time, so that the caller can check its own deadlines.
pub const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Options of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The switches. With `coalesce`, the client waits for replies to half of what is in flight, if at least four
    /// requests are.
    pub tuning: Tuning,
    /// Where requests in flight are counted.
    pub in_flight: Accounting,
    /// Whether requests are sent at all.
    pub wire: Wire,
    /// Time limit of the handshake, from the first byte to the last.
    pub handshake_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let (tuning, handshake_timeout) = (Tuning::default(), Duration::from_secs(10));
        Self { tuning, in_flight: Accounting::None, wire: Wire::Real, handshake_timeout }
    }
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub slot: u32,
    /// Length of the request in bytes.
    pub length: u32,
    /// The server's error, if any.
    pub error: Option<WireError>,
    /// When its first byte was handed to the kernel, in ticks (`sys::clock::ticks`).
    pub handed_over: u64,
    /// When its reply was received and parsed, in ticks.
    pub answered: u64,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Read into the slot.
    Read,
    /// Write from the slot.
    Write,
    /// Discard the range.
    Trim,
    /// Make all completed writes durable; the range is ignored.
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

/// A connection as one thread sees it, its own ([`Client`]) or one that others share ([`Submitter`](shared_client::Submitter)).
pub trait Connection {
    /// The memory of all slots. The slot of a read that is in flight or has failed may contain data of another request.
    fn arena(&self) -> &ByteStore;
    /// Offset of one of its slots in the arena.
    fn begin(&self, slot: u32) -> usize;
    /// Whether the server supports this operation.
    fn takes(&self, ask: Ask) -> bool;
    /// Stages a request for the next [`submit`](Self::submit).
    ///
    /// # Errors
    /// When the slot is in use, does not exist, or is too small.
    fn stage(&mut self, slot: u32, ask: Ask, offset: u64, length: u32) -> Result<()>;
    /// Bytes of requests staged and not sent.
    fn staged_bytes(&self) -> usize;
    /// Sends the staged requests, now or soon. While the server accepts no data, a client waits and processes its replies.
    /// Returns false if nothing was sent or received for [`POLL_INTERVAL`].
    ///
    /// # Errors
    /// When the connection is lost.
    fn submit(&mut self, each: impl FnMut(Done)) -> Result<bool>;
    /// Sends the staged requests and waits until at least one request is completed, unless none is in flight; passes
    /// all completed ones to `each`. Returns false if nothing was sent or received for [`POLL_INTERVAL`].
    ///
    /// # Errors
    /// When the connection is lost or the server breaks the protocol.
    fn exchange(&mut self, each: impl FnMut(Done)) -> Result<bool>;
    /// Requests staged and not completed.
    fn in_flight(&self) -> u32;
    /// System calls so far.
    fn calls(&self) -> u64;
}

/// System calls and bytes moved without or with a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syscalls {
    /// Sending system calls.
    pub sends: u64,
    /// Receiving system calls and waits.
    pub receives: u64,
    /// Payload bytes of writes that were copied behind their header.
    pub pulled_up_bytes: u64,
    /// Payload bytes of reads that were received in place, without a copy.
    pub in_place_bytes: u64,
}

impl Export {
    /// Whether the server supports this operation.
    pub fn takes(&self, ask: Ask) -> bool {
        match ask {
            Ask::Read => true,
            Ask::Write => self.flags & transmission_flag::READ_ONLY == 0,
            Ask::Trim => self.flags & transmission_flag::SEND_TRIM != 0,
            Ask::Flush => self.flags & transmission_flag::SEND_FLUSH != 0,
        }
    }
}

/// The cookie of a request: its slot, and the slot's generation.
fn together(slot: u32, generation: u32) -> u64 {
    u64::from(slot) | u64::from(generation) << 32
}

/// The slot and generation of a cookie. Inverse of [`together`].
fn apart(cookie: u64) -> (u32, u32) {
    (cookie as u32, (cookie >> 32) as u32)
}

fn lost(error: &std::io::Error) -> Error {
    Error::Lost(error.to_string())
}

/// Cookie and error of a simple reply's header; `None` while the header is incomplete.
///
/// # Errors
/// When it is not a simple reply.
#[inline]
fn simple_header(bytes: &[u8]) -> Result<Option<(u64, Option<WireError>)>> {
    decode_simple_reply(bytes).map_err(|magic| match magic {
        CHUNK_MAGIC => Error::Server("the server sends structured replies, which were not negotiated".to_owned()),
        _ => Error::Server(format!("the server sends something other than a reply (magic {magic:#x})")),
    })
}

fn not_in_flight(cookie: u64) -> String {
    format!("the server replies to a request that is not in flight (cookie {cookie:#x})")
}

/// Where requests in flight are counted, incremented and decremented by each request. The counters reproduce what a file
/// system does for each direct I/O of an inode (i_dio_count), and so the cost of a counter that all CPUs write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accounting {
    /// Only in the connection itself.
    #[default]
    None,
    /// In a counter per connection.
    PerThread,
    /// In one counter for all connections of the process.
    Shared,
}

/// A counter in cache lines of its own; two lines, because processors prefetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart(AtomicU64);

static SHARED: Apart = Apart(AtomicU64::new(0));

/// The counter that a connection uses.
#[derive(Debug)]
pub enum Account {
    None,
    Own(Box<Apart>),
    /// That of the process.
    Shared,
}

impl Account {
    /// The counter of a new connection.
    pub fn new(accounting: Accounting) -> Self {
        match accounting {
            Accounting::None => Self::None,
            Accounting::PerThread => Self::Own(Box::default()),
            Accounting::Shared => Self::Shared,
        }
    }

    fn word(&self) -> Option<&AtomicU64> {
        match self {
            Self::None => None,
            Self::Own(word) => Some(&word.0),
            Self::Shared => Some(&SHARED.0),
        }
    }

    /// Like inode_dio_begin.
    #[inline]
    pub fn begin(&self) {
        if let Some(word) = self.word() {
            word.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Like inode_dio_end. Release: a thread that reads zero also sees the effects of the requests.
    #[inline]
    pub fn end(&self) {
        if let Some(word) = self.word() {
            word.fetch_sub(1, Ordering::Release);
        }
    }

    /// Requests in flight in this counter; `None` if they are not counted.
    #[cfg(test)]
    fn in_flight(&self) -> Option<u64> {
        self.word().map(|word| word.load(Ordering::Acquire))
    }
}
