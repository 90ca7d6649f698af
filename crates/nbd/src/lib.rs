//! The reference remote block path: an NBD server and client, interoperable with all others, whose every technique can be tuned.
//!
//! It does not know that it is measured. [`protocol`] is bytes in, values out, without I/O; [`server`] does requests to one of the
//! [`backends`]; [`client`] sends them; [`filters`] stand between; [`Tuning`] says how both ends move bytes.

pub mod backends;
mod backoff;
pub mod client;
pub mod error;
pub mod filters;
pub mod protocol;
pub mod server;
mod socket;
mod tuning;

pub use error::{Error, Result};
pub use filters::delay::{Delay, Layer};
pub use protocol::{handshake, wire};
pub use sys::shared_copy::Copying;
pub use tuning::{Framing, Sending, Tuning};

#[cfg(test)]
mod tests;
