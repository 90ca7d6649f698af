//! A timer that fires on one CPU and records what it interrupted: the calls in the kernel, and the registers and stack of the program.
//!
//! It says what ran; it does not measure how long. The timer is of the same kind as those that the load sleeps by, so the share of
//! samples in a load that runs right after its timers is not its share of time (docs/method/meters.md: under half of the true cost
//! for a load that sleeps). The period below prevents the two from running in phase, which is all that a sampler can
//! do. While enabled, it also wakes the CPU at every period, idle or not.

use super::ring::Ring;
use super::sample_record::{SampleEvent, read};
use super::{
    Attributes, FLAG_COMM, FLAG_COMM_EXEC, FLAG_DISABLED, FLAG_EXCLUDE_CALLCHAIN_USER, FLAG_MMAP, FLAG_MMAP2,
    FLAG_TASK, SAMPLE_CALLCHAIN, SAMPLE_REGS_USER, SAMPLE_STACK_USER, SAMPLE_TID, SOFTWARE_CPU_CLOCK, TYPE_SOFTWARE,
    control, described, open_on_cpu,
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

/// Frame, stack and instruction pointer: PERF_REG_X86_BP, SP and IP.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// Link register, stack and program counter: PERF_REG_ARM64_LR, SP and PC.
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 30 | 1 << 31 | 1 << 32;

/// How much of a program's stack is copied. fio keeps so much on it that less than nearly all that a record can hold does not reach the
/// first function of its threads; the kernel takes off what the rest of the record needs.
const STACK_BYTES: u32 = 65_528;

/// 128 samples with whole stacks: 170 ms at the default period. Users without CAP_IPC_LOCK may have only some 512 KiB in all
/// (perf_event_mlock_kb), so less is tried next.
const RING_PAGES: [NonZeroUsize; 4] = [
    NonZeroUsize::new(2048).unwrap(),
    NonZeroUsize::new(512).unwrap(),
    NonZeroUsize::new(256).unwrap(),
    NonZeroUsize::new(32).unwrap(),
];
/// Pages of all CPUs together: 512 MiB, which 64 CPUs need for the longest rings; 256 CPUs have 2 MiB each, 43 ms.
const PAGES_OF_ALL: usize = 131_072;

const IOCTL_ENABLE: libc::c_ulong = 0x2400;
const IOCTL_DISABLE: libc::c_ulong = 0x2401;

/// Samples of what runs on one CPU.
pub struct StackSampler {
    // Declared before the event, so that the mapping is dropped first.
    ring: Ring,
    event: OwnedFd,
    taken: Vec<u8>,
}

impl StackSampler {
    /// Opens a sampler for `cpu`, one of `cpus`, not running yet.
    pub fn open_cpu(cpu: u32, cpus: usize, period_nanos: u64) -> io::Result<Self> {
        let mut refused = None;
        let shortest = RING_PAGES.iter().copied().min();
        let fits = |pages: &NonZeroUsize| pages.get() <= PAGES_OF_ALL / cpus.max(1) || Some(*pages) == shortest;
        for pages in RING_PAGES.into_iter().filter(fits) {
            match Self::open_with_ring(cpu, period_nanos, pages) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied || refused.is_none() => {
                    refused = Some(error);
                }
                opened => return opened,
            }
        }
        Err(refused.unwrap_or_else(|| io::ErrorKind::OutOfMemory.into()))
    }

    fn open_with_ring(cpu: u32, period_nanos: u64, pages: NonZeroUsize) -> io::Result<Self> {
        let event = open_on_cpu(
            Attributes {
                kind: TYPE_SOFTWARE,
                config: SOFTWARE_CPU_CLOCK,
                sample_period: period_nanos,
                sample_type: SAMPLE_TID | SAMPLE_CALLCHAIN | SAMPLE_REGS_USER | SAMPLE_STACK_USER,
                flags: FLAG_DISABLED
                    | FLAG_MMAP
                    | FLAG_COMM
                    | FLAG_TASK
                    | FLAG_EXCLUDE_CALLCHAIN_USER
                    | FLAG_MMAP2
                    | FLAG_COMM_EXEC,
                sample_regs_user: REGISTERS,
                sample_stack_user: STACK_BYTES,
                ..Attributes::default()
            },
            cpu,
        )?;
        let ring = Ring::map(&event, pages).map_err(described)?;
        Ok(Self { ring, event, taken: Vec::new() })
    }

    /// Starts sampling.
    pub fn enable(&self) -> io::Result<()> {
        control(&self.event, IOCTL_ENABLE)
    }

    /// Stops sampling. Samples stay available to [`take`](Self::take).
    pub fn disable(&self) -> io::Result<()> {
        control(&self.event, IOCTL_DISABLE)
    }

    /// Takes what was written since the last call, and frees its space.
    pub fn take(&mut self) {
        self.ring.take(&mut self.taken);
    }

    /// Passes on what was taken, in its order.
    ///
    /// The kernel reports losses with the next record that fits, so they can be one call late.
    pub fn events(&self, each: impl FnMut(SampleEvent<'_>)) {
        read(&self.taken, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{allowed_cpus, pin_to, thread_id};
    use std::time::{Duration, Instant};

    /// Keeps the calling thread's CPU busy; any task may run on it.
    fn spin(length: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < length {
            std::hint::spin_loop();
        }
    }

    /// `None` if this user may not sample, after checking that the error suggests a fix.
    fn sampler(period_nanos: u64, pages: usize) -> Option<StackSampler> {
        let cpu = allowed_cpus().unwrap()[0];
        pin_to(&[cpu]).unwrap();
        match StackSampler::open_with_ring(cpu, period_nanos, NonZeroUsize::new(pages).unwrap()) {
            Ok(sampler) => Some(sampler),
            Err(error) => {
                assert!(error.to_string().contains("perf"), "{error}");
                None
            }
        }
    }

    /// Samples, and how many were lost.
    fn counted(sampler: &mut StackSampler) -> (u64, u64) {
        let (mut samples, mut lost) = (0, 0);
        sampler.take();
        sampler.events(|event| match event {
            SampleEvent::Sample(_) => samples += 1,
            SampleEvent::Lost(count) => lost += count,
            _ => {}
        });
        (samples, lost)
    }

    #[test]
    fn a_busy_second_is_sampled_as_a_second() {
        let Some(mut sampler) = sampler(DEFAULT_PERIOD_NANOS, 8192) else {
            return;
        };
        one_of_ten(|| {
            let begin = Instant::now();
            sampler.enable().unwrap();
            spin(Duration::from_millis(500));
            sampler.disable().unwrap();
            let wall = begin.elapsed().as_nanos() as f64;
            let sampled = (counted(&mut sampler).0 * DEFAULT_PERIOD_NANOS) as f64;
            ((sampled / wall - 1.0).abs() < 0.1).then_some(()).ok_or(format!("{sampled} of {wall}"))
        });
        assert_eq!(counted(&mut sampler), (0, 0));
    }

    #[test]
    fn samples_of_this_thread_have_its_stack_and_registers() {
        let Some(mut sampler) = sampler(100_000, 2048) else {
            return;
        };
        sampler.enable().unwrap();
        spin(Duration::from_millis(5));
        sampler.disable().unwrap();
        let marker = 0u8;
        let here = std::ptr::from_ref(&marker).addr() as u64;
        let (own, mut seen) = (thread_id().unsigned_abs(), 0);
        sampler.take();
        sampler.events(|event| {
            if let SampleEvent::Sample(sample) = event
                && sample.thread == own
            {
                let registers = sample.registers.unwrap();
                assert!(here.abs_diff(registers.stack) < 1 << 16, "{here:x} {registers:x?}");
                assert!(sample.stack.len() > 1000, "{}", sample.stack.len());
                seen += 1;
            }
        });
        assert!(seen > 0);
    }

    #[test]
    fn samples_dropped_by_a_full_buffer_are_counted_and_the_ring_wraps() {
        const PERIOD_NANOS: u64 = 200_000;
        let Some(mut sampler) = sampler(PERIOD_NANOS, 32) else {
            return;
        };
        one_of_ten(|| {
            let begin = Instant::now();
            sampler.enable().unwrap();
            let (mut samples, mut lost) = (0, 0);
            for length_millis in [60, 5, 17, 17, 17] {
                spin(Duration::from_millis(length_millis));
                let drained = counted(&mut sampler);
                samples += drained.0;
                lost += drained.1;
            }
            sampler.disable().unwrap();
            let drained = counted(&mut sampler);
            let (all, lost) = (samples + drained.0 + lost + drained.1, lost + drained.1);
            let expected = begin.elapsed().as_nanos() as u64 / PERIOD_NANOS;
            let most = all * 10 > expected * 9 && all <= expected + 1;
            (lost > expected / 10 && most).then_some(()).ok_or(format!("{all} with {lost} lost of {expected}"))
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
