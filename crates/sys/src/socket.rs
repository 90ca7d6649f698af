//! Socket options and queries that rustix lacks.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

/// Sets the low-water mark: the number of bytes (at least 1) that have to arrive before a socket is readable
/// (SO_RCVLOWAT).
///
/// On TCP both a blocking recv and poll respect it, on Unix sockets only recv. A blocking recv on TCP with a mark above
/// one was observed to keep sleeping with bytes available (Linux 6.18): receive without blocking after a poll instead.
///
/// # Errors
/// As setsockopt(2).
pub fn wake_when_readable(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX).max(1);
    set_int(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes)
}

/// Makes errors that the network reports later, and packets that a queue of this host drops, errors of the next send
/// (IP_RECVERR). Without it, the kernel says nothing of a full queue.
///
/// # Errors
/// As setsockopt(2).
pub fn report_errors(socket: &UdpSocket) -> io::Result<()> {
    match socket.local_addr()? {
        SocketAddr::V4(_) => set_int(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
        SocketAddr::V6(_) => set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
    }
}

/// Cuts what one call sends into datagrams of this length (UDP_SEGMENT, 4.18).
///
/// # Errors
/// As setsockopt(2).
pub fn segment_sends(socket: &UdpSocket, bytes: u16) -> io::Result<()> {
    set_int(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes.into())
}

/// Packets that a socket dropped since it was opened, because its receive buffer was full (SO_MEMINFO). The kernel's counter
/// has 32 bits and wraps.
///
/// # Errors
/// As getsockopt(2).
pub fn dropped(socket: &impl AsFd) -> io::Result<u32> {
    /// SK_MEMINFO_VARS, and SK_MEMINFO_DROPS, the last.
    const VALUES: usize = 9;
    let mut values = [0_u32; VALUES];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the option writes at most `length` bytes to the array, and the length, both of which outlive the call.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let [.., drops] = values;
    match (outcome, length as usize == size_of_val(&values)) {
        (0, true) => Ok(drops),
        (0, false) => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_int(socket: &impl AsFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the option takes an int; the address and size are those of one that outlives the call.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Bytes sent on a TCP socket that the other end has not acknowledged (SIOCOUTQ). Closing a socket with unread data
/// resets the connection, which loses them.
///
/// # Errors
/// As ioctl(2).
pub fn undelivered(socket: &impl AsFd) -> io::Result<usize> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes an int, to the address of one that outlives the call.
    let outcome = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, std::ptr::from_mut(&mut bytes)) };
    if outcome == 0 { Ok(usize::try_from(bytes).unwrap_or(0)) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn less_than_the_low_water_mark_is_not_readable() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        let readable = |timeout: i64| {
            let timeout = Timespec { tv_sec: timeout, tv_nsec: 1_000_000 };
            poll(&mut [PollFd::new(&ours, PollFlags::IN)], Some(&timeout)).unwrap() == 1
        };
        wake_when_readable(&ours, 10).unwrap();
        theirs.write_all(b"123456789").unwrap();
        assert!(!readable(0));
        theirs.write_all(b"0").unwrap();
        assert!(readable(60));
        wake_when_readable(&ours, 11).unwrap();
        assert!(!readable(0));
        wake_when_readable(&ours, 0).unwrap();
        assert!(readable(60));
    }

    #[test]
    fn data_beyond_the_receive_buffer_of_the_peer_are_undelivered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut ours, _) = listener.accept().unwrap();
        assert_eq!(undelivered(&ours).unwrap(), 0);
        ours.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(count) = ours.write(&[0; 1 << 16]) {
            sent += count;
        }
        assert!((1..=sent).contains(&undelivered(&ours).unwrap()));
        theirs.read_exact(&mut vec![0; sent]).unwrap();
        // Acknowledgements may arrive later.
        let since = std::time::Instant::now();
        while undelivered(&ours).unwrap() > 0 {
            assert!(since.elapsed().as_secs() < 60);
            std::thread::yield_now();
        }
    }
}
