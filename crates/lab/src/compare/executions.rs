//! Rounds of executions: each command once, from its beginning to its end, under its arm's toggles.

use super::{Bench, Measured, and_left, at_once};
use crate::cost::{CommandPlan, Count, Executed, Printed, execute};
use crate::error::{Error, Result};
use model::comparison::record::{SliceReading, SliceRecord};
use model::experiment::Work;
use std::time::Duration;

/// Before the machine alone is watched.
const SETTLE: Duration = Duration::from_millis(200);
/// The machine alone, in each round.
const ALONE: Duration = Duration::from_millis(300);
/// A command that takes longer than this and twice the budget hangs.
const PATIENCE: Duration = Duration::from_secs(60);

impl Bench<'_> {
    /// One round; `None` when it was interrupted.
    pub(super) fn round_of_executions(&mut self) -> Result<Option<Measured>> {
        let turns = (0..self.experiment.cases.len()).map(Some).chain([None]);
        let mut slices = Vec::new();
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
            let Some(Work::Command(command)) = self.experiment.cases.get(case).map(|case| &case.work) else { continue };
            let plan = CommandPlan {
                command: command.clone(),
                count: Count::Program,
                repeat: 1,
                printed: Printed::Nowhere,
                longest: Some(PATIENCE + Duration::from_secs_f64(2.0 * self.experiment.rules.budget_seconds)),
            };
            self.enter(case)?;
            let executed = execute(&plan, 0, &mut self.surroundings(), &mut |_| {}, &mut |_| {});
            let executed = executed.map_err(|error| match error {
                Error::Refused(why) => {
                    Error::Refused(format!("{}: {}", self.name(case), why.trim_end_matches(" after --")))
                }
                error => error,
            });
            let executed = executed.and_then(|Executed { execution, failure }| match failure {
                Some(failure) if !self.interrupted() => Err(Error::Failed(format!("{}: {failure}", self.name(case)))),
                _ => Ok(execution),
            });
            // Switched off again also when it failed.
            let left = self.toggles.leave();
            let execution = and_left(executed, left)?;
            if self.interrupted() {
                return Ok(None);
            }
            slices.push(SliceRecord { case: Some(case), reading: SliceReading::Execution(execution) });
        }
        Ok(Some((slices, Vec::new())))
    }
}
