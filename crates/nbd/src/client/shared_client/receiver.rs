//! Receives the replies of a shared connection and delivers them to the submitters. It sends nothing.

use super::Inner;
use super::table::InFlight;
use crate::client::connect::is_nothing;
use crate::client::{Ask, Done, simple_header};
use crate::wire::{SIMPLE_REPLY_BYTES, WireError};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use sys::byte_store::Waiting;
use sys::clock::ticks;

/// The state of the receiving thread.
pub(super) struct Receiver {
    inner: Arc<Inner>,
    memory: Vec<u8>,
    /// The part of `memory` that was received and not used yet.
    there: Range<usize>,
    /// A read whose payload is arriving, and the number of bytes that have arrived.
    arriving: Option<(InFlight, usize)>,
    /// Copy-out threshold: payload bytes still missing beyond this are received in place.
    copied: usize,
    /// Completed requests of each submitter, not delivered yet.
    done: Vec<Vec<Done>>,
}

impl Receiver {
    pub(super) fn new(inner: Arc<Inner>, memory: Vec<u8>, there: Range<usize>, copied: usize) -> Self {
        let done = inner.mailboxes.iter().map(|_| Vec::new()).collect();
        Self { inner, memory, there, arriving: None, copied, done }
    }

    /// Receives until the connection ends.
    pub(super) fn run(mut self) {
        let why = loop {
            if let Err(why) = self.parse() {
                break why;
            }
            for (number, done) in self.done.iter_mut().enumerate() {
                self.inner.deliver(number, done);
            }
            if let Err(why) = self.receive() {
                break why;
            }
        };
        self.inner.lose(why);
    }

    fn receive(&mut self) -> Result<(), String> {
        let Range { start, end } = self.there;
        self.memory.copy_within(start..end, 0);
        self.there = 0..end - start;
        let (inner, rest) =
            (&self.inner, self.arriving.map(|(read, there)| (read, there, read.length as usize - there)));
        let received = match rest {
            Some((read, there, rest)) if rest > self.copied => inner.table.arena().receive(
                inner.table.begin(read.slot) + there,
                rest,
                &inner.socket,
                Waiting::UntilSome,
            ),
            _ => {
                let free = self.memory.get_mut(self.there.end..).unwrap_or_default();
                inner.socket.receive(free, Waiting::UntilSome)
            }
        };
        inner.receives.fetch_add(1, Ordering::Relaxed);
        match (received, rest) {
            (Ok(0), _) => return Err("the server closed the connection".to_owned()),
            (Ok(count), Some((read, there, rest))) if rest > self.copied => self.arrived(read, there + count),
            (Ok(count), _) => self.there.end += count,
            (Err(error), _) if is_nothing(&error) => {}
            (Err(error), _) => return Err(error.to_string()),
        }
        Ok(())
    }

    fn parse(&mut self) -> Result<(), String> {
        loop {
            let rest = self.memory.get(self.there.clone()).unwrap_or_default();
            if let Some((read, there)) = self.arriving {
                let part = rest.get(..rest.len().min(read.length as usize - there)).unwrap_or_default();
                if part.is_empty() {
                    return Ok(());
                }
                self.inner.table.arena().write(self.inner.table.begin(read.slot) + there, part);
                let count = part.len();
                self.there.start += count;
                self.arrived(read, there + count);
                continue;
            }
            let header = simple_header(rest).map_err(|error| error.to_string())?;
            let Some((cookie, error)) = header else { return Ok(()) };
            self.there.start += SIMPLE_REPLY_BYTES;
            let Some(request) = self.inner.table.in_flight(cookie) else {
                return Err(format!("the server replies to a request that is not in flight (cookie {cookie:#x})"));
            };
            if request.ask == Ask::Read && error.is_none() {
                self.arrived(request, 0);
            } else {
                self.finish(request, error);
            }
        }
    }

    /// Records how many bytes of a read's payload have arrived.
    fn arrived(&mut self, read: InFlight, there: usize) {
        if there < read.length as usize {
            self.arriving = Some((read, there));
        } else {
            self.arriving = None;
            self.finish(read, None);
        }
    }

    fn finish(&mut self, request: InFlight, error: Option<WireError>) {
        let InFlight { slot, length, handed_over, .. } = request;
        self.inner.table.free(slot);
        if let Some(done) = self.done.get_mut((slot / self.inner.depth.max(1)) as usize) {
            done.push(Done { slot, length, error, handed_over, answered: ticks() });
        }
    }
}
