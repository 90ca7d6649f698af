//! Which rounds the answer uses: those of the last regime, without the warm-up.
//!
//! In a regime, a case's rate has one level. Within a round all arms saw the same machine, so a step cancels in the difference. But if a file is
//! read from the disk in some rounds and from memory in others, there are two comparisons, and a sum over both is meaningless. So the
//! answer uses only the last regime, if it has enough rounds, and otherwise there is none.

use super::View;
use crate::compare::finding::RoundsRegime;
use crate::compare::record::{CompareRecord, Header, RoundRecord, Schedule, SliceReading, SliceRecord};
use model::experiment::Metric;
use model::record::Meter;
use model::slice::{Choice, Measured, MeasuredSlices, Round, Rounds};
use model::stats::basics::quantile;
use model::stats::rank_sum_p;
use model::stats::regimes::{LEAST_STEP, regimes};
use model::stats::steady::{Steady, steady};
use model::stats::stopping::FEWEST_ROUNDS;
use model::study::regimes::is_another_load;
use model::warning::{Code, Warning};
use std::ops::Range;

/// Minimum number of rounds of the last regime for an answer; with fewer, its interval is too wide (t(0.975, 3) is
/// 3.2).
const ENOUGH: usize = 5;
/// Number of rounds at the end that define the final level of a case's reads.
const LAST: usize = 3;
/// Why there is no verdict, for scripts.
pub const TWO_REGIMES: &str = "two_regimes";

/// What the slices of these rounds of a record measured, by a meter that is chosen so.
pub(super) fn measured(header: &Header, choice: Choice, rounds: &[RoundRecord]) -> MeasuredSlices {
    let (cases, counter) = (header.experiment.cases.len(), header.work_counter.as_ref());
    MeasuredSlices::of(cases, &header.host, counter, (choice, rounds))
}

/// A record, divided into what the answer uses and what it does not.
pub(crate) struct RoundsOfTheAnswer<'a> {
    /// The rounds that the answer uses: those after the warm-up.
    pub(super) view: View<'a>,
    /// What they measured.
    pub(super) slices: MeasuredSlices,
    /// What all rounds measured.
    pub(super) whole: MeasuredSlices,
    pub(super) regimes: Regimes,
    pub(super) warm_up: WarmUp,
}

impl<'a> RoundsOfTheAnswer<'a> {
    /// With the first meter that read every slice.
    pub fn of(record: &'a CompareRecord) -> Self {
        let all = View::of(record);
        let whole = measured(all.header, Choice::AllRounds, all.rounds);
        let regimes = Regimes::of(&whole.rounds, record.header.schedule);
        let last = all.after(regimes.left_out());
        let warm_up = warm_up(last);
        let view = last.after(warm_up.rounds);
        Self { view, slices: whole.after(view.skipped), whole, regimes, warm_up }
    }

    /// What the rounds of the answer measured.
    pub fn rounds(self) -> Rounds {
        self.slices.rounds
    }

    /// The same by another meter.
    pub fn rounds_by(&self, meter: Option<Meter>) -> Rounds {
        measured(self.view.header, Choice::Fixed(meter), self.view.rounds).rounds
    }

    /// Whether one regime gives an answer.
    pub fn answers(&self) -> bool {
        self.regimes.answers()
    }
}

/// The regimes of all rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Regimes {
    /// Rounds before the last regime; 0 if there is only one.
    pub before: usize,
    pub rounds: usize,
}

impl Regimes {
    /// Examines each case separately: a step in one of many cases is not visible in their sum.
    pub fn of(sums: &Rounds, schedule: Schedule) -> Self {
        let begin = |case: usize| {
            let rates: Vec<f64> = sums.rounds.iter().map(|round| rate(round, case)).collect::<Option<_>>()?;
            let ranges = regimes(&rates);
            // The last step to a different load.
            let steps = ranges.iter().zip(ranges.iter().skip(1));
            let (_, next) = steps.rev().find(|(one, next)| is_step(sums, case, &rates, (one, next)))?;
            let last = &(next.start..rates.len());
            // The step may be within a round, which then belongs to neither regime.
            let level = median(rates.get(last.clone())?)?;
            let own = |rate: &&f64| **rate > level / LEAST_STEP && **rate < level * LEAST_STEP;
            let mixed = rates.get(last.clone())?.iter().take_while(|rate| !own(rate)).count();
            Some(last.start + mixed)
        };
        let cases = || 0..sums.cases();
        // Each execution of a command starts anew: its fraction of cached reads depends on its duration, but the bytes
        // read from storage are the same if the same pages are in memory.
        let executions = schedule == Schedule::Executions;
        let settled = |case| if executions { settled_bytes(sums, case) } else { settled_source(sums, case) };
        let settled = cases().filter_map(settled);
        let before = cases().filter_map(begin).chain(settled).max().unwrap_or(0);
        // If the last round still changes, no regime is complete, and the last round stands for it.
        let rounds = sums.rounds.len();
        Self { before: before.min(rounds.saturating_sub(1)), rounds }
    }

    /// Whether the last regime gives an answer.
    pub fn answers(&self) -> bool {
        self.before == 0 || self.rounds.saturating_sub(self.before) >= ENOUGH
    }

    /// Rounds that the answer excludes: those before the last regime, if that gives an answer.
    pub fn left_out(&self) -> usize {
        if self.answers() { self.before } else { 0 }
    }

    /// The results of the rounds before the last regime, and of the last regime; empty if there is only one.
    pub fn findings(&self, sums: &Rounds) -> Vec<RoundsRegime> {
        if self.before == 0 {
            return Vec::new();
        }
        let part = |begin: usize, end: usize, counted: bool| {
            let rounds = sums.rounds.get(begin..end).unwrap_or_default();
            let sum = |of: &dyn Fn(&Round, usize) -> Option<f64>| {
                let each = rounds.iter().flat_map(|round| (0..sums.cases()).map(move |case| of(round, case)));
                each.sum::<Option<f64>>()
            };
            let ios = sum(&|round, case| round.cases.get(case)?.ios);
            let seconds = sum(&|round, case| Some(round.cases.get(case)?.seconds));
            let seen = sums.never_idle().is_none();
            let cycles = sum(&|round, case| round.net_cycles(case)).filter(|_| seen);
            let read = sum(&|round, case| round.cases.get(case)?.read_bytes).filter(|bytes| *bytes > 0.0);
            let from_storage = sum(&|round, case| round.cases.get(case)?.storage_read);
            let over = |value: Option<f64>, by: Option<f64>| Some(value? / by.filter(|by| *by > 0.0)?);
            RoundsRegime {
                first_round: begin + 1,
                last_round: end,
                counted,
                iops: over(ios, seconds),
                cycles_per_io: over(cycles, ios),
                from_storage_fraction: over(from_storage, read).map(|part| part.min(1.0)),
            }
        };
        let counted = self.answers();
        vec![part(0, self.before, false), part(self.before, self.rounds, counted)]
    }

    /// A caveat about the regimes.
    pub fn caveat(&self) -> Option<Warning> {
        let last = self.rounds - self.before;
        let message = match (self.before, self.answers()) {
            (0, _) => return None,
            (before, true) => format!(
                "the rate stepped after round {before}. The answer uses only the {last} rounds after it; those \
                 before are excluded"
            ),
            (before, false) => format!(
                "the rate stepped after round {before}, and {last} rounds after it are too few for a verdict. \
                 Increase --budget, or bring the machine into one state first (--cache warm, --prepare, --setup)"
            ),
        };
        Some(Warning::new(Code::TwoRegimes, message))
    }
}

/// The round from which a case's reads came from storage by a constant fraction: a file that is cached read by read
/// changes the load in every round without a step. `None` if unknown.
fn settled_source(sums: &Rounds, case: usize) -> Option<usize> {
    /// Minimum difference of fractions between two states of the page cache.
    const APART: f64 = 0.1;
    /// Unless a round has so few reads that noise explains the difference: number of standard deviations of a binomial
    /// fraction.
    const CHANCE: f64 = 4.0;
    let part = |round: &Round| {
        let sums = round.cases.get(case)?;
        Some((sums.storage_read? / sums.read_bytes.filter(|bytes| *bytes > 0.0)?).min(1.0))
    };
    settled(sums, part, |round, part, level| {
        let ios = round.cases.get(case).and_then(|sums| sums.ios).unwrap_or(0.0).max(1.0);
        let chance = CHANCE * (level * (1.0 - level) / ios).max(0.0).sqrt();
        (part - level).abs() > APART.max(chance)
    })
}

/// The round from which each execution of a command read about the same amount from storage. `None` if unknown.
fn settled_bytes(sums: &Rounds, case: usize) -> Option<usize> {
    /// More than twice or less than half of what the last executions read is another state of the page cache.
    const TIMES: f64 = 2.0;
    /// Less is read for the program's own pages, not for its data.
    const LEAST: f64 = 4.0 * 1024.0 * 1024.0;
    let read = |round: &Round| {
        let sums = round.cases.get(case)?;
        Some(sums.storage_read? / sums.count.max(1.0))
    };
    settled(sums, read, |_, bytes, level| (bytes - level).abs() > LEAST && bytes.max(level) > TIMES * bytes.min(level))
}

/// The round from which no value differs from the level of the last ones; `None` if one is unknown.
fn settled(
    sums: &Rounds,
    value: impl Fn(&Round) -> Option<f64>,
    is_apart: impl Fn(&Round, f64, f64) -> bool,
) -> Option<usize> {
    let values: Vec<f64> = sums.rounds.iter().map(value).collect::<Option<_>>()?;
    let level = median(values.get(values.len().saturating_sub(LAST)..)?)?;
    let mut rounds = sums.rounds.iter().zip(&values);
    Some(rounds.rposition(|(round, value)| is_apart(round, *value, level)).map_or(0, |place| place + 1))
}

/// Whether the rate stepped because the load changed. Otherwise the machine became faster or slower for all arms at
/// once, which cancels within each round; but a step by this factor is too large for that.
fn is_step(sums: &Rounds, case: usize, rates: &[f64], (one, next): (&Range<usize>, &Range<usize>)) -> bool {
    const WHATEVER_IT_IS: f64 = 4.0;
    let level = |range: &Range<usize>| median(rates.get(range.clone())?);
    let ratio = level(one).zip(level(next)).map_or(1.0, |(one, next)| one / next);
    let over = |range: &Range<usize>, of: fn(&Measured) -> Option<(f64, f64)>| {
        let rounds = sums.rounds.get(range.clone())?;
        let sums = rounds.iter().map(|round| of(round.cases.get(case)?)).collect::<Option<Vec<(f64, f64)>>>()?;
        let (above, below) = sums.iter().fold((0.0, 0.0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        (above > 0.0 && below > 0.0).then(|| above / below)
    };
    // If the I/Os of a command are not counted, each execution counts as one.
    let own = |sums: &Measured| Some((sums.thread_cycles?, sums.ios.unwrap_or(sums.count)));
    let source = |sums: &Measured| Some((sums.storage_read?, sums.read_bytes?));
    let sources = over(one, source).unwrap_or(0.0);
    let sources = (sources, over(next, source).unwrap_or(0.0));
    let another = over(one, own).zip(over(next, own)).is_some_and(|own| is_another_load(own, Some(sources)));
    another || ratio.max(1.0 / ratio) >= WHATEVER_IT_IS
}

/// The rate of a case in a round.
fn rate(round: &Round, case: usize) -> Option<f64> {
    let pair = round.pair(Metric::Iops, case).filter(|pair| pair.denominator > 0.0);
    let ios = pair.map(|pair| pair.numerator / pair.denominator);
    // If the I/Os of a command are not counted, its duration gives the rate.
    ios.or_else(|| round.pair(Metric::Seconds, case).map(|pair| pair.denominator / pair.numerator))
        .filter(|rate| rate.is_finite())
}

fn median(values: &[f64]) -> Option<f64> {
    quantile(&mut values.to_vec(), 0.5)
}

/// The rounds to discard at the beginning.
pub(super) struct WarmUp {
    /// Number of whole rounds.
    pub rounds: usize,
    /// Whether the rate is steady after them.
    pub settles: bool,
}

/// Rounds before the common rate of all arms is steady. Only for slices, because there are too few executions to judge.
pub(super) fn warm_up(record: View) -> WarmUp {
    let blocks = match record.header.schedule {
        Schedule::Slices { blocks, .. } => blocks,
        // The cells of a sweep follow each other, at rates of their own.
        Schedule::SlicedCommands { blocks, .. } if record.header.experiment.cells.len() == 1 => blocks,
        _ => return WarmUp { rounds: 0, settles: true },
    };
    let blocks = blocks.max(1) as usize;
    let series: Vec<f64> = record.rounds.iter().flat_map(|round| rates_of_blocks(round, blocks)).collect();
    let settled = series.len() == record.rounds.len() * blocks && series.iter().all(|rate| rate.is_finite());
    match if settled { steady(&series) } else { Steady::TooShort } {
        // The remaining rounds must be enough for an answer.
        Steady::From(block) if record.rounds.len() >= block.div_ceil(blocks) + FEWEST_ROUNDS => {
            WarmUp { rounds: block.div_ceil(blocks), settles: true }
        }
        Steady::From(_) => WarmUp { rounds: 0, settles: true },
        Steady::Never => WarmUp { rounds: 0, settles: false },
        Steady::TooShort => WarmUp { rounds: 0, settles: true },
    }
}

/// I/Os per second of all arms together, for each block of a round.
fn rates_of_blocks(round: &RoundRecord, blocks: usize) -> Vec<f64> {
    let turns = (round.slices.len() / blocks).max(1);
    let rate = |slices: &[SliceRecord]| {
        let (ios, seconds) = slices
            .iter()
            .filter_map(work)
            .fold((0.0, 0.0), |(ios, seconds), (more, longer)| (ios + more, seconds + longer));
        ios / seconds
    };
    round.slices.chunks(turns).map(rate).collect()
}

/// I/Os and seconds of an arm's slice.
fn work(slice: &SliceRecord) -> Option<(f64, f64)> {
    match (&slice.reading, slice.case) {
        (SliceReading::Slice { work, .. }, Some(_)) => Some((work.ios as f64, work.wall_nanos.seconds())),
        // Counts are enough, because only relative rates matter.
        (SliceReading::Command { first, last, .. }, Some(_)) => {
            let count = last.count?.saturating_sub(first.count?) as f64;
            Some((count, last.at_nanos.since(first.at_nanos).seconds()))
        }
        _ => None,
    }
}

/// How much faster an arm's slices are after one of its own than after another arm's, as a fraction, for the arm with
/// the largest effect, if it is detected and not negligible. Slices after the idle machine are ignored.
pub(super) fn carry_over(record: View) -> Option<f64> {
    /// A smaller effect changes the result by less than the margin.
    const LEAST: f64 = 0.01;
    /// Every comparison is tested, so false alarms must be very rare.
    const FALSE_ALARM: f64 = 0.001;
    let cases = record.header.experiment.cases.len();
    // Each arm is compared only with itself: an arm that slows down all successors affects both its own slices and
    // those of others.
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = vec![(Vec::new(), Vec::new()); cases];
    for round in record.rounds {
        let logs: Vec<Option<(usize, f64)>> = round.slices.iter().map(log_rate).collect();
        let mut sums = vec![(0.0, 0.0); cases];
        for (case, log) in logs.iter().flatten() {
            if let Some((sum, count)) = sums.get_mut(*case) {
                (*sum, *count) = (*sum + log, *count + 1.0);
            }
        }
        let means: Vec<f64> = sums.into_iter().map(|(sum, count)| sum / count).collect();
        for pair in logs.windows(2) {
            let [Some((before, _)), Some((case, log))] = pair else { continue };
            // Relative to the arm's mean in the round, because arms and rounds may differ.
            let (Some((own, other)), Some(mean)) = (pairs.get_mut(*case), means.get(*case)) else { continue };
            if before == case { own } else { other }.push(log - mean);
        }
    }
    let found = pairs.iter().filter_map(|(own, other)| {
        let difference = median(own)? - median(other)?;
        let told = rank_sum_p(own, other)? * cases as f64 <= FALSE_ALARM && difference.abs() > LEAST;
        told.then(|| difference.exp_m1())
    });
    found.max_by(|one, other| one.abs().total_cmp(&other.abs()))
}

fn log_rate(slice: &SliceRecord) -> Option<(usize, f64)> {
    let (ios, seconds) = work(slice)?;
    let log = (ios / seconds).ln();
    log.is_finite().then_some((slice.case?, log))
}
