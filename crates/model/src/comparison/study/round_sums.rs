//! What each case did in each round, summed from its slices: all that the statistics look at.
//!
//! Kept up to date while measuring, because the experiment ends when it is precise enough.

use super::View;
use super::slice_readings::SliceReadings;
use crate::comparison::record::{Header, RoundRecord, SliceReading, SliceRecord};
use crate::experiment::Metric;
use crate::record::{Execution, JobRecord, Latency, Meter, Mode, Snapshot, Stretch};
use crate::stats::{Pair, PairedRound};
use crate::study::Context;
use crate::study::caveats::NEVER_IDLE;
use crate::study::io_time::{self, io_seconds};
use crate::study::storage;
use crate::study::windows::{Window, steal_taken_off, window, windows};
use crate::unit::Bytes;
use std::collections::BTreeMap;

/// Sums of one case in one round. What could not be read is `None`, and then the sum is of no use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CaseSums {
    /// Slices or executions.
    pub count: f64,
    /// Of executions from their beginning to their end, whenever they did I/O; a slice is as long as it was told to be.
    pub whole_seconds: Option<f64>,
    pub whole_cycles: Option<f64>,
    pub whole_capacity_seconds: Option<f64>,
    pub seconds: f64,
    pub ios: Option<f64>,
    pub bytes: Option<f64>,
    /// Cycles of the whole machine, the background included.
    pub gross_cycles: Option<f64>,
    /// What was taken off that because the hypervisor may have taken it.
    pub stolen_cycles: f64,
    /// Seconds of CPU that the machine had meanwhile.
    pub capacity_seconds: f64,
    pub switches: Option<f64>,
    pub thread_cycles: Option<f64>,
    pub latency_nanos: Option<f64>,
    pub read_bytes: Option<f64>,
    /// What storage read for the case.
    pub storage_read: Option<f64>,
    /// Percentiles as a foreign program reported them: percent and nanoseconds.
    pub reported: Vec<(f64, f64)>,
}

/// One round.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundSums {
    /// By case.
    pub cases: Vec<CaseSums>,
    /// The machine alone.
    pub background: CaseSums,
    /// The machine alone in the boot of a case, by case; empty where a round is of one boot.
    booted: BTreeMap<usize, CaseSums>,
    /// How a case's slices are read, by case.
    readings: BTreeMap<usize, SliceReadings>,
    /// CPU time that the hypervisor took, and the CPU time in which it was watched: longer than the I/O of commands.
    pub stolen: (f64, f64),
}

impl RoundSums {
    /// Cycles of a case, relieved of what the machine does anyway.
    pub fn net_cycles(&self, case: usize) -> Option<f64> {
        let sums = self.cases.get(case)?;
        Some(sums.gross_cycles? - self.background_rate(case)? * sums.capacity_seconds)
    }

    /// The machine alone as it was for a case.
    fn background_of(&self, case: usize) -> &CaseSums {
        self.booted.get(&case).unwrap_or(&self.background)
    }

    /// Cycles of the machine alone for each second of CPU that it had.
    fn background_rate(&self, case: usize) -> Option<f64> {
        let background = self.background_of(case);
        let capacity = background.capacity_seconds;
        (capacity > 0.0).then_some(background.gross_cycles? / capacity)
    }

    /// Not clipped at 0, as in the study of a run: a sum over rounds would be biased.
    fn net_switches(&self, case: usize) -> Option<f64> {
        let sums = self.cases.get(case)?;
        let background = self.background_of(case);
        let rate = match background.switches {
            Some(switches) if background.seconds > 0.0 => switches / background.seconds,
            _ => return None,
        };
        Some(sums.switches? - rate * sums.seconds)
    }

    /// What a metric that is a ratio of sums divides in this round.
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

/// Who says which meter cycles come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The first round: the rest is not measured yet.
    FirstRound,
    /// It is decided, also that there is none.
    Fixed(Option<Meter>),
}

/// All rounds so far.
pub(crate) struct ComparisonSums {
    cases: usize,
    context: Context,
    choice: Choice,
    /// The meter that cycles come from.
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
            meter,
            rounds: Vec::new(),
        }
    }

    /// All rounds of a record, with the first meter that read every slice of it.
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
            let alone = self.sum(boot, &mut sums);
            let cases = boot.iter().filter_map(|slice| slice.case);
            sums.booted.extend(cases.map(|case| (case, alone.clone())));
        }
        // Of no boot in particular: all slices, where a round is of one boot.
        self.sum(slices, &mut sums);
        self.rounds.push(sums);
    }

    /// Adds slices to the sums of a round: what the machine did alone in them.
    fn sum(&self, slices: &[SliceRecord], sums: &mut RoundSums) -> CaseSums {
        let mut alone = CaseSums::default();
        let by_case = SliceReadings::by_case(slices, self.meter, &self.context);
        for slice in slices {
            let readings = by_case.get(&slice.case).copied();
            let readings = readings.unwrap_or(SliceReadings { context: self.context, kept: 1.0 });
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

    /// How busy the machine was alone beside a case, where that leaves no idle time in which the case could be seen.
    pub fn never_idle(&self, case: usize) -> Option<f64> {
        // Core cycles are no fraction of time.
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

    /// One case in every round; `None` when a round lacks it, or nothing can be known of it.
    pub fn pairs(&self, metric: Metric, case: usize) -> Option<Vec<Pair>> {
        let unseen = metric.is_of_whole_machine() && self.never_idle(case).is_some();
        let pairs = self.rounds.iter().map(|round| round.pair(metric, case));
        if unseen { None } else { pairs.collect() }
    }

    /// Net cycles and I/Os per second of one slice, its round's background taken off.
    pub fn point(&self, round: usize, slice: &SliceRecord) -> (Option<f64>, Option<f64>) {
        let known = self.rounds.get(round).and_then(|round| round.readings.get(&slice.case?).copied());
        let readings = known.unwrap_or(SliceReadings { context: self.context, kept: 1.0 });
        let read = sums_of(slice, self.meter, &readings);
        let iops = read.ios.filter(|_| read.seconds > 0.0).map(|ios| ios / read.seconds);
        let alone = self.rounds.get(round).map(|round| RoundSums {
            cases: vec![read],
            background: slice.case.map_or(&round.background, |case| round.background_of(case)).clone(),
            ..RoundSums::default()
        });
        let pair = alone.and_then(|alone| alone.pair(Metric::CyclesPerIo, 0));
        let cost = pair.filter(|pair| pair.denominator > 0.0).map(|pair| pair.numerator / pair.denominator);
        (cost, iops)
    }

    /// Part of the capacity that the machine used without the workload.
    pub fn background_fraction(&self) -> Option<f64> {
        let cycles: Option<f64> = self.rounds.iter().map(|round| round.background.gross_cycles).sum();
        let capacity: f64 = self.rounds.iter().map(|round| round.background.capacity_seconds).sum();
        (capacity > 0.0).then_some(cycles? / capacity / self.context.clock.0)
    }

    /// How busy the machine was while one case ran.
    pub fn load(&self, case: usize) -> Option<CaseLoad> {
        let sums = || self.rounds.iter().filter_map(|round| round.cases.get(case));
        let gross: Option<f64> = sums().map(|sums| sums.gross_cycles).sum();
        let net: Option<f64> = self.rounds.iter().map(|round| round.net_cycles(case)).sum();
        let capacity: f64 = sums().map(|sums| sums.capacity_seconds).sum();
        let (gross, net) = (gross?, net?);
        // What the hypervisor took nobody could be busy in.
        let had = capacity * self.context.clock.0 * (1.0 - self.steal_fraction().unwrap_or(0.0));
        (had > 0.0 && net > 0.0).then(|| CaseLoad { busy: gross / had, background: (gross - net) / net })
    }

    /// How many cases there are.
    pub fn cases(&self) -> usize {
        self.cases
    }

    /// The largest part of a case's cycles that is left out of them because the hypervisor may have taken it.
    pub fn most_left_out(&self) -> f64 {
        let part = |case: usize| {
            let sums = || self.rounds.iter().filter_map(|round| round.cases.get(case));
            let stolen: f64 = sums().map(|sums| sums.stolen_cycles).sum();
            let all = stolen + sums().filter_map(|sums| sums.gross_cycles).sum::<f64>();
            if all > 0.0 { stolen / all } else { 0.0 }
        };
        (0..self.cases).map(part).fold(0.0, f64::max)
    }

    /// Part of the capacity that the hypervisor took.
    pub fn steal_fraction(&self) -> Option<f64> {
        let stolen: f64 = self.rounds.iter().map(|round| round.stolen.0).sum();
        let watched: f64 = self.rounds.iter().map(|round| round.stolen.1).sum();
        (watched > 0.0).then_some(stolen / watched)
    }
}

/// How busy the machine was while a case ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseLoad {
    /// Part of the CPU time that the machine had.
    pub busy: f64,
    /// What was taken off as background, as a part of what was left.
    pub background: f64,
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
        // The first slice sets what is known; later ones that lack it make it unknown.
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
            read_bytes: storage::file_reads(execution),
            storage_read: storage::from_storage(execution),
            reported: reported_percentiles(execution),
        },
    }
}

/// Cycles of the whole machine in a slice, what the hypervisor took of short ones left in, and the seconds of CPU that it had meanwhile.
pub(super) fn cycles(slice: &SliceRecord, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } => {
            let window = window(before, after, meter, context)?;
            (window.capacity_seconds > 0.0).then_some((window.cycles, window.capacity_seconds))
        }
        SliceReading::Execution(execution) => {
            let whole = io_seconds(execution) * context.cpus as f64;
            let (cycles, capacity) = during_io(execution, meter, context);
            // Windows cover all of the time but its ends: their rate holds there too.
            (capacity > 0.0).then(|| (cycles / capacity * whole, whole))
        }
    }
}

/// From before a command was started until after it had ended.
fn whole_seconds(execution: &Execution) -> Option<f64> {
    let snapshots = &execution.stretch.snapshots;
    Some(snapshots.last()?.at_nanos.since(snapshots.first()?.at_nanos).seconds())
}

/// Cycles and capacity over all of an execution.
fn whole(execution: &Execution, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    let windows = windows(execution, meter, None, context);
    let sum = |of: fn(&Window) -> f64| windows.iter().map(of).sum::<f64>();
    let (cycles, capacity) = (sum(|window| window.cycles), sum(|window| window.capacity_seconds));
    let all = whole_seconds(execution)? * context.cpus as f64;
    (capacity > 0.0).then(|| (cycles / capacity * all, all))
}

/// Cycles and capacity of the windows in which the command did I/O. Where that time is so short that windows cover less
/// than half of it, those at its ends count with the part that lies in it.
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
    let directions = || execution.jobs.iter().flat_map(|job| [&job.read, &job.write, &job.trim]);
    let mut sum = 0.0;
    for direction in directions().filter(|direction| direction.ios > 0) {
        let Latency::Reported { mean_nanos, .. } = direction.latency else { return None };
        sum += mean_nanos * direction.ios as f64;
    }
    (sum > 0.0).then_some(sum)
}

/// Percentiles of several jobs or directions cannot be pooled, so there are none then.
fn reported_percentiles(execution: &Execution) -> Vec<(f64, f64)> {
    let directions = execution.jobs.iter().flat_map(|job| [&job.read, &job.write, &job.trim]);
    let active: Vec<_> = directions.filter(|direction| direction.ios > 0).collect();
    match active.as_slice() {
        [only] => match &only.latency {
            Latency::Reported { percentiles, .. } => {
                percentiles.iter().map(|(percent, nanos)| (*percent, nanos.as_f64())).collect()
            }
            Latency::None | Latency::Ticks(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// CPU seconds that the hypervisor took, and how many there were between the two readings.
fn stolen(slice: &SliceRecord, cpus: f64) -> (f64, f64) {
    let ends = match &slice.reading {
        SliceReading::Slice { before, after, .. } => Some((before.as_ref(), after.as_ref())),
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
