//! Rounds of turns: each case once, from start to end, with its arm's toggles, and the machine without workload once.

use super::{Measured, RoundRunner, Tasks, at_once};
use crate::error::Result;
use crate::toggle::and_left;
use model::comparison::record::{CaseLatency, SliceRecord};
use std::time::Duration;

/// Wait before measuring without workload: the previous case is still being cleaned up.
const SETTLE: Duration = Duration::from_millis(200);
/// Time without workload in each round.
const ALONE: Duration = Duration::from_millis(300);

impl RoundRunner<'_> {
    /// One round in which `measure` runs each case once; `None` if it was interrupted.
    pub(super) fn round_of_turns(
        &mut self,
        measure: impl Fn(&mut Self, usize) -> Result<(SliceRecord, Option<CaseLatency>)>,
    ) -> Result<Option<Measured>> {
        let turns = (0..self.experiment.cases.len()).map(Some).chain([None]);
        let (mut slices, mut latencies) = (Vec::new(), Vec::new());
        for turn in self.shuffler.shuffled(turns) {
            if self.interrupted() {
                return Ok(None);
            }
            let Some(case) = turn else {
                std::thread::sleep(SETTLE);
                loop {
                    slices.push(at_once(|| self.alone(ALONE, Tasks::Read)));
                    if !self.meters.next_slice() {
                        break;
                    }
                }
                continue;
            };
            let (slice, latency) = self.switched(case, |runner| measure(runner, case))?;
            slices.push(slice);
            latencies.extend(latency);
        }
        // A round with a shortened turn is incomplete.
        Ok((!self.interrupted()).then_some(Measured { slices, latencies, ..Measured::default() }))
    }

    /// Runs `measure` with the settings of a case's arm on, and switches them off afterwards, also after a failure. For
    /// an arm without settings the files are written too, so that the effects of a write are in both arms.
    pub(super) fn switched<T>(&mut self, case: usize, measure: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let arm = self.experiment.cases.get(case).and_then(|case| self.experiment.arms.get(case.arm));
        let Some(arm) = arm.filter(|arm| arm.is_toggled()) else {
            self.toggles.rewrite()?;
            let measured = measure(self)?;
            self.toggles.rewrite()?;
            return Ok(measured);
        };
        self.toggles.switch_on(arm)?;
        let measured = measure(self);
        and_left(measured, self.toggles.switch_off())
    }
}
