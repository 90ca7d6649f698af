//! Reads: puts header and payload into the batch at once, or a long copied payload piece by piece.

use super::Requests;
use crate::filters::{Checksum, Layer};
use crate::tuning::Sending;
use crate::wire::{ChunkKind, Request, chunk, command_flag, data_chunk, simple_reply};
use sys::send_batch::SendBatch;

/// Longer payloads that are copied are produced in pieces of this size.
const PIECE: u32 = 128 << 10;

/// A read whose reply is partly produced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    cookie: u64,
    offset: u64,
    rest: u32,
    /// Whether each piece is a chunk of its own.
    chunks: bool,
    /// The request whose one header precedes all pieces; the header goes out with the first piece, which may fail.
    header: Option<Request>,
    /// Checksum of the pieces so far, if one follows the payload.
    sum: Option<Checksum>,
    /// Bytes still to be read once before the header promises them: behind a header, the server cannot report that the
    /// storage failed. Zero for memory, and for chunks, which can report an error.
    unverified: u32,
}

impl Requests {
    pub(super) fn begin_reading(&mut self, request: &Request, batch: &mut SendBatch) {
        self.delay(Layer::Storage);
        let Request { cookie, offset, length, .. } = *request;
        let sending = self.sending(length);
        if length <= PIECE || sending != Sending::PullUp {
            return self.read_at_once(request, sending, batch);
        }
        let chunks = self.rights.structured && request.flags & command_flag::DF == 0;
        let header = (!chunks).then_some(*request);
        let sum = self.rights.checksums.then(Checksum::default);
        // With direct I/O the device would read everything twice.
        let verified = chunks || !self.backend.may_wait() || self.backend.direct().is_some();
        let unverified = if verified { 0 } else { length };
        self.reading = Some(Reading { cookie, offset, rest: length, chunks, header, sum, unverified });
    }

    /// How to send a payload from this storage. A payload with a checksum is copied, because it has to be sent exactly
    /// as summed.
    #[inline]
    fn sending(&self, length: u32) -> Sending {
        if self.rights.checksums { Sending::PullUp } else { self.backend.sending(self.tuning.sending(length)) }
    }

    fn put_read_header(&self, request: &Request, batch: &mut SendBatch) {
        if self.rights.structured {
            batch.put(&data_chunk(request.cookie, request.offset, request.length));
        } else {
            batch.put(&simple_reply(request.cookie, None));
        }
    }

    /// Puts header and payload, or an error instead.
    #[inline]
    fn read_at_once(&mut self, request: &Request, sending: Sending, batch: &mut SendBatch) {
        if self.backend.may_wait() && sending != Sending::Gather {
            self.may_be_slow();
        }
        let mark = batch.mark();
        self.put_read_header(request, batch);
        match self.backend.read(request.offset, request.length, sending, batch) {
            Ok(()) => {
                if self.rights.checksums {
                    let mut sum = Checksum::default();
                    sum.add(last_of(batch, request.length));
                    batch.put(&sum.bytes());
                }
                self.counters.read(request.length, sending);
            }
            Err(error) => {
                batch.take_back(mark);
                self.reply(request, Err(error), batch);
            }
        }
    }

    /// Reads the next piece of a long read for the first time: it enters the page cache, or the reply is an error.
    fn verify(&mut self, batch: &mut SendBatch) {
        let Some(reading) = &mut self.reading else { return };
        let length = reading.unverified.min(PIECE);
        let offset = reading.offset + u64::from(reading.rest - reading.unverified);
        reading.unverified -= length;
        let (request, mark) = (reading.header, batch.mark());
        let outcome = self.backend.read(offset, length, Sending::PullUp, batch);
        batch.take_back(mark);
        if let (Err(error), Some(request)) = (outcome, request) {
            self.reading = None;
            self.reply(&request, Err(error), batch);
        }
    }

    /// Puts the next piece of a long read.
    pub(super) fn read_on(&mut self, batch: &mut SendBatch) -> Result<(), &'static str> {
        if self.backend.may_wait() {
            self.may_be_slow();
        }
        let Some(reading) = &mut self.reading else { return Ok(()) };
        if reading.unverified > 0 {
            self.verify(batch);
            return Ok(());
        }
        let length = reading.rest.min(PIECE);
        let Reading { cookie, offset, chunks, header, sum, .. } = *reading;
        reading.header = None;
        reading.offset += u64::from(length);
        reading.rest -= length;
        let last = reading.rest == 0;
        if last {
            self.reading = None;
        }
        let mark = batch.mark();
        if chunks {
            batch.put(&chunk(last, ChunkKind::Data, cookie, length + 8));
            batch.put(&offset.to_be_bytes());
        }
        if let Some(request) = &header {
            self.put_read_header(request, batch);
        }
        match self.backend.read(offset, length, Sending::PullUp, batch) {
            Ok(()) => {
                self.counters.read(length, Sending::PullUp);
                if let Some(mut sum) = sum {
                    sum.add(last_of(batch, length));
                    match &mut self.reading {
                        Some(reading) => reading.sum = Some(sum),
                        None => batch.put(&sum.bytes()),
                    }
                }
            }
            // The header has promised data, and some of them are already sent.
            Err(_) if !chunks && header.is_none() => return Err("the storage failed in the middle of a reply"),
            Err(error) => {
                batch.take_back(mark);
                self.reading = None;
                match &header {
                    Some(request) => self.reply(request, Err(error), batch),
                    None => self.put_error(cookie, error, batch),
                }
            }
        }
        Ok(())
    }
}

/// The bytes that were copied to the end of a batch last.
fn last_of(batch: &SendBatch, length: u32) -> &[u8] {
    let own = batch.own();
    own.get(own.len().saturating_sub(length as usize)..).unwrap_or_default()
}
