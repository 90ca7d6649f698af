//! Readiness of a service: a text in its output, or a listening socket in the kernel's tables.
//!
//! iotoll does not connect to find out: some servers exit after their first client, and a connection to a free local port can connect
//! to itself.

use super::output::Output;
use crate::whereabouts::servers::{Address, listening};
use model::plan::service::Ready;

/// Whether a service whose first process is `process` is ready.
pub(super) fn is_ready(ready: &Ready, process: u32, output: &Output) -> bool {
    match ready {
        Ready::Says(_) => output.is_wanted(),
        Ready::Port(port) => listening(process).contains(&Address::Port(*port)),
        Ready::Socket(path) => listening(process).contains(&Address::Path(path.clone())),
    }
}

/// What is missing, in words.
pub(super) fn awaited(ready: &Ready) -> String {
    match ready {
        Ready::Says(text) => format!("no line of its output contains '{text}'"),
        Ready::Port(port) => format!("nothing listens on port {port}"),
        Ready::Socket(path) => format!("nothing listens on {path}"),
    }
}
