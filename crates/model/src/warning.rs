//! Caveats that travel with a record and are shown beside its numbers.

use serde::{Deserialize, Serialize};

/// One caveat: a stable code for scripts, a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The kind of caveat, for scripts; never renamed.
    pub code: Code,
    /// What was observed, and what the user can do.
    pub message: String,
}

impl Warning {
    /// Creates a caveat.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Adds a caveat unless the list already contains it: jobs, cases or executions may share one.
pub fn add_once(warnings: &mut Vec<Warning>, warning: Warning) {
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// Sorts the gravest first. Caveats with the same code keep their order.
pub fn gravest_first(warnings: &mut [Warning]) {
    warnings.sort_by_key(|warning| warning.code);
}

/// Defines the codes by rows: a name, what it means, and what the user can do about it.
macro_rules! codes {
    ($($code:ident: $meaning:literal, $mend:literal;)*) => {
        /// The kinds of caveat, the gravest first: the measurement failed, a figure is missing, a figure may be wrong, an
        /// interval is too narrow, the machine changed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Code {
            $(#[doc = $meaning] $code,)*
        }

        impl Code {
            /// Every code, the gravest first.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// What it means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$code => $meaning,)*
                }
            }

            /// What the user can do about it, in a few words: for a line that has no room for the whole message.
            pub const fn mend(self) -> &'static str {
                match self {
                    $(Self::$code => $mend,)*
                }
            }
        }
    };
}

codes! {
    CommandFailed: "The measured command failed.", "see what the command printed";
    JobFailed: "A job ended with an error.", "mend the job's error";
    Interrupted: "The measurement was interrupted.", "measure again for the whole";
    MeterUnavailable: "No meter of the whole machine is available, so the cost is unknown.", "see iotoll doctor";
    WorkUnknown: "The number of I/Os or bytes is unknown.",
        "name a counter with --count, or for cost the work with --ios or --bytes";
    PacketsUnaccounted: "Packets were sent that neither arrived nor were counted as dropped, or the other way round.",
        "keep other senders away";
    PacketsLost: "A noticeable part of the packets of a measured command was lost.",
        "send more slowly, or enlarge the receive buffer";
    LossUnknown: "The number of packets that were lost is unknown, because the measured side does not learn it.",
        "measure the receiving side, too";
    OtherNamespace: "A command runs in another network namespace than iotoll, whose counters and settings do not \
        reach it.",
        "start iotoll in that namespace";
    CpuLimited: "A quota of a control group stopped the load, so rates and latencies are the quota's.",
        "raise the quota";
    IoLimited: "A limit of a control group on I/O was reached, so rates and latencies are the limit's.",
        "raise the limit";
    MemoryLimited: "A limit of a control group on memory was reached, so files did not stay in the page cache.",
        "raise the limit";
    AmountWentBack: "The amount of a recorded worker went back.", "choose another --count";
    TwoRegimes: "The rate stepped during the measurement, so no single mean and no verdict describes it.",
        "leave the first part out (ramp_time), or run longer";
    IosOutside: "I/Os that jobs counted are outside the time that rate and cost of the phase are of.", "run longer";
    BackgroundSqueezed: "All CPUs were busy, or the net cost is below the cost of the workload's own threads: the \
        load squeezed other work, so subtracting all of it is too much.",
        "measure on a quieter machine";
    MetersDisagree: "Two meters that should agree on this load disagree.", "see the meters (--full)";
    StackNotReached: "The page cache of a guest served I/Os that were meant for its stack.", "use direct=1";
    ReadingsLost: "Readings of a recording were lost because they could not be saved in time.",
        "save on a faster disk (--out)";
    CountersDisagree: "The counter of a sliced command and its own total disagree.", "choose another --count";
    CountingCosts: "Counting what a sliced command does is a noticeable part of its cost.", "choose a cheaper --count";
    CacheDiffers: "Arms found different parts of their files in the page cache.", "use --cache warm or cold";
    CacheNotKept: "The page cache did not contain what the condition requires.", "use smaller files";
    CarryOver: "The result of a slice depends on the arm that ran before it.", "compare whole executions of a command";
    PlacementDiffers: "Threads shared a CPU more often in one arm than in another.", "fix the placement (--place)";
    RemoteReceiver: "The receiver of packets runs on another machine, whose cycles are not in the cost.",
        "measure the receiving side, too";
    RecorderShares: "The recorder ran on the CPU of the worker and interrupted it at each reading.",
        "give the recorder a CPU of its own (--recorder-cpu)";
    FewIosPerQuantum: "A quantum of a recording holds few I/Os: a whole one more or less looks like noise, and a \
        steady rate beats with the quantum.",
        "use a longer --quantum";
    Starved: "iotoll got no CPU for a while, so windows are missing.", "run as root, or keep a CPU free";
    LateReadings: "Many readings of a recording were late, so short stalls cannot be seen.", "use a longer --quantum";
    Steal: "The hypervisor stole CPU time.", "measure on a machine of your own";
    UnwrittenBlocks: "The job reads blocks that were never written, so the reads do not reach the device.",
        "write the file first";
    StoredMethodDiffers: "The stored record was measured with another version of the method.",
        "measure the stored one again";
    StoredWorkDiffers: "The baseline of the stored record did different work.",
        "compare with a record of the same work";
    OptionIgnored: "An option has no effect, as in fio, or it is unknown and `--ignore-unknown` was given.",
        "leave the option out";
    OptionDiffers: "An option was accepted but means something slightly different here.", "see docs/guide/fio.md";
    FilesAdded: "`filename` was given again: as in fio, that adds to the files of the job.", "give filename once";
    WithinLayouts: "A change of instructions is within the spread of the replicates.", "use more --replicates";
    Unknown: "A figure is missing because it could not be determined.", "see the whole reason (--full)";
    LogFull: "The memory for a log was full, so later I/Os are not in it.", "use log_avg_msec";
    ProbeLost: "A probe could not be read, or no longer.", "leave the probe out";
    ShortRecording: "A recording is too short for long periods.", "record longer";
    CoarseSteps: "A recording was searched in steps of several quanta.", "record a shorter time";
    NoInterval: "Too few windows or executions for an interval.", "run longer";
    ExecutionsOnly: "Commands were compared by whole executions, which takes longer than slices.",
        "give commands that run for some seconds";
    OneUnitCarriesTheMean: "One window or round carries much of a mean, so how often such ones occur is hardly known.",
        "run longer";
    RoundsCorrelated: "Consecutive rounds of a comparison resemble each other.", "run longer";
    WindowsCorrelated: "Consecutive windows of a run, or executions of a command, resemble each other.", "run longer";
    NoSteadyState: "The rate of all arms together did not reach a steady state.", "run longer";
    PlacementModes: "The load ran at two rates: one while its two busiest threads shared a CPU, another while they \
        did not.",
        "fix the placement (--place)";
    PlacementElsewhere: "A server ran on other CPUs than `--place` requests.", "pin the server";
    UnsteadyLoad: "The rate of the load varied from window to window, so one mean does not describe it.", "run longer";
    BusyBackground: "The machine was busy without the workload.", "stop other programs";
    BackgroundMoved: "The background before and after the run differs by more than a fixed part of the machine.",
        "stop other programs";
    GuestWaited: "A guest was idle in part of the measured time, which instructions do not show.",
        "measure the time on a machine";
    FewSamples: "Too few I/Os for the requested percentiles.", "run longer";
    EnvironmentStep: "The rate of all arms together stepped: the machine changed.", "use the changes, not the values";
    CanaryMoved: "A canary changed between before and after: the machine changed speed.",
        "measure on a quieter machine";
    NoLedger: "The ledger could not be written, so changes to the system are not recorded in it.",
        "give iotoll a folder for its ledger";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_caveats_are_dropped() {
        let mut warnings = Vec::new();
        for (code, message) in [(Code::Steal, "a"), (Code::Steal, "b"), (Code::Unknown, "a"), (Code::Steal, "a")] {
            add_once(&mut warnings, Warning::new(code, message));
        }
        assert_eq!(warnings.len(), 3);
    }

    #[test]
    fn the_gravest_is_first_and_equal_codes_keep_their_order() {
        let of = |(code, message)| Warning::new(code, message);
        let mut warnings =
            [(Code::CanaryMoved, "a"), (Code::Steal, "b"), (Code::JobFailed, "c"), (Code::Steal, "d")].map(of);
        gravest_first(&mut warnings);
        assert_eq!(warnings.map(|warning| warning.message), ["c", "b", "d", "a"]);
    }
}
