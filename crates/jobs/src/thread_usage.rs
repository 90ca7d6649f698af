//! What the kernel counts for a thread of the workload.

use model::ThreadUsage;
use model::unit::Nanos;

/// Of the calling thread; `None` if the kernel does not report it.
pub fn own() -> Option<ThreadUsage> {
    let usage = sys::process::own_usage()?;
    Some(ThreadUsage {
        user_nanos: Nanos(usage.user_nanos),
        system_nanos: Nanos(usage.system_nanos),
        context_switches: usage.context_switches,
        major_faults: usage.major_faults,
        minor_faults: usage.minor_faults,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_switches() {
        let begin = own().unwrap();
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(own().unwrap().since(begin).context_switches >= 5);
    }
}
