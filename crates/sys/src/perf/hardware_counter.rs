//! Counts hardware events of one CPU, whatever runs on it.

use super::{Attributes, FORMAT_TOTAL_TIME_ENABLED, FORMAT_TOTAL_TIME_RUNNING, TYPE_HARDWARE, open_on_cpu};
use std::fs::File;
use std::io::{self, Read};

/// What the hardware counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hardware {
    /// Cycles of a core while it is not halted.
    Cycles,
    /// Instructions that were completed.
    Instructions,
    /// Accesses that missed the last level of caches, as most processors count them.
    CacheMisses,
    /// Branches that were predicted wrongly.
    BranchMisses,
    /// Loads whose address had no translation in the first level.
    DataTlbMisses,
}

impl Hardware {
    /// Type and number of the event for the kernel.
    const fn event(self) -> (u32, u64) {
        /// `PERF_COUNT_HW_CACHE_DTLB`, operation read (0), result miss (1).
        const DATA_TLB_LOAD_MISSES: u64 = 3 | 1 << 16;
        match self {
            Self::Cycles => (TYPE_HARDWARE, 0),
            Self::Instructions => (TYPE_HARDWARE, 1),
            Self::CacheMisses => (TYPE_HARDWARE, 3),
            Self::BranchMisses => (TYPE_HARDWARE, 5),
            Self::DataTlbMisses => (TYPE_HARDWARE_CACHE, DATA_TLB_LOAD_MISSES),
        }
    }
}

const TYPE_HARDWARE_CACHE: u32 = 3;

/// A counter of one CPU.
#[derive(Debug)]
pub struct HardwareCounter {
    event: File,
}

impl HardwareCounter {
    /// Starts counting on `cpu`. Fails without a PMU or permission; the error reports which.
    pub fn open_cpu(cpu: u32, counted: Hardware) -> io::Result<Self> {
        let (kind, config) = counted.event();
        Self::open_event(cpu, kind, config)
    }

    fn open_event(cpu: u32, kind: u32, config: u64) -> io::Result<Self> {
        let read_format = FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING;
        let event = open_on_cpu(Attributes { kind, config, read_format, ..Attributes::default() }, cpu)?;
        Ok(Self { event: File::from(event) })
    }

    /// The count since the counter was opened, extrapolated to the whole time if the kernel multiplexed the hardware
    /// counter. Extrapolated values are estimates and need not grow monotonically.
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0u8; 24];
        (&self.event).read_exact(&mut bytes)?;
        let [value, enabled, running] = words(bytes);
        scaled(value, enabled, running).ok_or_else(|| {
            io::Error::other(
                "the event never got a hardware counter: other events use all of them \
                 (the NMI watchdog uses one: `sysctl kernel.nmi_watchdog=0`)",
            )
        })
    }
}

fn words(bytes: [u8; 24]) -> [u64; 3] {
    let mut words = [0u64; 3];
    for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*chunk);
    }
    words
}

/// `None` if the event was enabled but never counted: that is a missing reading, not 0.
fn scaled(value: u64, enabled: u64, running: u64) -> Option<u64> {
    match (enabled, running) {
        (0, _) => Some(value),
        (_, 0) => None,
        _ if running >= enabled => Some(value),
        _ => {
            let whole = u128::from(value) * u128::from(enabled) / u128::from(running);
            Some(u64::try_from(whole).unwrap_or(u64::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplexed_counter_is_scaled_to_the_whole_time() {
        assert_eq!(scaled(1_000, 400, 100), Some(4_000));
        assert_eq!(scaled(1_000, 400, 400), Some(1_000));
        assert_eq!(scaled(u64::MAX, u64::MAX, 1), Some(u64::MAX));
    }

    #[test]
    fn a_counter_that_never_ran_has_no_reading() {
        assert_eq!(scaled(0, 400, 0), None);
        assert_eq!(scaled(0, 0, 0), Some(0));
    }

    #[test]
    fn counts_grow_or_the_error_has_a_reason() {
        use Hardware::{BranchMisses, CacheMisses, Cycles, DataTlbMisses, Instructions};
        for counted in [Cycles, Instructions, CacheMisses, BranchMisses, DataTlbMisses] {
            match HardwareCounter::open_cpu(0, counted) {
                Ok(counter) => {
                    let first = counter.read().unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    assert!(counter.read().unwrap() > first, "{counted:?}");
                }
                Err(error) => assert!(error.to_string().len() > 20, "{error}"),
            }
        }
    }

    /// The same way of opening and reading, with an event that machines without a PMU have too.
    #[test]
    fn an_event_of_the_kernel_is_counted() {
        const SOFTWARE_CPU_CLOCK: u64 = 0;
        match HardwareCounter::open_event(0, super::super::TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK) {
            Ok(counter) => {
                let first = counter.read().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
                let nanos = counter.read().unwrap() - first;
                assert!((15_000_000..10_000_000_000).contains(&nanos), "{nanos}");
            }
            Err(error) => assert!(error.to_string().contains("perf_event"), "{error}"),
        }
    }
}
