//! A connected TCP or Unix socket, and the socket options that client and server need. No protocol knowledge.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::net::sockopt::{Timeout, set_socket_timeout, set_tcp_cork, set_tcp_nodelay};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use sys::byte_store::Waiting;
use sys::socket::{undelivered, wake_when_readable};

/// A connected stream socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    /// On other sockets epoll and poll do not respect the low-water mark: they wake at the first byte.
    pub is_tcp: bool,
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self { fd: stream.into(), is_tcp: true }
    }
}

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self { fd: stream.into(), is_tcp: false }
    }
}

impl Socket {
    /// Receives available bytes.
    ///
    /// # Errors
    /// As recv(2); WouldBlock if no bytes are available and `waiting` is [`Waiting::Never`].
    #[inline]
    pub fn receive(&self, into: &mut [u8], waiting: Waiting) -> io::Result<usize> {
        let flags = if waiting == Waiting::Never { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let (count, _) = recv(self, into, flags)?;
        Ok(count)
    }

    /// Turns off Nagle's algorithm (TCP_NODELAY): a batch is complete, so waiting for more gains nothing.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn set_nodelay(&self) -> io::Result<()> {
        if self.is_tcp { Ok(set_tcp_nodelay(self, true)?) } else { Ok(()) }
    }

    /// Sets the timeout of receiving and sending.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn limit(&self, limit: Duration) -> io::Result<()> {
        set_socket_timeout(self, Timeout::Recv, Some(limit))?;
        Ok(set_socket_timeout(self, Timeout::Send, Some(limit))?)
    }

    /// Whether data that were sent before the shutdown would be lost if the socket were closed now with unread data.
    /// Data sent on a Unix socket reach the other end at once.
    pub fn has_unacknowledged(&self) -> bool {
        // The FIN counts as a byte. A socket that cannot be queried has nothing to lose, and neither has one whose peer
        // has disconnected.
        let failed = || self.wait_for(PollFlags::empty(), Duration::ZERO).is_ok_and(|it| it.contains(PollFlags::ERR));
        self.is_tcp && undelivered(self).is_ok_and(|bytes| bytes > 1) && !failed()
    }

    /// Waits up to `limit` for these events. Returns those that occurred.
    ///
    /// # Errors
    /// As poll(2).
    pub fn wait_for(&self, events: PollFlags, limit: Duration) -> io::Result<PollFlags> {
        let mut fds = [PollFd::new(self, events)];
        poll(&mut fds, Some(&timespec(limit)))?;
        let [fd] = fds;
        Ok(fd.revents())
    }

    /// Bytes that have arrived and have not been received.
    pub fn unread(&self) -> usize {
        // Treat a socket that cannot be queried as empty.
        ioctl_fionread(self).map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Shuts down one direction or both: what was sent or received before can still be read, followed by end of file.
    pub fn shut_down(&self, how: Shutdown) {
        // Fails only if the connection is already closed.
        let _ = shutdown(self, how);
    }

    /// Sets or clears TCP_CORK, so that the data of several calls share segments.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn cork(&self, wait: bool) -> io::Result<()> {
        if self.is_tcp { Ok(set_tcp_cork(self, wait)?) } else { Ok(()) }
    }
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A timeout as system calls take it.
pub fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() }
}

/// A socket's low-water mark (SO_RCVLOWAT) as last set.
#[derive(Clone, Copy, Debug)]
pub struct LowWater(usize);

impl Default for LowWater {
    /// The mark of a new socket: one byte.
    fn default() -> Self {
        Self(1)
    }
}

impl LowWater {
    /// Sets the mark unless it is close enough: at most `bytes` and at least half of that. Returns whether that took a
    /// system call.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn about(&mut self, socket: &Socket, bytes: usize) -> io::Result<bool> {
        let near = (bytes / 2..=bytes).contains(&self.0);
        if near { Ok(false) } else { self.set(socket, bytes) }
    }

    /// Sets the mark. Returns whether that took a system call.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn set(&mut self, socket: &Socket, bytes: usize) -> io::Result<bool> {
        if self.0 == bytes {
            return Ok(false);
        }
        wake_when_readable(socket, bytes)?;
        self.0 = bytes;
        Ok(true)
    }
}
