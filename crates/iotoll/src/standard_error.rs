//! Standard error. A reader that does not read (a full pipe, a stopped terminal) loses lines, and is told how many; it does
//! not hold up a measurement or a server.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Result, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a line waits for a reader.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes that a pipe takes without waiting when it is ready (PIPE_BUF).
const TAKEN_AT_ONCE: usize = 4096;
/// Lines that may wait for the thread of a [`Log`].
const QUEUED: usize = 256;

/// Lines that nobody read in time.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes a line. Waits for a reader for a second at most, and not at all behind a line that was lost.
pub fn say(line: &str) {
    let patience = if LOST.load(Ordering::Relaxed) > 0 { Duration::ZERO } else { PATIENCE };
    if !takes_more(Some(patience)) {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let text = reported(LOST.swap(0, Ordering::Relaxed)) + line + "\n";
    if !write(&text, Some(patience)) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether something can be written now.
pub fn is_ready() -> bool {
    takes_more(Some(Duration::ZERO))
}

/// A thread that writes lines, so that whoever puts them never waits.
pub struct Log {
    sender: Option<SyncSender<String>>,
    lost: Arc<AtomicU64>,
    /// Locked because the threads of a server share the log.
    ended: Mutex<Receiver<()>>,
}

impl Log {
    pub fn start() -> Result<Self> {
        let (sender, lines) = sync_channel::<String>(QUEUED);
        let (end, ended) = sync_channel(1);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = lost.clone();
        std::thread::Builder::new().name("iotoll-log".to_owned()).spawn(move || {
            for line in lines {
                write(&(line + "\n"), None);
                write(&reported(counted.swap(0, Ordering::Relaxed)), None);
            }
            let _ = end.send(());
        })?;
        Ok(Self { sender: Some(sender), lost, ended: Mutex::new(ended) })
    }

    /// Puts a line. If too many wait already, it is only counted.
    pub fn put(&self, line: String) {
        if self.sender.as_ref().is_none_or(|sender| sender.try_send(line).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The lines that wait are written, if somebody reads them within a second.
impl Drop for Log {
    fn drop(&mut self) {
        drop(self.sender.take());
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(PATIENCE);
    }
}

/// The line that reports lost lines; empty if there are none.
fn reported(lost: u64) -> String {
    match lost {
        0 => String::new(),
        1 => "iotoll: 1 line was not shown: nobody read standard error\n".to_owned(),
        lost => format!("iotoll: {lost} lines were not shown: nobody read standard error\n"),
    }
}

/// Writes text, waiting for a reader before each part for `patience`, or for ever. Returns whether all of it was written
/// or never can be. Takes no lock: another thread may wait here for ever.
fn write(text: &str, patience: Option<Duration>) -> bool {
    for part in text.as_bytes().chunks(TAKEN_AT_ONCE) {
        let mut rest = part;
        while !rest.is_empty() {
            if !takes_more(patience) {
                return false;
            }
            match rustix::io::write(stderr(), rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                // Closed: that is the user's choice.
                Err(_) => return true,
            }
        }
    }
    true
}

/// Waits until something can be written, for `patience` at most. Also true if the reader is gone.
fn takes_more(patience: Option<Duration>) -> bool {
    let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
    loop {
        match poll(&mut [PollFd::new(&stderr(), PollFlags::OUT)], timeout.as_ref()) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            // Writing reports the reason.
            Err(_) => return true,
        }
    }
}
