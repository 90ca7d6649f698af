//! Explaining rounds: after the answer is precise enough, further rounds of the same slices keep exact accounts.
//!
//! They come last, so that the machine is in the state that the answer describes, and so that their number follows from the time that the
//! answer took. They are shorter than the others: an interval needs many rounds rather than long ones.

use super::{Observer, RoundRunner, Stage};
use crate::session::outcome_of;
use model::comparison::record::{CompareRecord, RoundRecord, Schedule};
use model::explained::FEWEST_ROUNDS;
use model::record::Outcome;
use std::time::{Duration, Instant};

/// Part of the budget that is kept for them.
const BUDGET_SHARE: u32 = 5;
/// The time that they get, as a part of the time of the others: together with it, a fifth of the whole.
const TIME_SHARE: u32 = BUDGET_SHARE - 1;
/// Blocks of such a round, as a part of those of another one.
const BLOCKS_SHARE: u32 = 4;
/// More rounds narrow an interval little, and grow the record.
const MOST_ROUNDS: usize = 40;

/// How such a round is cut, and its part of the length of another round; `None` if there are none.
fn shortened(schedule: Schedule) -> Option<(Schedule, f64)> {
    let part = |blocks: u32, fewer: u32| f64::from(fewer) / f64::from(blocks.max(1));
    match schedule {
        Schedule::Slices { slice_nanos, warm_up_nanos, blocks } => {
            let fewer = blocks.div_ceil(BLOCKS_SHARE);
            Some((Schedule::Slices { slice_nanos, warm_up_nanos, blocks: fewer }, part(blocks, fewer)))
        }
        Schedule::SlicedCommands { slice_nanos, guard_nanos, blocks, one_cpu } => {
            let fewer = blocks.div_ceil(BLOCKS_SHARE);
            let cut = Schedule::SlicedCommands { slice_nanos, guard_nanos, blocks: fewer, one_cpu };
            Some((cut, part(blocks, fewer)))
        }
        Schedule::WholeRounds { .. } => Some((schedule, 1.0)),
        // An execution has no ends at which its accounts and its I/Os are read together; a boot measures one arm.
        Schedule::Executions | Schedule::Boots => None,
    }
}

impl RoundRunner<'_> {
    /// Such rounds, and the expected length of one beside another round that took this long; `None` if there are none.
    fn explaining(&self, schedule: Schedule, round: Duration) -> Option<(Schedule, Duration)> {
        let (schedule, part) = shortened(schedule)?;
        let explains = self.meters.can_explain() && self.experiment.boots.is_none();
        explains.then(|| (schedule, round.mul_f64(part)))
    }

    /// The part of the budget that is kept for them, if the fewest fit into it.
    pub(super) fn reserve(&self, schedule: Schedule, budget: Duration, round: Duration) -> Duration {
        let reserve = budget / BUDGET_SHARE;
        let fits = |(_, length): (Schedule, Duration)| length.mul_f64(FEWEST_ROUNDS as f64) <= reserve;
        if self.explaining(schedule, round).is_some_and(fits) { reserve } else { Duration::ZERO }
    }

    /// Measures them, after others that took this long. Returns how the whole measurement ended.
    pub(super) fn explain(
        &mut self,
        schedule: Schedule,
        record: &mut CompareRecord,
        took: Duration,
        observer: Observer,
    ) -> Outcome {
        let round = took.div_f64(record.rounds.len().max(1) as f64);
        let Some((schedule, mut length)) = self.explaining(schedule, round) else { return Outcome::Completed };
        let (time, begun) = (took / TIME_SHARE, Instant::now());
        // The fewest may take twice that time: a comparison that ended early is still explained.
        if length.mul_f64(FEWEST_ROUNDS as f64) > time * 2 {
            return Outcome::Completed;
        }
        loop {
            let (rounds, elapsed) = (record.explaining.len(), begun.elapsed());
            let full = rounds >= FEWEST_ROUNDS && elapsed + length / 2 > time;
            if full || rounds >= MOST_ROUNDS || !self.meters.explain() {
                break;
            }
            let interruption = &self.settings.session.interruption;
            let warmed = self.cache.before_round(&mut |_, _, _| !interruption.is_requested());
            let measured = warmed.and_then(|()| self.recorded(schedule));
            self.meters.stop_explaining();
            let round = match measured {
                // Nobody reads their latencies, which are most of a record.
                Ok(Some(round)) => RoundRecord { latencies: Vec::new(), ..round },
                Ok(None) => return Outcome::Interrupted,
                Err(error) => return outcome_of(&error),
            };
            length = begun.elapsed() - elapsed;
            let kept = self.settings.session.saver.append("explaining", &round);
            record.explaining.push(round);
            if let Err(error) = kept {
                return Outcome::Failed(error.to_string());
            }
            observer(Stage::Explaining { rounds: rounds + 1, elapsed: begun.elapsed(), of: time });
        }
        Outcome::Completed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Nanos;

    #[test]
    fn explaining_rounds_have_a_quarter_of_the_blocks_and_the_same_slices() {
        let slices = |blocks| Schedule::Slices { slice_nanos: Nanos(10), warm_up_nanos: Nanos(2), blocks };
        assert_eq!(shortened(slices(30)), Some((slices(8), 8.0 / 30.0)));
        assert_eq!(shortened(slices(1)), Some((slices(1), 1.0)));
        let whole = Schedule::WholeRounds { slice_nanos: Nanos(10) };
        assert_eq!(shortened(whole), Some((whole, 1.0)));
        assert_eq!([Schedule::Executions, Schedule::Boots].map(shortened), [None, None]);
    }
}
