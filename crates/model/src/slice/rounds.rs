//! What was measured in slices and executions: work, cycles, switches, latency, summed by case and round. It is the input of their statistics.
//!
//! The sums grow while the experiment is measured, because it ends when it is precise enough.

use super::command::{self, CommandScale, Commands};
use super::{RoundRecord, SliceReading, SliceRecord, execution};
use crate::experiment::metric::Term;
use crate::experiment::{Metric, WorkCounter};
use crate::record::{Host, Meter, MeterStatus, Snapshot};
use crate::stats::{LogRatio, Pair, PairedRound, Resolution, exceeds_background, log_ratio};
use crate::study::Context;
use crate::study::caveats::NEVER_IDLE;
use crate::study::windows::{Busy, Columns, charged_in, part_of_steal_in, shares, window};
use crate::unit::Bytes;
use std::collections::BTreeMap;

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
    /// Without this many at the beginning.
    pub fn after(&self, rounds: usize) -> Self {
        Self { rounds: self.rounds.get(rounds..).unwrap_or_default().to_vec(), ..*self }
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

/// Common properties of the slices of one case in a round.
#[derive(Clone, Copy, Debug)]
struct SliceReadings {
    /// The CPUs of the machine, which may differ between rounds.
    context: Context,
    /// The fraction of busy time that remains after subtracting steal. Steal is counted in ticks of 10 ms, which is too
    /// coarse for a slice, but not for a round.
    kept: f64,
    /// What a count of a sliced command is worth.
    scale: CommandScale,
}

impl SliceReadings {
    /// For each case, and for the idle machine (`None`).
    fn by_case(
        slices: &[SliceRecord],
        commands: Commands,
        meter: Option<Meter>,
        context: &Context,
    ) -> BTreeMap<Option<usize>, Self> {
        let context = Context { cpus: cpus(slices).unwrap_or(context.cpus), ..*context };
        let meter = meter.filter(|meter| meter.takes_steal_for_busy());
        let mut busy: BTreeMap<Option<usize>, Busy> = BTreeMap::new();
        let (mut steal, mut sampled) = (0.0, None);
        for slice in slices {
            let of_case = busy.entry(slice.case).or_default();
            let Some((before, after)) = slice.reading.ends() else { continue };
            let (tasks, own) = match &slice.reading {
                SliceReading::Slice { work, tasks, .. } => (tasks.as_ref(), work.thread_nanos.as_f64()),
                SliceReading::Command { first, last, .. } => (None, command::thread_nanos(first, last).unwrap_or(0.0)),
                SliceReading::Execution(_) => continue,
            };
            let columns = Columns::between(before, after).unwrap_or_default();
            steal += columns.steal;
            let read = meter.and_then(|meter| cycles(slice, meter, &context));
            of_case.not_idle += read.map_or(0.0, |(cycles, _)| cycles / context.clock.0 * 1e9);
            // Clocks that include steal do not show where it is.
            of_case.charged += match tasks {
                _ if context.steal_in_task_clocks => 0.0,
                Some(tasks) => charged_in(tasks, before, after),
                None => own,
            };
            if tasks.is_none() || context.steal_in_task_clocks {
                *sampled.get_or_insert(0.0) += columns.busy.unwrap_or(0.0);
            }
        }
        let sum = |of: fn(&Busy) -> f64| busy.values().map(of).sum::<f64>();
        let (not_idle, charged) = (sum(|busy| busy.not_idle), sum(|busy| busy.charged));
        // The workers' clocks exclude the work of others, and the columns may be too low: the true value is at least
        // the larger one.
        let charged = sampled.map_or(charged, |sampled: f64| sampled.max(charged));
        let taken = steal * part_of_steal_in(not_idle, steal, Some(charged));
        let kept = shares(&busy, taken).into_iter();
        kept.map(|(case, kept)| (case, Self { context, kept, scale: CommandScale::of(commands, case) })).collect()
    }
}

/// How the meter of the cycles is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By the first round; the others are not measured yet.
    FirstRound,
    /// By all of the rounds.
    AllRounds,
    /// Already chosen; may be none.
    Fixed(Option<Meter>),
}

/// Rounds of slices, as they are measured.
pub struct MeasuredSlices {
    pub rounds: Rounds,
    /// How to read the slices of each case, by round.
    readings: Vec<BTreeMap<usize, SliceReadings>>,
    choice: Choice,
    counter: Option<WorkCounter>,
}

impl MeasuredSlices {
    /// These rounds; more may be added.
    pub fn of(
        cases: usize,
        host: &Host,
        counter: Option<&WorkCounter>,
        (choice, rounds): (Choice, &[RoundRecord]),
    ) -> Self {
        let context = Context::of(host);
        let meter = match choice {
            Choice::Fixed(meter) => meter,
            Choice::AllRounds => first_that_reads(rounds, &context),
            Choice::FirstRound => None,
        };
        let empty = Rounds { cases, context, meter, rounds: Vec::new() };
        let mut measured = Self { rounds: empty, readings: Vec::new(), choice, counter: counter.cloned() };
        rounds.iter().for_each(|round| measured.add(round));
        measured
    }

    /// Without this many rounds at the beginning.
    pub fn after(&self, rounds: usize) -> Self {
        let readings = self.readings.get(rounds..).unwrap_or_default().to_vec();
        Self { rounds: self.rounds.after(rounds), readings, counter: self.counter.clone(), ..*self }
    }

    /// Adds a complete round.
    pub fn add(&mut self, round: &RoundRecord) {
        if self.choice == Choice::FirstRound && self.rounds.rounds.is_empty() {
            self.rounds.meter = first_that_reads(std::slice::from_ref(round), &self.rounds.context);
        }
        let mut sums = Round { cases: vec![Measured::default(); self.rounds.cases], ..Round::default() };
        let mut readings = BTreeMap::new();
        let meter = self.rounds.meter;
        let commands = Commands { counter: self.counter.as_ref(), totals: &round.commands };
        let by_case = SliceReadings::by_case(&round.slices, commands, meter, &self.rounds.context);
        for slice in round.slices.iter().filter(|slice| !slice.reading.is_uncounted()) {
            let by_case = by_case.get(&slice.case).copied().unwrap_or_else(|| self.unknown_readings());
            let read = measured(slice, meter, &by_case);
            let (stolen, watched) = slice.reading.stolen(by_case.context.cpus as f64);
            sums.stolen = (sums.stolen.0 + stolen, sums.stolen.1 + watched);
            match slice.case {
                None => sums.background.add(&read),
                Some(case) => {
                    readings.insert(case, by_case);
                    if let Some(case) = sums.cases.get_mut(case) {
                        case.add(&read);
                    }
                }
            }
        }
        self.rounds.rounds.push(sums);
        self.readings.push(readings);
    }

    fn unknown_readings(&self) -> SliceReadings {
        SliceReadings { context: self.rounds.context, kept: 1.0, scale: CommandScale::default() }
    }

    /// One slice, net of the background of its round.
    pub fn cost(&self, round: usize, slice: &SliceRecord) -> SliceCost {
        let known = self.readings.get(round).and_then(|readings| readings.get(&slice.case?).copied());
        let readings = known.unwrap_or_else(|| self.unknown_readings());
        let read = measured(slice, self.rounds.meter, &readings);
        let (ios, seconds) = (read.ios, Some(read.seconds).filter(|seconds| *seconds > 0.0));
        let alone = self.rounds.rounds.get(round).filter(|round| !self.rounds.is_unseen(round)).map(|round| Round {
            cases: vec![read],
            background: round.background.clone(),
            ..Round::default()
        });
        let pair = alone.and_then(|alone| alone.pair(Metric::CyclesPerIo, 0));
        let cycles_per_io = pair.filter(|pair| pair.denominator > 0.0).map(|pair| pair.numerator / pair.denominator);
        SliceCost { ios, seconds, cycles_per_io }
    }
}

/// The first meter that read every slice of these rounds, and is fine enough for them.
fn first_that_reads(rounds: &[RoundRecord], context: &Context) -> Option<Meter> {
    Meter::by_trust().find(|meter| slices(rounds).all(|slice| reads(*meter, slice, context)))
}

/// Why none of these meters did.
pub fn why_unmetered(rounds: &[RoundRecord], meters: &[MeterStatus]) -> &'static str {
    let of_machine = || meters.iter().filter(|it| Meter::by_trust().any(|meter| meter == it.meter));
    let runs = |fits: &dyn Fn(Meter) -> bool| of_machine().any(|it| it.status.taken().is_some() && fits(it.meter));
    if runs(&|meter| slices(rounds).all(|slice| is_fine_enough(meter, slice))) {
        "no meter of the whole machine read all slices: a CPU came or went, or a reading failed; measure again"
    } else if runs(&|_| true) {
        "slices are too short for the steps of the meters of the whole machine; see `iotoll doctor`"
    } else if of_machine().any(|it| it.status.reason().is_some_and(|reason| reason.starts_with("not chosen"))) {
        "--meters leaves out the meters of the whole machine"
    } else {
        "no meter of the whole machine is available; see `iotoll doctor`"
    }
}

/// Number of CPUs according to the machine's own clocks.
fn cpus(slices: &[SliceRecord]) -> Option<usize> {
    let of = |snapshot: &Snapshot| {
        let most =
            snapshot.counts.iter().filter(|(meter, _)| meter.sees_whole_machine()).map(|(_, count)| count.cpus).max();
        most.and_then(|cpus| usize::try_from(cpus).ok()).filter(|cpus| *cpus > 0)
    };
    slices.iter().find_map(|slice| slice.reading.pairs().find_map(|(before, _)| of(before)))
}

fn slices(rounds: &[RoundRecord]) -> impl Iterator<Item = &SliceRecord> {
    rounds.iter().flat_map(|round| &round.slices)
}

fn reads(meter: Meter, slice: &SliceRecord, context: &Context) -> bool {
    is_fine_enough(meter, slice) && cycles(slice, meter, context).is_some()
}

/// Whether a slice of a case has a thousand steps of the meter's reading: 10 s for the ticks of /proc/stat.
fn is_fine_enough(meter: Meter, slice: &SliceRecord) -> bool {
    const STEPS: f64 = 1e3;
    let length = |(before, after): (&Snapshot, &Snapshot)| after.at_nanos.since(before.at_nanos).as_f64();
    let is_slice = slice.case.is_some() && !matches!(slice.reading, SliceReading::Execution(_));
    let length = slice.reading.ends().filter(|_| is_slice).map(length);
    length.is_none_or(|length| length >= STEPS * meter.resolution_nanos())
}

/// What one slice did, and what that cost; `None` where it is unknown.
pub struct SliceCost {
    pub ios: Option<f64>,
    /// The time that they took, in seconds.
    pub seconds: Option<f64>,
    /// Net cycles per I/O.
    pub cycles_per_io: Option<f64>,
}

fn measured(slice: &SliceRecord, meter: Option<Meter>, readings: &SliceReadings) -> Measured {
    let context = &readings.context;
    let (gross_cycles, capacity_seconds) = meter
        .and_then(|meter| cycles(slice, meter, context))
        .map_or((None, 0.0), |(cycles, capacity)| (Some(cycles), capacity));
    let of_slice = || Measured {
        count: 1.0,
        gross_cycles: gross_cycles.map(|cycles| cycles * readings.kept),
        stolen_cycles: gross_cycles.map_or(0.0, |cycles| cycles * (1.0 - readings.kept)),
        capacity_seconds,
        switches: slice.reading.ends().and_then(|(before, after)| switches(before, after)),
        ..Measured::default()
    };
    match &slice.reading {
        SliceReading::Slice { before, after, .. } if slice.case.is_none() => {
            Measured { seconds: after.at_nanos.since(before.at_nanos).seconds(), ..of_slice() }
        }
        SliceReading::Slice { work, .. } => Measured {
            seconds: work.wall_nanos.seconds(),
            ios: Some(work.ios as f64),
            bytes: Some(work.bytes.as_f64()),
            thread_cycles: Some(work.thread_nanos.seconds() * context.clock.0),
            latency_nanos: Some(work.latency_nanos.as_f64()),
            read_bytes: work.read_bytes.map(Bytes::as_f64),
            storage_read: work.storage_read.map(Bytes::as_f64),
            ..of_slice()
        },
        SliceReading::Command { first, last, .. } => Measured {
            seconds: last.at_nanos.since(first.at_nanos).seconds(),
            ios: readings.scale.ios(first, last),
            bytes: readings.scale.bytes(first, last),
            thread_cycles: command::thread_nanos(first, last).map(|nanos| nanos / 1e9 * context.clock.0),
            read_bytes: readings.scale.read_bytes(first, last),
            storage_read: command::storage_read(first, last),
            ..of_slice()
        },
        SliceReading::Execution(execution) => {
            Measured { gross_cycles, capacity_seconds, ..execution::measured(execution, meter, context) }
        }
    }
}

fn switches(before: &Snapshot, after: &Snapshot) -> Option<f64> {
    let (before, after) = (before.system.as_ref()?, after.system.as_ref()?);
    Some(after.context_switches.saturating_sub(before.context_switches) as f64)
}

/// Cycles of the whole machine in a slice (including stolen ones for short slices), and the available seconds of CPU
/// time.
pub(crate) fn cycles(slice: &SliceRecord, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } | SliceReading::Command { before, after, .. } => {
            let window = window(before, after, meter, context)?;
            (window.capacity_seconds > 0.0).then_some((window.cycles, window.capacity_seconds))
        }
        SliceReading::Execution(execution) => execution::cycles(execution, meter, context),
    }
}
