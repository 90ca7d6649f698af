//! What each case did in each round, summed from its slices: all that the statistics look at.
//!
//! Kept up to date while measuring, because the experiment ends when it is precise enough.

use super::View;
use crate::comparison::record::{Header, RoundRecord, SliceReading, SliceRecord};
use crate::experiment::Metric;
use crate::record::{Execution, JobRecord, Latency, Meter, Mode, Snapshot, Stretch, TaskOwner, TaskTimes};
use crate::stats::{Pair, PairedRound};
use crate::study::Context;
use crate::study::caveats::NEVER_IDLE;
use crate::study::io_time::{self, io_seconds};
use crate::study::phase::HEADLINE;
use crate::study::windows::{
    Columns, Window, part_of_steal_in, steal_taken_off, takes_steal_for_busy, window, windows,
};
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
    /// Percentiles as a foreign program reported them: percent and nanoseconds.
    pub reported: Vec<(f64, f64)>,
}

/// What the slices of one case in one boot have in common.
#[derive(Clone, Copy, Debug)]
struct SliceReadings {
    /// CPUs of the machine: a boot may have others than the one before.
    context: Context,
    /// What is left of busy time when the hypervisor's part is taken off. Steal is told in ticks of 10 ms, which would be
    /// all or nothing of a slice; over a round it is known.
    kept: f64,
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
pub(crate) struct Tally {
    cases: usize,
    context: Context,
    choice: Choice,
    /// The meter that cycles come from.
    pub meter: Option<Meter>,
    pub rounds: Vec<RoundSums>,
}

impl Tally {
    pub fn new(header: &Header, choice: Choice) -> Self {
        let meter = match choice {
            Choice::Fixed(meter) => meter,
            Choice::FirstRound => None,
        };
        Self { cases: header.experiment.cases.len(), context: context(header), choice, meter, rounds: Vec::new() }
    }

    /// All rounds of a record, with the first meter that read every slice of it.
    pub fn of(record: View) -> Self {
        let meter = first_that_reads(record.rounds, &context(record.header));
        let mut tally = Self::new(record.header, Choice::Fixed(meter));
        record.rounds.iter().for_each(|round| tally.add(round));
        tally
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
        self.meter.filter(|meter| *meter != Meter::Pmu)?;
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

impl SliceReadings {
    /// Each case's, and those of the machine alone.
    fn by_case(slices: &[SliceRecord], meter: Option<Meter>, context: &Context) -> BTreeMap<Option<usize>, Self> {
        let context = Context { cpus: cpus(slices).unwrap_or(context.cpus), ..*context };
        let meter = meter.filter(|meter| takes_steal_for_busy(*meter));
        let mut busy: BTreeMap<Option<usize>, Busy> = BTreeMap::new();
        let (mut steal, mut sampled) = (0.0, None);
        for slice in slices {
            let of_case = busy.entry(slice.case).or_default();
            let SliceReading::Slice { before, after, work, tasks } = &slice.reading else { continue };
            let columns = Columns::between(before, after).unwrap_or_default();
            steal += columns.steal;
            let read = meter.and_then(|meter| cycles(slice, meter, &context));
            of_case.not_idle += read.map_or(0.0, |(cycles, _)| cycles / context.clock.0 * 1e9);
            // Clocks that hold steal say nothing of where it lies.
            of_case.charged += match tasks {
                _ if context.steal_in_task_clocks => 0.0,
                Some(tasks) => charged_in(tasks, before, after),
                None => work.thread_nanos.as_f64(),
            };
            if tasks.is_none() || context.steal_in_task_clocks {
                *sampled.get_or_insert(0.0) += columns.busy.unwrap_or(0.0);
            }
        }
        let sum = |of: fn(&Busy) -> f64| busy.values().map(of).sum::<f64>();
        let (not_idle, charged) = (sum(|busy| busy.not_idle), sum(|busy| busy.charged));
        // The workers' clocks leave out what others did, the columns may be too little: the truth is above both.
        let charged = sampled.map_or(charged, |sampled: f64| sampled.max(charged));
        let taken = steal * part_of_steal_in(not_idle, steal, Some(charged));
        let kept = shares(&busy, taken).into_iter();
        kept.map(|(case, kept)| (case, Self { context, kept })).collect()
    }
}

/// CPU time that tasks were charged between two snapshots, nanoseconds. Tasks were read before the one and after the other, and
/// iotoll's own did little else meanwhile.
fn charged_in(tasks: &TaskTimes, before: &Snapshot, after: &Snapshot) -> f64 {
    let others = tasks.tasks.iter().filter(|task| task.owner != TaskOwner::Iotoll);
    let nanos: f64 = others.map(|task| task.nanos.as_f64()).sum();
    let (read, slice) = (tasks.wall_nanos.seconds(), after.at_nanos.since(before.at_nanos).seconds());
    if read > 0.0 { nanos * (slice / read).min(1.0) } else { 0.0 }
}

/// CPU time in the slices of one case, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    not_idle: f64,
    /// Of it, what is known to have been charged to tasks.
    charged: f64,
}

/// What each case keeps when so much is taken from all of them: they bear it by the time that they were busy, but none more than
/// it has beyond what its tasks were charged. One that sleeps has little of that, because it loses the CPU while it is idle.
fn shares(busy: &BTreeMap<Option<usize>, Busy>, taken: f64) -> BTreeMap<Option<usize>, f64> {
    let mut kept: BTreeMap<Option<usize>, f64> = busy.keys().map(|case| (*case, 1.0)).collect();
    let mut open: Vec<Option<usize>> =
        busy.iter().filter(|(_, busy)| busy.not_idle > 0.0).map(|(case, _)| *case).collect();
    let mut left = taken;
    while !open.is_empty() && left > 0.0 {
        let of = |case: &Option<usize>| busy.get(case).copied().unwrap_or_default();
        let sum: f64 = open.iter().map(|case| of(case).not_idle).sum();
        let rate = left / sum;
        let (full, rest): (Vec<_>, Vec<_>) = open.iter().partition(|case| {
            let busy = of(case);
            busy.not_idle * rate > busy.not_idle - busy.charged
        });
        for case in &full {
            let busy = of(case);
            let part = ((busy.not_idle - busy.charged) / busy.not_idle).clamp(0.0, 1.0);
            kept.insert(*case, 1.0 - part);
            left -= part * busy.not_idle;
        }
        if full.is_empty() {
            kept.extend(rest.iter().map(|case| (*case, (1.0 - rate).max(0.0))));
            break;
        }
        open = rest;
    }
    kept
}

/// How many CPUs the machine had, as its own clocks say.
fn cpus(slices: &[SliceRecord]) -> Option<usize> {
    let of = |snapshot: &Snapshot| {
        let listed = snapshot.timer_list.as_ref().map_or(0, |list| list.idle_nanos.len());
        Some(listed.max(snapshot.cpus.len())).filter(|cpus| *cpus > 0)
    };
    slices.iter().find_map(|slice| match &slice.reading {
        SliceReading::Slice { before, .. } => of(before),
        SliceReading::Execution(execution) => execution.stretch.snapshots.iter().find_map(of),
    })
}

fn context(header: &Header) -> Context {
    Context::of(&header.host)
}

/// The first meter that read every slice of these rounds.
fn first_that_reads(rounds: &[RoundRecord], context: &Context) -> Option<Meter> {
    let reads = |meter: &Meter| {
        rounds.iter().flat_map(|round| &round.slices).all(|slice| cycles(slice, *meter, context).is_some())
    };
    HEADLINE.into_iter().find(reads)
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
            reported: reported_percentiles(execution),
        },
    }
}

/// Cycles of the whole machine in a slice, what the hypervisor took of short ones left in, and the seconds of CPU that it had meanwhile.
fn cycles(slice: &SliceRecord, meter: Meter, context: &Context) -> Option<(f64, f64)> {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } => {
            let window = window(before, after, meter, context)?;
            (window.capacity_seconds > 0.0).then_some((window.cycles, window.capacity_seconds))
        }
        SliceReading::Execution(execution) => {
            let whole = io_seconds(execution) * context.cpus as f64;
            let (cycles, capacity) = inside(execution, meter, context);
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
fn inside(execution: &Execution, meter: Meter, context: &Context) -> (f64, f64) {
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
    let (before, after) = (before.proc_stat.as_ref()?, after.proc_stat.as_ref()?);
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
        let (first, last) = (before.proc_stat.as_ref()?, after.proc_stat.as_ref()?);
        let watched = after.at_nanos.since(before.at_nanos).seconds() * cpus;
        Some((last.steal_nanos.since(first.steal_nanos).seconds(), watched))
    });
    read.unwrap_or((0.0, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of each case's time, when so much is taken from all of them: not idle, charged to tasks.
    fn kept(cases: &[(f64, f64)], taken: f64) -> Vec<f64> {
        let busy = cases.iter().map(|&(not_idle, charged)| Busy { not_idle, charged });
        let busy: BTreeMap<Option<usize>, Busy> = busy.enumerate().map(|(case, busy)| (Some(case), busy)).collect();
        shares(&busy, taken).into_values().collect()
    }

    #[test]
    fn who_sleeps_loses_no_more_than_no_task_was_charged_for() {
        let near = |found: Vec<f64>, expected: &[f64]| {
            let same = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9);
            assert!(same && found.len() == expected.len(), "{found:?}, not {expected:?}");
        };
        // One is busy all the time and 0.3 s were taken from it; the other one sleeps, and lost the CPU while it did.
        near(kept(&[(2.0, 1.7), (0.2, 0.19)], 0.31), &[0.85, 0.95]);
        // Alike: alike. Whose work others do has no other share.
        near(kept(&[(1.0, 0.9), (1.0, 0.9)], 0.1), &[0.95, 0.95]);
        near(kept(&[(1.05, 1.0), (1.05, 0.5)], 0.1), &[1.0 / 1.05, 1.0 / 1.05]);
        // Nothing was taken; all that can be; more than that; a case that did nothing.
        near(kept(&[(1.0, 0.5), (2.0, 0.5)], 0.0), &[1.0, 1.0]);
        near(kept(&[(1.0, 0.5), (2.0, 0.5)], 2.0), &[0.5, 0.25]);
        near(kept(&[(1.0, 0.5), (2.0, 0.5)], 9.0), &[0.5, 0.25]);
        near(kept(&[(0.0, 0.0), (2.0, 0.5)], 0.5), &[1.0, 0.75]);
        near(kept(&[(1.0, 1.1), (2.0, 0.5)], 0.5), &[1.0, 0.75]);
    }
}
