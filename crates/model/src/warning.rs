//! Caveats that travel with a record and are shown beside its numbers.

use serde::{Deserialize, Serialize};

/// One caveat: a stable code for scripts, a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The kinds of caveat, the gravest first: the measurement failed, a figure is missing, a figure may be wrong, an
/// interval is too narrow, the machine changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Code {
    /// The measured command failed.
    CommandFailed,
    /// A job ended with an error.
    JobFailed,
    /// The measurement was interrupted.
    Interrupted,
    /// No meter of the whole machine is available, so the cost is unknown.
    MeterUnavailable,
    /// The number of I/Os or bytes is unknown.
    WorkUnknown,
    /// Packets were sent that neither arrived nor were counted as dropped, or the other way round.
    PacketsUnaccounted,
    /// A noticeable part of the packets of a measured command was lost.
    PacketsLost,
    /// The number of packets that were lost is unknown, because the measured side does not learn it.
    LossUnknown,
    /// Flushes of a block device are many, and some of its writes may be among them.
    FlushesApart,
    /// A command runs in another network namespace than iotoll, whose counters and settings do not reach it.
    OtherNamespace,
    /// A quota of a control group stopped the load, so rates and latencies are the quota's.
    CpuLimited,
    /// A limit of a control group on I/O was reached, so rates and latencies are the limit's.
    IoLimited,
    /// A limit of a control group on memory was reached, so files did not stay in the page cache.
    MemoryLimited,
    /// The amount of a recorded worker went back.
    AmountWentBack,
    /// The rate stepped during the measurement, so no single mean and no verdict describes it.
    TwoRegimes,
    /// I/Os that jobs counted are outside the time that rate and cost of the phase are of.
    IosOutside,
    /// All CPUs were busy, or the net cost is below the cost of the workload's own threads: the load squeezed other
    /// work, so subtracting all of it is too much.
    BackgroundSqueezed,
    /// Two meters that should agree on this load disagree.
    MetersDisagree,
    /// The page cache of a guest served I/Os that were meant for its stack.
    StackNotReached,
    /// Readings of a recording were lost because they could not be saved in time.
    ReadingsLost,
    /// The counter of a sliced command and its own total disagree.
    CountersDisagree,
    /// Counting what a sliced command does is a noticeable part of its cost.
    CountingCosts,
    /// Arms found different parts of their files in the page cache.
    CacheDiffers,
    /// The page cache did not contain what the condition requires.
    CacheNotKept,
    /// The result of a slice depends on the arm that ran before it.
    CarryOver,
    /// Threads shared a CPU more often in one arm than in another.
    PlacementDiffers,
    /// The receiver of packets runs on another machine, whose cycles are not in the cost.
    RemoteReceiver,
    /// The recorder ran on the CPU of the worker and interrupted it at each reading.
    RecorderShares,
    /// A quantum of a recording holds few I/Os: a whole one more or less looks like noise, and a steady rate beats with the quantum.
    FewIosPerQuantum,
    /// iotoll got no CPU for a while, so windows are missing.
    Starved,
    /// Many readings of a recording were late, so short stalls cannot be seen.
    LateReadings,
    /// The hypervisor stole CPU time.
    Steal,
    /// The job reads blocks that were never written, so the reads do not reach the device.
    UnwrittenBlocks,
    /// The stored record was measured with another version of the method.
    StoredMethodDiffers,
    /// The baseline of the stored record did different work.
    StoredWorkDiffers,
    /// An option of the job file was ignored because `--ignore-unknown` was given.
    OptionIgnored,
    /// An option was accepted but means something slightly different here.
    OptionDiffers,
    /// `filename` was given again: as in fio, that adds to the files of the job.
    FilesAdded,
    /// A change of instructions is within the spread of the replicates.
    WithinLayouts,
    /// A figure is missing because it could not be determined.
    Unknown,
    /// The memory for a log was full, so later I/Os are not in it.
    LogFull,
    /// A probe could not be read, or no longer.
    ProbeLost,
    /// A recording is too short for long periods.
    ShortRecording,
    /// A recording was searched in steps of several quanta.
    CoarseSteps,
    /// Too few windows or executions for an interval.
    NoInterval,
    /// Commands were compared by whole executions, which takes longer than slices.
    ExecutionsOnly,
    /// One window or round carries much of a mean, so how often such ones occur is hardly known.
    OneUnitCarriesTheMean,
    /// Consecutive rounds of a comparison resemble each other.
    RoundsCorrelated,
    /// Consecutive windows of a run, or executions of a command, resemble each other.
    WindowsCorrelated,
    /// The machine was not rebooted between two measurements of an arm.
    NoBoot,
    /// The rate of all arms together did not reach a steady state.
    NoSteadyState,
    /// The load ran at two rates: one while its two busiest threads shared a CPU, another while they did not.
    PlacementModes,
    /// A server ran on other CPUs than `--place` requests.
    PlacementElsewhere,
    /// The rate of the load varied from window to window, so one mean does not describe it.
    UnsteadyLoad,
    /// The machine was busy without the workload.
    BusyBackground,
    /// The background before and after the run differs by more than a fixed part of the machine.
    BackgroundMoved,
    /// A guest was idle in part of the measured time, which instructions do not show.
    GuestWaited,
    /// Too few I/Os for the requested percentiles.
    FewSamples,
    /// The rate of all arms together stepped: the machine changed.
    EnvironmentStep,
    /// A canary changed between before and after: the machine changed speed.
    CanaryMoved,
    /// The ledger could not be written, so changes to the system are not recorded in it.
    NoLedger,
}

impl Code {
    /// What the user can do about it, in a few words: for a line that has no room for the whole message.
    pub const fn mend(self) -> &'static str {
        match self {
            Self::CommandFailed => "see what the command printed",
            Self::JobFailed => "mend the job's error",
            Self::Interrupted => "measure again for the whole",
            Self::MeterUnavailable => "see iotoll doctor",
            Self::WorkUnknown => "name a counter with --count, or for cost the work with --ios or --bytes",
            Self::PacketsUnaccounted => "keep other senders away",
            Self::PacketsLost => "send more slowly, or enlarge the receive buffer",
            Self::LossUnknown | Self::RemoteReceiver => "measure the receiving side, too",
            Self::FlushesApart => "let the program report its I/Os",
            Self::OtherNamespace => "start iotoll in that namespace",
            Self::CpuLimited => "raise the quota",
            Self::IoLimited | Self::MemoryLimited => "raise the limit",
            Self::AmountWentBack | Self::CountersDisagree => "choose another --count",
            Self::TwoRegimes => "leave the first part out (ramp_time), or run longer",
            Self::BackgroundSqueezed | Self::CanaryMoved => "measure on a quieter machine",
            Self::MetersDisagree => "see the meters (--full)",
            Self::StackNotReached => "use direct=1",
            Self::ReadingsLost => "save on a faster disk (--out)",
            Self::CountingCosts => "choose a cheaper --count",
            Self::CacheDiffers => "use --cache warm or cold",
            Self::CacheNotKept => "use smaller files",
            Self::CarryOver => "compare whole executions of a command",
            Self::PlacementDiffers | Self::PlacementModes => "fix the placement (--place)",
            Self::RecorderShares => "give the recorder a CPU of its own (--recorder-cpu)",
            Self::FewIosPerQuantum | Self::LateReadings => "use a longer --quantum",
            Self::Starved => "run as root, or keep a CPU free",
            Self::Steal => "measure on a machine of your own",
            Self::UnwrittenBlocks => "write the file first",
            Self::StoredMethodDiffers => "measure the stored one again",
            Self::StoredWorkDiffers => "compare with a record of the same work",
            Self::OptionIgnored => "leave the option out",
            Self::OptionDiffers => "see docs/guide/fio.md",
            Self::FilesAdded => "give filename once",
            Self::WithinLayouts => "use more --replicates",
            Self::Unknown => "see the whole reason (--full)",
            Self::LogFull => "use log_avg_msec",
            Self::ProbeLost => "leave the probe out",
            Self::ShortRecording => "record longer",
            Self::CoarseSteps => "record a shorter time",
            Self::IosOutside
            | Self::NoInterval
            | Self::OneUnitCarriesTheMean
            | Self::RoundsCorrelated
            | Self::WindowsCorrelated
            | Self::NoSteadyState
            | Self::UnsteadyLoad
            | Self::FewSamples => "run longer",
            Self::ExecutionsOnly => "give commands that run for some seconds",
            Self::NoBoot => "reboot between the measurements",
            Self::PlacementElsewhere => "pin the server",
            Self::BusyBackground | Self::BackgroundMoved => "stop other programs",
            Self::GuestWaited => "measure the time on a machine",
            Self::EnvironmentStep => "use the changes, not the values",
            Self::NoLedger => "give iotoll a folder for its ledger",
        }
    }
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
