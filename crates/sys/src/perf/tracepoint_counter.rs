//! Counts how often a tracepoint of the kernel is passed, on all CPUs.

use super::{Attributes, TYPE_TRACEPOINT, open_on_cpu, tracepoint};
use std::fs::File;
use std::io::{self, Read};

/// A counter of one tracepoint.
pub struct TracepointCounter {
    /// The CPUs that were online.
    cpus: Vec<u32>,
    /// One event for each of them.
    events: Vec<File>,
}

impl TracepointCounter {
    /// Starts counting on all CPUs.
    ///
    /// # Errors
    /// When tracefs may not be read, there is no such tracepoint, or the kernel refuses to count it; the text says which, and
    /// how to mend it.
    pub fn open(group: &str, name: &str) -> io::Result<Self> {
        let config = tracepoint::number(group, name)?;
        let cpus = crate::schedule::online_cpus()?;
        let open = |cpu: &u32| {
            let attributes = Attributes { kind: TYPE_TRACEPOINT, config, ..Attributes::default() };
            open_on_cpu(attributes, *cpu).map(File::from)
        };
        let events = cpus.iter().map(open).collect::<io::Result<_>>()?;
        Ok(Self { cpus, events })
    }

    /// The CPUs on which it counts.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Passes since it was opened.
    ///
    /// # Errors
    /// When the kernel refuses the reading.
    pub fn read(&self) -> io::Result<u64> {
        self.events.iter().map(passes).try_fold(0_u64, |sum, passes| Ok(sum.wrapping_add(passes?)))
    }

    /// The same on each of its CPUs.
    ///
    /// # Errors
    /// As above.
    pub fn read_each(&self) -> io::Result<Vec<u64>> {
        self.events.iter().map(passes).collect()
    }
}

/// The count of one event.
fn passes(mut event: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    event.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_counted_or_the_error_says_why() {
        match TracepointCounter::open("sched", "sched_switch") {
            Ok(counter) => {
                let first = counter.read().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
                assert!(counter.read().unwrap() > first, "this thread slept");
            }
            Err(error) => assert!(error.to_string().len() > 20, "{error}"),
        }
        let missing = TracepointCounter::open("no", "such").err().map(|error| error.to_string());
        assert!(
            missing.is_some_and(|text| text.contains("tracefs") || text.contains("no:such") || text.contains("root"))
        );
    }
}
