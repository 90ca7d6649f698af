//! The techniques of the path, each a switch.

use std::time::Duration;
use sys::burner::Burner;
use sys::shared_copy::Copying;

/// What both ends of a connection can do one way or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// By which system calls bytes come and go.
    pub transport: Transport,
    /// Payloads of at most so many bytes are copied behind their header; longer ones are sent from where they lie, where
    /// that is possible.
    pub pull_up: u32,
    /// The same where what is in a file's page cache is sent from there: to pull it up is to read it first.
    pub pull_up_of_file: u32,
    /// Of payloads that are longer than this, and are not pulled up, the pages themselves are sent, where that is possible: what changes before the other
    /// end has received them is sent as it is then.
    pub zero_copy: u32,
    /// Payloads of at most so many bytes are received together with what is around them and then copied to where they belong;
    /// longer ones are received straight to there, where that is possible. A client guesses which reply comes next; a server receives
    /// the rest of a write so, once it has the header.
    pub copy_out: u32,
    /// How what is copied is copied.
    pub copying: Copying,
    /// Whether payloads are followed by their checksums. A server gives them to those who ask; a client does with nothing less.
    pub checksums: bool,
    /// How much is sent and received at one go.
    pub framing: Framing,
    /// Payloads that are sent from where they lie are sent as if they lay scattered, in segments of at most so many bytes, one at
    /// least.
    pub segment: u32,
    /// How long, at most, more than the first message is waited for while there are several in flight. Zero: not at all.
    pub hold: Duration,
    /// For how long a message is looked for again and again before it is slept for. It burns what is measured, and saves
    /// the wake-up.
    pub busy_poll: Duration,
    /// What each request is made dearer by.
    pub inject: Inject,
}

impl Default for Switches {
    /// What was cheapest where it was measured (experiments/path-*.toml, RESULTS.md).
    fn default() -> Self {
        Self {
            transport: Transport::Sockets,
            pull_up: 2048,
            pull_up_of_file: 0,
            zero_copy: u32::MAX,
            copy_out: 4096,
            copying: Copying::default(),
            checksums: false,
            framing: Framing::OneGo,
            segment: u32::MAX,
            hold: Duration::from_micros(500),
            busy_poll: Duration::ZERO,
            inject: Inject::NOTHING,
        }
    }
}

/// By which system calls bytes come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// sendmsg, recvmsg, and poll or epoll.
    Sockets,
    /// io_uring: one call hands over, receives and waits. Of Unix sockets nothing is held there.
    IoUring,
}

/// Busy work that is added to each request, to see whether what is measured finds it where it is. The thread that does it does nothing
/// else meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inject {
    /// Where.
    pub at: Layer,
    /// What, if anything. A server's threads calibrate it, each for itself; a client uses it as it is.
    pub burner: Option<Burner>,
}

impl Inject {
    /// Nothing is added.
    pub const NOTHING: Self = Self { at: Layer::Server, burner: None };

    /// So many ticks, if any (`sys::clock::ticks`).
    pub fn new(at: Layer, ticks: u64) -> Self {
        Self { at, burner: (ticks > 0).then(|| Burner::uncalibrated(ticks)) }
    }

    /// Calibrates it for the calling thread: what it burns each time, in ticks; `None` where nothing is added.
    pub fn calibrate(&mut self) -> Option<f64> {
        let calibrated = Burner::calibrated(self.burner?.asked_ticks());
        self.burner = Some(calibrated.burner);
        Some(calibrated.burnt_ticks)
    }
}

/// A part of the path that busy work can be added to. What is only claimed to be done adds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A client, with each reply that it has understood.
    Wire,
    /// A server, with each request that it has understood.
    Server,
    /// A server, with each request that its storage is asked for: before what is read, after what is written.
    Storage,
}

impl Inject {
    /// Does it, if it is to be done here.
    #[inline(always)]
    pub(crate) fn at(self, layer: Layer) {
        if let Some(burner) = self.burner.filter(|_| self.at == layer) {
            burner.burn();
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
    /// One header, or at most a page of a payload. Nothing is held, because each is waited for by itself; what is sent is sent
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

impl Switches {
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
        self.sending_above(self.pull_up, length)
    }

    /// The same of a mapped file.
    #[inline]
    pub fn sending_of_file(&self, length: u32) -> Sending {
        self.sending_above(self.pull_up_of_file, length)
    }

    #[inline]
    fn sending_above(&self, pull_up: u32, length: u32) -> Sending {
        // A header goes by itself there.
        if length <= pull_up && self.framing == Framing::OneGo {
            Sending::PullUp
        } else if length <= self.zero_copy {
            Sending::Gather
        } else {
            Sending::ZeroCopy
        }
    }
}
