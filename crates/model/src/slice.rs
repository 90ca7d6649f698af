//! Slices: the readings at both ends of a piece of work of one case, and rounds of them. Comparisons and blasts record them.
//!
//! And what was measured between two such ends, or in an execution: work, cycles, switches, latency, the input of their statistics.
//! [`rounds`] reads it.

pub mod command;
pub mod rounds;

pub use command::{bytes_of_a_message, counts, is_uncounted};

use crate::experiment::Metric;
use crate::experiment::metric::Term;
use crate::group_limit::LimitWindow;
use crate::histogram::Histogram;
use crate::injected::Injected;
use crate::record::{Done, Execution, IoInterval, Meter, Snapshot, TaskTimes};
use crate::stats::{LogRatio, Pair, PairedRound, Resolution, exceeds_background, log_ratio};
use crate::study::Context;
use crate::study::caveats::NEVER_IDLE;
use crate::unit::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// One round: every case is measured equally often.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RoundRecord {
    /// CLOCK_MONOTONIC at its start, before its workers start.
    pub begin_nanos: Nanos,
    /// CLOCK_MONOTONIC after its last slice.
    pub end_nanos: Nanos,
    /// In order of time.
    pub slices: Vec<SliceRecord>,
    /// Slices that end as soon as they begin, in rounds that count events: what is in them is in every slice, whatever its length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<SliceRecord>,
    /// Latency from submission to completion in all slices of each case, in TSC ticks.
    pub latencies: Vec<CaseLatency>,
    /// What each command did from its start to its end, if commands took turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandTotal>,
    /// The CPUs on which all arms ran, which were drawn for this round; empty if something else placed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
}

impl RoundRecord {
    /// The limits of the load's control groups at both ends of each of its slices, and those of each execution apart.
    pub fn limits(&self) -> Vec<Vec<LimitWindow<'_>>> {
        let (mut executions, mut slices) = (Vec::new(), Vec::new());
        for slice in self.slices.iter().filter(|slice| slice.case.is_some()) {
            match &slice.reading {
                SliceReading::Execution(execution) => executions.push(execution.limits()),
                other => slices.extend(other.ends().map(|(before, after)| [before.limits(), after.limits()])),
            }
        }
        executions.push(slices);
        executions
    }
}

/// What a command did from its start to its end, in one round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTotal {
    /// Indices of the cases that it ran for: several if their arms differ only by settings.
    pub cases: Vec<usize>,
    /// The I/Os that it reports itself; `None` if it does not report them.
    pub own: Option<Done>,
    /// The bytes of them that it read; `None` if it does not report them.
    pub own_read: Option<Bytes>,
    /// The count of the counter.
    pub count: u64,
}

/// Latencies of a case in a round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseLatency {
    /// Index of the case.
    pub case: usize,
    /// Latencies of reads, writes and trims together.
    pub ticks: Histogram,
    /// Busy work added to each I/O.
    pub injected_ns: Option<Injected>,
}

/// One slice, or a time without a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SliceRecord {
    /// Index of the case; `None` for the idle machine.
    pub case: Option<usize>,
    /// What was read in it.
    pub reading: SliceReading,
}

/// The readings at the ends of a slice.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceReading {
    /// Of iotoll's workers, or of the idle machine.
    Slice {
        /// Just before it began.
        before: Box<Snapshot>,
        /// Just after the last I/O in flight completed.
        after: Box<Snapshot>,
        /// The work done; zero for the idle machine.
        work: SliceWork,
        /// CPU time of every task of the machine, if the slice is long enough to read them.
        tasks: Option<TaskTimes>,
    },
    /// Of a foreign command, with windows in between.
    Execution(Execution),
    /// Of a foreign command that takes turns with others.
    Command {
        /// At the beginning of the slice, after the guard.
        before: Box<Snapshot>,
        /// What the command had done just before that.
        first: CommandReading,
        /// What it had done just before the end.
        last: CommandReading,
        /// At the end of the slice, before the command is frozen.
        after: Box<Snapshot>,
    },
}

impl SliceReading {
    /// Each reading of the machine with the next one, in order of time: both ends of a slice, the windows of an execution.
    pub fn pairs(&self) -> impl Iterator<Item = (&Snapshot, &Snapshot)> {
        let windows = if let Self::Execution(execution) = self { Some(execution.stretch.pairs()) } else { None };
        self.ends().into_iter().chain(windows.into_iter().flatten())
    }

    /// The time of I/O of an execution, if it is a part of it.
    pub(crate) fn io_interval(&self) -> Option<IoInterval> {
        if let Self::Execution(execution) = self { execution.io_interval } else { None }
    }

    /// The readings at both ends of a slice; `None` for an execution.
    pub fn ends(&self) -> Option<(&Snapshot, &Snapshot)> {
        match self {
            Self::Slice { before, after, .. } | Self::Command { before, after, .. } => Some((before, after)),
            Self::Execution(_) => None,
        }
    }
}

/// What a sliced command had done at an instant, since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandReading {
    /// CLOCK_MONOTONIC.
    pub at_nanos: Nanos,
    /// The count of the counter; `None` if it could not be read.
    pub count: Option<u64>,
    /// Read and write calls of its processes, if the counter knows them.
    pub calls: Option<u64>,
    /// Segments with data that its TCP sockets received and sent, if the counter reads them.
    pub segments: Option<u64>,
    /// CPU time of its processes.
    pub thread_nanos: Option<Nanos>,
    /// Bytes that its processes read by system calls, if the kernel reports it.
    pub read_bytes: Option<Bytes>,
    /// Bytes that storage read for its processes, if the kernel reports it.
    pub storage_read: Option<Bytes>,
}

/// The work of the workers of a case in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceWork {
    /// I/Os submitted and completed in the slice.
    pub ios: u64,
    /// Bytes that they moved.
    pub bytes: Bytes,
    /// Time from the first submission to the last completion, or to the end of the sync after it.
    pub wall_nanos: Nanos,
    /// CPU time of the workers' threads.
    pub thread_nanos: Nanos,
    /// Sum of the latencies of all I/Os, from submission to completion.
    pub latency_nanos: Nanos,
    /// Bytes of reads; `None` in records without this field.
    pub read_bytes: Option<Bytes>,
    /// Bytes that storage read for the workers, if the kernel reports it.
    pub storage_read: Option<Bytes>,
}

/// What was measured of one case between two instants, or the sum of several such times. A value that could not be read is `None`, and makes
/// the sum unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Number of slices or executions.
    pub count: f64,
    /// Total duration of executions, including time without I/O. Not used for slices, whose length is fixed.
    pub whole_seconds: Option<f64>,
    pub whole_cycles: Option<f64>,
    pub whole_capacity_seconds: Option<f64>,
    pub seconds: f64,
    pub ios: Option<f64>,
    pub bytes: Option<f64>,
    /// Cycles of the whole machine, including the background.
    pub gross_cycles: Option<f64>,
    /// Cycles that were subtracted because the hypervisor may have stolen them.
    pub stolen_cycles: f64,
    /// Seconds of CPU time that the machine had.
    pub capacity_seconds: f64,
    pub switches: Option<f64>,
    pub thread_cycles: Option<f64>,
    pub latency_nanos: Option<f64>,
    pub read_bytes: Option<f64>,
    /// Bytes that storage read for the case.
    pub storage_read: Option<f64>,
    /// Percentiles reported by a foreign program: percent and nanoseconds.
    pub reported: Vec<(f64, f64)>,
}

impl Measured {
    /// Adds another time.
    pub fn add(&mut self, other: &Self) {
        // The first slice defines what is known; a later one without a value makes it unknown.
        let add = |sum: &mut Option<f64>, more: Option<f64>, first: bool| {
            *sum = if first { more } else { (*sum).zip(more).map(|(sum, more)| sum + more) };
        };
        let first = self.count == 0.0;
        self.count += other.count;
        self.seconds += other.seconds;
        self.capacity_seconds += other.capacity_seconds;
        add(&mut self.whole_seconds, other.whole_seconds, first);
        add(&mut self.whole_cycles, other.whole_cycles, first);
        add(&mut self.whole_capacity_seconds, other.whole_capacity_seconds, first);
        add(&mut self.ios, other.ios, first);
        add(&mut self.bytes, other.bytes, first);
        add(&mut self.gross_cycles, other.gross_cycles, first);
        self.stolen_cycles += other.stolen_cycles;
        add(&mut self.switches, other.switches, first);
        add(&mut self.thread_cycles, other.thread_cycles, first);
        add(&mut self.latency_nanos, other.latency_nanos, first);
        add(&mut self.read_bytes, other.read_bytes, first);
        add(&mut self.storage_read, other.storage_read, first);
        if first {
            self.reported.clone_from(&other.reported);
        }
    }
}

/// Every case of a comparison once.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// By case.
    pub cases: Vec<Measured>,
    /// The idle machine.
    pub background: Measured,
    /// Stolen CPU time, and the CPU time over which it was measured, which is longer than the I/O of commands.
    pub stolen: (f64, f64),
}

impl Round {
    /// Cycles of a case, net of the background.
    pub fn net_cycles(&self, case: usize) -> Option<f64> {
        let sums = self.cases.get(case)?;
        Some(sums.gross_cycles? - self.background_rate()? * sums.capacity_seconds)
    }

    /// Cycles of the idle machine per second of CPU time.
    fn background_rate(&self) -> Option<f64> {
        let background = &self.background;
        let capacity = background.capacity_seconds;
        (capacity > 0.0).then_some(background.gross_cycles? / capacity)
    }

    /// Not clipped at 0, as in the study of a run, because a sum over rounds would be biased.
    fn net_switches(&self, case: usize) -> Option<f64> {
        let sums = self.cases.get(case)?;
        let background = &self.background;
        let rate = match background.switches {
            Some(switches) if background.seconds > 0.0 => switches / background.seconds,
            _ => return None,
        };
        Some(sums.switches? - rate * sums.seconds)
    }

    /// How much of it a case has in this round.
    fn amount(&self, term: Term, case: usize) -> Option<f64> {
        let sums = self.cases.get(case)?;
        match term {
            Term::Cycles => self.net_cycles(case),
            Term::WholeCycles => Some(sums.whole_cycles? - self.background_rate()? * sums.whole_capacity_seconds?),
            Term::ThreadCycles => sums.thread_cycles,
            Term::Switches => self.net_switches(case),
            Term::Latency => sums.latency_nanos,
            Term::Ios => sums.ios,
            Term::Bytes => sums.bytes,
            Term::Time => Some(sums.seconds),
            Term::WholeTime => sums.whole_seconds,
            Term::Executions => Some(sums.count),
        }
    }

    /// Numerator and denominator of a metric in this round; `None` for a percentile.
    pub fn pair(&self, metric: Metric, case: usize) -> Option<Pair> {
        let [numerator, denominator] = metric.counts().map(|term| self.amount(term, case));
        Some(Pair { numerator: numerator?, denominator: denominator? }).filter(|_| metric.percent().is_none())
    }
}

/// All rounds so far.
#[derive(Clone, Debug)]
pub struct Rounds {
    cases: usize,
    context: Context,
    /// The meter of the cycles.
    pub meter: Option<Meter>,
    pub rounds: Vec<Round>,
}

impl Rounds {
    /// Without rounds.
    pub fn new(cases: usize, context: Context, meter: Option<Meter>) -> Self {
        Self { cases, context, meter, rounds: Vec::new() }
    }

    /// Without this many at the beginning.
    pub fn after(&self, rounds: usize) -> Self {
        let left = self.rounds.get(rounds..).unwrap_or_default().to_vec();
        Self { rounds: left, ..Self::new(self.cases, self.context, self.meter) }
    }

    /// Whether the machine was never idle without the workload in a round: what remains of a cost there is rounding.
    pub fn is_unseen(&self, round: &Round) -> bool {
        // Core cycles are not a fraction of time.
        let is_time = self.meter.is_some_and(Meter::counts_time);
        is_time && round.background_rate().is_some_and(|rate| rate / self.context.clock.0 > NEVER_IDLE)
    }

    /// The rounds that show a metric, with their places.
    pub fn showing(&self, metric: Metric) -> impl Iterator<Item = (usize, &Round)> {
        let shows = move |round: &Round| !metric.is_of_whole_machine() || !self.is_unseen(round);
        self.rounds.iter().enumerate().filter(move |(_, round)| shows(round))
    }

    /// How busy the machine was without the workload, if no cost is known for that reason: fewer than half of the rounds, or than two,
    /// show one.
    pub fn never_idle(&self) -> Option<f64> {
        let (shown, all) = (self.showing(Metric::CyclesPerIo).count(), self.rounds.len());
        self.background_fraction().filter(|_| shown < all && (shown < 2 || shown * 2 < all))
    }

    /// Both cases of a comparison in every round that shows the metric.
    pub fn paired(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<Vec<PairedRound>> {
        let both = self.pairs(metric, baseline)?.into_iter().zip(self.pairs(metric, candidate)?);
        Some(both.map(|(baseline, candidate)| PairedRound { baseline, candidate }).collect())
    }

    /// The change of a metric between two cases; `None` if it is unknown, or the cost of one lies within the error of its background.
    pub fn change(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<LogRatio> {
        let change = log_ratio(&self.paired(metric, baseline, candidate)?, self.steps(metric, candidate))?;
        [baseline, candidate].iter().all(|case| self.stands_out(metric, *case) != Some(false)).then_some(change)
    }

    /// Whether the cost of a case exceeds the error of its background; `None` for other metrics.
    fn stands_out(&self, metric: Metric, case: usize) -> Option<bool> {
        let of_round = |round: &Round| {
            let (sums, alone) = (round.cases.get(case)?, &round.background);
            let capacity = if metric == Metric::Cycles { sums.whole_capacity_seconds? } else { sums.capacity_seconds };
            let net = Pair { numerator: round.pair(metric, case)?.numerator, denominator: capacity };
            Some((net, Pair { numerator: alone.gross_cycles?, denominator: alone.capacity_seconds }))
        };
        let rounds = metric.is_of_whole_machine().then(|| self.showing(metric))?;
        let (net, alone): (Vec<Pair>, Vec<Pair>) =
            rounds.map(|(_, round)| of_round(round)).collect::<Option<Vec<_>>>()?.into_iter().unzip();
        exceeds_background(&net, &alone)
    }

    /// The smallest steps of a metric's readings of a case.
    pub fn steps(&self, metric: Metric, case: usize) -> Resolution {
        const NANOSECOND: f64 = 1e-9;
        let first = self.rounds.first().and_then(|round| round.cases.get(case));
        let slices = first.map_or(1.0, |sums| sums.count.max(1.0));
        // Idle time is read on each CPU.
        let nanoseconds = self.meter.map_or(0.0, |meter| meter.resolution_nanos()) * (self.context.cpus as f64).sqrt();
        let cycles = nanoseconds * NANOSECOND * self.context.clock.0;
        // Bytes come in whole I/Os.
        let bytes = first.and_then(|sums| Some(sums.bytes? / sums.ios.filter(|ios| *ios > 0.0)?)).unwrap_or(1.0);
        let step = |term| match term {
            _ if metric.percent().is_some() => 0.0,
            Term::Cycles | Term::WholeCycles => cycles,
            Term::ThreadCycles => NANOSECOND * self.context.clock.0,
            Term::Switches | Term::Latency | Term::Ios => 1.0,
            Term::Bytes => bytes,
            Term::Executions => 0.0,
            Term::Time | Term::WholeTime => NANOSECOND,
        };
        let [numerator, denominator] = metric.counts().map(step);
        Resolution { numerator, denominator, readings: 2.0 * slices }
    }

    /// One case in every round that shows the metric; `None` if one of these lacks it, or they are too few.
    pub fn pairs(&self, metric: Metric, case: usize) -> Option<Vec<Pair>> {
        if metric.is_of_whole_machine() && self.never_idle().is_some() {
            return None;
        }
        self.showing(metric).map(|(_, round)| round.pair(metric, case)).collect()
    }

    /// Busy fraction of the machine without the workload.
    pub fn background_fraction(&self) -> Option<f64> {
        let cycles: Option<f64> = self.rounds.iter().map(|round| round.background.gross_cycles).sum();
        let capacity: f64 = self.rounds.iter().map(|round| round.background.capacity_seconds).sum();
        (capacity > 0.0).then_some(cycles? / capacity / self.context.clock.0)
    }

    /// Net cycles of a case in all rounds; `None` where unknown.
    pub fn net_cycles(&self, case: usize) -> Option<f64> {
        self.rounds.iter().map(|round| round.net_cycles(case)).sum()
    }

    /// Cycles of a case's own threads in all rounds; `None` where unknown.
    pub fn thread_cycles(&self, case: usize) -> Option<f64> {
        self.rounds.iter().filter_map(|round| round.cases.get(case)).map(|sums| sums.thread_cycles).sum()
    }

    /// The clock of cycles, in Hz.
    pub fn clock(&self) -> f64 {
        self.context.clock.0
    }

    /// How busy the machine was while a case ran.
    pub fn load(&self, case: usize) -> Option<CaseLoad> {
        let sums = || self.rounds.iter().filter_map(|round| round.cases.get(case));
        let gross: Option<f64> = sums().map(|sums| sums.gross_cycles).sum();
        let capacity: f64 = sums().map(|sums| sums.capacity_seconds).sum();
        let own = self.thread_cycles(case);
        let (gross, net) = (gross?, self.net_cycles(case)?);
        // Stolen time was not available to anyone.
        let had = capacity * self.context.clock.0 * (1.0 - self.steal_fraction().unwrap_or(0.0));
        (had > 0.0).then(|| CaseLoad {
            busy: gross / had,
            background: if net > 0.0 { (gross - net) / net } else { f64::INFINITY },
            own: own.filter(|own| *own > 0.0).map(|own| own / net.max(0.0)),
        })
    }

    pub fn cases(&self) -> usize {
        self.cases
    }

    /// The largest fraction of a case's cycles that was subtracted because the hypervisor may have stolen them.
    pub fn most_left_out(&self) -> f64 {
        let part = |case: usize| {
            let sums = || self.rounds.iter().filter_map(|round| round.cases.get(case));
            let stolen: f64 = sums().map(|sums| sums.stolen_cycles).sum();
            let all = stolen + sums().filter_map(|sums| sums.gross_cycles).sum::<f64>();
            if all > 0.0 { stolen / all } else { 0.0 }
        };
        (0..self.cases).map(part).fold(0.0, f64::max)
    }

    /// Stolen time as a fraction of the capacity.
    pub fn steal_fraction(&self) -> Option<f64> {
        let stolen: f64 = self.rounds.iter().map(|round| round.stolen.0).sum();
        let watched: f64 = self.rounds.iter().map(|round| round.stolen.1).sum();
        (watched > 0.0).then_some(stolen / watched)
    }
}

/// How busy the machine was while a case ran.
#[derive(Clone, Copy, Debug)]
pub struct CaseLoad {
    /// Busy fraction of the available CPU time.
    pub busy: f64,
    /// The subtracted background, as a fraction of the net cost; infinite if nothing remains.
    pub background: f64,
    /// The cost of the case's own threads, as a fraction of the net cost; infinite if nothing remains.
    pub own: Option<f64>,
}
