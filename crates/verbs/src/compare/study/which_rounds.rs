//! Which rounds the answer uses: those of the last regime, without the warm-up.

use super::View;
use super::regimes::{Regimes, median};
use crate::compare::record::{CompareRecord, Header, RoundRecord, Schedule, SliceReading, SliceRecord};
use model::record::Meter;
use model::slice::Rounds;
use model::slice::rounds::{Choice, MeasuredSlices};
use model::stats::rank_sum_p;
use model::stats::steady::{Steady, steady};
use model::stats::stopping::FEWEST_ROUNDS;

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
