//! How both ends of a connection move bytes. Each technique is a switch, so that its cost can be measured.

use std::time::Duration;
use sys::shared_copy::Copying;

/// The switches of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Pull-up threshold in bytes: copy payloads up to this size behind their header; send longer ones from where they
    /// are stored, where that is possible.
    pub pull_up: u32,
    /// Zero-copy threshold in bytes: send the pages of longer payloads, unless they are pulled up, where that is
    /// possible. Data that change before the other end has received them are sent in their changed state.
    pub zero_copy: u32,
    /// Copy-out threshold in bytes: receive payloads up to this size together with the bytes around them, then copy
    /// them to their place; receive longer ones directly into place, where that is possible. A client guesses which
    /// reply comes next; a server receives the rest of a write's payload in place once it has the header.
    pub copy_out: u32,
    /// Copy method.
    pub copying: Copying,
    /// Checksums behind payloads. A server sends them to clients that ask; a client refuses a server that has none.
    pub checksums: bool,
    /// How many bytes one system call sends or receives.
    pub framing: Framing,
    /// Segment size in bytes (at least 1): send payloads that are gathered from memory as if they were scattered in
    /// segments of this size.
    pub segment: u32,
    /// Receive coalescing: longest wait for more messages than the first while several requests are in flight. Zero: no
    /// wait.
    pub coalesce: Duration,
    /// Busy-poll time before sleeping. Burns CPU time that is measured, and saves the wake-up.
    pub busy_poll: Duration,
    /// How long a server sleeps before it executes a request.
    #[cfg(test)]
    pub slow: Duration,
}

impl Default for Tuning {
    /// The cheapest values where they were measured (experiments/path-*.toml, docs/validation/switches.md).
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
            #[cfg(test)]
            slow: Duration::ZERO,
        }
    }
}

const PAGE: usize = 4096;

/// How many bytes one system call sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Everything that is available.
    OneGo,
    /// Receive everything that is available; send one header or one segment of a payload per call, with MSG_MORE.
    SegmentAtATime,
    /// One header, or at most one page of a payload, per call. Nothing is coalesced, because the
    /// server waits for each separately. Calls that send use MSG_MORE, so TCP may join the parts again.
    PageAtATime,
}

impl Framing {
    /// Limit in bytes of one receiving system call.
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
    /// Copy it behind its header.
    PullUp,
    /// Gather it from memory (scatter-gather I/O).
    Gather,
    /// Send its pages without a copy.
    ZeroCopy,
}

impl Tuning {
    /// Limit in bytes of one sending system call.
    pub fn most_sent(&self) -> Option<usize> {
        match self.framing {
            Framing::OneGo => None,
            Framing::SegmentAtATime => Some(self.segment.max(1) as usize),
            Framing::PageAtATime => Some(PAGE.min(self.segment.max(1) as usize)),
        }
    }

    /// How to send a payload of this length.
    #[inline]
    pub fn sending(&self, length: u32) -> Sending {
        // With any framing other than one-go, a header has a system call of its own.
        if length <= self.pull_up && self.framing == Framing::OneGo {
            Sending::PullUp
        } else if length <= self.zero_copy {
            Sending::Gather
        } else {
            Sending::ZeroCopy
        }
    }
}
