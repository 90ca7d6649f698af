//! All numbers that a report of a run may show, computed from a record by [`crate::study`].
//!
//! This is also the JSON of `run` and `cost`, schema `iotoll.run/1`. `null` means unknown, and a warning or a reason says why. Costs are net of the machine's background unless the name ends in `_gross`.

mod job;

pub use job::{CopiesApart, DirectionFinding, JobFinding, LatencyBins, LatencyFinding, StagesFinding};

use crate::account::AccountKind;
use crate::events::EventFinding;
use crate::experiment::Metric;
use crate::kind::Head;
use crate::page_cache::CacheFinding;
use crate::placement::PlacementFinding;
use crate::probe::Kind;
use crate::profile::FunctionsFinding;
use crate::record::{Canaries, Exit, TaskOwner};
use crate::stats::Estimate;
use serde::de::IgnoredAny;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The cost of a run or a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunFinding {
    /// Where it came from, and how it ended.
    #[serde(flatten)]
    pub head: Head,
    /// Source of the I/O count, in words; `null` for iotoll's own engines.
    pub counted_by: Option<String>,
    /// All meters: what each sees, or why it is unavailable.
    pub meters: Vec<MeterFinding>,
    /// The events that were to be counted per I/O: what each is, or why it cannot be counted.
    pub events: Vec<EventFinding>,
    /// The activity of the machine without the workload.
    pub background: Background,
    /// The phases: jobs that ran at the same time and share one cost.
    pub phases: Vec<PhaseFinding>,
    /// The jobs, each copy (`numjobs`) by itself, or the copies of a job merged where it has `group_reporting`.
    pub jobs: Vec<JobFinding>,
    /// The jobs, the copies of each merged: what reports show, and what caveats and limits are about.
    pub merged_jobs: Vec<JobFinding>,
    /// Speeds of canary operations before and after the measurement.
    pub canaries: Vec<Canaries>,
}

crate::headed!(RunFinding);

/// A meter of this measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeterFinding {
    /// Name of the meter; its key in `by_meter`.
    pub name: String,
    /// Whether the meter was available.
    pub available: bool,
    /// Why it was unavailable; `null` if it was available.
    pub reason: Option<String>,
    /// What it sees; `null` if it was unavailable.
    pub sees: Option<String>,
}

/// The activity of the machine without the workload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Background {
    /// Busy fraction of the machine's capacity, 0 to 1, by the headline meter.
    pub busy_fraction: Option<f64>,
    /// Lower end of its 95 % interval.
    pub busy_fraction_low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub busy_fraction_high: Option<f64>,
    /// Busy fraction before the workload, 0 to 1.
    pub busy_fraction_before: Option<f64>,
    /// Busy fraction after the workload, 0 to 1.
    pub busy_fraction_after: Option<f64>,
    /// How long the background was measured, in seconds.
    pub seconds: f64,
    /// Context switches of the whole machine per second.
    pub context_switches_per_second: Option<f64>,
    /// The tasks that used the most CPU time.
    pub tasks: Vec<BackgroundTask>,
}

/// A task of the background.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// Name of the task.
    pub name: String,
    /// CPU time as a fraction of the machine's capacity, 0 to 1.
    pub busy_fraction: f64,
}

/// A metric of the same phase in an earlier measurement. Costs are by the headline meter of this measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredFigure {
    /// Its value in the earlier measurement.
    pub value: f64,
    /// Its change since then, as a fraction; `null` if it is unknown of one of the two, or not positive.
    pub change: Option<Estimate>,
}

/// A unit of the interval that carries much of the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CarryingUnit {
    /// Its number, from 1.
    pub number: usize,
    /// How many units there are.
    pub of: usize,
    /// Its part of the net cycles, as a fraction.
    pub part: f64,
}

/// What the cost of a phase is net of, and what others did.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OthersFinding {
    /// Cycles of the whole machine per I/O, including the background.
    pub cycles_per_io_gross: Option<f64>,
    /// Number of busy CPUs, including the background.
    pub busy_cpus_gross: Option<f64>,
    /// Net cycles per I/O with the whole background subtracted as a level, as the machine was before and after.
    pub cycles_per_io_by_level: Option<Estimate>,
    /// Net cycles per I/O of what belongs to the load by its name, from the windows of exact accounts: its tasks and those that it wakes in
    /// full, other processes not at all, and the kernel's threads, softirqs, interrupts and idle entry net of their rates without the load.
    pub cycles_per_io_by_name: Option<Estimate>,
    /// Whether `cycles_per_io` and the figures that follow from it are those by name: where other processes use more than 5 % of the
    /// machine beside the load, or before and after it.
    pub known_by_name: bool,
    /// Part of the machine's time that other processes used while the load ran, 0 to 1; `null` without exact accounts.
    pub others_busy_fraction: Option<f64>,
    /// The same before and after the load.
    pub others_busy_fraction_before: Option<f64>,
}

/// What the interval of a phase's cost comes from.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpreadFinding {
    /// Basis of the interval, in words, or why there is none.
    pub interval_from: String,
    /// The one group of windows, or execution, that carries a quarter of the cost or more; `null` if there is none.
    pub carried_by: Option<CarryingUnit>,
    /// Correlation of the cost of consecutive groups of windows, or executions, 0 to 0.9, where it is evident at the 5 % level. The
    /// interval is wider for it.
    pub correlation: Option<f64>,
}

/// How often events happened in a phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CountedFinding {
    /// How often each event happened on the machine for an I/O, net of the background, by its name (`events`). System calls that did not
    /// happen are missing.
    #[serde(rename = "events_per_io")]
    pub per_io: BTreeMap<String, Estimate>,
    /// Part of the time in the windows of events that counting took at most, if every count delayed the load. Where I/Os are only counted
    /// in total, the intervals of `events_per_io` contain this error.
    #[serde(rename = "events_counting_fraction")]
    pub counting_fraction: Option<f64>,
    /// Why no event was counted; `null` if some were, or none were to be.
    #[serde(rename = "events_reason")]
    pub reason: Option<String>,
}

/// What is known of a metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The value and its interval. Where the value is not told, the interval may still be known.
    pub estimate: Option<Estimate>,
    /// Why the value is not told.
    pub why_not: Option<String>,
}

impl Figure {
    /// What is told.
    pub fn told(&self) -> Option<Estimate> {
        self.estimate.filter(|_| self.why_not.is_none())
    }
}

/// The figures of a phase. The keys of a metric are its name with the value, which is `null` where it is not told; `NAME_low` and
/// `NAME_high`, the ends of its 95 % interval; `NAME_reason`, why the value is `null` although the number of I/Os may be known.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<Metric, Figure>);

impl Figures {
    /// What is known of a metric.
    pub fn of(&self, metric: Metric) -> Figure {
        self.0.get(&metric).cloned().unwrap_or_default()
    }

    /// Tells a metric.
    pub fn set(&mut self, metric: Metric, estimate: Option<Estimate>) {
        self.0.insert(metric, Figure { estimate, why_not: None });
    }

    /// Says why a metric is not told; without its interval, if there was one.
    pub(crate) fn withhold(&mut self, metric: Metric, why_not: &str) {
        self.0.insert(metric, Figure { estimate: None, why_not: Some(why_not.to_owned()) });
    }
}

impl FromIterator<(Metric, Figure)> for Figures {
    fn from_iter<I: IntoIterator<Item = (Metric, Figure)>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for metric in Metric::ALL.into_iter().filter(|metric| !metric.is_latency()) {
            let (name, figure) = (metric.name(), self.of(metric));
            map.serialize_entry(name, &figure.told().map(|told| told.value))?;
            map.serialize_entry(&format!("{name}_low"), &figure.estimate.and_then(|known| known.low))?;
            map.serialize_entry(&format!("{name}_high"), &figure.estimate.and_then(|known| known.high))?;
            map.serialize_entry(&format!("{name}_reason"), &figure.why_not)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Figures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// All members of the phase are offered.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Member {
            Number(f64),
            Text(String),
            Other(IgnoredAny),
        }
        let all = BTreeMap::<String, Member>::deserialize(deserializer)?;
        let number = |key: String| match all.get(&key) {
            Some(Member::Number(number)) => Some(*number),
            _ => None,
        };
        let figure = |metric: Metric| {
            let name = metric.name();
            let (low, high) = (number(format!("{name}_low")), number(format!("{name}_high")));
            let why_not = match all.get(&format!("{name}_reason")) {
                Some(Member::Text(why)) => Some(why.clone()),
                _ => None,
            };
            let middle = low.zip(high).filter(|_| why_not.is_some()).map(|(low, high)| (low + high) / 2.0);
            let value = number(name.to_owned()).or(middle);
            (metric, Figure { estimate: value.map(|value| Estimate { value, low, high }), why_not })
        };
        Ok(Metric::ALL.into_iter().map(figure).collect())
    }
}

/// The cost of a phase.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PhaseFinding {
    /// Names of its jobs.
    pub jobs: Vec<String>,
    /// Groups of jobs that a foreign program ran one after the other (fio's `stonewall`); the phase's figures are means over all of them.
    /// 1 if all jobs ran at the same time.
    pub groups: u32,
    /// Duration of the phase, in seconds.
    pub wall_seconds: f64,
    /// I/Os completed; `null` if they are not counted.
    pub ios: Option<u64>,
    /// Bytes completed; `null` if they are not counted.
    pub bytes: Option<u64>,
    /// Every metric of the phase: [`Metric`] says what each is. Rates are per second of `wall_seconds`, which contain the time in which a
    /// foreign command waits; the I/Os that jobs count before the last of them has ramped are in `ios`, and not in these.
    #[serde(flatten)]
    pub figures: Figures,
    /// Name of the meter of the costs.
    pub headline_meter: Option<String>,
    /// What the costs are net of.
    #[serde(flatten)]
    pub others: OthersFinding,
    /// What their intervals come from.
    #[serde(flatten)]
    pub spread: SpreadFinding,
    /// Number of busy CPUs, net of the background: 1.0 is one CPU all the time.
    pub busy_cpus: Option<f64>,
    /// Fraction of the time that the workload's own threads were on a CPU, 0 to 1: near 1 for a load that does not sleep.
    pub threads_on_cpu_fraction: Option<f64>,
    /// Net cycles per I/O by each meter that ran; the key is the meter's name.
    pub by_meter: BTreeMap<String, Option<f64>>,
    /// The readings of all meters, with intervals and reasons.
    pub by_meter_detail: Vec<MeterReading>,
    /// The accounts that the net cycles per I/O are charged to. They sum to `cycles_per_io`.
    pub accounts: Vec<AccountFinding>,
    /// The functions that were sampled (`--profile`).
    #[serde(flatten)]
    pub functions: FunctionsFinding,
    /// The events that were counted.
    #[serde(flatten)]
    pub counted: CountedFinding,
    /// Exit statuses of the executions of a measured command.
    pub exits: Vec<Exit>,
    /// Net cycles of a measured command outside its I/O (setup, layout, exit), in total.
    pub cycles_outside_io: Option<f64>,
    /// The regimes, in order, if the rate stepped by half or more; empty if one level describes the phase. If they are
    /// different loads (the own threads' cost differs by half, or the reads come from elsewhere), all means of the
    /// phase are `null`. For a command whose I/Os are not counted live, the regimes are those of its reads from
    /// storage, and the means cover all of them.
    pub regimes: Vec<RegimeFinding>,
    /// The page cache for the files of the jobs; `null` if no job uses files.
    pub page_cache: Option<CacheFinding>,
    /// The CPUs on which the threads ran; `null` if not recorded.
    pub placement: Option<PlacementFinding>,
    /// The probes (`--probe`); empty if none were requested.
    pub probes: Vec<ProbeFinding>,
    /// The first execution over time, one point for each window of the headline meter; at most 400 points, for which
    /// neighbouring windows are merged.
    pub series: Vec<SeriesPoint>,
    /// I/Os and bytes in every window of the first execution, also in those of other meters.
    #[serde(skip)]
    pub progress: Vec<SeriesPoint>,
    /// The metrics of the same phase of the earlier measurement, by name; `null` without one, or if it has no such phase.
    pub stored: Option<BTreeMap<String, StoredFigure>>,
}

impl PhaseFinding {
    /// What is told of a metric.
    pub fn told(&self, metric: Metric) -> Option<Estimate> {
        self.figures.of(metric).told()
    }

    /// The value that is told of it.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.told(metric).map(|told| told.value)
    }

    /// Cycles of the whole machine per I/O, net of the background.
    pub fn cycles_per_io(&self) -> Option<f64> {
        self.value(Metric::CyclesPerIo)
    }

    /// Whether one rate and one mean latency describe it. With two regimes, they describe neither.
    pub fn has_one_rate(&self) -> bool {
        self.regimes.iter().all(|regime| regime.iops.is_none())
    }
}

/// A part of a phase with one level of the rate, or executions whose reads came from one place.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RegimeFinding {
    /// For several executions: the first execution of this regime, from 1.
    pub first_execution: Option<usize>,
    /// For several executions: the last execution of this regime.
    pub last_execution: Option<usize>,
    /// Start of the regime, in seconds from the start of the phase.
    pub begin_seconds: f64,
    /// End of the regime, in seconds from the start of the phase.
    pub end_seconds: f64,
    /// I/Os per second; `null` if they are not counted live.
    pub iops: Option<f64>,
    /// Cycles of the whole machine per I/O, net of the background.
    pub cycles_per_io: Option<Estimate>,
    /// Cycles of the workload's own threads per I/O.
    pub thread_cycles_per_io: Option<f64>,
    /// Bytes per second that storage read for the workload.
    pub storage_bytes_per_second: Option<f64>,
    /// Fraction of the I/O bytes that storage read, 0 to 1.
    pub from_storage_fraction: Option<f64>,
}

impl RegimeFinding {
    /// The executions in words, if there are several: "execution 1", "executions 2 to 5".
    pub fn executions(&self) -> Option<String> {
        Some(match (self.first_execution?, self.last_execution?) {
            (first, last) if first == last => format!("execution {first}"),
            (first, last) => format!("executions {first} to {last}"),
        })
    }
}

/// A meter's reading for a phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeterReading {
    /// Name of the meter.
    pub name: String,
    /// Net cycles per I/O; `null` if unknown.
    pub cycles_per_io: Option<Estimate>,
    /// Net cycles of one execution, if the I/Os are not counted.
    pub cycles_per_execution: Option<Estimate>,
    /// Total length of the windows, in seconds.
    pub seconds: f64,
    /// Why there is no value; `null` if there is one.
    pub reason: Option<String>,
}

/// Cycles charged to one account.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AccountFinding {
    /// Name of the account, in words.
    pub name: String,
    /// What the CPUs did, by exact accounts; `null` where those were not kept, and for a sum over several.
    pub kind: Option<AccountKind>,
    /// Owner of the tasks; `null` for a sum over several owners, and for cycles that no task is charged for:
    /// interrupts, idle entry and exit, tasks that ran between two scans, and the error of the other accounts.
    pub owner: Option<TaskOwner>,
    /// Net cycles per I/O.
    pub cycles_per_io: f64,
    /// Lower end of its 95 % interval, with the phase's cost taken as known; `null` without exact accounts.
    pub low: Option<f64>,
    /// Upper end likewise.
    pub high: Option<f64>,
    /// Of idle entry and exit: all of it, of which the meter of the cost counts only `cycles_per_io` as busy.
    pub in_all_cycles_per_io: Option<f64>,
    /// How often a softirq, an interrupt or idle entry begins for an I/O; `null` for tasks, without exact accounts, and without a number of
    /// I/Os.
    pub times_per_io: Option<Estimate>,
    /// Fraction of the phase's net cycles per I/O, 0 to 1.
    pub share: f64,
}

/// A point of the series over time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Middle of the window, in seconds from the start of the phase.
    pub seconds: f64,
    /// Number of busy CPUs, including the background; `null` if no meter of the whole machine was available.
    pub busy_cpus: Option<f64>,
    /// I/Os per second in the window.
    pub iops: Option<f64>,
    /// Length of the window, in seconds.
    pub window_seconds: f64,
    /// I/Os completed in the window.
    pub ios: Option<u64>,
    /// Bytes completed in the window.
    pub bytes: Option<u64>,
    /// Cycles of the whole machine in the window, net of the background.
    pub cycles: Option<f64>,
    /// Cycles of the whole machine per I/O in the window, net of the background.
    pub cycles_per_io: Option<f64>,
}

/// A probe's results for a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeFinding {
    /// Name of the probe, as typed.
    pub name: String,
    /// What it reads, in words.
    pub meaning: String,
    /// Its unit; empty if unknown.
    pub unit: String,
    /// `counter` (only grows) or `gauge`.
    pub kind: Kind,
    /// Counters: growth per second, including the background.
    pub per_second: Option<Estimate>,
    /// Counters: growth per I/O, net of the background.
    pub per_io: Option<Estimate>,
    /// Counters: growth per second without the workload.
    pub background_per_second: Option<f64>,
    /// Gauges: mean over time.
    pub mean: Option<Estimate>,
    /// Gauges: smallest value read.
    pub min: Option<f64>,
    /// Gauges: largest value read.
    pub max: Option<f64>,
    /// Why values are missing; `null` if none are.
    pub reason: Option<String>,
    /// The first execution over time: pairs of seconds from the start of the phase (middle of the window), and the
    /// counter's growth per second or the gauge's level; at most 400.
    pub series: Vec<(f64, f64)>,
}
