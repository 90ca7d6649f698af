//! The reference I/O path: an NBD server and client, interoperable with all others, whose every technique is a switch.
//!
//! It does not know that it is measured. The protocol ([`wire`], [`handshake`]) is bytes in, values out, without I/O; around it,
//! [`server`] does requests to a [`backend`].

pub mod backend;
mod backoff;
pub mod checksum;
pub mod client;
pub mod error;
pub mod handshake;
pub mod server;
mod socket;
mod switches;
pub mod wire;

pub use error::{Error, Result};
pub use switches::{Framing, Inject, Layer, Sending, Switches, Transport};
pub use sys::shared_copy::Copying;

#[cfg(test)]
mod tests;
