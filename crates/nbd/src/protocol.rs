//! NBD as bytes, without I/O: the [`handshake`] agrees on an export, [`wire`] has the requests and replies that follow.

pub mod handshake;
pub mod wire;
