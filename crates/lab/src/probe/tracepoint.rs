//! How often a tracepoint is passed: counted by a program of ours where that is allowed, otherwise by perf, which misses what the idle
//! tasks of some CPUs do.

use crate::event_counters::Counters;
use sys::perf::{TracepointCounter, available_tracepoints};

/// A counter of one tracepoint.
pub(super) enum Passes {
    Exact(Counters),
    ByPerf(TracepointCounter),
}

impl Passes {
    /// Starts counting.
    ///
    /// # Errors
    /// When there is no such tracepoint, or neither way is allowed.
    pub(super) fn open(group: &str, name: &str) -> Result<Self, String> {
        // Programs know no groups. Where names may not be listed, only attaching shows whether there is such a tracepoint.
        let exists = available_tracepoints().map_or(true, |names| names.contains(&format!("{group}:{name}")));
        let exact = exists.then(|| exact(name).ok()).flatten();
        match exact {
            Some(counters) => Ok(Self::Exact(counters)),
            None => TracepointCounter::open(group, name).map(Self::ByPerf).map_err(|error| error.to_string()),
        }
    }

    /// Passes since it was opened. Does not allocate.
    pub(super) fn read(&self) -> Option<u64> {
        match self {
            Self::Exact(counters) => counters.passes(0).ok(),
            Self::ByPerf(counter) => counter.read().ok(),
        }
    }

    /// Whether it may miss some.
    pub(super) fn may_miss(&self) -> bool {
        matches!(self, Self::ByPerf(_))
    }
}

fn exact(name: &str) -> Result<Counters, sys::bpf::Error> {
    let mut counters = Counters::load(&[name], false)?;
    let missing = counters.attach()?;
    if missing.is_empty() { Ok(counters) } else { Err(sys::bpf::Error::NoTracepoint { name: name.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_counted_or_the_error_says_why() {
        match Passes::open("sched", "sched_switch") {
            Ok(passes) => {
                let before = passes.read().unwrap();
                (0..20).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(100)));
                assert!(passes.read().unwrap() >= before + 20);
            }
            Err(why) => assert!(why.contains("root"), "{why}"),
        }
        let Err(why) = Passes::open("no", "sched_switch") else { panic!("there is no such group") };
        assert!(why.contains("no:sched_switch") || why.contains("root"), "{why}");
    }
}
