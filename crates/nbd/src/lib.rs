//! The reference remote block path: an NBD server and client that interoperate with others and in which every technique
//! is a switch.
//!
//! [`protocol`] turns bytes into values without I/O; [`server`] executes requests on one of the [`backends`];
//! [`client`] sends them, several threads through one [`transmit_queue`]; [`filters`] sit between; [`Tuning`] selects how
//! both ends move bytes. The crate must not know that it is measured.

pub mod backends;
pub mod client;
pub mod filters;
/// The NBD protocol as bytes, without I/O: [`handshake`] negotiates an export, [`wire`] has the requests and replies
/// that follow.
pub mod protocol {
    pub mod handshake;
    pub mod wire;
}
pub mod server;
mod socket;
pub mod transmit_queue;
mod tuning;

pub use protocol::{handshake, wire};
pub use sys::shared_copy::Copying;
pub use tuning::{Framing, Sending, Tuning};

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sys::byte_store::ByteStore;

#[cfg(test)]
mod tests;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server or a client failed as a whole. A failed request is a [`WireError`](wire::WireError) instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The server broke the protocol or refused the client.
    #[error("{0}")]
    Server(String),
    /// The connection is lost. Requests in flight may or may not have been executed.
    #[error("lost the connection to the server: {0}")]
    Lost(String),
}

impl Error {
    pub(crate) fn system(what: impl Into<String>, source: io::Error) -> Self {
        Self::System { what: what.into(), source }
    }
}

/// No code panics while it changes the data under a lock, so a poisoned lock still protects valid data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Zeroed memory for payloads, whose pages can be sent if asked for.
fn payload_memory(bytes: usize, pages: bool, copying: Copying) -> io::Result<Arc<ByteStore>> {
    let store = if pages { ByteStore::in_file(bytes) } else { ByteStore::zeroed(bytes) };
    Ok(Arc::new(store?.copied(copying)))
}
