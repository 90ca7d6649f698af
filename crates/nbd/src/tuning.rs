//! How both ends of a connection move bytes: each technique can be tuned.

use crate::filters::delay::Delay;
use std::time::Duration;
use sys::shared_copy::Copying;

/// What both ends of a connection can do one way or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Payloads of at most so many bytes are copied behind their header; longer ones are sent from where they lie, where
    /// that is possible.
    pub pull_up: u32,
    /// Of payloads that are longer than this, and are not pulled up, the pages themselves are sent, where that is possible: what changes before the other
    /// end has received them is sent as it is then.
    pub zero_copy: u32,
    /// Payloads of at most so many bytes are received together with what is around them and then copied to where they belong;
    /// longer ones are received straight to there, where that is possible. A client guesses which reply comes next; a server receives
    /// the rest of a write so, once it has the header.
    pub copy_out: u32,
    /// How what is copied is copied.
    pub copying: Copying,
    /// Whether payloads are followed by their checksums. A server gives them to clients that ask; a client refuses a server without.
    pub checksums: bool,
    /// How much is sent and received at one go.
    pub framing: Framing,
    /// Payloads that are sent from where they lie are sent as if they lay scattered, in segments of at most so many bytes, one at
    /// least.
    pub segment: u32,
    /// Receive coalescing: how long, at most, more than the first message is waited for while there are several in flight. Zero: not at all.
    pub coalesce: Duration,
    /// For how long a message is looked for again and again before it is slept for. It burns what is measured, and saves
    /// the wake-up.
    pub busy_poll: Duration,
    /// What each request is made dearer by.
    pub delay: Delay,
}

impl Default for Tuning {
    /// What was cheapest where it was measured (experiments/path-*.toml, RESULTS.md).
    fn default() -> Self {
        Self {
            pull_up: 2048,
            zero_copy: u32::MAX,
            copy_out: 4096,
            copying: Copying::default(),
            checksums: false,
            framing: Framing::OneGo,
            segment: u32::MAX,
            coalesce: Duration::from_micros(500),
            busy_poll: Duration::ZERO,
            delay: Delay::NONE,
        }
    }
}

const PAGE: usize = 4096;

/// How much is sent and received at one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// All that is there.
    OneGo,
    /// All that is there is received; what is sent is one header, or one segment of a payload, with MSG_MORE.
    SegmentAtATime,
    /// One header, or at most a page of a payload. Nothing is coalesced, because each is waited for by itself; what is sent is sent
    /// with MSG_MORE, so that TCP may join it again.
    PageAtATime,
}

impl Framing {
    /// The most bytes that are received at one go.
    pub fn most_received(self) -> Option<usize> {
        match self {
            Self::OneGo | Self::SegmentAtATime => None,
            Self::PageAtATime => Some(PAGE),
        }
    }
}

/// How a payload is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Copied behind its header.
    PullUp,
    /// From where it lies.
    Gather,
    /// As pages.
    ZeroCopy,
}

impl Tuning {
    /// The most bytes that are sent at one go.
    pub fn most_sent(&self) -> Option<usize> {
        match self.framing {
            Framing::OneGo => None,
            Framing::SegmentAtATime => Some(self.segment.max(1) as usize),
            Framing::PageAtATime => Some(PAGE.min(self.segment.max(1) as usize)),
        }
    }

    /// How a payload of so many bytes is sent.
    #[inline]
    pub fn sending(&self, length: u32) -> Sending {
        // A header goes by itself where framing is not one-go.
        if length <= self.pull_up && self.framing == Framing::OneGo {
            Sending::PullUp
        } else if length <= self.zero_copy {
            Sending::Gather
        } else {
            Sending::ZeroCopy
        }
    }
}
