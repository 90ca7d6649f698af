//! The engines by name, and the properties of each that a plan depends on.

use serde::{Deserialize, Serialize};

/// Issues the I/O. The table of engines in `lab` has one row for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EngineKind {
    /// Completes every I/O at once. Measures the overhead of iotoll itself.
    Null,
    /// Burns `spin_cycles` TSC cycles for each I/O: a known cost in time.
    Spin,
    /// Executes `work_steps` dependent instructions for each I/O. Unlike `Spin`, its time depends on the CPU's speed.
    Work,
    /// Copies from and to memory: a storage class memory without its driver.
    Mem,
    /// Exchanges requests and responses with an echo server.
    Rr,
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
    pub const ALL: [Self; 9] =
        [Self::Null, Self::Spin, Self::Work, Self::Mem, Self::Rr, Self::Psync, Self::Libaio, Self::IoUring, Self::Nbd];

    /// Its name in `ioengine=`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Spin => "spin",
            Self::Work => "work",
            Self::Mem => "mem",
            Self::Rr => "rr",
            Self::Psync => "psync",
            Self::Libaio => "libaio",
            Self::IoUring => "io_uring",
            Self::Nbd => "nbd",
        }
    }

    /// Finds an engine by name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// What its I/O goes to.
    pub fn medium(self) -> Medium {
        match self {
            Self::Null | Self::Spin | Self::Work | Self::Mem | Self::Rr => Medium::Nothing,
            Self::Psync | Self::Libaio | Self::IoUring => Medium::Files,
            Self::Nbd => Medium::Remote,
        }
    }

    /// Whether it can have several I/Os in flight.
    pub fn queue(self) -> Queue {
        match self {
            Self::Psync | Self::Mem => Queue::One,
            Self::Null | Self::Spin | Self::Work | Self::Rr | Self::Libaio | Self::IoUring | Self::Nbd => Queue::Deep,
        }
    }
}

/// What the I/O of an engine goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Files or devices, which have a size.
    Files,
    /// An export of a server, which has a size too.
    Remote,
    /// Nothing: the job must give a size.
    Nothing,
}

/// How many I/Os an engine can have in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// One: each call waits for its I/O.
    One,
    /// Up to `iodepth`.
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
