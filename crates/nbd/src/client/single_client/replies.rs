//! Receives and parses replies, and passes completed requests to the caller. It sends nothing.

use super::in_place::Payload;
use super::{Ask, Client, Connection, Done, MEMORY_BYTES, apart, is_nothing, lost, not_in_flight, simple_header};
use crate::filters::{CHECKSUM_BYTES, Checksum};
use crate::tuning::Framing;
use crate::wire::{SIMPLE_REPLY_BYTES, WireError};
use crate::{Error, Result};
use rustix::event::PollFlags;
use sys::byte_store::Waiting;
use sys::clock::ticks;

/// Where the next receive call puts its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Expected headers and payloads, each into its place.
    Guessed,
    /// The receive buffer, until it contains `most` bytes.
    Memory { most: usize },
    /// The payload that is arriving.
    Arena { begin: usize, length: usize },
}

impl Client {
    /// Receives once and processes the data. Returns whether there were any.
    pub(super) fn receive(&mut self, each: &mut impl FnMut(Done), waiting: Waiting) -> Result<bool> {
        if self.zero_copy && waiting == Waiting::UntilSome {
            self.syscalls.receives += 1;
            if self.glance(PollFlags::IN).is_empty() {
                return Ok(false);
            }
        }
        self.syscalls.receives += 1;
        let place = self.place();
        let received = match (place, &mut self.in_place) {
            (Place::Guessed, Some(in_place)) => in_place.batch.receive(&self.socket, waiting),
            (Place::Guessed, None) => Ok(0),
            (Place::Memory { most }, _) => {
                self.socket.receive(self.memory.get_mut(self.end..most).unwrap_or_default(), waiting)
            }
            (Place::Arena { begin, length }, _) => self.arena.receive(begin, length, &self.socket, waiting),
        };
        match received {
            Ok(0) => return Err(Error::Lost("the server closed the connection".to_owned())),
            Ok(count) if matches!(place, Place::Memory { .. }) => self.end += count,
            Ok(count) => self.sort_out(count, each),
            Err(error) if is_nothing(&error) => return Ok(false),
            Err(error) => return Err(lost(&error)),
        }
        self.parse(each).map(|()| true)
    }

    /// Decides where to receive next.
    fn place(&mut self) -> Place {
        // The buffer contains less than a header, or part of a payload that is copied out at once.
        self.memory.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.guess() {
            return Place::Guessed;
        }
        match (self.tuning.framing, self.arriving) {
            (Framing::OneGo | Framing::SegmentAtATime, _) => Place::Memory { most: self.memory.len() },
            (Framing::PageAtATime, None) => Place::Memory { most: SIMPLE_REPLY_BYTES },
            (framing @ Framing::PageAtATime, Some((slot, there))) => {
                let length = self.length_of(slot) - there;
                if length == 0 {
                    return Place::Memory { most: CHECKSUM_BYTES };
                }
                let length = length.min(framing.most_received().unwrap_or(length));
                Place::Arena { begin: self.begin(slot) + there, length }
            }
        }
    }

    /// Prepares to receive the expected replies in place. Returns whether any are expected.
    fn guess(&mut self) -> bool {
        let Self { slots, slot_bytes, arriving, in_place, end, .. } = self;
        let Some(in_place) = in_place else { return false };
        let place = |slot: u32, there: usize| {
            let state = slots.get(slot as usize)?;
            let length = if state.ask? == Ask::Read { state.length as usize } else { 0 };
            Some(Payload { begin: slot as usize * *slot_bytes + there, length: length - there })
        };
        let rest = arriving.and_then(|(slot, there)| place(slot, there));
        let payload = |cookie: u64| {
            let (slot, generation) = apart(cookie);
            let asked = slots.get(slot as usize).is_some_and(|state| state.generation == generation);
            let arrives = arriving.is_some_and(|(other, _)| other == slot);
            if asked && !arrives { place(slot, 0) } else { None }
        };
        // All of it may have to be moved to `memory`.
        in_place.guess(rest, *end, MEMORY_BYTES - SIMPLE_REPLY_BYTES, payload)
    }

    /// Processes data received in place, and moves unexpected data to `memory`.
    fn sort_out(&mut self, count: usize, each: &mut impl FnMut(Done)) {
        let mut from = 0;
        if let Some((slot, there)) = self.arriving {
            let length = self.length_of(slot);
            from = count.min(length - there);
            self.syscalls.in_place_bytes += from as u64;
            if self.tuning.checksums {
                self.sum.add_stored(&self.arena, self.begin(slot) + there, from);
            }
            self.arrived(slot, there + from, each);
        }
        let Some(mut in_place) = self.in_place.take() else { return };
        let begun = self.memory.first_chunk::<SIMPLE_REPLY_BYTES>().copied().unwrap_or_default();
        let from = in_place.came(from, count, begun.get(..self.end).unwrap_or_default(), |cookie, there| {
            // The start of its header in `memory` is used.
            self.end = 0;
            self.syscalls.in_place_bytes += there as u64;
            self.begin_reply(apart(cookie).0, None, there, each);
        });
        if from < count {
            let rest = self.memory.get_mut(self.end..self.end + count - from).unwrap_or_default();
            self.end += rest.len();
            in_place.batch.copy_out(from, rest);
        }
        self.in_place = Some(in_place);
    }

    /// Parses the receive buffer.
    pub(super) fn parse(&mut self, each: &mut impl FnMut(Done)) -> Result<()> {
        loop {
            let rest = self.memory.get(self.begin..self.end).unwrap_or_default();
            if let Some((slot, there)) = self.arriving {
                let length = self.length_of(slot);
                if there == length {
                    let Some((found, _)) = rest.split_first_chunk::<CHECKSUM_BYTES>() else { return Ok(()) };
                    if *found != self.sum.bytes() {
                        return Err(Error::Server("a reply's payload does not match its checksum".to_owned()));
                    }
                    self.begin += CHECKSUM_BYTES;
                    self.arriving = None;
                    self.finish(slot, None, each);
                    continue;
                }
                let part = rest.get(..rest.len().min(length - there)).unwrap_or_default();
                if part.is_empty() {
                    return Ok(());
                }
                if self.tuning.checksums {
                    self.sum.add(part);
                }
                self.arena.write(self.begin(slot) + there, part);
                let count = part.len();
                self.begin += count;
                self.arrived(slot, there + count, each);
                continue;
            }
            let Some((cookie, error)) = simple_header(rest)? else { return Ok(()) };
            self.begin += SIMPLE_REPLY_BYTES;
            let (slot, generation) = apart(cookie);
            let state = self.slots.get(slot as usize).filter(|state| state.generation == generation);
            if state.is_none_or(|state| state.ask.is_none()) {
                return Err(Error::Server(not_in_flight(cookie)));
            }
            self.begin_reply(slot, error, 0, each);
        }
    }

    /// Processes a reply's header, with `there` bytes of its payload already in place.
    #[inline]
    fn begin_reply(&mut self, slot: u32, error: Option<WireError>, there: usize, each: &mut impl FnMut(Done)) {
        if let Some(in_place) = &mut self.in_place {
            in_place.replied(slot);
        }
        self.sum = Checksum::default();
        let reads = self.slots.get(slot as usize).is_some_and(|state| state.ask == Some(Ask::Read));
        if reads && error.is_none() { self.arrived(slot, there, each) } else { self.finish(slot, error, each) }
    }

    #[inline]
    fn length_of(&self, slot: u32) -> usize {
        self.slots.get(slot as usize).map_or(0, |slot| slot.length as usize)
    }

    /// Records how many bytes of a read's payload have arrived.
    fn arrived(&mut self, slot: u32, there: usize, each: &mut impl FnMut(Done)) {
        let length = self.length_of(slot);
        if there < length || self.tuning.checksums {
            self.arriving = Some((slot, there));
        } else {
            self.arriving = None;
            self.finish(slot, None, each);
        }
    }

    #[inline]
    pub(super) fn finish(&mut self, slot: u32, error: Option<WireError>, each: &mut impl FnMut(Done)) {
        let Some(state) = self.slots.get_mut(slot as usize) else { return };
        let Some(ask) = state.ask.take() else { return };
        self.in_flight -= 1;
        self.account.end();
        let (length, handed_over, answered) = (state.length, state.handed_over, ticks());
        self.expected -= self.reply_bytes(ask, length as usize);
        each(Done { slot, length, error, handed_over, answered });
    }
}
