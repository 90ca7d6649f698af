//! The hardware's cycle counters, one per CPU, for everything that runs on it (perf events).

use super::{CpuMeter, Cpus, Opened};
use model::record::Mode;
use sys::perf::{Hardware, HardwareCounter};

/// One per CPU.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    cpus.each(|cpu| HardwareCounter::open_cpu(cpu, Hardware::Cycles).map_err(|error| error.to_string()))
}

impl CpuMeter for HardwareCounter {
    fn read(&mut self, _: Mode) -> Option<u64> {
        HardwareCounter::read(self).ok()
    }
}
