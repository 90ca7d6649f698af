//! Receiving payloads straight to where they belong, without a copy.
//!
//! Which reply comes next nobody knows before its header is there. Most servers answer in the order of the requests, so that is
//! guessed: header, payload, header, payload, each to its place with one system call. Headers that say something else show that it
//! was wrong; what came since is then copied to where it should be, and guesses become rare.

use super::backoff::Backoff;
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
    /// Requests in the order in which they go out; some of them may have been replied to.
    order: VecDeque<u64>,
    guesses: Vec<Guess>,
    came: Vec<Came>,
    /// With more in `order`, those that were replied to are looked for.
    crowded: usize,
    backoff: Backoff,
}

impl InPlace {
    pub(super) fn new(arena: Arc<ByteStore>) -> Self {
        Self {
            batch: ReceiveBatch::new(arena),
            order: VecDeque::new(),
            guesses: Vec::new(),
            came: Vec::new(),
            crowded: MOST_KEPT,
            backoff: Backoff::default(),
        }
    }

    /// A request goes out, behind all others.
    #[inline]
    pub(super) fn ask(&mut self, cookie: u64) {
        self.order.push_back(cookie);
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
        if let Some(rest) = arriving {
            self.batch.store(rest.begin, rest.length);
        }
        while self.order.front().is_some_and(|cookie| payload(*cookie).is_none()) {
            self.order.pop_front();
        }
        if self.order.len() > self.crowded {
            // One that is not replied to, and many since then.
            self.order.retain(|cookie| payload(*cookie).is_some());
            self.crowded = MOST_KEPT.max(2 * self.order.len());
        }
        if !self.backoff.take() {
            return self.batch.length() > 0;
        }
        for cookie in &self.order {
            let Some(payload) = payload(*cookie) else { continue };
            let missing = SIMPLE_REPLY_BYTES - if self.guesses.is_empty() { begun } else { 0 };
            if most < missing || !self.batch.has_room() {
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
            let missing = SIMPLE_REPLY_BYTES - first.len();
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
