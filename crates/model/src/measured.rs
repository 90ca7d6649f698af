//! What was measured of one case between two instants, and rounds of that: work, cycles, switches, latency. The input of the statistics
//! of comparisons and blasts.
//!
//! Where it comes from, slices or executions, is not its business.

use crate::experiment::Metric;
use crate::record::Meter;
use crate::stats::{LogRatio, Pair, PairedRound, Resolution, exceeds_background, log_ratio};
use crate::study::Context;
use crate::study::caveats::NEVER_IDLE;

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

    /// Numerator and denominator of a metric in this round.
    pub fn pair(&self, metric: Metric, case: usize) -> Option<Pair> {
        let sums = self.cases.get(case)?;
        let (numerator, denominator) = match metric {
            Metric::CyclesPerIo => (self.net_cycles(case)?, sums.ios?),
            Metric::CyclesPerByte => (self.net_cycles(case)?, sums.bytes?),
            Metric::Cycles => {
                let net = sums.whole_cycles? - self.background_rate()? * sums.whole_capacity_seconds?;
                (net, sums.count)
            }
            Metric::Seconds => (sums.whole_seconds?, sums.count),
            Metric::Iops => (sums.ios?, sums.seconds),
            Metric::BytesPerSecond => (sums.bytes?, sums.seconds),
            Metric::ContextSwitchesPerIo => (self.net_switches(case)?, sums.ios?),
            Metric::ThreadCyclesPerIo => (sums.thread_cycles?, sums.ios?),
            Metric::LatencyMean => (sums.latency_nanos?, sums.ios?),
            Metric::LatencyP50 | Metric::LatencyP99 | Metric::LatencyP999 => return None,
        };
        Some(Pair { numerator, denominator })
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
        let (numerator, denominator) = match metric {
            Metric::CyclesPerIo => (cycles, 1.0),
            Metric::CyclesPerByte => (cycles, bytes),
            Metric::Cycles => (cycles, 0.0),
            Metric::Seconds => (NANOSECOND, 0.0),
            Metric::Iops => (1.0, NANOSECOND),
            Metric::BytesPerSecond => (bytes, NANOSECOND),
            Metric::ContextSwitchesPerIo => (1.0, 1.0),
            Metric::ThreadCyclesPerIo => (NANOSECOND * self.context.clock.0, 1.0),
            Metric::LatencyMean => (1.0, 1.0),
            Metric::LatencyP50 | Metric::LatencyP99 | Metric::LatencyP999 => (0.0, 0.0),
        };
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
