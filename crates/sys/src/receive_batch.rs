//! A scatter list for one receiving system call: headers go to the batch's own bytes, payloads to their place in a
//! store.

use crate::byte_store::{ByteStore, Waiting};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// Maximum pieces per system call: a reply is two, and more than 64 replies rarely arrive together.
const MOST_PIECES: usize = 128;

/// One piece of the expected data, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// To the batch's own bytes, from this offset.
    Own { begin: usize, length: usize },
    /// To the store.
    Stored { begin: usize, length: usize },
}

/// A scatter list: fill it, receive, examine the result, clear, and reuse.
#[derive(Debug)]
pub struct ReceiveBatch {
    own: Vec<u8>,
    store: Arc<ByteStore>,
    pieces: Vec<Piece>,
    length: usize,
    vectors: Vec<libc::iovec>,
}

// SAFETY: the vectors' pointers are used only inside `receive`, which builds them anew for each call.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// An empty list. Payloads go to `store`.
    pub fn new(store: Arc<ByteStore>) -> Self {
        Self { own: Vec::new(), store, pieces: Vec::new(), length: 0, vectors: Vec::new() }
    }

    /// Clears the list and its own bytes.
    pub fn clear(&mut self) {
        self.own.clear();
        self.pieces.clear();
        self.length = 0;
    }

    /// Bytes that the list has room for.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether there is room for two more pieces.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.pieces.len() + 2 <= MOST_PIECES
    }

    /// Receives the next `length` bytes into the batch. Returns their offset in [`own`](Self::own).
    #[inline]
    pub fn keep(&mut self, length: usize) -> usize {
        let begin = self.own.len();
        self.own.resize(begin + length, 0);
        self.length += length;
        match self.pieces.last_mut() {
            Some(Piece::Own { length: last, .. }) => *last += length,
            _ => self.pieces.push(Piece::Own { begin, length }),
        }
        begin
    }

    /// Receives the next `length` bytes into the store.
    ///
    /// # Panics
    /// When the range is out of bounds.
    #[inline]
    pub fn store(&mut self, begin: usize, length: usize) {
        _ = self.store.address(begin, length);
        self.length += length;
        self.pieces.push(Piece::Stored { begin, length });
    }

    /// The batch's own bytes; zeros where nothing has arrived.
    pub fn own(&self) -> &[u8] {
        &self.own
    }

    /// Receives available bytes with one system call. Returns the number of bytes received.
    ///
    /// # Errors
    /// As recvmsg(2): WouldBlock if no data are available and `waiting` is [`Waiting::Never`].
    pub fn receive(&mut self, socket: &impl AsFd, waiting: Waiting) -> io::Result<usize> {
        let mut message = self.message();
        let flags = if waiting == Waiting::Never { libc::MSG_DONTWAIT } else { 0 };
        // SAFETY: the vectors point into `own`, which is borrowed only here, and into `store`, which is alive and which
        // the kernel may write at any time; neither moves during the call.
        let count = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut message, flags) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// A message header for all pieces. It points into the batch and is valid until the batch is changed or dropped.
    fn message(&mut self) -> libc::msghdr {
        self.vectors.clear();
        // Take the pointer once: every piece of the batch is written through it.
        let (own, own_length) = (self.own.as_mut_ptr(), self.own.len());
        for piece in &self.pieces {
            let (base, length) = match *piece {
                Piece::Own { begin, length } => {
                    assert!(begin + length <= own_length, "piece out of bounds");
                    (own.wrapping_add(begin), length)
                }
                Piece::Stored { begin, length } => (self.store.address(begin, length), length),
            };
            self.vectors.push(libc::iovec { iov_base: base.cast(), iov_len: length });
        }
        // SAFETY: all zeros is a valid msghdr: no name, no pieces, no control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = self.vectors.as_mut_ptr();
        message.msg_iovlen = self.vectors.len();
        message
    }

    /// Copies out `into.len()` received bytes, starting at byte `from` of the received data.
    ///
    /// # Panics
    /// When the list is shorter than that.
    pub fn copy_out(&self, mut from: usize, mut into: &mut [u8]) {
        assert!(from + into.len() <= self.length, "range exceeds the list");
        for piece in &self.pieces {
            let (Piece::Own { begin, length } | Piece::Stored { begin, length }) = *piece;
            if from >= length {
                from -= length;
                continue;
            }
            let part = (length - from).min(into.len());
            let (now, later) = into.split_at_mut(part);
            match piece {
                Piece::Own { .. } => now.copy_from_slice(&self.own[begin + from..begin + from + part]),
                Piece::Stored { .. } => self.store.read(begin + from, now),
            }
            (from, into) = (0, later);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_reach_their_places_and_can_be_copied_out_in_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let store = Arc::new(ByteStore::zeroed(1000).unwrap());
        let mut batch = ReceiveBatch::new(store.clone());
        assert_eq!(batch.keep(3), 0);
        batch.store(500, 4);
        batch.store(0, 2);
        assert_eq!((batch.keep(2), batch.keep(2)), (3, 5));
        assert_eq!(batch.length(), 13);
        theirs.write_all(b"abcDEFGhijk").unwrap();
        assert_eq!(batch.receive(&ours, Waiting::UntilSome).unwrap(), 11);
        assert_eq!(batch.own(), b"abcjk\0\0");
        let (mut long, mut short) = ([0; 4], [0; 2]);
        store.read(500, &mut long);
        store.read(0, &mut short);
        assert_eq!((&long, &short), (b"DEFG", b"hi"));
        for from in 0..=11 {
            let mut found = vec![0; 11 - from];
            batch.copy_out(from, &mut found);
            assert_eq!(found, b"abcDEFGhijk"[from..]);
        }
        let nothing = batch.receive(&ours, Waiting::Never).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        batch.clear();
        assert_eq!((batch.length(), batch.own().len()), (0, 0));
    }

    #[test]
    fn places_out_of_bounds_panic() {
        let mut batch = ReceiveBatch::new(Arc::new(ByteStore::zeroed(10).unwrap()));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| batch.store(5, 6))).is_err());
        assert!(std::panic::catch_unwind(|| batch.copy_out(0, &mut [0; 1])).is_err());
    }
}
