//! Many small datagrams with one system call: sendmmsg(2), one segmented send, io_uring, recvmmsg(2).

use io_uring::{IoUring, opcode, types};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Numbered datagrams of one length. Each begins with the low bytes of its number, as far as it has room: 8, little-endian.
pub struct NumberedDatagrams {
    bytes: Vec<u8>,
    length: usize,
    count: usize,
}

/// Bytes of a number.
const NUMBER: usize = 8;

impl NumberedDatagrams {
    /// `count` datagrams of `length` bytes, which may be 0.
    pub fn new(length: usize, count: usize) -> Self {
        Self { bytes: vec![0; length * count], length, count }
    }

    /// Numbers them consecutively.
    #[inline]
    pub fn number(&mut self, first: u64) {
        self.number_some(first, self.count);
    }

    /// Numbers the first `count` of them consecutively.
    #[inline]
    fn number_some(&mut self, first: u64, count: usize) {
        let room = self.length.min(NUMBER);
        for (place, datagram) in (0..).zip(self.bytes.chunks_exact_mut(self.length.max(1)).take(count)) {
            let bytes = first.wrapping_add(place).to_le_bytes();
            datagram.iter_mut().zip(bytes.iter().take(room)).for_each(|(to, from)| *to = *from);
        }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// All of them, one after another.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn address(&self, place: usize) -> *const u8 {
        let all = self.bytes.get(place * self.length..(place + 1) * self.length);
        all.map_or(std::ptr::null(), <[u8]>::as_ptr)
    }
}

/// What the kernel did with the datagrams of a call. It takes them in order up to the first that it refuses, and does not look at
/// those behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Datagrams that it took.
    pub count: usize,
    /// Whether it refused the one behind them. sendmmsg(2) does not say why.
    pub refused_next: bool,
}

/// Sends several datagrams with one system call (sendmmsg).
pub struct ManySender {
    datagrams: NumberedDatagrams,
    /// Of the datagrams: rebuilt for each call, because moving this structure must not matter.
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in the vectors and messages are used only inside `send`, which builds them anew for each call.
unsafe impl Send for ManySender {}

impl ManySender {
    /// Sends these.
    pub fn new(datagrams: NumberedDatagrams) -> Self {
        let count = datagrams.count;
        Self { datagrams, vectors: Vec::with_capacity(count), messages: Vec::with_capacity(count) }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.datagrams.count
    }

    /// Sends the first `count` of them, numbered from `first`, to the peer of a connected socket.
    ///
    /// # Errors
    /// As sendmmsg(2): if it took none, the reason why it refused the first.
    #[inline]
    pub fn send(&mut self, socket: &UdpSocket, first: u64, count: usize) -> io::Result<Taken> {
        let count = count.min(self.datagrams.count);
        self.datagrams.number_some(first, count);
        self.vectors.clear();
        self.messages.clear();
        for place in 0..count {
            let base = self.datagrams.address(place).cast_mut().cast();
            self.vectors.push(libc::iovec { iov_base: base, iov_len: self.datagrams.length });
        }
        let vectors = self.vectors.as_mut_ptr();
        self.messages.extend((0..count).map(|place| message(vectors.wrapping_add(place))));
        let count = libc::c_uint::try_from(count).unwrap_or(libc::c_uint::MAX);
        // SAFETY: each message points to one vector, which points to a datagram that only the kernel reads; all of them are
        // fields of this structure, which is borrowed for the call.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.messages.as_mut_ptr(), count, 0) };
        let taken = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        // The call ends early at an error only: a datagram is taken as a whole or not.
        Ok(Taken { count: taken, refused_next: taken < self.messages.len() })
    }
}

/// A message of one piece, for or from the peer of a connected socket.
fn message(vector: *mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: all zeros is a valid mmsghdr: no name, no pieces, no control data.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (vector, 1);
    message
}

/// Sends datagrams through an io_uring, a batch at a time.
pub struct RingSender {
    // Dropped before the datagrams: closing the ring ends all kernel access to them. `send` leaves nothing in flight.
    ring: IoUring,
    datagrams: NumberedDatagrams,
}

impl RingSender {
    /// Sends these, through a ring of this thread.
    ///
    /// # Errors
    /// As io_uring_setup(2).
    pub fn new(datagrams: NumberedDatagrams, socket: &UdpSocket) -> io::Result<Self> {
        let entries = u32::try_from(datagrams.count.next_power_of_two()).unwrap_or(u32::MAX);
        let modern = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries);
        let ring = match modern {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries)?,
            other => other?,
        };
        ring.submitter().register_files(&[socket.as_raw_fd()])?;
        Ok(Self { ring, datagrams })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.datagrams.count
    }

    /// Sends all of them, numbered from `first`, to the peer of the socket, and waits until the kernel took them. Calls
    /// `failed` with the error number of each that it refused. Returns how many it took.
    ///
    /// # Errors
    /// As io_uring_enter(2).
    pub fn send(&mut self, first: u64, mut failed: impl FnMut(i32)) -> io::Result<usize> {
        self.datagrams.number(first);
        let mut in_flight = 0;
        for place in 0..self.datagrams.count {
            let length = u32::try_from(self.datagrams.length).unwrap_or(u32::MAX);
            let entry = opcode::Send::new(types::Fixed(0), self.datagrams.address(place), length).build();
            // SAFETY: the kernel only reads the datagram, which outlives the ring. This call returns when nothing is in
            // flight, so the bytes do not change before the kernel has taken them.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                break;
            }
            in_flight += 1;
        }
        let mut sent = 0;
        while in_flight > 0 {
            match self.ring.submit_and_wait(in_flight) {
                Ok(_) => {}
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(error) => return Err(error),
            }
            for completion in self.ring.completion() {
                in_flight -= 1;
                match completion.result() {
                    error @ ..0 => failed(-error),
                    _ => sent += 1,
                }
            }
        }
        Ok(sent)
    }
}

/// Receives several datagrams with one system call (recvmmsg).
pub struct ManyReceiver {
    bytes: Vec<u8>,
    sources: Vec<libc::sockaddr_storage>,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers in the vectors and messages are used only inside `receive`, which builds them anew for each call.
unsafe impl Send for ManyReceiver {}

/// Bytes kept of a datagram: its number. The rest is discarded by the kernel.
const KEPT: usize = NUMBER;

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// Its sender.
    pub source: Option<SocketAddr>,
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// Its length.
    pub length: usize,
}

impl ManyReceiver {
    /// Up to `count` datagrams at a time.
    pub fn new(count: usize) -> Self {
        // SAFETY: all zeros is a valid sockaddr_storage: of no family.
        let source: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Self {
            bytes: vec![0; count * KEPT],
            sources: vec![source; count],
            vectors: Vec::with_capacity(count),
            messages: Vec::with_capacity(count),
        }
    }

    /// Waits for a datagram, as long as the socket's timeout allows, and takes what has arrived. Returns how many.
    ///
    /// # Errors
    /// As recvmmsg(2): WouldBlock when the time is over.
    pub fn receive(&mut self, socket: &UdpSocket, mut each: impl FnMut(Arrived)) -> io::Result<usize> {
        self.vectors.clear();
        self.messages.clear();
        for place in self.bytes.chunks_exact_mut(KEPT) {
            self.vectors.push(libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: KEPT });
        }
        let (vectors, sources) = (self.vectors.as_mut_ptr(), self.sources.as_mut_ptr());
        for place in 0..self.sources.len() {
            let mut message = message(vectors.wrapping_add(place));
            message.msg_hdr.msg_name = sources.wrapping_add(place).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            self.messages.push(message);
        }
        let count = libc::c_uint::try_from(self.messages.len()).unwrap_or(libc::c_uint::MAX);
        // MSG_TRUNC makes the kernel say the real length.
        let flags = libc::MSG_WAITFORONE | libc::MSG_TRUNC;
        // SAFETY: each message points to one vector, which points to `KEPT` bytes of its own, and to a source of its own; all
        // of them are fields of this structure, which is borrowed for the call.
        let taken = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), self.messages.as_mut_ptr(), count, flags, std::ptr::null_mut())
        };
        let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
        let places = self.messages.iter().zip(&self.sources).zip(self.bytes.chunks_exact(KEPT));
        for ((message, source), bytes) in places.take(taken) {
            let length = message.msg_len as usize;
            let bytes = bytes.get(..length.min(KEPT)).unwrap_or_default();
            each(Arrived { source: address_of(source), bytes, length });
        }
        Ok(taken)
    }
}

/// The address in a socket address of the kernel; `None` for other families than IP.
fn address_of(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let start = std::ptr::from_ref(storage);
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in, which fits into the storage and its alignment.
            let address = unsafe { &*start.cast::<libc::sockaddr_in>() };
            let ip = IpAddr::from(u32::from_be(address.sin_addr.s_addr).to_be_bytes());
            Some(SocketAddr::new(ip, u16::from_be(address.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this is a sockaddr_in6, which fits into the storage and its alignment.
            let address = unsafe { &*start.cast::<libc::sockaddr_in6>() };
            Some(SocketAddr::new(IpAddr::from(address.sin6_addr.s6_addr), u16::from_be(address.sin6_port)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{dropped, report_errors, segment_sends};
    use rustix::net::sockopt::set_socket_recv_buffer_size;
    use std::time::Duration;

    /// A connected sender and its receiver, whose reads end after a minute.
    fn pair(address: &str) -> Option<(UdpSocket, UdpSocket)> {
        let receiver = UdpSocket::bind(format!("{address}:0")).ok()?;
        receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let sender = UdpSocket::bind(format!("{address}:0")).unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        Some((sender, receiver))
    }

    fn arrived(receiver: &UdpSocket, count: usize, from: &UdpSocket) -> Vec<(Vec<u8>, usize)> {
        let (mut many, mut found) = (ManyReceiver::new(7), Vec::new());
        while found.len() < count {
            let taken = many.receive(receiver, |datagram| {
                assert_eq!(datagram.source, from.local_addr().ok());
                found.push((datagram.bytes.to_vec(), datagram.length));
            });
            assert!((1..=7).contains(&taken.unwrap()));
        }
        found
    }

    fn numbered(length: usize, numbers: std::ops::Range<u64>) -> Vec<(Vec<u8>, usize)> {
        numbers.map(|number| (number.to_le_bytes()[..length.min(8)].to_vec(), length)).collect()
    }

    #[test]
    fn each_way_of_sending_delivers_numbered_datagrams() {
        for address in ["127.0.0.1", "[::1]"] {
            let Some((sender, receiver)) = pair(address) else { continue };
            report_errors(&sender).unwrap();
            for length in [0, 1, 5, 8, 18, 1400] {
                let mut many = ManySender::new(NumberedDatagrams::new(length, 9));
                assert_eq!(many.send(&sender, 300, 9).unwrap(), Taken { count: 9, refused_next: false });
                assert_eq!(arrived(&receiver, 9, &sender), numbered(length, 300..309));
                let mut ring = RingSender::new(NumberedDatagrams::new(length, 5), &sender).unwrap();
                assert_eq!(ring.send(1 << 40, |error| panic!("{error}")).unwrap(), 5);
                assert_eq!(arrived(&receiver, 5, &sender), numbered(length, 1 << 40..(1 << 40) + 5));
            }
        }
    }

    #[test]
    fn one_call_is_cut_into_segments() {
        let (sender, receiver) = pair("127.0.0.1").unwrap();
        segment_sends(&sender, 5).unwrap();
        let mut datagrams = NumberedDatagrams::new(5, 20);
        datagrams.number(7);
        assert_eq!(sender.send(datagrams.bytes()).unwrap(), 100);
        assert_eq!(arrived(&receiver, 20, &sender), numbered(5, 7..27));
    }

    #[test]
    fn a_refused_datagram_is_an_error_and_a_full_buffer_a_drop() {
        let (sender, receiver) = pair("127.0.0.1").unwrap();
        set_socket_recv_buffer_size(&receiver, 4096).unwrap();
        assert_eq!(dropped(&receiver).unwrap(), 0);
        let mut many = ManySender::new(NumberedDatagrams::new(100, 64));
        let sent = many.send(&sender, 0, 64).unwrap().count;
        let lost = dropped(&receiver).unwrap() as usize;
        assert!(lost > 0 && sent == 64);
        arrived(&receiver, sent - lost, &sender);
        drop(receiver);
        let mut ring = RingSender::new(NumberedDatagrams::new(1, 2), &sender).unwrap();
        let mut refused = Vec::new();
        for _ in 0..1000 {
            ring.send(0, |error| refused.push(error)).unwrap();
            if !refused.is_empty() {
                break;
            }
        }
        assert!(!refused.is_empty() && refused.iter().all(|error| *error == libc::ECONNREFUSED));
    }
}
