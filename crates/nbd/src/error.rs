//! Errors of a server or a client as a whole. A failed request is a [`WireError`](crate::wire::WireError) instead.

use std::io;

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server or a client failed.
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
