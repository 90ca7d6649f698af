//! What comes from a server: received, understood, and given back to whoever asked.

use super::in_place::{Came, Payload};
use super::{Ask, Client, Done, MEMORY_BYTES, apart, is_nothing, lost, simple_header};
use crate::error::{Error, Result};
use crate::filters::crc::{CHECKSUM_BYTES, Checksum};
use crate::filters::delay::Layer;
use crate::tuning::Framing;
use crate::wire::{SIMPLE_REPLY_BYTES, WireError};
use rustix::event::PollFlags;
use std::io;
use sys::byte_store::Waiting;
use sys::clock::ticks;

/// Where the next bytes are received to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Headers and payloads, each to where it is guessed to belong.
    Guessed,
    /// To the memory.
    Memory,
    /// To the memory, until so many are there.
    Header { most: usize },
    /// To the payload that is arriving.
    Arena { begin: usize, length: usize },
}

impl Client {
    /// Receives once and uses it. Whether there was something.
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
            (Place::Guessed | Place::Memory, _) => {
                self.socket.receive(self.memory.get_mut(self.end..).unwrap_or_default(), waiting)
            }
            (Place::Header { most }, _) => {
                self.socket.receive(self.memory.get_mut(self.end..most).unwrap_or_default(), waiting)
            }
            (Place::Arena { begin, length }, _) => self.arena.receive(begin, length, &self.socket, waiting),
        };
        self.came(received, place, each)
    }

    /// Where the next bytes belong.
    fn place(&mut self) -> Place {
        // What is left is less than a header, or a part of a payload that is copied out at once.
        self.memory.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.guess() {
            return Place::Guessed;
        }
        match (self.tuning.framing, self.arriving) {
            (Framing::OneGo | Framing::SegmentAtATime, _) => Place::Memory,
            // Of a reply that is no simple one, a byte more at a time.
            (Framing::PageAtATime, None) => Place::Header { most: SIMPLE_REPLY_BYTES.max(self.end + 1) },
            (framing @ Framing::PageAtATime, Some((slot, there))) => {
                let length = self.slots.get(slot as usize).map_or(0, |slot| slot.length as usize) - there;
                if length == 0 {
                    return Place::Header { most: CHECKSUM_BYTES };
                }
                let length = length.min(framing.most_received().unwrap_or(length));
                Place::Arena { begin: slot as usize * self.slot_bytes + there, length }
            }
        }
    }

    /// Something has come, or not. Whether it has.
    fn came(&mut self, received: io::Result<usize>, place: Place, each: &mut impl FnMut(Done)) -> Result<bool> {
        match (received, place) {
            (Ok(0), _) => return Err(Error::Lost("the server closed it".to_owned())),
            (Ok(count), Place::Memory | Place::Header { .. }) => self.end += count,
            (Ok(count), Place::Guessed | Place::Arena { .. }) => self.sort_out(count, each),
            (Err(error), _) if is_nothing(&error) => return Ok(false),
            (Err(error), _) => return Err(lost(&error)),
        }
        self.parse(each).map(|()| true)
    }

    /// Lays out places for what is guessed to come. Whether there are any.
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

    /// What came is where it was guessed to belong, or is moved to `memory`.
    fn sort_out(&mut self, count: usize, each: &mut impl FnMut(Done)) {
        let mut from = 0;
        if let Some((slot, there)) = self.arriving {
            let length = self.slots.get(slot as usize).map_or(0, |slot| slot.length as usize);
            from = count.min(length - there);
            self.syscalls.in_place_bytes += from as u64;
            if self.tuning.checksums {
                self.sum.add_stored(&self.arena, slot as usize * self.slot_bytes + there, from);
            }
            self.arrived(slot, there + from, each);
        }
        let Some(mut in_place) = self.in_place.take() else { return };
        let came = in_place.came(from, count, self.memory.get(..self.end).unwrap_or_default());
        for came in &came {
            match *came {
                Came::AsGuessed { cookie, there } => {
                    // With what was there of its header.
                    self.end = 0;
                    let (slot, _) = apart(cookie);
                    self.syscalls.in_place_bytes += there as u64;
                    in_place.replied(slot);
                    self.begin_reply(slot, None, there, each);
                }
                Came::Else { from } => {
                    let rest = self.memory.get_mut(self.end..self.end + count - from).unwrap_or_default();
                    self.end += rest.len();
                    in_place.batch.copy_out(from, rest);
                }
            }
        }
        in_place.done(came);
        self.in_place = Some(in_place);
    }

    /// Uses what was received.
    pub(super) fn parse(&mut self, each: &mut impl FnMut(Done)) -> Result<()> {
        loop {
            let rest = self.memory.get(self.begin..self.end).unwrap_or_default();
            if let Some((slot, there)) = self.arriving {
                let length = self.slots.get(slot as usize).map_or(0, |slot| slot.length as usize);
                if there == length {
                    let Some((found, _)) = rest.split_first_chunk::<CHECKSUM_BYTES>() else { return Ok(()) };
                    if *found != self.sum.bytes() {
                        return Err(Error::Server("a reply's payload and its checksum do not agree".to_owned()));
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
                self.arena.write(slot as usize * self.slot_bytes + there, part);
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
                return Err(Error::Server(format!("the server replies to what was not asked (cookie {cookie:#x})")));
            }
            self.begin_reply(slot, error, 0, each);
        }
    }

    /// The header of a reply has come, and so much of its payload.
    #[inline]
    fn begin_reply(&mut self, slot: u32, error: Option<WireError>, there: usize, each: &mut impl FnMut(Done)) {
        if let Some(in_place) = &mut self.in_place {
            in_place.replied(slot);
        }
        self.tuning.delay.at(Layer::Wire);
        self.sum = Checksum::default();
        let reads = self.slots.get(slot as usize).is_some_and(|state| state.ask == Some(Ask::Read));
        if reads && error.is_none() { self.arrived(slot, there, each) } else { self.finish(slot, error, each) }
    }

    /// So much of a read has come.
    fn arrived(&mut self, slot: u32, there: usize, each: &mut impl FnMut(Done)) {
        let length = self.slots.get(slot as usize).map_or(0, |slot| slot.length as usize);
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
