//! The hardware's cycle counters, one per CPU, for everything that runs on it (perf events).

use super::{CpuMeter, Cpus, Opened};
use model::record::{Count, Mode};
use sys::perf::CycleCounter;

/// One per CPU.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    cpus.each(|cpu| CycleCounter::open_cpu(cpu).map_err(|error| error.to_string()))
}

impl CpuMeter for CycleCounter {
    fn read(&mut self, _: Mode) -> Option<Count> {
        CycleCounter::read(self).ok().map(Count::of)
    }
}
