//! What the kernel counts for a job's threads, as `getrusage` reports it.

use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

/// CPU time by mode, context switches and page faults of the threads of a job while its I/Os counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadUsage {
    /// CPU time in user mode.
    pub user_nanos: Nanos,
    /// CPU time in the kernel.
    pub system_nanos: Nanos,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
}

impl ThreadUsage {
    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_nanos: self.user_nanos.since(earlier.user_nanos),
            system_nanos: self.system_nanos.since(earlier.system_nanos),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }

    /// What both used.
    pub fn plus(self, other: Self) -> Self {
        Self {
            user_nanos: self.user_nanos + other.user_nanos,
            system_nanos: self.system_nanos + other.system_nanos,
            context_switches: self.context_switches.saturating_add(other.context_switches),
            major_faults: self.major_faults.saturating_add(other.major_faults),
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_and_its_sum() {
        let of = |times: u64| ThreadUsage {
            user_nanos: Nanos(times),
            system_nanos: Nanos(2 * times),
            context_switches: 3 * times,
            major_faults: 4 * times,
            minor_faults: 5 * times,
        };
        assert_eq!(of(7).since(of(3)), of(4));
        assert_eq!(of(7).plus(of(3)), of(10));
    }
}
