//! A timer that fires on one CPU and records whether it interrupted user code or the kernel.
//!
//! It classifies; it does not measure. The timer is of the same kind as those that the load sleeps by, so the share of
//! samples in a load that runs right after its timers is not its share of time (docs/method/meters.md: under half of the true cost
//! for a load that sleeps). The period below prevents the two from running in phase, which is all that a sampler can
//! do. While enabled, it also wakes the CPU at every period, idle or not.

use super::ring::Ring;
use super::sample_record::{Counts, count};
use super::{
    Attributes, FLAG_DISABLED, FLAG_EXCLUDE_IDLE, SOFTWARE_CPU_CLOCK, TYPE_SOFTWARE, control, described, open_on_cpu,
};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;

/// 724 samples a second: below the 1 kHz from which sampling costs throughput.
///
/// Timers of 1, 4 and 10 ms are everywhere: the kernel's tick, timeouts, polling loops. A period close to one of them
/// samples the same phase repeatedly: 997 Hz moves through a millisecond in steps of 3 µs and covers a seventh of it in
/// a slice of 50 ms. This is 1 ms × (1 + 1/φ²) with φ the golden ratio, the ratio furthest from small fractions, so
/// that any series of samples spreads over the phases of such a timer as evenly as its number allows. The number of
/// nanoseconds is prime, so no whole number divides it either.
pub const DEFAULT_PERIOD_NANOS: u64 = 1_381_967;

/// 8 bytes per sample: 512 samples per page, and with 64 pages 45 s at the default period.
const RING_PAGES: NonZeroUsize = NonZeroUsize::new(64).unwrap();

const IOCTL_ENABLE: libc::c_ulong = 0x2400;
const IOCTL_DISABLE: libc::c_ulong = 0x2401;

/// Samples of one CPU while it is not idle, user and kernel mode separately.
///
/// The idle task is excluded, and with it the interrupts that it takes: softirq work on an idle CPU is not in these
/// samples.
pub struct CpuClockSampler {
    // Declared before the event, so that the mapping is dropped first.
    ring: Ring,
    event: OwnedFd,
    taken: Vec<u8>,
}

impl CpuClockSampler {
    /// Opens a sampler for `cpu`, not running yet.
    pub fn open_cpu(cpu: u32, period_nanos: u64) -> io::Result<Self> {
        Self::open_with_ring(cpu, period_nanos, RING_PAGES)
    }

    fn open_with_ring(cpu: u32, period_nanos: u64, pages: NonZeroUsize) -> io::Result<Self> {
        let event = open_on_cpu(
            Attributes {
                kind: TYPE_SOFTWARE,
                config: SOFTWARE_CPU_CLOCK,
                sample_period: period_nanos,
                // The header of a sample contains the mode; a body would only cost.
                sample_type: 0,
                flags: FLAG_DISABLED | FLAG_EXCLUDE_IDLE,
                ..Attributes::default()
            },
            cpu,
        )?;
        let ring = Ring::map(&event, pages).map_err(described)?;
        let taken = Vec::with_capacity(ring.size());
        Ok(Self { ring, event, taken })
    }

    /// Starts sampling.
    pub fn enable(&self) -> io::Result<()> {
        control(&self.event, IOCTL_ENABLE)
    }

    /// Stops sampling. Samples stay available to [`drain`](Self::drain).
    pub fn disable(&self) -> io::Result<()> {
        control(&self.event, IOCTL_DISABLE)
    }

    /// Counts the samples since the last call and frees their space. Does not allocate.
    ///
    /// The kernel reports losses with the next sample that fits, so `lost` can be one call late.
    pub fn drain(&mut self) -> Counts {
        self.ring.take(&mut self.taken);
        count(&self.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{allowed_cpus, pin_to};
    use std::time::{Duration, Instant};

    /// Keeps the calling thread's CPU busy; any task may run on it.
    fn spin(length: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < length {
            std::hint::spin_loop();
        }
    }

    /// `None` if this user may not sample, after checking that the error suggests a fix.
    fn sampler(period_nanos: u64, pages: usize) -> Option<CpuClockSampler> {
        let cpu = allowed_cpus().unwrap()[0];
        pin_to(&[cpu]).unwrap();
        match CpuClockSampler::open_with_ring(cpu, period_nanos, NonZeroUsize::new(pages).unwrap()) {
            Ok(sampler) => Some(sampler),
            Err(error) => {
                assert!(error.to_string().contains("perf"), "{error}");
                None
            }
        }
    }

    #[test]
    fn a_busy_second_is_sampled_as_a_second() {
        let Some(mut sampler) = sampler(DEFAULT_PERIOD_NANOS, 64) else {
            return;
        };
        one_of_ten(|| {
            let begin = Instant::now();
            sampler.enable().unwrap();
            spin(Duration::from_millis(500));
            sampler.disable().unwrap();
            let wall = begin.elapsed().as_nanos() as f64;
            let sampled = (sampler.drain().total() * DEFAULT_PERIOD_NANOS) as f64;
            ((sampled / wall - 1.0).abs() < 0.1).then_some(()).ok_or(format!("{sampled} of {wall}"))
        });
        assert_eq!(sampler.drain(), Counts::default());
    }

    #[test]
    fn samples_dropped_by_a_full_buffer_are_counted_and_the_ring_wraps() {
        const PERIOD_NANOS: u64 = 50_000;
        let Some(mut sampler) = sampler(PERIOD_NANOS, 1) else {
            return;
        };
        one_of_ten(|| {
            let begin = Instant::now();
            sampler.enable().unwrap();
            let mut counts = Counts::default();
            for length_millis in [60, 5, 17, 17, 17] {
                spin(Duration::from_millis(length_millis));
                counts += sampler.drain();
            }
            sampler.disable().unwrap();
            counts += sampler.drain();
            let expected = begin.elapsed().as_nanos() as u64 / PERIOD_NANOS;
            let most = counts.total() * 10 > expected * 9 && counts.total() <= expected + 1;
            (counts.lost > expected / 10 && most).then_some(()).ok_or(format!("{counts:?} of {expected}"))
        });
    }

    /// Samples are late or lost while the hypervisor takes the CPU away, so one success in ten attempts suffices.
    fn one_of_ten(mut attempt: impl FnMut() -> Result<(), String>) {
        let wrong: Vec<String> = (0..10).map_while(|_| attempt().err()).collect();
        assert!(wrong.len() < 10, "{wrong:?}");
    }

    /// Widest gap between the phases at which `samples` samples hit a timer, as a multiple of an even gap.
    fn widest_gap(period_nanos: u64, timer_nanos: u64, samples: u64) -> f64 {
        let mut phases: Vec<u64> = (0..samples).map(|i| i * period_nanos % timer_nanos).collect();
        phases.sort_unstable();
        phases.push(timer_nanos + phases[0]);
        let widest = phases.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        (widest * samples) as f64 / timer_nanos as f64
    }

    #[test]
    fn samples_spread_over_the_phases_of_common_timers_within_one_slice() {
        const SAMPLES_OF_50_MS: u64 = 36;
        for timer_millis in [1, 4, 10] {
            let gap = widest_gap(DEFAULT_PERIOD_NANOS, timer_millis * 1_000_000, SAMPLES_OF_50_MS);
            assert!(gap < 2.5, "{timer_millis} ms: {gap}");
        }
        assert!(widest_gap(1_003_009, 1_000_000, 50) > 40.0, "997 Hz, for comparison");
    }
}
