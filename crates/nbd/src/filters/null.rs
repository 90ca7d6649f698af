//! Requests that are only claimed to be done (`path_null`): what is left is the cost of everything else.

use crate::backends::Backend;

/// What is between a client and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A socket.
    Real,
    /// Nothing: after the handshake the client claims that requests were sent and replied to. It shows what a client costs by itself.
    Null,
}

/// A storage of the same size that nobody reads or writes.
///
/// # Errors
/// When there are no addresses for a reply's zeros.
pub fn in_place_of(storage: &Backend) -> std::io::Result<Backend> {
    Backend::null(storage.size())
}
