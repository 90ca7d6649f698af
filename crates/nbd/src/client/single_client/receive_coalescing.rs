//! Receive coalescing on the client: waits for several replies instead of the first, so that one wake-up serves many.
//! It receives nothing itself.

use crate::socket::{LowWater, Socket, timespec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// State of receive coalescing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coalescing {
    /// Longest wait.
    timeout: Duration,
    /// Busy-poll time at the start of a wait.
    busy_poll: Duration,
    low_water: LowWater,
    backoff: Backoff,
}

impl Coalescing {
    pub(super) fn new(timeout: Duration, busy_poll: Duration) -> Self {
        Self { timeout, busy_poll, low_water: LowWater::default(), backoff: Backoff::default() }
    }

    /// Waits until `bytes` have arrived, if requested and not backing off. Returns whether they have; `None`: there was no
    /// wait. Adds system calls to `calls`.
    ///
    /// There is none on a Unix socket, which wakes at the first byte whatever its low-water mark.
    pub(super) fn wait(&mut self, socket: &Socket, bytes: Option<usize>, calls: &mut u64) -> io::Result<Option<bool>> {
        if !socket.is_tcp || !self.begin(socket, bytes, calls)? {
            return Ok(None);
        }
        let enough = self.poll(socket, calls)?;
        self.backoff.note(enough);
        Ok(Some(enough))
    }

    /// Sets the low-water mark to about `bytes` if requested and not backing off, otherwise to 1. Returns whether to wait.
    fn begin(&mut self, socket: &Socket, bytes: Option<usize>, calls: &mut u64) -> io::Result<bool> {
        let waited_for = bytes.filter(|_| !self.timeout.is_zero() && self.backoff.take());
        let changed = match waited_for {
            // The number in flight changes slightly all the time.
            Some(bytes) => self.low_water.about(socket, bytes)?,
            None => self.low_water.set(socket, 1)?,
        };
        *calls += u64::from(changed);
        Ok(waited_for.is_some())
    }

    /// Whether the socket becomes readable within the timeout.
    fn poll(&self, socket: &Socket, calls: &mut u64) -> io::Result<bool> {
        let mut look = |limit: Duration| {
            *calls += 1;
            poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timespec(limit)))
        };
        let most = self.timeout;
        let (mut polled, mut left) = (Ok(0), most);
        if !self.busy_poll.is_zero() {
            let (begun, end) = (Instant::now(), self.busy_poll.min(most));
            while polled == Ok(0) && left > most - end {
                polled = look(Duration::ZERO);
                left = most.saturating_sub(begun.elapsed());
            }
        }
        if polled == Ok(0) && !left.is_zero() {
            polled = look(left);
        }
        match polled {
            Ok(readable) => Ok(readable > 0),
            // A signal: let the caller receive and see.
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

/// Largest number of chances skipped in a row.
const MOST_SKIPPED: u32 = 127;

/// Decides when to try something optional: after each failure, more chances are skipped before the next attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    /// Chances left to skip.
    skip: u32,
    last: u32,
}

impl Backoff {
    /// Whether to use this chance.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        let take = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        take
    }

    /// Records the result of an attempt.
    #[inline]
    pub(super) fn note(&mut self, worked: bool) {
        self.last = if worked { 0 } else { (self.last * 2 + 1).min(MOST_SKIPPED) };
        self.skip = self.last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicBool, Ordering};
    use sys::byte_store::Waiting;

    const LONG: Duration = Duration::from_secs(60);

    fn tcp() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Socket::from(listener.accept().unwrap().0), theirs)
    }

    #[test]
    fn a_wait_ends_when_enough_has_arrived() {
        let (ours, mut theirs) = tcp();
        let enough = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                theirs.write_all(&[1; 9]).unwrap();
                std::thread::sleep(Duration::from_millis(20));
                enough.store(true, Ordering::SeqCst);
                theirs.write_all(&[1]).unwrap();
            });
            let mut calls = 0;
            assert_eq!(Coalescing::new(LONG, Duration::ZERO).wait(&ours, Some(10), &mut calls).unwrap(), Some(true));
            assert!(enough.load(Ordering::SeqCst));
            assert_eq!(calls, 2);
        });
    }

    #[test]
    fn waits_that_time_out_become_rare_and_cost_nothing_between() {
        let (ours, mut theirs) = tcp();
        let mut coalescing = Coalescing::new(Duration::from_millis(1), Duration::ZERO);
        let mut calls = 0;
        let mut wait = || coalescing.wait(&ours, Some(10), &mut calls).unwrap();
        theirs.write_all(&[1; 9]).unwrap();
        let found: Vec<Option<bool>> = (0..12).map(|_| wait()).collect();
        let mut expected = [None; 12];
        for timed_out in [0, 2, 6] {
            expected[timed_out] = Some(false);
        }
        assert_eq!(found, expected);
        // Without coalescing, what has arrived is readable at once.
        assert_eq!(ours.receive(&mut [0; 100], Waiting::UntilSome).unwrap(), 9);
    }

    #[test]
    fn busy_polling_does_not_extend_a_wait() {
        let (ours, _theirs) = tcp();
        let mut calls = 0;
        let mut coalescing = Coalescing::new(Duration::from_millis(1), LONG);
        let begun = Instant::now();
        assert_eq!(coalescing.wait(&ours, Some(10), &mut calls).unwrap(), Some(false));
        assert!(begun.elapsed() < LONG / 2 && calls > 1, "{calls}");
    }

    #[test]
    fn a_closed_connection_ends_a_wait() {
        let (ours, theirs) = tcp();
        drop(theirs);
        assert_eq!(Coalescing::new(LONG, Duration::ZERO).wait(&ours, Some(10), &mut 0).unwrap(), Some(true));
    }

    #[test]
    fn failures_make_attempts_rare_and_success_restores_them() {
        let mut backoff = Backoff::default();
        let mut tried = |worked: fn(usize) -> bool| -> Vec<usize> {
            let chances = 0..1000;
            chances
                .filter(|chance| {
                    let take = backoff.take();
                    if take {
                        backoff.note(worked(*chance));
                    }
                    take
                })
                .collect()
        };
        let in_vain = tried(|_| false);
        assert_eq!(in_vain[..5], [0, 2, 6, 14, 30]);
        assert_eq!(in_vain.last().unwrap() - in_vain[in_vain.len() - 2], 128);
        let works = tried(|_| true);
        assert!(works.len() >= 1000 - 127, "{}", works.len());
    }
}
