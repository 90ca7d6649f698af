//! Whole rounds: each case once, with workers of its own, under its arm's toggles, ended by a sync of what it wrote.

use super::{Bench, Measured, and_left, at_once};
use crate::error::Result;
use model::comparison::record::{CaseLatency, Schedule};
use model::plan::{Access, Phase};
use model::unit::Nanos;
use std::time::Duration;

/// Long enough that a sync at its end is a small part, short enough for many rounds.
const SLICE: Duration = Duration::from_secs(1);
/// I/O after a toggle that does not count.
const GUARD: Duration = Duration::from_millis(100);
/// Before the machine alone is watched.
const SETTLE: Duration = Duration::from_millis(200);
/// The machine alone, in each round.
const ALONE: Duration = Duration::from_millis(300);

/// How such rounds are cut.
pub(super) const SCHEDULE: Schedule = Schedule::WholeRounds { slice_nanos: Nanos(SLICE.as_nanos() as u64) };

impl Bench<'_> {
    /// One round; `None` when it was interrupted.
    pub(super) fn whole_round(&mut self, length: Duration) -> Result<Option<Measured>> {
        let turns = (0..self.experiment.cases.len()).map(Some).chain([None]);
        let (mut slices, mut latencies) = (Vec::new(), Vec::new());
        for turn in self.orders.shuffled(turns) {
            if self.interrupted() {
                return Ok(None);
            }
            let Some(case) = turn else {
                // What has just ended is still being cleaned up.
                std::thread::sleep(SETTLE);
                slices.push(at_once(|| self.alone(ALONE)));
                continue;
            };
            self.enter(case)?;
            let measured = self.whole_slice(case, length);
            // Switched off again also when it failed.
            let left = self.toggles.leave();
            let (slice, latency) = and_left(measured, left)?;
            slices.push(slice);
            latencies.push(latency);
        }
        Ok(Some((slices, latencies)))
    }

    /// Switches on what the arm of a case asks for.
    pub(super) fn enter(&mut self, case: usize) -> Result<()> {
        let arm = self.experiment.cases.get(case).and_then(|case| self.experiment.arms.get(case.arm));
        arm.map_or(Ok(()), |arm| self.toggles.enter(arm))
    }

    fn whole_slice(
        &mut self,
        case: usize,
        length: Duration,
    ) -> Result<(model::comparison::record::SliceRecord, CaseLatency)> {
        let mut team = self.team(case, synced)?;
        team.ready()?;
        let slice = at_once(|| self.slice(case, &mut team, length, GUARD))?;
        Ok((slice, CaseLatency { case, ticks: team.finish()? }))
    }
}

/// What was written is on its way to the device for seconds after: it is paid for by who wrote it.
fn synced(mut phase: Phase) -> Phase {
    for job in phase.jobs.iter_mut().filter(|job| job.access != Access::Read) {
        job.end_fsync = true;
    }
    phase
}
