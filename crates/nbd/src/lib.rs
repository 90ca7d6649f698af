//! The reference remote block path: an NBD server and client that interoperate with others and in which every technique
//! is a switch.
//!
//! [`protocol`] turns bytes into values without I/O; [`server`] executes requests on one of the [`backends`];
//! [`client`] sends them, several threads through one [`transmit_queue`]; [`filters`] sit between; [`Tuning`] selects how both ends move bytes. The crate must not know
//! that it is measured.

pub mod backends;
mod backoff;
pub mod client;
pub mod error;
pub mod filters;
pub mod protocol;
pub mod server;
mod socket;
pub mod transmit_queue;
mod tuning;

pub use error::{Error, Result};
pub use filters::delay::{Delay, Layer};
pub use protocol::{handshake, wire};
pub use sys::shared_copy::Copying;
pub use tuning::{Framing, Sending, Tuning};

#[cfg(test)]
mod tests;
