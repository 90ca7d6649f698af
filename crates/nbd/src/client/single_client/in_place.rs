//! Receives payloads directly into their slots, without a copy.
//!
//! A client learns which reply comes next only from its header. Most servers reply in the order of the requests, so the
//! client guesses: one system call receives header, payload, header, payload, each into its place. An unexpected header
//! shows that the guess was wrong; the data since then are copied to the receive buffer, and guesses become rare.

use super::apart;
use super::receive_coalescing::Backoff;
use crate::wire::{SIMPLE_REPLY_BYTES, decode_simple_reply};
use std::collections::VecDeque;
use std::sync::Arc;
use sys::byte_store::ByteStore;
use sys::receive_batch::ReceiveBatch;

/// Requests kept in order before completed ones are removed.
const MOST_KEPT: usize = 1024;

/// The place of a reply's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// Offset in the arena.
    pub(super) begin: usize,
    /// Length in bytes; 0 for replies without payload.
    pub(super) length: usize,
}

/// An expected reply.
#[derive(Clone, Copy, Debug)]
struct Guess {
    cookie: u64,
    /// Offset of its header in the memory of the batch.
    header: usize,
    payload: usize,
}

/// The guesses of one connection.
#[derive(Debug)]
pub(super) struct InPlace {
    pub(super) batch: ReceiveBatch,
    /// Requests in send order, numbered; some may be completed.
    order: VecDeque<(u64, u64)>,
    /// The number of each slot's request.
    numbers: Vec<u64>,
    last_asked: u64,
    /// The request completed last: the next replies are expected to follow it, whichever requests it has overtaken.
    last_replied: u64,
    /// Copy-out threshold: shorter payloads are not received in place.
    copied: usize,
    guesses: Vec<Guess>,
    /// If `order` grows beyond this, completed requests are removed.
    crowded: usize,
    backoff: Backoff,
}

impl InPlace {
    pub(super) fn new(arena: Arc<ByteStore>, slots: usize, copied: usize) -> Self {
        Self {
            batch: ReceiveBatch::new(arena),
            order: VecDeque::new(),
            numbers: vec![0; slots],
            last_asked: 0,
            last_replied: 0,
            copied,
            guesses: Vec::new(),
            crowded: MOST_KEPT,
            backoff: Backoff::default(),
        }
    }

    /// Records a request that is sent behind all others.
    #[inline]
    pub(super) fn ask(&mut self, slot: u32, cookie: u64) {
        self.last_asked += 1;
        self.order.push_back((self.last_asked, cookie));
        if let Some(number) = self.numbers.get_mut(slot as usize) {
            *number = self.last_asked;
        }
    }

    /// Records that the slot's request is completed.
    #[inline]
    pub(super) fn replied(&mut self, slot: u32) {
        self.last_replied = self.numbers.get(slot as usize).copied().unwrap_or_default();
    }

    /// Prepares the scatter list for at most `most` bytes, behind the rest of a payload that is arriving, if any.
    /// `begun` bytes of the next header have already arrived. `payload` returns the place of a request in flight.
    /// Returns whether the list contains anything.
    pub(super) fn guess(
        &mut self,
        arriving: Option<Payload>,
        begun: usize,
        mut most: usize,
        payload: impl Fn(u64) -> Option<Payload>,
    ) -> bool {
        self.batch.clear();
        self.guesses.clear();
        while self.order.front().is_some_and(|(_, cookie)| payload(*cookie).is_none()) {
            self.order.pop_front();
        }
        if self.order.len() > self.crowded {
            // One request is not completed, and many have been since.
            self.order.retain(|(_, cookie)| payload(*cookie).is_some());
            self.crowded = MOST_KEPT.max(2 * self.order.len());
        }
        if let Some(rest) = arriving {
            if rest.length <= self.copied {
                return false;
            }
            self.batch.store(rest.begin, rest.length);
        }
        if !self.backoff.take() {
            return self.batch.length() > 0;
        }
        let next = self.order.partition_point(|(number, _)| *number <= self.last_replied);
        for (_, cookie) in self.order.range(next..).chain(self.order.range(..next)) {
            let Some(payload) = payload(*cookie) else { continue };
            let begun = if self.guesses.is_empty() { begun } else { 0 };
            let missing = SIMPLE_REPLY_BYTES.saturating_sub(begun);
            let copied = (1..=self.copied).contains(&payload.length);
            if copied || most < missing || !self.batch.has_room() {
                break;
            }
            let header = self.batch.keep(missing);
            most -= missing;
            let length = payload.length.min(most);
            if length > 0 {
                self.batch.store(payload.begin, length);
            }
            most -= length;
            self.guesses.push(Guess { cookie: *cookie, header, payload: payload.length });
        }
        self.batch.length() > 0
    }

    /// Sorts `count` received bytes, of which those before `from` belong to the rest of a payload. `begun` is the part of
    /// the first header that had arrived before. Passes on the cookie of each expected reply, and how many bytes of its
    /// payload are in place. Returns where something else begins: the start of a header, or unexpected data.
    pub(super) fn came(
        &mut self,
        mut from: usize,
        count: usize,
        mut begun: &[u8],
        mut expected: impl FnMut(u64, usize),
    ) -> usize {
        for guess in &self.guesses {
            let mut header = [0; SIMPLE_REPLY_BYTES];
            let (begin, end) = header.split_at_mut(begun.len().min(SIMPLE_REPLY_BYTES));
            begin.copy_from_slice(begun);
            if count - from < end.len() {
                return from;
            }
            end.copy_from_slice(self.batch.own().get(guess.header..guess.header + end.len()).unwrap_or_default());
            let missing = end.len();
            let right = decode_simple_reply(&header) == Ok(Some((guess.cookie, None)));
            self.backoff.note(right);
            if !right {
                return from;
            }
            let there = guess.payload.min(count - from - missing);
            (from, begun) = (from + missing + there, &[]);
            self.last_replied = self.numbers.get(apart(guess.cookie).0 as usize).copied().unwrap_or_default();
            expected(guess.cookie, there);
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_place(slots: usize) -> InPlace {
        InPlace::new(Arc::new(ByteStore::zeroed(slots * 100).unwrap()), slots, 10)
    }

    /// Every request in flight has a payload of 100 bytes at 100 times its cookie.
    fn payload(cookie: u64) -> Option<Payload> {
        Some(Payload { begin: cookie as usize * 100, length: 100 })
    }

    fn guessed(in_place: &InPlace) -> Vec<u64> {
        in_place.guesses.iter().map(|guess| guess.cookie).collect()
    }

    #[test]
    fn guesses_continue_after_the_reply_received_last() {
        let mut in_place = in_place(5);
        (0..5).for_each(|slot| in_place.ask(slot, slot.into()));
        assert!(in_place.guess(None, 0, 10_000, payload));
        assert_eq!(guessed(&in_place), [0, 1, 2, 3, 4]);
        // Reply 2 has overtaken 0 and 1.
        in_place.replied(2);
        assert!(in_place.guess(None, 0, 10_000, |cookie| payload(cookie).filter(|_| cookie != 2)));
        assert_eq!(guessed(&in_place), [3, 4, 0, 1]);
        // The limit of 250 bytes ends the list.
        assert!(in_place.guess(None, 16, 250, payload));
        assert_eq!(guessed(&in_place), [3, 4, 0]);
        assert_eq!(in_place.batch.length(), 250);
    }

    #[test]
    fn payloads_below_the_copy_threshold_end_the_guesses() {
        let mut in_place = in_place(3);
        (0..3).for_each(|slot| in_place.ask(slot, slot.into()));
        let small =
            |cookie: u64| payload(cookie).map(|all| Payload { length: if cookie == 1 { 10 } else { 100 }, ..all });
        assert!(in_place.guess(None, 0, 10_000, small));
        assert_eq!(guessed(&in_place), [0]);
        assert!(!in_place.guess(Some(Payload { begin: 0, length: 10 }), 0, 10_000, small));
        assert!(in_place.guess(Some(Payload { begin: 0, length: 11 }), 0, 10_000, small));
    }

    #[test]
    fn a_request_without_reply_does_not_grow_the_list() {
        let mut in_place = in_place(2);
        in_place.ask(0, 0);
        for cookie in 1..100_000 {
            in_place.ask(1, cookie);
            in_place.guess(None, 0, 10_000, |other| payload(other % 2).filter(|_| other == 0 || other == cookie));
            in_place.replied(1);
        }
        assert!(in_place.order.len() <= MOST_KEPT + 1, "{}", in_place.order.len());
    }
}
