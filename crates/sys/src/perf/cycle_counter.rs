//! Counts the hardware cycles of one CPU, whatever runs on it.

use super::{
    Attributes, FORMAT_TOTAL_TIME_ENABLED, FORMAT_TOTAL_TIME_RUNNING, HARDWARE_CPU_CYCLES, TYPE_HARDWARE, open_on_cpu,
};
use std::fs::File;
use std::io::{self, Read};

/// A counter of one CPU's cycles while it is not halted.
pub struct CycleCounter {
    event: File,
}

impl CycleCounter {
    /// Starts counting on `cpu`. Fails without a PMU or permission; the error reports which.
    pub fn open_cpu(cpu: u32) -> io::Result<Self> {
        let event = open_on_cpu(
            Attributes {
                kind: TYPE_HARDWARE,
                config: HARDWARE_CPU_CYCLES,
                read_format: FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING,
                ..Attributes::default()
            },
            cpu,
        )?;
        Ok(Self { event: File::from(event) })
    }

    /// Cycles since the counter was opened, extrapolated to the whole time if the kernel multiplexed the hardware
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

/// `None` if the event was enabled but never counted: that is a missing reading, not 0 cycles.
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
    fn cycles_grow_or_the_error_has_a_reason() {
        match CycleCounter::open_cpu(0) {
            Ok(counter) => {
                let first = counter.read().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert!(counter.read().unwrap() > first);
            }
            Err(error) => assert!(error.to_string().len() > 20, "{error}"),
        }
    }
}
