//! Regimes of a comparison: rounds in which a case's rate had one level, and which of them the answer is for.
//!
//! Within a round all arms saw the same machine, so a step cancels in the difference; but a file that was read from the disk in
//! some rounds and from memory in others makes two comparisons, and a sum of both answers neither. So the last regime
//! answers, if it has rounds enough, and otherwise nothing does.

use super::round_sums::{CaseSums, ComparisonSums, RoundSums};
use crate::comparison::finding::{CellFinding, MetricFinding, RoundsRegime};
use crate::comparison::record::Schedule;
use crate::experiment::Metric;
use crate::stats::regimes;
use crate::stats::regimes::LEAST_STEP;
use crate::study::regimes::is_another_load;
use crate::warning::{Code, Warning};
use std::ops::Range;

/// The last regime answers from this many rounds on; with fewer its own interval is hardly one (t(0.975, 3) is 3.2).
const ENOUGH: usize = 5;
/// The level that a case's reads have settled at is that of so many rounds at the end.
const LAST: usize = 3;
/// Why there is no verdict, for scripts.
pub const TWO_REGIMES: &str = "two_regimes";

/// The regimes of all rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Regimes {
    /// Rounds before the last regime; 0 where there is one.
    pub before: usize,
    /// All rounds.
    pub rounds: usize,
}

impl Regimes {
    /// Where the rate of any case stepped: a step of one among many cases is not seen in their sum.
    pub fn of(sums: &ComparisonSums, schedule: Schedule) -> Self {
        let begin = |case: usize| {
            let rates: Vec<f64> = sums.rounds.iter().map(|round| rate(round, case)).collect::<Option<_>>()?;
            let ranges = regimes(&rates);
            // The last step that made another load of it.
            let steps = ranges.iter().zip(ranges.iter().skip(1));
            let (_, next) = steps.rev().find(|(one, next)| is_step(sums, case, &rates, (one, next)))?;
            let last = &(next.start..rates.len());
            // The step may lie within a round, which is then of neither.
            let level = median(rates.get(last.clone())?)?;
            let own = |rate: &&f64| **rate > level / LEAST_STEP && **rate < level * LEAST_STEP;
            let mixed = rates.get(last.clone())?.iter().take_while(|rate| !own(rate)).count();
            Some(last.start + mixed)
        };
        let cases = || 0..sums.cases();
        // Each execution of a command begins anew: how much of it found its file in memory depends on how long it ran, but
        // how much it read from the disk is the same where it found the same in memory.
        let executions = schedule == Schedule::Executions;
        let settled = |case| if executions { settled_bytes(sums, case) } else { settled_source(sums, case) };
        let settled = cases().filter_map(settled);
        let before = cases().filter_map(begin).chain(settled).max().unwrap_or(0);
        // What still moves in the last round has no regime that is over: the last round stands for it.
        let rounds = sums.rounds.len();
        Self { before: before.min(rounds.saturating_sub(1)), rounds }
    }

    /// Whether the last regime can answer.
    pub fn answers(&self) -> bool {
        self.before == 0 || self.rounds.saturating_sub(self.before) >= ENOUGH
    }

    /// Rounds that are left out of the answer: those before the last regime, where that can answer.
    pub fn left_out(&self) -> usize {
        if self.answers() { self.before } else { 0 }
    }

    /// What was done in the rounds before the last regime, and in it; empty where there is one.
    pub fn findings(&self, sums: &ComparisonSums) -> Vec<RoundsRegime> {
        if self.before == 0 {
            return Vec::new();
        }
        let part = |begin: usize, end: usize, counted: bool| {
            let rounds = sums.rounds.get(begin..end).unwrap_or_default();
            let sum = |of: &dyn Fn(&RoundSums, usize) -> Option<f64>| {
                let each = rounds.iter().flat_map(|round| (0..sums.cases()).map(move |case| of(round, case)));
                each.sum::<Option<f64>>()
            };
            let ios = sum(&|round, case| round.cases.get(case)?.ios);
            let seconds = sum(&|round, case| Some(round.cases.get(case)?.seconds));
            let cycles = sum(&|round, case| round.net_cycles(case));
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

    /// What is to be said of them.
    pub fn caveat(&self) -> Option<Warning> {
        let last = self.rounds - self.before;
        let message = match (self.before, self.answers()) {
            (0, _) => return None,
            (before, true) => format!(
                "the rate stepped after round {before}: two regimes. The answer is for the {last} rounds after it; those \
                 before are left out"
            ),
            (before, false) => format!(
                "the rate stepped after round {before}, and {last} rounds after it are too few for an answer: there is no verdict. \
                 Give more --budget, or bring the machine into one state first (--cache warm, --prepare, --setup)"
            ),
        };
        Some(Warning::new(Code::TwoRegimes, message))
    }
}

/// The round from which on a case's reads came from the disk by one part: a file that comes into memory read by read changes the
/// load in every round, without any step. `None` where that is not known.
fn settled_source(sums: &ComparisonSums, case: usize) -> Option<usize> {
    /// Parts of reads that are further apart are of two states of the page cache.
    const APART: f64 = 0.1;
    /// Unless a round holds so few reads that chance puts them as far apart: this many standard deviations of a binomial part.
    const CHANCE: f64 = 4.0;
    let part = |round: &RoundSums| {
        let sums = round.cases.get(case)?;
        Some((sums.storage_read? / sums.read_bytes.filter(|bytes| *bytes > 0.0)?).min(1.0))
    };
    settled(sums, part, |round, part, level| {
        let ios = round.cases.get(case).and_then(|sums| sums.ios).unwrap_or(0.0).max(1.0);
        let chance = CHANCE * (level * (1.0 - level) / ios).max(0.0).sqrt();
        (part - level).abs() > APART.max(chance)
    })
}

/// The round from which on each execution of a command read about as much from the disk. `None` where that is not known.
fn settled_bytes(sums: &ComparisonSums, case: usize) -> Option<usize> {
    /// More than twice or less than half of what the last executions read is another state of the page cache.
    const TIMES: f64 = 2.0;
    /// Less is of the program's own pages, not of its data.
    const LEAST: f64 = 4.0 * 1024.0 * 1024.0;
    let read = |round: &RoundSums| {
        let sums = round.cases.get(case)?;
        Some(sums.storage_read? / sums.count.max(1.0))
    };
    settled(sums, read, |_, bytes, level| (bytes - level).abs() > LEAST && bytes.max(level) > TIMES * bytes.min(level))
}

/// The round from which on no value is apart from the level that the last ones have; `None` where one is not known.
fn settled(
    sums: &ComparisonSums,
    value: impl Fn(&RoundSums) -> Option<f64>,
    is_apart: impl Fn(&RoundSums, f64, f64) -> bool,
) -> Option<usize> {
    let values: Vec<f64> = sums.rounds.iter().map(value).collect::<Option<_>>()?;
    let level = median(values.get(values.len().saturating_sub(LAST)..)?)?;
    let mut rounds = sums.rounds.iter().zip(&values);
    Some(rounds.rposition(|(round, value)| is_apart(round, *value, level)).map_or(0, |place| place + 1))
}

/// Whether the rate stepped because the load is another one. Else the machine became faster or slower for all arms at once,
/// which cancels within each round; but by this factor and more it is no matter of a neighbour.
fn is_step(sums: &ComparisonSums, case: usize, rates: &[f64], (one, next): (&Range<usize>, &Range<usize>)) -> bool {
    const WHATEVER_IT_IS: f64 = 4.0;
    let level = |range: &Range<usize>| median(rates.get(range.clone())?);
    let ratio = level(one).zip(level(next)).map_or(1.0, |(one, next)| one / next);
    let over = |range: &Range<usize>, of: fn(&CaseSums) -> Option<(f64, f64)>| {
        let rounds = sums.rounds.get(range.clone())?;
        let sums = rounds.iter().map(|round| of(round.cases.get(case)?)).collect::<Option<Vec<(f64, f64)>>>()?;
        let (above, below) = sums.iter().fold((0.0, 0.0), |sum, more| (sum.0 + more.0, sum.1 + more.1));
        (above > 0.0 && below > 0.0).then(|| above / below)
    };
    // Of a command whose I/Os nobody counts, each execution is one.
    let own = |sums: &CaseSums| Some((sums.thread_cycles?, sums.ios.unwrap_or(sums.count)));
    let source = |sums: &CaseSums| Some((sums.storage_read?, sums.read_bytes?));
    let sources = over(one, source).unwrap_or(0.0);
    let sources = (sources, over(next, source).unwrap_or(0.0));
    let another = over(one, own).zip(over(next, own)).is_some_and(|own| is_another_load(own, Some(sources)));
    another || ratio.max(1.0 / ratio) >= WHATEVER_IT_IS
}

/// What a round says of how fast a case was.
fn rate(round: &RoundSums, case: usize) -> Option<f64> {
    let pair = round.pair(Metric::Iops, case).filter(|pair| pair.denominator > 0.0);
    let ios = pair.map(|pair| pair.numerator / pair.denominator);
    // A command whose I/Os nobody counts is known by how long it takes.
    ios.or_else(|| round.pair(Metric::Seconds, case).map(|pair| pair.denominator / pair.numerator))
        .filter(|rate| rate.is_finite())
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Takes away every change and verdict, because they would be of two regimes together.
pub(super) fn withhold(cells: &mut [CellFinding], reason: &str) {
    for cell in cells {
        cell.shift.clear();
        for found in cell.metrics.values_mut().filter(|found| found.change.is_some()) {
            *found = MetricFinding::unknown(reason);
        }
    }
}
