//! Receiving payloads straight to where they belong, without a copy.
//!
//! Which reply comes next nobody knows before its header is there. Most servers answer in the order of the requests, so that is
//! guessed: header, payload, header, payload, each to its place with one system call. Headers that say something else show that it
//! was wrong; what came since is then copied to where it should be, and guesses become rare.

use crate::backoff::Backoff;
use crate::wire::{ReplyHeader, SIMPLE_REPLY_BYTES};
use std::collections::VecDeque;
use std::sync::Arc;
use sys::byte_store::ByteStore;
use sys::receive_batch::ReceiveBatch;

/// So many requests are kept in order before it is looked whether they were replied to.
const MOST_KEPT: usize = 1024;

/// Where the payload of a request's reply goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Payload {
    /// In the arena.
    pub(super) begin: usize,
    /// None of those without payload.
    pub(super) length: usize,
}

/// A reply that is guessed to come.
#[derive(Clone, Copy, Debug)]
struct Guess {
    cookie: u64,
    /// Where its header begins in what the batch keeps.
    header: usize,
    payload: usize,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// The reply to this request, with so many bytes of its payload, which are where they belong.
    AsGuessed { cookie: u64, there: usize },
    /// From this byte on it is the begin of a header, or something else than was guessed.
    Else { from: usize },
}

/// The guesses of one connection.
#[derive(Debug)]
pub(super) struct InPlace {
    pub(super) batch: ReceiveBatch,
    /// Requests in the order in which they went out, numbered; some of them may have been replied to.
    order: VecDeque<(u64, u64)>,
    /// The number of each slot's request.
    numbers: Vec<u64>,
    last_asked: u64,
    /// The request that was replied to last: replies go on behind it, whoever it has overtaken.
    last_replied: u64,
    /// Payloads of at most so many bytes are not worth a place.
    copied: usize,
    guesses: Vec<Guess>,
    came: Vec<Came>,
    /// With more in `order`, those that were replied to are looked for.
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
            came: Vec::new(),
            crowded: MOST_KEPT,
            backoff: Backoff::default(),
        }
    }

    /// A request goes out, behind all others.
    #[inline]
    pub(super) fn ask(&mut self, slot: u32, cookie: u64) {
        self.last_asked += 1;
        self.order.push_back((self.last_asked, cookie));
        if let Some(number) = self.numbers.get_mut(slot as usize) {
            *number = self.last_asked;
        }
    }

    /// The slot's request is replied to.
    #[inline]
    pub(super) fn replied(&mut self, slot: u32) {
        self.last_replied = self.numbers.get(slot as usize).copied().unwrap_or_default();
    }

    /// Lays out places for at most `most` bytes behind those for the rest of a payload that is arriving, if there is one. Of the
    /// next header `begun` bytes are there. `payload` says what is in flight. Whether there is a place for anything.
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
            // One that is not replied to, and many since then.
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
            // More than such a header: it is of another kind.
            let Some(missing) = SIMPLE_REPLY_BYTES.checked_sub(begun) else { break };
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

    /// What the `count` bytes are that came, of which the first `from` were for the rest of a payload. `begun` is what was there
    /// of the first header. To be given back by [`done`](Self::done).
    pub(super) fn came(&mut self, mut from: usize, count: usize, begun: &[u8]) -> Vec<Came> {
        let mut came = std::mem::take(&mut self.came);
        let mut begun = Some(begun);
        for guess in &self.guesses {
            let first = begun.take().unwrap_or_default();
            let Some(missing) = SIMPLE_REPLY_BYTES.checked_sub(first.len()) else { break };
            if count - from < missing {
                if from < count {
                    came.push(Came::Else { from });
                }
                break;
            }
            let mut header = [0; SIMPLE_REPLY_BYTES];
            let (begin, end) = header.split_at_mut(first.len());
            begin.copy_from_slice(first);
            end.copy_from_slice(self.batch.own().get(guess.header..guess.header + missing).unwrap_or_default());
            let right = matches!(ReplyHeader::decode(&header),
                Ok(Some((ReplyHeader::Simple { cookie, error: None }, _))) if cookie == guess.cookie);
            self.backoff.note(right);
            if !right {
                came.push(Came::Else { from });
                break;
            }
            from += missing;
            let there = guess.payload.min(count - from);
            from += there;
            came.push(Came::AsGuessed { cookie: guess.cookie, there });
        }
        came
    }

    /// Keeps the memory of what came.
    pub(super) fn done(&mut self, mut came: Vec<Came>) {
        came.clear();
        self.came = came;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_place(slots: usize) -> InPlace {
        InPlace::new(Arc::new(ByteStore::zeroed(slots * 100).unwrap()), slots, 10)
    }

    /// All in flight have payloads of 100 bytes at a hundred times their number.
    fn payload(cookie: u64) -> Option<Payload> {
        Some(Payload { begin: cookie as usize * 100, length: 100 })
    }

    fn guessed(in_place: &InPlace) -> Vec<u64> {
        in_place.guesses.iter().map(|guess| guess.cookie).collect()
    }

    #[test]
    fn what_comes_next_is_behind_what_came_last() {
        let mut in_place = in_place(5);
        (0..5).for_each(|slot| in_place.ask(slot, slot.into()));
        assert!(in_place.guess(None, 0, 10_000, payload));
        assert_eq!(guessed(&in_place), [0, 1, 2, 3, 4]);
        // 2 has overtaken 0 and 1.
        in_place.replied(2);
        assert!(in_place.guess(None, 0, 10_000, |cookie| payload(cookie).filter(|_| cookie != 2)));
        assert_eq!(guessed(&in_place), [3, 4, 0, 1]);
        // There is no place for more.
        assert!(in_place.guess(None, 16, 250, payload));
        assert_eq!(guessed(&in_place), [3, 4, 0]);
        assert_eq!(in_place.batch.length(), 250);
    }

    #[test]
    fn what_is_copied_ends_the_guesses() {
        let mut in_place = in_place(3);
        (0..3).for_each(|slot| in_place.ask(slot, slot.into()));
        let small =
            |cookie: u64| payload(cookie).map(|all| Payload { length: if cookie == 1 { 10 } else { 100 }, ..all });
        assert!(in_place.guess(None, 0, 10_000, small));
        assert_eq!(guessed(&in_place), [0]);
        assert!(!in_place.guess(Some(Payload { begin: 0, length: 10 }), 0, 10_000, small));
        assert!(in_place.guess(Some(Payload { begin: 0, length: 11 }), 0, 10_000, small));
        // A header of another kind is longer.
        assert!(!in_place.guess(None, 17, 10_000, payload));
        assert!(in_place.came(0, 1, &[0; 17]).is_empty());
    }

    #[test]
    fn one_that_is_never_replied_to_piles_nothing_up() {
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
