//! Reads: puts header and payload into the batch at once, or a long copied payload piece by piece.

use super::Requests;
use crate::filters::Checksum;
use crate::tuning::Sending;
use crate::wire::{Request, simple_reply};
use sys::send_batch::SendBatch;

/// Longer payloads that are copied are produced in pieces of this size.
const PIECE: u32 = 128 << 10;

/// A read whose reply is partly produced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Of the request; the header goes out with the first piece, which may fail.
    cookie: u64,
    offset: u64,
    rest: u32,
    /// Nothing has gone out.
    first: bool,
    /// Checksum of the pieces so far, if one follows the payload.
    sum: Option<Checksum>,
    /// Bytes still to be read once before the header promises them: behind a header, the server cannot report that the
    /// storage failed. Zero for memory.
    unverified: u32,
}

impl Requests {
    pub(super) fn begin_reading(&mut self, request: &Request, batch: &mut SendBatch) {
        let Request { cookie, offset, length, .. } = *request;
        let sending = self.sending(length);
        if length <= PIECE || sending != Sending::PullUp {
            return self.read_at_once(request, sending, batch);
        }
        let sum = self.rights.checksums.then(Checksum::default);
        let unverified = if self.backend.may_wait() { length } else { 0 };
        self.reading = Some(Reading { cookie, offset, rest: length, first: true, sum, unverified });
    }

    /// How to send a payload from this storage. A payload with a checksum is copied, because it has to be sent exactly
    /// as summed.
    #[inline]
    fn sending(&self, length: u32) -> Sending {
        if self.rights.checksums { Sending::PullUp } else { self.backend.sending(self.tuning.sending(length)) }
    }

    /// Puts header and payload, or an error instead.
    #[inline]
    fn read_at_once(&mut self, request: &Request, sending: Sending, batch: &mut SendBatch) {
        if self.backend.may_wait() && sending != Sending::Gather {
            self.may_be_slow();
        }
        let mark = batch.mark();
        batch.put(&simple_reply(request.cookie, None));
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
                self.reply(request.cookie, Err(error), batch);
            }
        }
    }

    /// Reads the next piece of a long read for the first time: it enters the page cache, or the reply is an error.
    fn verify(&mut self, batch: &mut SendBatch) {
        let Some(reading) = &mut self.reading else { return };
        let length = reading.unverified.min(PIECE);
        let offset = reading.offset + u64::from(reading.rest - reading.unverified);
        reading.unverified -= length;
        let (cookie, mark) = (reading.cookie, batch.mark());
        let outcome = self.backend.read(offset, length, Sending::PullUp, batch);
        batch.take_back(mark);
        if let Err(error) = outcome {
            self.reading = None;
            self.reply(cookie, Err(error), batch);
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
        let Reading { cookie, offset, first, sum, .. } = *reading;
        reading.first = false;
        reading.offset += u64::from(length);
        reading.rest -= length;
        if reading.rest == 0 {
            self.reading = None;
        }
        let mark = batch.mark();
        if first {
            batch.put(&simple_reply(cookie, None));
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
            Err(_) if !first => return Err("the storage failed in the middle of a reply"),
            Err(error) => {
                batch.take_back(mark);
                self.reading = None;
                self.reply(cookie, Err(error), batch);
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
