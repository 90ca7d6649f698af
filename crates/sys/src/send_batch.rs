//! What is sent on a stream at one go: headers one behind the other, and payloads from where they lie or as pages of a file.

use crate::byte_store::ByteStore;
use crate::mapped_file::MappedFile;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// Most pieces of one system call: the kernel's UIO_MAXIOV.
const MOST_PIECES: usize = 1024;

/// One piece of what is to be sent, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// Of the batch's own bytes.
    Own { begin: usize, length: usize },
    /// Of the store or the mapped file; segments are counted from where it was `laid`.
    Stored { laid: usize, begin: usize, length: usize },
    /// Of the file, in the same way.
    Pages { laid: usize, begin: usize, length: usize },
}

impl Piece {
    fn length(&self) -> usize {
        let (Self::Own { length, .. } | Self::Stored { length, .. } | Self::Pages { length, .. }) = self;
        *length
    }
}

/// Bytes to the end of the segment in which `begin` lies.
#[inline]
fn left_of_segment(segment: usize, laid: usize, begin: usize) -> usize {
    // A division is not for those who do not cut.
    if begin == laid { segment } else { segment - (begin - laid) % segment }
}

/// An end of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    own: usize,
    pieces: usize,
    last: usize,
    length: usize,
}

/// Where payloads lie that are sent from there. A batch keeps what its pieces point to.
#[derive(Clone, Debug, Default)]
pub enum Source {
    /// There are none.
    #[default]
    Nothing,
    /// In memory.
    Store(Arc<ByteStore>),
    /// In a file's page cache.
    File(Arc<MappedFile>),
}

impl Source {
    /// Where a range begins, if there is anything.
    ///
    /// # Panics
    /// When the range is not inside.
    #[inline]
    fn address(&self, begin: usize, length: usize) -> Option<*mut u8> {
        match self {
            Self::Store(store) => Some(store.address(begin, length)),
            Self::File(file) => Some(file.address(begin, length)),
            Self::Nothing => None,
        }
    }
}

impl From<Option<Arc<ByteStore>>> for Source {
    fn from(store: Option<Arc<ByteStore>>) -> Self {
        store.map_or(Self::Nothing, Self::Store)
    }
}

/// A batch: it is filled, sent, and used again.
#[derive(Debug)]
pub struct SendBatch {
    own: Vec<u8>,
    source: Source,
    /// Whose pages are sent.
    file: Option<Arc<File>>,
    pieces: Vec<Piece>,
    /// The first piece that is not wholly sent.
    next: usize,
    length: usize,
    sent: usize,
    /// Most bytes of one system call, of one thing that was put.
    most: Option<usize>,
    /// Most bytes of the store or the file that are one piece of a system call. They are cut when they are sent, so that segments take no memory.
    segment: usize,
    has_pages: bool,
    has_mapped: bool,
    vectors: Vec<libc::iovec>,
}

// SAFETY: the vectors' pointers are used only while one thread is in `send`, which makes them anew each time.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Nothing yet. Payloads come from `source`.
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

    /// Pages come from `file`, if any.
    pub fn with_pages_of(self, file: Option<Arc<File>>) -> Self {
        Self { file, ..self }
    }

    /// What was put by itself is sent by itself, at most `most` bytes with one system call; `None`: all together.
    pub fn in_pieces_of(self, most: Option<usize>) -> Self {
        Self { most, ..self }
    }

    /// What comes from the store or the file is a piece for each `bytes` of it, one at least, as if it lay scattered.
    pub fn in_segments_of(self, bytes: usize) -> Self {
        Self { segment: bytes.max(1), ..self }
    }

    /// Bytes that are still to be sent.
    pub fn unsent(&self) -> usize {
        self.length - self.sent
    }

    /// Bytes that were put since it was empty, sent or not.
    pub fn put_so_far(&self) -> usize {
        self.length
    }

    /// Bytes that were sent since it was empty.
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// Whether what is sent next are pages of the file.
    pub fn sends_pages(&self) -> bool {
        matches!(self.pieces.get(self.next), Some(Piece::Pages { .. }))
    }

    /// Whether there were pages of the file in it since it was empty.
    pub fn has_pages(&self) -> bool {
        self.has_pages
    }

    /// Whether there was something of a mapped file in it since it was empty, which the kernel may have to read when it is sent.
    pub fn has_mapped(&self) -> bool {
        self.has_mapped
    }

    /// Its own bytes, of which some may have been sent.
    pub fn own(&self) -> &[u8] {
        &self.own
    }

    /// Where it ends now, for [`take_back`](Self::take_back).
    #[inline]
    pub fn mark(&self) -> Mark {
        let last = self.pieces.last().map_or(0, Piece::length);
        Mark { own: self.own.len(), pieces: self.pieces.len(), last, length: self.length }
    }

    /// Takes off what was put since `mark`, provided that nothing was sent in between.
    pub fn take_back(&mut self, mark: Mark) {
        self.own.truncate(mark.own);
        self.pieces.truncate(mark.pieces);
        // Of the other kinds nothing is added to a piece.
        if let Some(Piece::Own { length, .. }) = self.pieces.last_mut() {
            *length = mark.last;
        }
        self.length = mark.length;
    }

    /// Bytes of its own that it holds.
    pub fn own_bytes(&self) -> usize {
        self.own.len()
    }

    /// Pieces of it, sent or not.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Whether one more message of two pieces still goes out with the same system call.
    pub fn has_room(&self) -> bool {
        self.pieces.len() + 2 <= MOST_PIECES
    }

    /// Puts bytes at the end, copied.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
        self.grow(bytes.len());
    }

    /// Puts a part of the store at the end, copied: it is as it is now.
    ///
    /// # Panics
    /// Without a store, or when the range is not inside.
    #[inline]
    pub fn pull_up(&mut self, begin: usize, length: usize) {
        assert!(matches!(self.source, Source::Store(_)), "a batch without a store");
        if let Source::Store(store) = &self.source {
            store.append_to(begin, length, &mut self.own);
            self.grow(length);
        }
    }

    /// Puts a part of a file at the end, read straight to where it is sent from. When it fails nothing is put.
    ///
    /// # Errors
    /// What pread says; UnexpectedEof when the file ends before.
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
                    // SAFETY: the kernel wrote so many bytes behind the length, at most `left`.
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

    /// Puts a part of the source at the end: it is as it will be when it is sent.
    ///
    /// # Panics
    /// Without a source, or when the range is not inside.
    #[inline]
    pub fn gather(&mut self, begin: usize, length: usize) {
        assert!(self.source.address(begin, length).is_some(), "a batch without a source");
        self.has_mapped |= matches!(self.source, Source::File(_));
        if length > 0 {
            self.pieces.push(Piece::Stored { laid: begin, begin, length });
        }
        self.length += length;
    }

    /// Puts a part of the file at the end: its pages are sent as they are then and later, without a copy.
    ///
    /// # Panics
    /// Without a file.
    #[inline]
    pub fn hand_over(&mut self, begin: usize, length: usize) {
        assert!(self.file.is_some(), "a batch without a file");
        if length > 0 {
            self.pieces.push(Piece::Pages { laid: begin, begin, length });
            self.has_pages = true;
        }
        self.length += length;
    }

    /// Notes `length` bytes more at the end of its own.
    #[inline]
    fn grow(&mut self, length: usize) {
        self.length += length;
        if let (Some(Piece::Own { length: last, .. }), None) = (self.pieces.last_mut(), self.most) {
            *last += length;
        } else if length > 0 {
            self.pieces.push(Piece::Own { begin: self.own.len() - length, length });
        }
    }

    /// Sends what it can with one system call; bytes that went out.
    ///
    /// With pages in it, it may wait, unless the socket is one that never does.
    ///
    /// # Errors
    /// What sendmsg and sendfile say: WouldBlock when the socket takes nothing now, UnexpectedEof when the file has become
    /// shorter, EFAULT when a mapped one has, or cannot be read. A peer that has gone is an error. Where pages are sent it is SIGPIPE as well, which Rust's programs ignore.
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
        let (message, more) = self.message();
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | more;
        // SAFETY: the vectors point into `own` and `source`, which live and do not move during the call.
        let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &message, flags) };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error());
        self.went(*sent.as_ref().unwrap_or(&0));
        sent
    }

    /// A message of what is to be sent next, and its flags beyond the usual ones. It points into the batch, as long as that is neither
    /// changed nor dropped.
    pub(crate) fn message(&mut self) -> (libc::msghdr, libc::c_int) {
        let more = if self.aim() { libc::MSG_MORE } else { 0 };
        // SAFETY: all zeros is a valid msghdr: no name, no pieces, no control data.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = self.vectors.as_mut_ptr();
        message.msg_iovlen = self.vectors.len();
        (message, more)
    }

    /// Bytes of the message that was made last.
    pub(crate) fn aimed(&self) -> usize {
        self.vectors.iter().map(|vector| vector.iov_len).sum()
    }

    /// So many bytes of that message went out.
    pub(crate) fn went(&mut self, count: usize) {
        self.vectors.clear();
        self.advance(count);
    }

    /// Points the vectors at what is to be sent next. Whether something follows that the same message holds.
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
        self.most.is_some() && self.unsent() > self.aimed()
    }

    /// So many bytes went out.
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

    /// Forgets everything; what it holds in memory is kept for the next time.
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
    fn pieces_arrive_in_order_whatever_the_socket_takes() {
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
            batch.message();
            assert!(batch.vectors.iter().all(|vector| vector.iov_len == 512));
            calls += 1;
            batch.went(batch.aimed());
        }
        assert_eq!(calls, CALLS);
        batch.gather(0, 1500);
        batch.went(700);
        batch.message();
        assert_eq!(batch.vectors.iter().map(|vector| vector.iov_len).collect::<Vec<_>>(), [324, 476]);
    }

    #[test]
    fn what_was_put_by_itself_is_sent_by_itself() {
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
        assert_eq!((batch.own_bytes(), batch.unsent()), (0, 0));
    }

    #[test]
    fn what_cannot_be_read_and_what_is_taken_back_leaves_nothing() {
        let mut batch = SendBatch::new(None);
        let file = memory_file(b"0123456789");
        batch.put(b"head");
        assert_eq!(batch.put_file(&file, 5, 6).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mark = batch.mark();
        batch.put(b"that was too much");
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
    fn a_mapped_file_is_sent_as_it_is_then_and_an_error_if_it_became_shorter() {
        let file = memory_file(&[1; 10_000]);
        let mapped = Arc::new(MappedFile::new(&file, 10_000).unwrap());
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
    fn a_file_that_became_shorter_is_an_error() {
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
    fn a_peer_that_has_gone_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let mut batch = SendBatch::new(None);
        batch.put(b"x");
        assert_eq!(batch.send(&ours).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
