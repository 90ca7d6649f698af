//! A connected socket of either kind.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_keepalive, set_tcp_cork};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::fmt::{Display, Formatter, Result as Formatted};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use sys::byte_store::Waiting;
use sys::socket::{undelivered, wake_when_readable};

/// The other end of a connection, for lines that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// By its address.
    Tcp(SocketAddr),
    /// By its process, as the kernel knew it when it connected.
    Unix(Option<i32>),
}

impl Display for Peer {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Formatted {
        match self {
            Self::Tcp(address) => write!(formatter, "client {address}"),
            Self::Unix(Some(process)) => write!(formatter, "client with pid {process} (Unix socket)"),
            Self::Unix(None) => formatter.write_str("client on the Unix socket"),
        }
    }
}

/// A stream to a client or a server.
#[derive(Debug)]
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
}

impl Socket {
    /// Receives what there is.
    ///
    /// # Errors
    /// As recv(2); WouldBlock when there is nothing and `waiting` is [`Waiting::Never`].
    #[inline]
    pub fn receive(&self, into: &mut [u8], waiting: Waiting) -> io::Result<usize> {
        let flags = if waiting == Waiting::Never { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        let (count, _) = recv(self, into, flags)?;
        Ok(count)
    }

    /// What is sent goes out at once: a batch is whole, and nothing is to be gained by waiting for more.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn send_at_once(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nodelay(true),
            Self::Unix(_) => Ok(()),
        }
    }
}

impl Socket {
    /// Whatever would wait says so instead.
    ///
    /// # Errors
    /// As fcntl(2).
    pub fn never_wait(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }
}

impl Socket {
    /// Whether something that was sent, before it was said that no more comes, is lost if this is closed now with something unread. What is sent on a
    /// Unix socket is with the other end at once.
    pub fn has_undelivered(&self) -> bool {
        let Self::Tcp(stream) = self else { return false };
        // The end counts as a byte. A socket that cannot be asked has nothing to lose, and neither has one whose other end has gone.
        undelivered(stream).is_ok_and(|bytes| bytes > 1) && !self.has_failed()
    }

    fn has_failed(&self) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)).is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::ERR))
    }

    /// Bytes that have arrived and were not received.
    pub fn unread(&self) -> usize {
        // A socket that cannot be asked has nothing.
        rustix::io::ioctl_fionread(self).map_or(0, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Receives what has arrived, and then the end.
    pub fn expect_no_more(&self) {
        // It can only fail where the other end has ended it already.
        let _ = shutdown(self, Shutdown::Both);
    }

    /// The other end hears that nothing more is to come, behind what was sent.
    pub fn say_no_more(&self) {
        // It can only fail where nobody hears any more.
        let _ = shutdown(self, Shutdown::Write);
    }

    /// Whether epoll and poll wait for the low-water mark: of a Unix socket they wake at the first byte, whatever is asked for.
    pub fn has_low_water(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// A client whose machine has gone is noticed after some hours (Linux: tcp_keepalive_time).
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn notice_the_lost(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => Ok(set_socket_keepalive(stream, true)?),
            Self::Unix(_) => Ok(()),
        }
    }

    /// What is sent waits for more, or waits no longer: for what takes several calls and is to be one.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn cork(&self, wait: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => Ok(set_tcp_cork(stream, wait)?),
            Self::Unix(_) => Ok(()),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

/// A socket's low-water mark (SO_RCVLOWAT), as it was set last.
#[derive(Clone, Copy, Debug)]
pub struct LowWater(usize);

impl Default for LowWater {
    /// As of every new socket: one byte.
    fn default() -> Self {
        Self(1)
    }
}

impl LowWater {
    /// Sets it, unless it is near enough: at most `bytes` and at least half. Whether that took a system call.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn about(&mut self, socket: &Socket, bytes: usize) -> io::Result<bool> {
        let near = (bytes / 2..=bytes).contains(&self.0);
        if near { Ok(false) } else { self.set(socket, bytes) }
    }

    /// Sets it. Whether that took a system call.
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
