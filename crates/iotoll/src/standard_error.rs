//! Standard error. A reader that does not read (a full pipe, a stopped terminal) loses lines, and is told how many; it does
//! not hold up a measurement or a server.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::stderr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a line waits for a reader.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes that a pipe takes without waiting when it is ready (PIPE_BUF).
const TAKEN_AT_ONCE: usize = 4096;

/// Lines that nobody read in time.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes a line. Waits for a reader for a second at most, and not at all behind a line that was lost.
pub fn say(line: &str) {
    say_within(line, if LOST.load(Ordering::Relaxed) > 0 { Duration::ZERO } else { PATIENCE });
}

/// Writes a line. Waits for a reader for `patience` at most.
pub fn say_within(line: &str, patience: Duration) {
    if !takes_more(patience) {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let text = reported(LOST.swap(0, Ordering::Relaxed)) + line + "\n";
    if !write(&text, patience) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether something can be written now.
pub fn is_ready() -> bool {
    takes_more(Duration::ZERO)
}

/// The line that reports lost lines; empty if there are none.
fn reported(lost: u64) -> String {
    match lost {
        0 => String::new(),
        1 => "iotoll: 1 line was not shown: nobody read standard error\n".to_owned(),
        lost => format!("iotoll: {lost} lines were not shown: nobody read standard error\n"),
    }
}

/// Writes text, waiting for a reader before each part for `patience`. Returns whether all of it was written
/// or never can be. Takes no lock: another thread may wait here for ever.
fn write(text: &str, patience: Duration) -> bool {
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
fn takes_more(patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).ok();
    loop {
        match poll(&mut [PollFd::new(&stderr(), PollFlags::OUT)], timeout.as_ref()) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            // Writing reports the reason.
            Err(_) => return true,
        }
    }
}
