//! Caveats that travel with a record and are shown beside its numbers.

use serde::{Deserialize, Serialize};

/// One caveat: a stable code for scripts, a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What kind of caveat, for scripts; never renamed.
    pub code: Code,
    /// What was seen, and what to do about it.
    pub message: String,
}

impl Warning {
    /// A caveat.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Adds a caveat unless it is there: what many jobs, cases or executions share is said once.
pub fn add_once(warnings: &mut Vec<Warning>, warning: Warning) {
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// Puts the gravest first; those of one kind stay in the order in which they were found.
pub fn gravest_first(warnings: &mut [Warning]) {
    warnings.sort_by_key(|warning| warning.code);
}

/// The kinds of caveat, the gravest first: it did not end as it should, there is no figure, a figure may be wrong, an
/// interval says less than it seems to, the machine moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The measured command did not end well.
    CommandFailed,
    /// A job ended with an error.
    JobFailed,
    /// The run was cut short.
    Interrupted,
    /// No meter of the whole machine could be read, so its cost is unknown.
    MeterUnavailable,
    /// The number of I/Os or bytes is unknown.
    WorkUnknown,
    /// The rate stepped while it was measured: no single mean, and no verdict, describes what was before and after.
    TwoRegimes,
    /// All CPUs were busy, or the net cost is below the workload's own threads: other work was squeezed, so
    /// subtracting it in full subtracts too much.
    BackgroundSqueezed,
    /// Two meters that should agree on this load do not.
    MetersDisagree,
    /// Arms found different parts of their files in the page cache.
    CacheDiffers,
    /// The page cache did not hold what it was to hold.
    CacheNotKept,
    /// A slice depends on which arm ran before it.
    CarryOver,
    /// Threads shared a CPU more often in one arm than in another.
    PlacementDiffers,
    /// The hypervisor took CPU time away.
    Steal,
    /// Blocks are read that were never written, so they never reach the device.
    UnwrittenBlocks,
    /// The stored record was measured by another version of the method.
    StoredMethodDiffers,
    /// The baseline of the stored record did other work than today's.
    StoredWorkDiffers,
    /// An option of the job file was ignored because `--ignore-unknown` was given.
    OptionIgnored,
    /// An option was accepted but means something slightly different here.
    OptionDiffers,
    /// A figure was left out because it could not be known.
    Unknown,
    /// Too few windows or executions for an interval.
    NoInterval,
    /// An arm was measured again without booting in between.
    NoBoot,
    /// The rate of all arms together did not settle.
    NoSteadyState,
    /// The load ran at two rates, as its two busiest threads shared a CPU or did not.
    PlacementModes,
    /// A server ran elsewhere than `--place` wants.
    PlacementElsewhere,
    /// The rate of the load varied much from window to window; one mean does not describe it.
    UnsteadyLoad,
    /// The machine did a lot besides the workload.
    BusyBackground,
    /// The background before and after differ by more than a fixed part of the machine.
    BackgroundMoved,
    /// Too few I/Os for the percentiles asked for.
    FewSamples,
    /// All arms together became faster or slower at once: the machine changed.
    EnvironmentStep,
    /// A canary moved between before and after: the machine changed speed.
    CanaryMoved,
    /// What was switched on could not be written to the ledger.
    NoLedger,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_said_again() {
        let mut warnings = Vec::new();
        for (code, message) in [(Code::Steal, "a"), (Code::Steal, "b"), (Code::Unknown, "a"), (Code::Steal, "a")] {
            add_once(&mut warnings, Warning::new(code, message));
        }
        assert_eq!(warnings.len(), 3);
    }

    #[test]
    fn the_gravest_is_said_first_and_equals_stay_in_order() {
        let of = |(code, message)| Warning::new(code, message);
        let mut warnings =
            [(Code::CanaryMoved, "a"), (Code::Steal, "b"), (Code::JobFailed, "c"), (Code::Steal, "d")].map(of);
        gravest_first(&mut warnings);
        assert_eq!(warnings.map(|warning| warning.message), ["c", "b", "d", "a"]);
    }
}
