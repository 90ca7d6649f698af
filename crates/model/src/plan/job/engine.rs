//! The engines by name, and what a plan needs to know of each.

use serde::{Deserialize, Serialize};

/// What issues the I/O. The table of engines in the lab has one row for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// Completes every I/O at once: the floor of the generator itself.
    Null,
    /// Burns `spin_cycles` TSC cycles for each I/O: a known cost.
    Spin,
    /// Does `work_steps` dependent instructions for each I/O: it feels a slower CPU.
    Work,
    /// pread, pwrite.
    Psync,
    /// io_submit, io_getevents.
    Libaio,
    /// io_uring.
    IoUring,
    /// A remote export, over the Network Block Device protocol.
    Nbd,
}

impl EngineKind {
    /// All engines, in the order in which help lists them.
    pub const ALL: [Self; 7] =
        [Self::Null, Self::Spin, Self::Work, Self::Psync, Self::Libaio, Self::IoUring, Self::Nbd];

    /// The word for it in `ioengine=`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Spin => "spin",
            Self::Work => "work",
            Self::Psync => "psync",
            Self::Libaio => "libaio",
            Self::IoUring => "io_uring",
            Self::Nbd => "nbd",
        }
    }

    /// The engine of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// What its I/Os go to.
    pub fn medium(self) -> Medium {
        match self {
            Self::Null | Self::Spin | Self::Work => Medium::Nothing,
            Self::Psync | Self::Libaio | Self::IoUring => Medium::Files,
            Self::Nbd => Medium::Remote,
        }
    }

    /// How many I/Os it can have in flight.
    pub fn queue(self) -> Queue {
        match self {
            Self::Psync => Queue::One,
            Self::Null | Self::Spin | Self::Work | Self::Libaio | Self::IoUring | Self::Nbd => Queue::Deep,
        }
    }
}

/// What the I/Os of an engine go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Files or devices, which have a size of their own.
    Files,
    /// An export of a server, which has a size too.
    Remote,
    /// Nothing: the job must say how much there is to do.
    Nothing,
}

/// How many I/Os an engine can have in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Each call waits for its I/O.
    One,
    /// As many as `iodepth`.
    Deep,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_found_by_its_name() {
        for engine in EngineKind::ALL {
            assert_eq!(EngineKind::parse(engine.name()), Some(engine));
        }
        assert_eq!(EngineKind::parse("sync"), None);
    }
}
