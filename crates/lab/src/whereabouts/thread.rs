//! One thread: its files in /proc stay open, so that a reading takes two reads and no path lookup.

use crate::proc_files::{Stat, tasks_of};
use model::placement::{RanOn, Side};
use model::unit::Nanos;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Size of the buffer for these files.
const ROOM: usize = 1024;

/// A watched thread.
pub(super) struct Thread {
    pub side: Side,
    name: String,
    /// Only of a peer.
    process: Option<u32>,
    stat: File,
    schedstat: File,
    /// CPU time at the last reading.
    nanos: u64,
    /// Its CPU at the last reading.
    cpu: Option<u32>,
}

impl Thread {
    /// Opens a live thread. `new` means that it has just started, so all its work belongs to this phase. `named`
    /// replaces its own name.
    pub fn open(side: Side, process: u32, id: u32, named: Option<String>, new: bool) -> Option<Self> {
        let directory = tasks_of(process).join(id.to_string());
        let open = |file: &str| File::open(directory.join(file));
        let mut thread = Self {
            side,
            name: named.unwrap_or_else(|| name(process, id)),
            process: (side == Side::Peer).then_some(process),
            stat: open("stat").ok()?,
            schedstat: open("schedstat").ok()?,
            nanos: 0,
            cpu: None,
        };
        let nanos = thread.cpu_nanos().ok()?;
        if !new {
            thread.nanos = nanos;
        }
        Some(thread)
    }

    /// CPU time since the last reading, and the CPU where it ran last.
    ///
    /// # Errors
    /// When it has ended.
    pub fn read(&mut self) -> io::Result<Option<RanOn>> {
        let nanos = self.cpu_nanos()?;
        let used = nanos.saturating_sub(self.nanos);
        self.nanos = nanos;
        if used == 0 {
            // The CPU of a sleeping thread does not matter.
            return Ok(None);
        }
        let mut room = [0; ROOM];
        let stat = text(&self.stat, &mut room)?;
        let cpu = Stat::parse(&stat).and_then(|stat| stat.cpu).ok_or(io::ErrorKind::InvalidData)?;
        let moved = self.cpu.replace(cpu).is_some_and(|before| before != cpu);
        Ok(Some(RanOn {
            side: self.side,
            name: self.name.clone(),
            process: self.process,
            threads: 1,
            cpu,
            moved,
            nanos: Nanos(used),
        }))
    }

    fn cpu_nanos(&self) -> io::Result<u64> {
        let mut room = [0; ROOM];
        run_time(&text(&self.schedstat, &mut room)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// CPU time of a thread; `None` if it has ended.
pub(super) fn cpu_nanos_of(process: u32, id: u32) -> Option<u64> {
    run_time(&std::fs::read_to_string(tasks_of(process).join(id.to_string()).join("schedstat")).ok()?)
}

/// The first field of schedstat.
fn run_time(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// A thread's name; empty if it has ended.
pub(super) fn name(process: u32, thread: u32) -> String {
    let name = std::fs::read(tasks_of(process).join(thread.to_string()).join("comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

fn text<'a>(file: &File, room: &'a mut [u8; ROOM]) -> io::Result<std::borrow::Cow<'a, str>> {
    let read = file.read_at(room, 0)?;
    Ok(String::from_utf8_lossy(room.get(..read).unwrap_or_default()))
}
