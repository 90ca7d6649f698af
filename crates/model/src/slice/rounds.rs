//! What was measured in slices and executions, summed by case and round.
//!
//! The sums grow while the experiment is measured, because it ends when it is precise enough.

use super::command::{self, CommandScale, Commands, is_uncounted};
use super::readings::{SliceReadings, cycles, whole, whole_seconds};
use super::{RoundRecord, SliceReading, SliceRecord};
use crate::experiment::{Metric, WorkCounter};
use crate::measured::{Measured, Round, Rounds};
use crate::record::{Direction, Execution, Host, JobRecord, Latency, Meter, MeterStatus, Mode, Snapshot, Stretch};
use crate::study::windows::{self, io_seconds, steal_taken_off};
use crate::study::{Context, page_cache};
use crate::unit::Bytes;
use std::collections::BTreeMap;

/// How the meter of the cycles is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// By the first round; the others are not measured yet.
    FirstRound,
    /// By all of the rounds.
    AllRounds,
    /// Already chosen; may be none.
    Fixed(Option<Meter>),
}

/// Rounds of slices, as they are measured.
pub(crate) struct MeasuredSlices {
    pub rounds: Rounds,
    /// How to read the slices of each case, by round.
    readings: Vec<BTreeMap<usize, SliceReadings>>,
    context: Context,
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
        let empty = Rounds::new(cases, context, meter);
        let mut measured = Self { rounds: empty, readings: Vec::new(), context, choice, counter: counter.cloned() };
        rounds.iter().for_each(|round| measured.add(round));
        measured
    }

    /// Without this many rounds at the beginning.
    pub fn after(&self, rounds: usize) -> Self {
        let readings = self.readings.get(rounds..).unwrap_or_default().to_vec();
        let (context, choice, counter) = (self.context, self.choice, self.counter.clone());
        Self { rounds: self.rounds.after(rounds), readings, context, choice, counter }
    }

    /// Adds a complete round.
    pub fn add(&mut self, round: &RoundRecord) {
        if self.choice == Choice::FirstRound && self.rounds.rounds.is_empty() {
            self.rounds.meter = first_that_reads(std::slice::from_ref(round), &self.context);
        }
        let mut sums = Round { cases: vec![Measured::default(); self.rounds.cases()], ..Round::default() };
        let mut readings = BTreeMap::new();
        let meter = self.rounds.meter;
        let commands = Commands { counter: self.counter.as_ref(), totals: &round.commands };
        let by_case = SliceReadings::by_case(&round.slices, commands, meter, &self.context);
        for slice in round.slices.iter().filter(|slice| !is_uncounted(slice)) {
            let by_case = by_case.get(&slice.case).copied().unwrap_or_else(|| self.unknown_readings());
            let read = measured(slice, meter, &by_case);
            let (stolen, watched) = stolen(slice, by_case.context.cpus as f64);
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
        SliceReadings { context: self.context, kept: 1.0, scale: CommandScale::default() }
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
pub(crate) fn why_unmetered(rounds: &[RoundRecord], meters: &[MeterStatus]) -> &'static str {
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
pub(crate) struct SliceCost {
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
            let whole = meter.and_then(|meter| whole(execution, meter, context));
            Measured {
                count: 1.0,
                whole_seconds: whole_seconds(execution),
                whole_cycles: whole.map(|(cycles, _)| cycles),
                whole_capacity_seconds: whole.map(|(_, capacity)| capacity),
                seconds: io_seconds(execution),
                ios: total(execution, JobRecord::ios),
                bytes: total(execution, |job| job.bytes().0),
                gross_cycles,
                stolen_cycles: meter.map_or(0.0, |meter| steal_taken_off(execution, meter, context)),
                capacity_seconds,
                switches: windows::switches(execution),
                thread_cycles: execution.own_nanos().map(|nanos| nanos.seconds() * context.clock.0),
                latency_nanos: reported_mean(execution),
                read_bytes: page_cache::file_reads(execution),
                storage_read: page_cache::from_storage(execution),
                reported: reported_percentiles(execution),
            }
        }
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
