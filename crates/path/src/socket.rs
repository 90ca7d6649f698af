//! A connected socket of either kind.

use rustix::net::sockopt::{set_socket_keepalive, set_tcp_cork};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use sys::byte_store::Waiting;
use sys::socket::{undelivered, wake_when_readable};

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
    /// Bytes that were sent and that are lost if this is closed now with something unread. What is sent on a Unix socket is with the other end at once.
    pub fn undelivered(&self) -> usize {
        match self {
            // A socket that cannot be asked has nothing to lose.
            Self::Tcp(stream) => undelivered(stream).unwrap_or(0),
            Self::Unix(_) => 0,
        }
    }

    /// The other end hears that nothing more is to come, behind what was sent.
    pub fn say_no_more(&self) {
        // It can only fail where nobody hears any more.
        let _ = shutdown(self, Shutdown::Write);
    }

    /// Somebody who has gone without a word, because his machine did, is noticed after some hours (Linux: tcp_keepalive_time).
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
