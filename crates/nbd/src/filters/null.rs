//! Short-circuits the wire (`path_null`): requests are only claimed to be done, so what is left is the cost of
//! everything else.

/// What connects a client to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A socket.
    Real,
    /// Nothing: after the handshake, the client claims that requests were sent and replied to. Shows the cost of the
    /// client alone.
    Null,
}
