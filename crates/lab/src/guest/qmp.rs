//! QEMU's control socket: one command at a time, and its answer.

use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How often patience is asked for while QEMU does not answer.
pub(super) const ASK_INTERVAL: Duration = Duration::from_millis(20);

/// Says whether to go on waiting for QEMU, which may hang.
pub(super) type Patience<'a> = dyn FnMut() -> Result<()> + 'a;

/// The control socket of one QEMU.
#[derive(Debug)]
pub(super) struct Qmp {
    stream: UnixStream,
    /// What has been read and is no complete line yet.
    read: Vec<u8>,
    greeted: bool,
}

impl Qmp {
    /// Connects, if QEMU listens already.
    pub(super) fn connect(path: &Path) -> Option<Self> {
        let stream = UnixStream::connect(path).ok()?;
        stream.set_read_timeout(Some(ASK_INTERVAL)).ok()?;
        Some(Self { stream, read: Vec::new(), greeted: false })
    }

    /// Sends a command and returns its answer.
    pub(super) fn command(&mut self, name: &str, arguments: Value, patience: &mut Patience) -> Result<Value> {
        if !self.greeted {
            let failed = |error| Error::instrument("QEMU's greeting", error);
            self.line(&failed, patience)?;
            self.greeted = true;
            self.command("qmp_capabilities", json!({}), patience)?;
        }
        let failed = |error| Error::instrument(format!("QEMU's control command {name}"), error);
        let text = json!({ "execute": name, "arguments": arguments }).to_string();
        self.stream.write_all(text.as_bytes()).map_err(failed)?;
        loop {
            let mut answer = self.line(&failed, patience)?;
            if let Some(error) = answer.get("error") {
                let why = error.get("desc").and_then(Value::as_str).unwrap_or("no reason given").to_owned();
                return Err(failed(std::io::Error::other(why)));
            }
            // Events come between.
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    fn line(&mut self, failed: &dyn Fn(std::io::Error) -> Error, patience: &mut Patience) -> Result<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|error| failed(std::io::Error::other(error)));
            }
            let mut some = [0; 4096];
            match self.stream.read(&mut some) {
                Ok(0) => return Err(failed(std::io::Error::new(ErrorKind::UnexpectedEof, "QEMU has ended"))),
                Ok(count) => self.read.extend(some.iter().take(count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => patience()?,
                Err(error) => return Err(failed(error)),
            }
        }
    }
}
