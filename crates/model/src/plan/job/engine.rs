//! The engines: what each does, and the properties that a plan depends on. Each has a row of [`ENGINES`].

use serde::{Deserialize, Serialize};

/// Issues the I/O.
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
    /// lseek, read, write.
    Sync,
    /// Copies from and to a mapping of the file.
    Mmap,
    /// io_submit, io_getevents.
    Libaio,
    /// io_uring.
    IoUring,
    /// A remote export, over the Network Block Device protocol.
    Nbd,
}

/// A row of [`ENGINES`].
#[derive(Debug)]
pub struct Engine {
    /// Which one.
    pub kind: EngineKind,
    /// Its name in `ioengine=`.
    pub name: &'static str,
    /// What it does, for users.
    pub about: &'static str,
    /// What its I/O goes to.
    pub medium: Medium,
    /// Whether it can have several I/Os in flight.
    pub queue: Queue,
}

const fn engine(kind: EngineKind, name: &'static str, medium: Medium, queue: Queue) -> Engine {
    Engine { kind, name, about: "", medium, queue }
}

impl Engine {
    const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }
}

/// Every engine, in the order in which help lists them.
pub static ENGINES: [Engine; 11] = [
    engine(EngineKind::Null, "null", Medium::Nothing, Queue::Deep)
        .about("Completes each I/O at once: the overhead of the load generator itself"),
    engine(EngineKind::Spin, "spin", Medium::Nothing, Queue::Deep)
        .about("Burns a number of ticks of the time-stamp counter for each I/O: a known cost in time"),
    engine(EngineKind::Work, "work", Medium::Nothing, Queue::Deep)
        .about("Executes a number of dependent instructions for each I/O: a known cost in instructions"),
    engine(EngineKind::Mem, "mem", Medium::Nothing, Queue::One)
        .about("Copies from and to memory: a pmem device without its driver"),
    engine(EngineKind::Rr, "rr", Medium::Nothing, Queue::Deep)
        .about("Exchanges requests and responses with an echo server"),
    engine(EngineKind::Psync, "psync", Medium::Files, Queue::One).about("Calls pread and pwrite"),
    engine(EngineKind::Sync, "sync", Medium::Files, Queue::One)
        .about("Calls read and write, and lseek where an I/O does not follow the last one"),
    engine(EngineKind::Mmap, "mmap", Medium::Files, Queue::One)
        .about("Copies from and to a mapping of the file; with direct=1 calls msync after each I/O"),
    engine(EngineKind::Libaio, "libaio", Medium::Files, Queue::Deep).about("Calls io_submit and io_getevents"),
    engine(EngineKind::IoUring, "io_uring", Medium::Files, Queue::Deep)
        .about("Uses io_uring, by default with registered buffers, files and ring"),
    engine(EngineKind::Nbd, "nbd", Medium::Remote, Queue::Deep)
        .about("Uses an export of a server over the Network Block Device protocol"),
];

impl EngineKind {
    /// Its name in `ioengine=`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Finds an engine by name.
    pub fn parse(name: &str) -> Option<Self> {
        ENGINES.iter().find(|engine| engine.name == name).map(|engine| engine.kind)
    }

    /// What its I/O goes to.
    pub fn medium(self) -> Medium {
        self.row().medium
    }

    /// Whether it can have several I/Os in flight.
    pub fn queue(self) -> Queue {
        self.row().queue
    }

    fn row(self) -> &'static Engine {
        // Unreachable fallback: a test checks that every engine has a row.
        let [first, ..] = &ENGINES;
        ENGINES.iter().find(|engine| engine.kind == self).unwrap_or(first)
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
    fn every_engine_has_its_row_and_is_found_by_its_name() {
        // In the order of the table, so that an engine without a row shifts the others.
        for (place, engine) in ENGINES.iter().enumerate() {
            assert_eq!(engine.kind as usize, place);
            assert_eq!((EngineKind::parse(engine.name), engine.kind.name()), (Some(engine.kind), engine.name));
        }
        assert_eq!(EngineKind::Nbd as usize + 1, ENGINES.len());
        assert_eq!(EngineKind::parse("tape"), None);
    }
}
