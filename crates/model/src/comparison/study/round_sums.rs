//! Sums over the slices of each case in each round, the input of all statistics.
//!
//! They are updated during the measurement, because the experiment ends when it is precise enough.

use super::View;
use super::slice_readings::{Commands, SliceReadings};
use super::sliced_command::{self, CommandScale};
use crate::comparison::record::{CommandTotal, Header, RoundRecord, SliceReading, SliceRecord};
use crate::experiment::{Metric, WorkCounter};
use crate::record::{Direction, Execution, Host, JobRecord, Latency, Meter, Mode, Snapshot, Stretch};
use crate::stats::{Pair, PairedRound, Steps};
use crate::study::Context;
use crate::study::caveats::NEVER_IDLE;
use crate::study::io_time::{self, io_seconds};
use crate::study::page_cache;
use crate::study::windows::{Window, steal_taken_off, window, windows};
use crate::unit::Bytes;
use std::collections::BTreeMap;

/// Sums of one case in one round. A value that could not be read is `None`, and makes the sum unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CaseSums {
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

#[derive(Clone, Debug, Default)]
pub(crate) struct RoundSums {
    pub cases: Vec<CaseSums>,
    /// The idle machine.
    pub background: CaseSums,
    /// The idle machine in the boot of a case, by case; empty if the round has one boot.
    booted: BTreeMap<usize, CaseSums>,
    /// How to read a case's slices, by case.
    readings: BTreeMap<usize, SliceReadings>,
    /// Stolen CPU time, and the CPU time over which it was measured, which is longer than the I/O of commands.
    pub stolen: (f64, f64),
}

impl RoundSums {
    /// Cycles of a case, net of the background.
    pub fn net_cycles(&self, case: usize) -> Option<f64> {
        let sums = self.cases.get(case)?;
        Some(sums.gross_cycles? - self.background_rate(case)? * sums.capacity_seconds)
    }

    /// The idle machine that belongs to a case.
    fn background_of(&self, case: usize) -> &CaseSums {
        self.booted.get(&case).unwrap_or(&self.background)
    }

    /// Cycles of the idle machine per second of CPU time.
    fn background_rate(&self, case: usize) -> Option<f64> {
        let background = self.background_of(case);
        let capacity = background.capacity_seconds;
        (capacity > 0.0).then_some(background.gross_cycles? / capacity)
    }

    /// Not clipped at 0, as in the study of a run, because a sum over rounds would be biased.
    fn net_switches(&self, case: usize) -> Option<f64> {
        let sums = self.cases.get(case)?;
        let background = self.background_of(case);
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
                let net = sums.whole_cycles? - self.background_rate(case)? * sums.whole_capacity_seconds?;
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

/// How the meter of the cycles is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// By the first round; the others are not measured yet.
    FirstRound,
    /// Already chosen; may be none.
    Fixed(Option<Meter>),
}

/// All rounds so far.
pub(crate) struct ComparisonSums {
    cases: usize,
    context: Context,
    choice: Choice,
    counter: Option<WorkCounter>,
    /// The meter of the cycles.
    pub meter: Option<Meter>,
    pub rounds: Vec<RoundSums>,
}

impl ComparisonSums {
    pub fn new(header: &Header, choice: Choice) -> Self {
        let meter = match choice {
            Choice::Fixed(meter) => meter,
            Choice::FirstRound => None,
        };
        Self {
            cases: header.experiment.cases.len(),
            context: Context::of(&header.host),
            choice,
            counter: header.work_counter.clone(),
            meter,
            rounds: Vec::new(),
        }
    }

    /// Rounds of slices of iotoll's own, with the first meter that read every slice.
    pub fn of_rounds(cases: usize, host: &Host, rounds: &[RoundRecord]) -> Self {
        let context = Context::of(host);
        let meter = first_that_reads(rounds, &context);
        let mut sums = Self { cases, context, choice: Choice::Fixed(meter), counter: None, meter, rounds: Vec::new() };
        rounds.iter().for_each(|round| sums.add(round));
        sums
    }

    /// All rounds of a record, with the first meter that read every slice.
    pub fn of(record: View) -> Self {
        let meter = first_that_reads(record.rounds, &Context::of(&record.header.host));
        let mut sums = Self::new(record.header, Choice::Fixed(meter));
        record.rounds.iter().for_each(|round| sums.add(round));
        sums
    }

    /// Adds a complete round.
    pub fn add(&mut self, round: &RoundRecord) {
        if self.choice == Choice::FirstRound && self.rounds.is_empty() {
            self.meter = first_that_reads(std::slice::from_ref(round), &self.context);
        }
        let mut sums = RoundSums { cases: vec![CaseSums::default(); self.cases], ..RoundSums::default() };
        let mut slices = round.slices.as_slice();
        for &count in &round.boots {
            let (boot, rest) = slices.split_at_checked(count).unwrap_or((slices, &[]));
            slices = rest;
            let alone = self.sum(boot, &round.commands, &mut sums);
            let cases = boot.iter().filter_map(|slice| slice.case);
            sums.booted.extend(cases.map(|case| (case, alone.clone())));
        }
        // All slices, if the round has one boot.
        self.sum(slices, &round.commands, &mut sums);
        self.rounds.push(sums);
    }

    /// Adds slices to the sums of a round. Returns those of the idle machine.
    fn sum(&self, slices: &[SliceRecord], totals: &[CommandTotal], sums: &mut RoundSums) -> CaseSums {
        let mut alone = CaseSums::default();
        let commands = Commands { counter: self.counter.as_ref(), totals };
        let by_case = SliceReadings::by_case(slices, commands, self.meter, &self.context);
        for slice in slices.iter().filter(|slice| !sliced_command::is_uncounted(slice)) {
            let readings = by_case.get(&slice.case).copied();
            let readings = readings.unwrap_or_else(|| self.unknown_readings());
            let read = sums_of(slice, self.meter, &readings);
            let (stolen, watched) = stolen(slice, readings.context.cpus as f64);
            sums.stolen = (sums.stolen.0 + stolen, sums.stolen.1 + watched);
            match slice.case {
                None => {
                    sums.background.add(&read);
                    alone.add(&read);
                }
                Some(case) => {
                    sums.readings.insert(case, readings);
                    if let Some(case) = sums.cases.get_mut(case) {
                        case.add(&read);
                    }
                }
            }
        }
        alone
    }

    fn unknown_readings(&self) -> SliceReadings {
        SliceReadings { context: self.context, kept: 1.0, scale: CommandScale::default() }
    }

    /// How busy the machine was without the workload of a case, if the cost of the case cannot be seen for that reason.
    pub fn never_idle(&self, case: usize) -> Option<f64> {
        // Core cycles are not a fraction of time.
        self.meter.filter(|meter| meter.counts_time())?;
        let alone = || self.rounds.iter().map(|round| round.background_of(case));
        let cycles: f64 = alone().filter_map(|sums| sums.gross_cycles).sum();
        let capacity: f64 = alone().map(|sums| sums.capacity_seconds).sum();
        Some(cycles / capacity / self.context.clock.0).filter(|busy| *busy > NEVER_IDLE)
    }

    /// Both cases of a comparison in every round.
    pub fn paired(&self, metric: Metric, baseline: usize, candidate: usize) -> Option<Vec<PairedRound>> {
        let both = self.pairs(metric, baseline)?.into_iter().zip(self.pairs(metric, candidate)?);
        Some(both.map(|(baseline, candidate)| PairedRound { baseline, candidate }).collect())
    }

    /// The smallest steps of a metric's readings of a case.
    pub fn steps(&self, metric: Metric, case: usize) -> Steps {
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
        Steps { numerator, denominator, readings: 2.0 * slices }
    }

    /// One case in every round; `None` if a round lacks it, or a value is unknown.
    pub fn pairs(&self, metric: Metric, case: usize) -> Option<Vec<Pair>> {
        let unseen = metric.is_of_whole_machine() && self.never_idle(case).is_some();
        let pairs = self.rounds.iter().map(|round| round.pair(metric, case));
        if unseen { None } else { pairs.collect() }
    }

    /// One slice, net of the background of its round.
    pub fn point(&self, round: usize, slice: &SliceRecord) -> SliceSums {
        let known = self.rounds.get(round).and_then(|round| round.readings.get(&slice.case?).copied());
        let readings = known.unwrap_or_else(|| self.unknown_readings());
        let read = sums_of(slice, self.meter, &readings);
        let (ios, seconds) = (read.ios, Some(read.seconds).filter(|seconds| *seconds > 0.0));
        let alone = self.rounds.get(round).map(|round| RoundSums {
            cases: vec![read],
            background: slice.case.map_or(&round.background, |case| round.background_of(case)).clone(),
            ..RoundSums::default()
        });
        let pair = alone.and_then(|alone| alone.pair(Metric::CyclesPerIo, 0));
        let cycles_per_io = pair.filter(|pair| pair.denominator > 0.0).map(|pair| pair.numerator / pair.denominator);
        SliceSums { ios, seconds, cycles_per_io }
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
pub(crate) struct CaseLoad {
    /// Busy fraction of the available CPU time.
    pub busy: f64,
    /// The subtracted background, as a fraction of the net cost; infinite if nothing remains.
    pub background: f64,
    /// The cost of the case's own threads, as a fraction of the net cost; infinite if nothing remains.
    pub own: Option<f64>,
}

/// The first meter that read every slice of these rounds.
fn first_that_reads(rounds: &[RoundRecord], context: &Context) -> Option<Meter> {
    let reads = |meter: &Meter| {
        rounds.iter().flat_map(|round| &round.slices).all(|slice| cycles(slice, *meter, context).is_some())
    };
    Meter::by_trust().find(reads)
}

impl CaseSums {
    fn add(&mut self, other: &Self) {
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

/// What one slice did, and what that cost; `None` where it is unknown.
pub struct SliceSums {
    pub ios: Option<f64>,
    /// The time that they took, in seconds.
    pub seconds: Option<f64>,
    /// Net cycles per I/O.
    pub cycles_per_io: Option<f64>,
}

fn sums_of(slice: &SliceRecord, meter: Option<Meter>, readings: &SliceReadings) -> CaseSums {
    let context = &readings.context;
    let (gross_cycles, capacity_seconds) = meter
        .and_then(|meter| cycles(slice, meter, context))
        .map_or((None, 0.0), |(cycles, capacity)| (Some(cycles), capacity));
    match &slice.reading {
        SliceReading::Slice { before, after, work, .. } => {
            let machine_seconds = after.at_nanos.since(before.at_nanos).seconds();
            let ran = slice.case.is_some();
            let known = |value: f64| ran.then_some(value);
            CaseSums {
                count: 1.0,
                whole_seconds: None,
                whole_cycles: None,
                whole_capacity_seconds: None,
                seconds: if ran { work.wall_nanos.seconds() } else { machine_seconds },
                ios: known(work.ios as f64),
                bytes: known(work.bytes.as_f64()),
                gross_cycles: gross_cycles.map(|cycles| cycles * readings.kept),
                stolen_cycles: gross_cycles.map_or(0.0, |cycles| cycles * (1.0 - readings.kept)),
                capacity_seconds,
                switches: switches(before, after),
                thread_cycles: known(work.thread_nanos.seconds() * context.clock.0),
                latency_nanos: known(work.latency_nanos.as_f64()),
                read_bytes: work.read_bytes.map(Bytes::as_f64),
                storage_read: work.storage_read.map(Bytes::as_f64),
                reported: Vec::new(),
            }
        }
        SliceReading::Command { before, first, last, after } => CaseSums {
            count: 1.0,
            seconds: last.at_nanos.since(first.at_nanos).seconds(),
            ios: readings.scale.ios(first, last),
            bytes: readings.scale.bytes(first, last),
            gross_cycles: gross_cycles.map(|cycles| cycles * readings.kept),
            stolen_cycles: gross_cycles.map_or(0.0, |cycles| cycles * (1.0 - readings.kept)),
            capacity_seconds,
            switches: switches(before, after),
            thread_cycles: sliced_command::thread_nanos(first, last).map(|nanos| nanos / 1e9 * context.clock.0),
            read_bytes: readings.scale.read_bytes(first, last),
            storage_read: sliced_command::storage_read(first, last),
            ..CaseSums::default()
        },
        SliceReading::Execution(execution) => CaseSums {
            count: 1.0,
            whole_seconds: whole_seconds(execution),
            whole_cycles: meter.and_then(|meter| whole(execution, meter, context)).map(|(cycles, _)| cycles),
            whole_capacity_seconds: meter
                .and_then(|meter| whole(execution, meter, context))
                .map(|(_, capacity)| capacity),
            seconds: io_seconds(execution),
            ios: total(execution, JobRecord::ios),
            bytes: total(execution, |job| job.bytes().0),
            gross_cycles,
            stolen_cycles: meter.map_or(0.0, |meter| steal_taken_off(execution, meter, context)),
            capacity_seconds,
            switches: io_time::switches(execution),
            thread_cycles: execution.own_nanos().map(|nanos| nanos.seconds() * context.clock.0),
            latency_nanos: reported_mean(execution),
            read_bytes: page_cache::file_reads(execution),
            storage_read: page_cache::from_storage(execution),
            reported: reported_percentiles(execution),
        },
    }
}

/// Cycles of the whole machine in a slice (including stolen ones for short slices), and the available seconds of CPU
/// time.
pub(super) fn cycles(slice: &SliceRecord, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } | SliceReading::Command { before, after, .. } => {
            let window = window(before, after, meter, context)?;
            (window.capacity_seconds > 0.0).then_some((window.cycles, window.capacity_seconds))
        }
        SliceReading::Execution(execution) => {
            let whole = io_seconds(execution) * context.cpus as f64;
            let (cycles, capacity) = during_io(execution, meter, context);
            // Windows cover all of the time except its ends, so their rate is used for the whole time.
            (capacity > 0.0).then(|| (cycles / capacity * whole, whole))
        }
    }
}

/// From before the start of a command until after its end.
fn whole_seconds(execution: &Execution) -> Option<f64> {
    let snapshots = &execution.stretch.snapshots;
    Some(snapshots.last()?.at_nanos.since(snapshots.first()?.at_nanos).seconds())
}

/// Cycles and capacity over a whole execution.
fn whole(execution: &Execution, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    let windows = windows(execution, meter, None, context);
    let sum = |of: fn(&Window) -> f64| windows.iter().map(of).sum::<f64>();
    let (cycles, capacity) = (sum(|window| window.cycles), sum(|window| window.capacity_seconds));
    let all = whole_seconds(execution)? * context.cpus as f64;
    (capacity > 0.0).then(|| (cycles / capacity * all, all))
}

/// Cycles and capacity of the windows in which the command did I/O. If these windows cover less than half of that time,
/// the windows at its ends are included in proportion.
fn during_io(execution: &Execution, meter: Meter, context: &Context) -> (f64, f64) {
    let sum = |windows: &[(f64, Window)]| {
        let add = |(cycles, capacity): (f64, f64), (part, window): &(f64, Window)| {
            (cycles + part * window.cycles, capacity + part * window.capacity_seconds)
        };
        windows.iter().fold((0.0, 0.0), add)
    };
    let within = windows(execution, meter, execution.io_interval, context);
    let covered: f64 = within.iter().map(Window::seconds).sum();
    match execution.io_interval {
        Some(interval) if covered < io_seconds(execution) / 2.0 => {
            let part = |window: Window| {
                let (begin, end) = (window.begin.max(interval.begin_nanos), window.end.min(interval.end_nanos));
                (end.since(begin).seconds() / window.seconds(), window)
            };
            sum(&windows(execution, meter, None, context).into_iter().map(part).collect::<Vec<_>>())
        }
        _ => sum(&within.into_iter().map(|window| (1.0, window)).collect::<Vec<_>>()),
    }
}

fn switches(before: &Snapshot, after: &Snapshot) -> Option<f64> {
    let (before, after) = (before.system.as_ref()?, after.system.as_ref()?);
    Some(after.context_switches.saturating_sub(before.context_switches) as f64)
}

fn total(execution: &Execution, of: fn(&JobRecord) -> u64) -> Option<f64> {
    let total: u64 = execution.jobs.iter().map(of).fold(0, u64::saturating_add);
    (total > 0).then_some(total as f64)
}

fn reported_mean(execution: &Execution) -> Option<f64> {
    let mut sum = 0.0;
    for direction in active(execution) {
        let Latency::Reported { mean_nanos, .. } = direction.latency else { return None };
        sum += mean_nanos * direction.ios as f64;
    }
    (sum > 0.0).then_some(sum)
}

/// Percentiles of several jobs or directions cannot be pooled, so the result is then empty.
fn reported_percentiles(execution: &Execution) -> Vec<(f64, f64)> {
    match active(execution).collect::<Vec<_>>().as_slice() {
        [only] => match &only.latency {
            Latency::Reported { percentiles, .. } => {
                percentiles.iter().map(|(percent, nanos)| (*percent, nanos.as_f64())).collect()
            }
            Latency::None | Latency::Ticks(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The directions of all jobs in which I/Os were done.
fn active(execution: &Execution) -> impl Iterator<Item = &Direction> {
    execution.jobs.iter().flat_map(JobRecord::directions).filter(|direction| direction.ios > 0)
}

/// Stolen CPU seconds, and the CPU seconds between the two readings.
fn stolen(slice: &SliceRecord, cpus: f64) -> (f64, f64) {
    let ends = match &slice.reading {
        SliceReading::Slice { .. } | SliceReading::Command { .. } => slice.reading.ends(),
        SliceReading::Execution(Execution { stretch: Stretch { snapshots, .. }, .. }) => {
            let measured = |snapshot: &&Snapshot| snapshot.mode != Mode::Gap;
            snapshots.iter().find(measured).zip(snapshots.last())
        }
    };
    let read = ends.and_then(|(before, after)| {
        let (first, last) = (before.system.as_ref()?, after.system.as_ref()?);
        let watched = after.at_nanos.since(before.at_nanos).seconds() * cpus;
        Some((last.steal_nanos.since(first.steal_nanos).seconds(), watched))
    });
    read.unwrap_or((0.0, 0.0))
}
