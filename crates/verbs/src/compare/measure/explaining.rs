//! Explaining rounds: after the answer is precise enough, further rounds of the same slices or executions keep exact accounts, count events,
//! or sample, in turn: each of them takes time, which would be in what the others see.
//!
//! They come last, so that the machine is in the state that the answer describes, and so that their number follows from the time that the
//! answer took. They are shorter than the others: an interval needs many rounds rather than long ones.

use super::RoundRunner;
use crate::compare::record::{CompareRecord, RoundRecord, Schedule};
use lab::progress::{Observer, Progress};
use lab::session::outcome_of;
use model::explained::FEWEST_ROUNDS;
use model::meter::Meter;
use model::record::{Mode, Outcome};
use std::time::{Duration, Instant};

/// Part of the budget that is kept for them.
const BUDGET_SHARE: u32 = 5;
/// The same if some of them count events.
const BUDGET_SHARE_WITH_EVENTS: u32 = 4;
/// The same with `--profile`: a function has a small part of the samples, so it takes many.
const BUDGET_SHARE_OF_PROFILE: u32 = 2;
/// With `--profile`, the sampler runs in this number of rounds for each that keeps accounts.
const SAMPLED_ROUNDS: usize = 3;
/// As many rounds are wanted in that time at least: t(0.975, 11) is 2.2.
const FEWEST_WANTED: f64 = 12.0;
/// Blocks of such a round, as a part of those of another one, if that gives more than the fewest rounds and not more than the most: more
/// rounds narrow an interval more than longer ones.
const BLOCKS_SHARE: f64 = 4.0;
/// More rounds narrow an interval little.
const MOST_ROUNDS: usize = 40;

/// How such a round is cut, and its expected length. `time` is for all of them; another round took `round`.
fn shortened(schedule: Schedule, time: Duration, round: Duration) -> (Schedule, Duration) {
    let fewer = |blocks: u32| {
        let blocks = f64::from(blocks);
        let of = |rounds: f64| blocks * time.div_duration_f64(round.max(Duration::from_millis(1))) / rounds;
        let wanted = of(FEWEST_WANTED).min((blocks / BLOCKS_SHARE).ceil()).max(of(MOST_ROUNDS as f64));
        wanted.clamp(1.0, blocks.max(1.0)) as u32
    };
    let length = |blocks: u32, fewer: u32| round.mul_f64(f64::from(fewer) / f64::from(blocks.max(1)));
    match schedule {
        Schedule::Slices { slice_nanos, warm_up_nanos, blocks } => {
            let (all, blocks) = (blocks, fewer(blocks));
            (Schedule::Slices { slice_nanos, warm_up_nanos, blocks }, length(all, blocks))
        }
        Schedule::SlicedCommands { slice_nanos, guard_nanos, blocks } => {
            let (all, blocks) = (blocks, fewer(blocks));
            (Schedule::SlicedCommands { slice_nanos, guard_nanos, blocks }, length(all, blocks))
        }
        Schedule::WholeRounds { .. } | Schedule::Executions => (schedule, round),
    }
}

/// What a round has: one mode all the time, or several in windows of their own.
type Turn = Vec<Mode>;

/// Rounds until each of these was there often enough; fewer explain nothing. When the last one that keeps accounts or counts is done,
/// enough have sampled.
fn fewest_of(turns: &[Turn]) -> usize {
    match turns.iter().filter(|modes| !modes.contains(&Mode::Alone(Meter::Sampler))).count() {
        0 => FEWEST_ROUNDS,
        others => turns.len() * (FEWEST_ROUNDS - 1) + others,
    }
}

/// Those of which enough rounds of a length fit into a time: without events, if they do not fit with them; `None` if not even then.
fn within(turns: &[Turn], length: Duration, time: Duration) -> Option<Vec<Turn>> {
    let counts = |modes: &Turn| matches!(modes.as_slice(), [Mode::Events(_)]);
    let uncounted = || turns.iter().filter(|modes| !counts(modes)).cloned().collect();
    let fits = |turns: &Vec<Turn>| !turns.is_empty() && length.mul_f64(fewest_of(turns) as f64) <= time;
    [turns.to_vec(), uncounted()].into_iter().find(fits)
}

impl RoundRunner<'_> {
    /// What rounds of their own have, in turn. An execution is long, so it has accounts and events in windows of their own, as in `cost`.
    fn turns(&self, schedule: Schedule) -> Vec<Turn> {
        let events = self.meters.modes_of_events();
        let of = |meter: Meter, rounds: usize| {
            let rounds = if self.meters.can_explain(meter) { rounds } else { 0 };
            std::iter::repeat_n(vec![Mode::Alone(meter)], rounds)
        };
        let samples = of(Meter::Sampler, SAMPLED_ROUNDS);
        match schedule {
            Schedule::Executions if !events.is_empty() => {
                let accounts = of(Meter::Accounts, 1).flatten();
                std::iter::once(accounts.chain(events).collect()).chain(samples).collect()
            }
            _ => of(Meter::Accounts, 1).chain(events.into_iter().map(|mode| vec![mode])).chain(samples).collect(),
        }
    }

    /// The meters of a turn run from now on. Returns whether they do.
    fn begin(&mut self, turn: &Turn, schedule: Schedule) -> bool {
        match turn.as_slice() {
            [mode @ Mode::Alone(_)] => self.meters.explain(*mode),
            [mode] if schedule != Schedule::Executions => self.meters.explain(*mode),
            modes => {
                self.meters.explain_in_windows(modes);
                true
            }
        }
    }

    /// The part of the whole time that they get, as its reciprocal.
    fn share(&self) -> u32 {
        if self.meters.can_explain(Meter::Sampler) {
            BUDGET_SHARE_OF_PROFILE
        } else if self.meters.modes_of_events().is_empty() {
            BUDGET_SHARE
        } else {
            BUDGET_SHARE_WITH_EVENTS
        }
    }

    /// Such rounds; `None` if there are none.
    fn explaining(&self, schedule: Schedule, time: Duration, round: Duration) -> Option<(Schedule, Duration)> {
        (!self.turns(schedule).is_empty()).then(|| shortened(schedule, time, round))
    }

    /// The part of the budget that is kept for them; 0 if the fewest need much more of it.
    pub(super) fn reserve(&self, schedule: Schedule, budget: Duration, round: Duration) -> Duration {
        let reserve = budget / self.share();
        let explaining = self.explaining(schedule, reserve, round);
        let fewest = |(_, length)| {
            let turns = within(&self.turns(schedule), length, reserve.mul_f64(1.25))?;
            Some(reserve.max(length.mul_f64(fewest_of(&turns) as f64)))
        };
        explaining.and_then(fewest).unwrap_or(Duration::ZERO)
    }

    /// Measures them, after others that took this long of a budget. Returns how the whole measurement ended.
    pub(super) fn explain(
        &mut self,
        schedule: Schedule,
        record: &mut CompareRecord,
        (took, budget): (Duration, Duration),
        observer: Observer,
    ) -> Outcome {
        let round = took.div_f64(record.rounds.len().max(1) as f64);
        // Together with the others, they get their share of the whole.
        let (time, begun) = (took / (self.share() - 1), Instant::now());
        let Some((schedule, mut length)) = self.explaining(schedule, time, round) else { return Outcome::Completed };
        // A comparison that ended early has time left for the fewest.
        let available = time.max(budget.saturating_sub(took));
        let Some(turns) = within(&self.turns(schedule), length, available) else { return Outcome::Completed };
        let fewest = fewest_of(&turns);
        for turn in turns.into_iter().cycle() {
            let (rounds, elapsed) = (record.explaining.len(), begun.elapsed());
            let full = rounds >= fewest && elapsed + length / 2 > time;
            if full || rounds >= MOST_ROUNDS || !self.begin(&turn, schedule) {
                break;
            }
            let interruption = &self.settings.interruption;
            let warmed = self.cache.before_round(&mut |_, _, _| !interruption.is_requested());
            let measured = warmed.and_then(|()| self.recorded(schedule));
            self.meters.stop_explaining();
            let round = match measured {
                // Nobody reads their latencies, which are most of a record.
                Ok(round) => RoundRecord { latencies: Vec::new(), ..round },
                Err(error) => return outcome_of(&error),
            };
            length = begun.elapsed() - elapsed;
            let kept = self.settings.saver.append("explaining", &round);
            record.explaining.push(round);
            if let Err(error) = kept {
                return Outcome::Failed(error.to_string());
            }
            observer(Progress::Explaining { rounds: rounds + 1, elapsed: begun.elapsed(), of: time });
        }
        Outcome::Completed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::unit::Nanos;

    #[test]
    fn the_fewest_rounds_have_each_turn_three_times() {
        let one = |mode| vec![mode];
        let (accounts, events) = (one(Mode::Alone(Meter::Accounts)), one(Mode::Events(0)));
        let samples = || std::iter::repeat_n(one(Mode::Alone(Meter::Sampler)), 3);
        let both = vec![accounts[0], events[0]];
        let with_samples = |turns: &[Turn]| turns.iter().cloned().chain(samples()).collect::<Vec<Turn>>();
        for (turns, fewest) in [
            (vec![accounts.clone()], 3),
            (vec![accounts.clone(), events.clone()], 6),
            (vec![accounts.clone(), events.clone(), one(Mode::Events(1))], 9),
            (with_samples(std::slice::from_ref(&accounts)), 9),
            (with_samples(&[accounts, events]), 12),
            (vec![both.clone()], 3),
            (with_samples(&[both]), 9),
            (with_samples(&[]), 3),
        ] {
            assert_eq!(fewest_of(&turns), fewest, "{turns:?}");
            let had: Vec<&Turn> = turns.iter().cycle().take(fewest).collect();
            let often = |turn: &Turn| had.iter().filter(|other| **other == turn).count() >= FEWEST_ROUNDS;
            assert!(turns.iter().all(often), "{turns:?}");
        }
    }

    #[test]
    fn long_rounds_keep_accounts_rather_than_count() {
        let (accounts, events) = (vec![Mode::Alone(Meter::Accounts)], vec![Mode::Events(0)]);
        let both = [accounts.clone(), events.clone()];
        let of = |turns: &[Turn], seconds| within(turns, Duration::from_secs(1), Duration::from_secs(seconds));
        assert_eq!(of(&both, 6), Some(both.to_vec()));
        assert_eq!(of(&both, 5), Some(vec![accounts]));
        assert_eq!(of(&both, 2), None);
        assert_eq!(of(std::slice::from_ref(&events), 3), Some(vec![events.clone()]));
        assert_eq!((of(&[events], 2), of(&[], 9)), (None, None));
    }

    #[test]
    fn explaining_rounds_have_fewer_of_the_same_blocks() {
        let slices = |blocks| Schedule::Slices { slice_nanos: Nanos(10), warm_up_nanos: Nanos(2), blocks };
        let seconds = Duration::from_secs_f64;
        let cut = |blocks, time| shortened(slices(blocks), seconds(time), seconds(1.0));
        // Twelve rounds in 2.4 s, of a fifth of the blocks.
        assert_eq!(cut(30, 2.4), (slices(6), seconds(0.2)));
        assert_eq!(cut(30, 10.0), (slices(8), seconds(8.0 / 30.0)), "more rounds rather than longer ones");
        assert_eq!(cut(30, 24.0), (slices(18), seconds(18.0 / 30.0)), "but not too many");
        assert_eq!(cut(30, 0.1), (slices(1), seconds(1.0 / 30.0)));
        assert_eq!(cut(1, 2.4), (slices(1), seconds(1.0)));
        let whole = Schedule::WholeRounds { slice_nanos: Nanos(10) };
        let of = |schedule| shortened(schedule, seconds(2.4), seconds(1.0));
        for schedule in [whole, Schedule::Executions] {
            assert_eq!(of(schedule), (schedule, seconds(1.0)));
        }
    }
}
