//! The NBD protocol as bytes, without I/O: [`handshake`] negotiates an export, [`wire`] has the requests and replies
//! that follow.

pub mod handshake;
pub mod wire;
