//! The idle clock that needs no root: residency of the cpuidle states, `cpuidle/state*/time`, in microseconds.
//!
//! The idle loop itself measures it, so it needs neither root nor a tick. Interrupts taken while halted count as idle
//! here (see docs/method/meters.md), and so does polling in the idle loop.

use super::{CpuMeter, Cpus, Opened};
use model::record::Mode;
use model::unit::Nanos;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// One per CPU.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    if let Some(why) = out_of_reach(&cpus.online) {
        return Err(why);
    }
    cpus.each(|cpu| {
        IdleFiles::open(cpu).filter(|files| files.nanos().is_some()).ok_or_else(|| {
            format!("CPU {cpu} has no readable cpuidle states under /sys (no idle driver, or a container hides them)")
        })
    })
}

/// Why this process cannot run on a CPU, for example in a container with a cpuset.
fn out_of_reach(cpus: &[u32]) -> Option<String> {
    // In a separate thread, whose affinity does not matter afterwards.
    let cpus = cpus.to_vec();
    let probe = move || cpus.into_iter().find(|cpu| sys::schedule::pin_to(&[*cpu]).is_err());
    // Without a thread, starting the reader of the CPU shows the error.
    let cpu = std::thread::Builder::new().spawn(probe).ok()?.join().ok()??;
    Some(format!(
        "may not run on CPU {cpu} (cpuset), so its idle clock cannot be brought up to date; run outside the container"
    ))
}

/// The open `time` files of one CPU's idle states.
struct IdleFiles {
    states: Vec<File>,
}

impl IdleFiles {
    /// `None` when the CPU has no idle states, or they cannot be read.
    fn open(cpu: u32) -> Option<Self> {
        let directory = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle"));
        let mut states = Vec::new();
        for entry in std::fs::read_dir(directory).ok()? {
            states.push(File::open(entry.ok()?.path().join("time")).ok()?);
        }
        (!states.is_empty()).then_some(Self { states })
    }

    /// Total residency of all states.
    fn nanos(&self) -> Option<Nanos> {
        self.states.iter().map(read_micros).sum()
    }
}

impl CpuMeter for IdleFiles {
    fn read(&mut self, _: Mode) -> Option<u64> {
        self.nanos().map(|nanos| nanos.0)
    }
}

fn read_micros(file: &File) -> Option<Nanos> {
    let mut text = [0; 24];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    text.trim_end().parse().ok().map(Nanos::from_micros)
}
