//! The sampler: perf `cpu-clock` samples of each CPU while it is not idle, each for one period of busy time.
//!
//! Its interrupts disturb what they sample, so it is enabled only in windows of its own.

use super::{CpuMeter, Cpus, Opened};
use model::meter::Meter;
use model::record::{Count, CpuModes, Mode};
use sys::perf::{CpuClockSampler, DEFAULT_PERIOD_NANOS};

/// One per CPU.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    cpus.each(|cpu| match CpuClockSampler::open_cpu(cpu, DEFAULT_PERIOD_NANOS) {
        Ok(sampler) => Ok(Sampler { sampler, modes: CpuModes::default(), lost: 0 }),
        Err(error) => Err(error.to_string()),
    })
}

/// The sampler of one CPU, and its counts.
struct Sampler {
    sampler: CpuClockSampler,
    modes: CpuModes,
    /// Samples lost by the kernel or by a full buffer: they were busy time too.
    lost: u64,
}

impl CpuMeter for Sampler {
    fn read(&mut self, next: Mode) -> Option<Count> {
        let counts = self.sampler.drain();
        self.modes.user += counts.user;
        self.modes.kernel += counts.kernel;
        self.lost += counts.lost;
        let samples_next = next == Mode::Alone(Meter::Sampler);
        let switched = if samples_next { self.sampler.enable() } else { self.sampler.disable() };
        let samples = self.modes.user + self.modes.kernel + self.lost;
        let count = Count { total: samples.saturating_mul(DEFAULT_PERIOD_NANOS), modes: Some(self.modes) };
        switched.ok().map(|()| count)
    }
}
