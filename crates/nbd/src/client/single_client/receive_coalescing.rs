//! Receive coalescing: waiting for several replies instead of the first, so that a wake-up is paid once for many.

use crate::backoff::Backoff;
use crate::socket::{LowWater, Socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use std::io;
use std::time::{Duration, Instant};
use sys::byte_store::Waiting;

/// A Unix socket is slept for so long at most, because nobody wakes the sleeper.
const LONGEST_SLEEP: Duration = Duration::from_micros(50);

/// What was waited for, and how that goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coalescing {
    /// The timeout.
    timeout: Duration,
    /// How much of it is not slept.
    busy_poll: Duration,
    low_water: LowWater,
    backoff: Backoff,
}

/// How a wait went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There was none: whoever receives now has to wait for the first reply.
    Not,
    /// There is as much as was waited for.
    Enough,
    /// It took too long.
    TimedOut,
}

impl Outcome {
    /// How to receive then.
    pub(super) fn receiving(self) -> Waiting {
        match self {
            Self::Not => Waiting::UntilSome,
            // What came too late may be nothing at all.
            Self::Enough | Self::TimedOut => Waiting::Never,
        }
    }
}

impl Coalescing {
    pub(super) fn new(timeout: Duration, busy_poll: Duration) -> Self {
        Self { timeout, busy_poll, low_water: LowWater::default(), backoff: Backoff::default() }
    }

    /// Waits until there are `bytes`, if that is wanted and is not in vain here. System calls are counted in `calls`.
    ///
    /// A Unix socket wakes at the first byte, whatever is asked for: then it is slept instead, 50 µs at most.
    pub(super) fn wait(&mut self, socket: &Socket, bytes: Option<usize>, calls: &mut u64) -> io::Result<Outcome> {
        let Some(bytes) = self.begin(socket, bytes, calls)? else { return Ok(Outcome::Not) };
        let enough = self.poll(Some(socket), self.timeout, calls)? && self.there_or_slept(socket, bytes, calls)?;
        self.backoff.note(enough);
        Ok(if enough { Outcome::Enough } else { Outcome::TimedOut })
    }

    /// From now on less than `bytes` do not count, if that is wanted and is not in vain here; otherwise anything does. What is held for.
    fn begin(&mut self, socket: &Socket, bytes: Option<usize>, calls: &mut u64) -> io::Result<Option<usize>> {
        let waited_for = bytes.filter(|_| !self.timeout.is_zero() && self.backoff.take());
        let changed = match waited_for {
            // What is in flight changes a little all the time.
            Some(bytes) => self.low_water.about(socket, bytes)?,
            None => self.low_water.set(socket, 1)?,
        };
        *calls += u64::from(changed);
        Ok(waited_for)
    }

    /// Whether it is readable before so much time is over.
    fn poll(&self, socket: Option<&Socket>, most: Duration, calls: &mut u64) -> io::Result<bool> {
        let mut fds = socket.map(|socket| PollFd::new(socket, PollFlags::IN));
        let mut look = |limit: Duration| {
            *calls += 1;
            let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: limit.subsec_nanos().into() };
            poll(fds.as_mut_slice(), Some(&limit))
        };
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
            // A signal: whoever receives looks for himself.
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a socket that counts as readable has so many bytes, or more than before after a sleep.
    fn there_or_slept(&self, socket: &Socket, bytes: usize, calls: &mut u64) -> io::Result<bool> {
        if socket.has_low_water() {
            return Ok(true);
        }
        let there = |calls: &mut u64| {
            *calls += 1;
            Ok::<_, io::Error>(usize::try_from(ioctl_fionread(socket)?).unwrap_or(usize::MAX))
        };
        let before = there(calls)?;
        if before >= bytes || before == 0 {
            return Ok(true);
        }
        self.poll(None, self.timeout.min(LONGEST_SLEEP), calls)?;
        Ok(there(calls)? > before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    const LONG: Duration = Duration::from_secs(60);

    fn tcp() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Socket::Tcp(listener.accept().unwrap().0), theirs)
    }

    #[test]
    fn a_wait_goes_on_until_there_is_enough() {
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
            assert_eq!(
                Coalescing::new(LONG, Duration::ZERO).wait(&ours, Some(10), &mut calls).unwrap(),
                Outcome::Enough
            );
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
        let found: Vec<Outcome> = (0..12).map(|_| wait()).collect();
        let mut expected = [Outcome::Not; 12];
        for timed_out in [0, 2, 6] {
            expected[timed_out] = Outcome::TimedOut;
        }
        assert_eq!(found, expected);
        // What is there is readable at once where nothing is coalesced.
        assert_eq!(ours.receive(&mut [0; 100], Waiting::UntilSome).unwrap(), 9);
    }

    #[test]
    fn a_unix_socket_is_slept_for_until_the_timeout() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = Socket::Unix(ours);
        let mut calls = 0;
        theirs.write_all(&[1; 10]).unwrap();
        assert_eq!(Coalescing::new(LONG, Duration::ZERO).wait(&ours, Some(10), &mut calls).unwrap(), Outcome::Enough);
        let mut short = Coalescing::new(Duration::from_millis(1), Duration::ZERO);
        assert_eq!(short.wait(&ours, Some(11), &mut calls).unwrap(), Outcome::TimedOut);
        assert_eq!(short.wait(&ours, Some(11), &mut calls).unwrap(), Outcome::Not);
    }

    #[test]
    fn a_busy_poll_makes_no_wait_longer() {
        let (ours, _theirs) = tcp();
        let mut calls = 0;
        let mut coalescing = Coalescing::new(Duration::from_millis(1), LONG);
        let begun = Instant::now();
        assert_eq!(coalescing.wait(&ours, Some(10), &mut calls).unwrap(), Outcome::TimedOut);
        assert!(begun.elapsed() < LONG / 2 && calls > 1, "{calls}");
    }

    #[test]
    fn the_end_of_the_connection_ends_a_wait() {
        let (ours, theirs) = tcp();
        drop(theirs);
        assert_eq!(Coalescing::new(LONG, Duration::ZERO).wait(&ours, Some(10), &mut 0).unwrap(), Outcome::Enough);
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(
            Coalescing::new(LONG, Duration::ZERO).wait(&Socket::Unix(ours), Some(10), &mut 0).unwrap(),
            Outcome::Enough
        );
    }
}
