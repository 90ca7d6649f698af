//! A gather list for sending on a stream: copied headers and payloads, payloads gathered from memory, and pages of a
//! file (sendfile). It keeps what it has not sent.

use crate::byte_store::ByteStore;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// Maximum pieces per system call: the kernel's UIO_MAXIOV.
const MOST_PIECES: usize = 1024;

/// One piece of the data to send, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// From the batch's own bytes.
    Own { begin: usize, length: usize },
    /// From the store or the mapped file; segments are counted from `laid`, the start of the payload.
    Stored { laid: usize, begin: usize, length: usize },
    /// Pages of the file; segments as above.
    Pages { laid: usize, begin: usize, length: usize },
}

impl Piece {
    fn length(&self) -> usize {
        let (Self::Own { length, .. } | Self::Stored { length, .. } | Self::Pages { length, .. }) = self;
        *length
    }
}

/// Bytes left in the segment that contains `begin`.
#[inline]
fn left_of_segment(segment: usize, laid: usize, begin: usize) -> usize {
    // Avoid the division if there is only one segment.
    if begin == laid { segment } else { segment - (begin - laid) % segment }
}

/// A position at the end of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    own: usize,
    pieces: usize,
    last: usize,
    length: usize,
}

/// The source of gathered payloads. A batch keeps alive what its pieces point to.
#[derive(Clone, Debug, Default)]
pub enum Source {
    /// No gathered payloads.
    #[default]
    Nothing,
    /// Memory.
    Store(Arc<ByteStore>),
    /// A file's page cache.
    File(Arc<ByteStore>),
}

impl Source {
    /// Address of a range; `None` without a source.
    ///
    /// # Panics
    /// When the range is out of bounds.
    #[inline]
    fn address(&self, begin: usize, length: usize) -> Option<*mut u8> {
        match self {
            Self::Store(store) | Self::File(store) => Some(store.address(begin, length)),
            Self::Nothing => None,
        }
    }
}

impl From<Option<Arc<ByteStore>>> for Source {
    fn from(store: Option<Arc<ByteStore>>) -> Self {
        store.map_or(Self::Nothing, Self::Store)
    }
}

/// A gather list: fill it, send, and reuse.
#[derive(Debug)]
pub struct SendBatch {
    own: Vec<u8>,
    source: Source,
    /// The file whose pages are sent.
    file: Option<Arc<File>>,
    pieces: Vec<Piece>,
    /// The first piece that is not completely sent.
    next: usize,
    length: usize,
    sent: usize,
    /// If set, each system call sends at most this many bytes, from one piece.
    most: Option<usize>,
    /// Segment size for pieces from the store or the file. Pieces are divided when they are sent, so segments take no
    /// memory.
    segment: usize,
    has_pages: bool,
    has_mapped: bool,
    vectors: Vec<libc::iovec>,
}

// SAFETY: the vectors' pointers are used only inside `send`, which builds them anew for each call.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// An empty batch. Gathered payloads come from `source`.
    pub fn new(source: impl Into<Source>) -> Self {
        Self {
            own: Vec::new(),
            source: source.into(),
            file: None,
            pieces: Vec::new(),
            next: 0,
            length: 0,
            sent: 0,
            most: None,
            segment: usize::MAX,
            has_pages: false,
            has_mapped: false,
            vectors: Vec::new(),
        }
    }

    /// Sets the file whose pages are sent.
    pub fn with_pages_of(self, file: Option<Arc<File>>) -> Self {
        Self { file, ..self }
    }

    /// Sends each piece with a system call of its own, at most `most` bytes per call; `None`: all together.
    pub fn in_pieces_of(self, most: Option<usize>) -> Self {
        Self { most, ..self }
    }

    /// Divides pieces from the store or the file into segments of `bytes` (at least 1), as if they were scattered.
    pub fn in_segments_of(self, bytes: usize) -> Self {
        Self { segment: bytes.max(1), ..self }
    }

    /// Bytes not sent yet.
    pub fn unsent(&self) -> usize {
        self.length - self.sent
    }

    /// Bytes added since the batch was empty, sent or not.
    pub fn put_so_far(&self) -> usize {
        self.length
    }

    /// Bytes sent since the batch was empty.
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// Whether the next bytes to send are pages of the file.
    pub fn sends_pages(&self) -> bool {
        matches!(self.pieces.get(self.next), Some(Piece::Pages { .. }))
    }

    /// Whether pages of the file were added since the batch was empty.
    pub fn has_pages(&self) -> bool {
        self.has_pages
    }

    /// Whether parts of a mapped file were added since the batch was empty; the kernel may have to read them when it
    /// sends them.
    pub fn has_mapped(&self) -> bool {
        self.has_mapped
    }

    /// The batch's own bytes, some of which may be sent already.
    pub fn own(&self) -> &[u8] {
        &self.own
    }

    /// The current end, for [`take_back`](Self::take_back).
    #[inline]
    pub fn mark(&self) -> Mark {
        let last = self.pieces.last().map_or(0, Piece::length);
        Mark { own: self.own.len(), pieces: self.pieces.len(), last, length: self.length }
    }

    /// Removes what was added since `mark`. Nothing may have been sent in between.
    pub fn take_back(&mut self, mark: Mark) {
        self.own.truncate(mark.own);
        self.pieces.truncate(mark.pieces);
        // Pieces of other kinds are never extended.
        if let Some(Piece::Own { length, .. }) = self.pieces.last_mut() {
            *length = mark.last;
        }
        self.length = mark.length;
    }

    /// Whether one more message of two pieces fits in the same system call.
    pub fn has_room(&self) -> bool {
        self.pieces.len() + 2 <= MOST_PIECES
    }

    /// Appends a copy of bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
        self.grow(bytes.len());
    }

    /// Appends a copy of a range of the store, in its current state.
    ///
    /// # Panics
    /// Without a store, or when the range is out of bounds.
    #[inline]
    pub fn pull_up(&mut self, begin: usize, length: usize) {
        assert!(matches!(self.source, Source::Store(_)), "batch without a store");
        if let Source::Store(store) = &self.source {
            store.append_to(begin, length, &mut self.own);
            self.grow(length);
        }
    }

    /// Appends a range of a file, read directly into the batch's own bytes. On failure, nothing is appended.
    ///
    /// # Errors
    /// As pread(2); UnexpectedEof when the file ends before the range does.
    pub fn put_file(&mut self, file: &impl AsFd, mut offset: u64, length: usize) -> io::Result<()> {
        let begin = self.own.len();
        self.own.reserve(length);
        while self.own.len() < begin + length {
            let (there, left) = (self.own.len(), begin + length - self.own.len());
            let at = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
            let into = self.own.spare_capacity_mut().as_mut_ptr();
            // SAFETY: the vector has room for `left` bytes behind its length, since all of `length` was reserved.
            let count = unsafe { libc::pread(file.as_fd().as_raw_fd(), into.cast(), left, at) };
            let failure = match usize::try_from(count) {
                Ok(0) => io::ErrorKind::UnexpectedEof.into(),
                Ok(count) => {
                    // SAFETY: the kernel wrote this many bytes behind the length, at most `left`.
                    unsafe { self.own.set_len(there + count) };
                    offset += count as u64;
                    continue;
                }
                Err(_) => io::Error::last_os_error(),
            };
            if failure.kind() != io::ErrorKind::Interrupted {
                self.own.truncate(begin);
                return Err(failure);
            }
        }
        self.grow(length);
        Ok(())
    }

    /// Appends a range of the source by reference: it is sent in its state at that time.
    ///
    /// # Panics
    /// Without a source, or when the range is out of bounds.
    #[inline]
    pub fn gather(&mut self, begin: usize, length: usize) {
        assert!(self.source.address(begin, length).is_some(), "batch without a source");
        self.has_mapped |= matches!(self.source, Source::File(_));
        if length > 0 {
            self.pieces.push(Piece::Stored { laid: begin, begin, length });
        }
        self.length += length;
    }

    /// Appends a range of the file by reference: its pages are sent without a copy, and later changes may still reach
    /// the other end.
    ///
    /// # Panics
    /// Without a file.
    #[inline]
    pub fn hand_over(&mut self, begin: usize, length: usize) {
        assert!(self.file.is_some(), "batch without a file");
        if length > 0 {
            self.pieces.push(Piece::Pages { laid: begin, begin, length });
            self.has_pages = true;
        }
        self.length += length;
    }

    /// Adds `length` own bytes to the last piece.
    #[inline]
    fn grow(&mut self, length: usize) {
        self.length += length;
        if let (Some(Piece::Own { length: last, .. }), None) = (self.pieces.last_mut(), self.most) {
            *last += length;
        } else if length > 0 {
            self.pieces.push(Piece::Own { begin: self.own.len() - length, length });
        }
    }

    /// Sends as much as one system call takes. Returns the number of bytes sent.
    ///
    /// With pages in the batch, the call may block unless the socket is nonblocking.
    ///
    /// # Errors
    /// As sendmsg(2) and sendfile(2): WouldBlock when the socket buffer is full, UnexpectedEof when the file was
    /// truncated, EFAULT when a mapped file was truncated or cannot be read. A closed connection is an error; with
    /// pages it also raises SIGPIPE, which Rust programs ignore.
    pub fn send(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        if let (Some(&Piece::Pages { laid, begin, length }), Some(file)) = (self.pieces.get(self.next), &self.file) {
            let mut offset = begin as u64;
            let length = length.min(left_of_segment(self.segment, laid, begin)).min(self.most.unwrap_or(usize::MAX));
            let sent = rustix::fs::sendfile(socket, file, Some(&mut offset), length)?;
            if sent == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.advance(sent);
            return Ok(sent);
        }
        let more = if self.aim() { libc::MSG_MORE } else { 0 };
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | more;
        // SAFETY: all zeros is a valid msghdr: no name, no pieces, no control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = self.vectors.as_mut_ptr();
        message.msg_iovlen = self.vectors.len();
        // SAFETY: the vectors point into `own` and `source`, which are alive and do not move during the call.
        let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &message, flags) };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        self.advance(sent);
        Ok(sent)
    }

    /// Points the vectors at the next bytes to send. Returns whether more follows that is not in the same message.
    fn aim(&mut self) -> bool {
        self.vectors.clear();
        let (most_pieces, most) = match self.most {
            Some(most) => (1, most),
            None => (MOST_PIECES, usize::MAX),
        };
        let segment = self.segment;
        for piece in self.pieces.iter().skip(self.next) {
            let room = most_pieces - self.vectors.len();
            match *piece {
                _ if room == 0 => break,
                Piece::Own { begin, length } => {
                    let base = self.own[begin..begin + length].as_ptr().cast_mut();
                    self.vectors.push(libc::iovec { iov_base: base.cast(), iov_len: length.min(most) });
                }
                Piece::Stored { laid, mut begin, length } => {
                    let end = begin + length;
                    for _ in 0..room {
                        let length = (end - begin).min(left_of_segment(segment, laid, begin)).min(most);
                        let Some(base) = self.source.address(begin, length) else { break };
                        self.vectors.push(libc::iovec { iov_base: base.cast(), iov_len: length });
                        begin += length;
                        if begin == end {
                            break;
                        }
                    }
                }
                Piece::Pages { .. } => return true,
            }
        }
        let aimed: usize = self.vectors.iter().map(|vector| vector.iov_len).sum();
        self.most.is_some() && self.unsent() > aimed
    }

    /// Records that `count` bytes were sent.
    fn advance(&mut self, mut count: usize) {
        self.sent += count;
        if self.sent >= self.length {
            return self.clear();
        }
        while let Some(piece) = self.pieces.get_mut(self.next) {
            let (Piece::Own { begin, length }
            | Piece::Stored { begin, length, .. }
            | Piece::Pages { begin, length, .. }) = piece;
            if count < *length {
                *begin += count;
                *length -= count;
                return;
            }
            count -= *length;
            self.next += 1;
        }
    }

    /// Clears the batch and keeps its memory for reuse.
    pub fn clear(&mut self) {
        self.own.clear();
        self.pieces.clear();
        (self.next, self.length, self.sent) = (0, 0, 0);
        (self.has_pages, self.has_mapped) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::FileExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn pieces_arrive_in_order_after_any_short_write() {
        for most in [None, Some(64)] {
            for segment in [usize::MAX, 100] {
                send_all(most, segment);
            }
        }
    }

    #[test]
    fn segments_are_pieces_of_a_call_and_take_no_memory() {
        const CALLS: usize = 2;
        let store = Arc::new(ByteStore::in_file(1 << 20).unwrap());
        let mut batch = SendBatch::new(Some(store)).in_segments_of(512);
        batch.gather(0, CALLS * MOST_PIECES * 512);
        assert_eq!(batch.pieces.len(), 1);
        let mut calls = 0;
        while batch.unsent() > 0 {
            batch.aim();
            assert!(batch.vectors.iter().all(|vector| vector.iov_len == 512));
            calls += 1;
            batch.advance(batch.vectors.len() * 512);
        }
        assert_eq!(calls, CALLS);
        batch.gather(0, 1500);
        batch.advance(700);
        batch.aim();
        assert_eq!(batch.vectors.iter().map(|vector| vector.iov_len).collect::<Vec<_>>(), [324, 476]);
    }

    #[test]
    fn separate_pieces_are_sent_separately() {
        let mut batch = SendBatch::new(None).in_pieces_of(Some(4));
        batch.put(b"head");
        batch.put(b"payload");
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let sent: Vec<usize> =
            std::iter::from_fn(|| (batch.unsent() > 0).then(|| batch.send(&ours).unwrap())).collect();
        assert_eq!(sent, [4, 4, 3]);
    }

    fn send_all(most: Option<usize>, segment: usize) {
        let store = Arc::new(ByteStore::in_file(1 << 20).unwrap());
        let data: Vec<u8> = (0..1 << 20).map(|place: u32| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        store.write(0, &data);
        let batch = SendBatch::new(Some(store.clone())).with_pages_of(store.file().cloned());
        let mut batch = batch.in_pieces_of(most).in_segments_of(segment);
        let mut expected = Vec::new();
        for turn in 0..1500_usize {
            let (begin, length) = (turn * 97, turn % 311);
            batch.put(&[turn as u8; 5]);
            expected.extend([turn as u8; 5]);
            match turn % 7 {
                0 | 3 => batch.pull_up(begin, length),
                6 => batch.hand_over(begin, length),
                _ => batch.gather(begin, length),
            }
            expected.extend(&data[begin..begin + length]);
        }
        assert_eq!(batch.unsent(), expected.len());
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut found = Vec::new();
        let mut part = [0; 4099];
        while batch.unsent() > 0 {
            if batch.send(&ours).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                let count = theirs.read(&mut part).unwrap();
                found.extend(&part[..count]);
            }
        }
        drop(ours);
        theirs.read_to_end(&mut found).unwrap();
        assert!(found == expected);
        assert_eq!((batch.own().len(), batch.unsent()), (0, 0));
    }

    #[test]
    fn failed_reads_and_removed_data_leave_nothing() {
        let mut batch = SendBatch::new(None);
        let file = memory_file(b"0123456789");
        batch.put(b"head");
        assert_eq!(batch.put_file(&file, 5, 6).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mark = batch.mark();
        batch.put(b"to be removed");
        batch.take_back(mark);
        batch.put_file(&file, 2, 8).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        assert_eq!(batch.send(&ours).unwrap(), 12);
        drop(ours);
        let mut found = Vec::new();
        theirs.read_to_end(&mut found).unwrap();
        assert_eq!(found, b"head23456789");
    }

    #[test]
    fn a_mapped_file_is_sent_in_its_current_state_and_truncation_is_an_error() {
        let file = memory_file(&[1; 10_000]);
        let mapped = Arc::new(ByteStore::of_file(&file, 10_000, false).unwrap());
        let mut batch = SendBatch::new(Source::File(mapped));
        batch.put(b"head");
        assert!(!batch.has_mapped());
        batch.gather(5000, 3000);
        assert!(batch.has_mapped());
        file.write_all_at(&[2; 10_000], 0).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        assert_eq!(batch.send(&ours).unwrap(), 3004);
        assert!(!batch.has_mapped());
        let mut found = [0; 3004];
        theirs.read_exact(&mut found).unwrap();
        assert!(found.ends_with(&[2; 3000]));
        batch.gather(9000, 1000);
        file.set_len(4096).unwrap();
        assert_eq!(batch.send(&ours).unwrap_err().raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let file = memory_file(b"0123456789");
        let mut batch = SendBatch::new(None).with_pages_of(Some(Arc::new(file.try_clone().unwrap())));
        batch.put(b"head");
        batch.hand_over(2, 8);
        file.set_len(2).unwrap();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(batch.send(&ours).unwrap(), 4);
        assert_eq!(batch.send(&ours).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    fn memory_file(contents: &[u8]) -> std::fs::File {
        use std::io::Write;
        let descriptor = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let mut file = std::fs::File::from(descriptor);
        file.write_all(contents).unwrap();
        file
    }

    #[test]
    fn a_closed_connection_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let mut batch = SendBatch::new(None);
        batch.put(b"x");
        assert_eq!(batch.send(&ours).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
