//! The engines: what each does, and the properties that a plan depends on. Each has a row of [`ENGINES`].

use super::Choice;
use serde::{Deserialize, Serialize};

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
    /// How many buffers for contents a copy of a job has.
    pub buffers: Buffers,
}

macro_rules! engines {
    ($($(#[$doc:meta])* $kind:ident($name:literal, $medium:ident, $queue:ident, $buffers:ident, $about:literal),)*) => {
        /// Issues the I/O.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum EngineKind {
            $($(#[$doc])* $kind,)*
        }

        /// Every engine, in the order in which help lists them.
        pub static ENGINES: [Engine; [$($name),*].len()] = [$(EngineKind::$kind.row()),*];

        impl EngineKind {
            const fn row(self) -> Engine {
                let (name, about, medium, queue, buffers) = match self {
                    $(Self::$kind => ($name, $about, Medium::$medium, Queue::$queue, Buffers::$buffers),)*
                };
                Engine { kind: self, name, about, medium, queue, buffers }
            }
        }
    };
}

engines! {
    /// Completes every I/O at once. Measures the overhead of iotoll itself.
    Null("null", Nothing, Deep, None, "Completes each I/O at once: the overhead of the load generator itself"),
    /// Burns `spin_cycles` TSC cycles for each I/O: a known cost in time.
    Spin("spin", Nothing, Deep, None, "Burns a number of ticks of the time-stamp counter for each I/O: a known cost in time"),
    /// Executes `work_steps` dependent instructions for each I/O. Unlike `Spin`, its time depends on the CPU's speed.
    Work("work", Nothing, Deep, None, "Executes a number of dependent instructions for each I/O: a known cost in instructions"),
    /// Copies from and to memory: a storage class memory without its driver.
    Mem("mem", Nothing, One, One, "Copies from and to memory: a pmem device without its driver"),
    /// Exchanges requests and responses with an echo server.
    Rr("rr", Nothing, Deep, One, "Exchanges requests and responses with an echo server"),
    /// pread, pwrite.
    Psync("psync", Files, One, One, "Calls pread and pwrite"),
    /// preadv, pwritev.
    Pvsync("pvsync", Files, One, One, "Calls preadv and pwritev with one buffer"),
    /// preadv2, pwritev2.
    Pvsync2("pvsync2", Files, One, One, "Calls preadv2 and pwritev2 with one buffer, and with flags"),
    /// lseek, read, write.
    Sync("sync", Files, One, One, "Calls read and write, and lseek where an I/O does not follow the last one"),
    /// Copies from and to a mapping of the file.
    Mmap("mmap", Files, One, One, "Copies from and to a mapping of the file; with direct=1 calls msync after each I/O"),
    /// io_submit, io_getevents.
    Libaio("libaio", Files, Deep, Each, "Calls io_submit and io_getevents"),
    /// io_uring.
    IoUring("io_uring", Files, Deep, Each, "Uses io_uring, by default with registered buffers, files and ring"),
    /// A remote export, over the Network Block Device protocol.
    Nbd("nbd", Remote, Deep, Each, "Uses an export of a server over the Network Block Device protocol"),
}

impl Choice for EngineKind {
    fn words() -> Vec<(&'static str, Self)> {
        ENGINES.iter().map(|engine| (engine.name, engine.kind)).collect()
    }
}

impl EngineKind {
    /// Its name in `ioengine=`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What its I/O goes to.
    pub fn medium(self) -> Medium {
        self.row().medium
    }

    /// Whether it can have several I/Os in flight.
    pub fn queue(self) -> Queue {
        self.row().queue
    }

    /// How many buffers for contents a copy of a job has.
    pub fn buffers(self) -> Buffers {
        self.row().buffers
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

/// How many buffers a copy of a job has for the contents of its I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// None: its I/Os have no content.
    None,
    /// One, which one I/O after the other uses.
    One,
    /// One for each I/O in flight.
    Each,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::options::choice;

    #[test]
    fn every_engine_is_found_by_its_name() {
        for engine in &ENGINES {
            assert_eq!((choice(engine.name), engine.kind.name()), (Ok(engine.kind), engine.name));
            assert_eq!(serde_json::to_value(engine.kind).unwrap(), engine.name);
        }
        assert!(choice::<EngineKind>("tape").is_err());
    }
}
