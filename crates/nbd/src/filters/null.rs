//! Requests that are only claimed to be done (`path_null`): what is left is the cost of everything else.

/// What is between a client and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A socket.
    Real,
    /// Nothing: after the handshake the client claims that requests were sent and replied to. It shows what a client costs by itself.
    Null,
}
