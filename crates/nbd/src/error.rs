//! What can go wrong with a server or a client as a whole.

use std::io;

/// As this crate returns it.
pub type Result<T> = std::result::Result<T, Error>;

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system said no.
    #[error("{what}: {source}")]
    System {
        /// To what.
        what: String,
        /// Its words.
        source: io::Error,
    },
    /// The server said something that no server should, or did not want us.
    #[error("{0}")]
    Server(String),
    /// The connection is lost; what was in flight may or may not have been done.
    #[error("the connection to the server is lost: {0}")]
    Lost(String),
}

impl Error {
    pub(crate) fn system(what: impl Into<String>, source: io::Error) -> Self {
        Self::System { what: what.into(), source }
    }
}
