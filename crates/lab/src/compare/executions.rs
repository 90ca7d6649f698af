//! Rounds of executions: each command once, from its beginning to its end, under its arm's toggles.

use super::{Bench, Measured, at_once};
use crate::cost::{CommandPlan, Count, Executed, Printed, execute};
use crate::error::{Error, Result};
use model::comparison::record::{SliceReading, SliceRecord};
use model::experiment::Work;
use std::time::Duration;

/// The machine alone, in each round.
const ALONE: Duration = Duration::from_millis(300);
/// A command that takes longer than this and than the budget hangs.
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
                slices.push(at_once(|| self.alone(ALONE)));
                continue;
            };
            let Some(Work::Command(command)) = self.experiment.cases.get(case).map(|case| &case.work) else { continue };
            let plan = CommandPlan {
                command: command.clone(),
                count: Count::Program,
                repeat: 1,
                printed: Printed::Nowhere,
                longest: Some(PATIENCE.max(Duration::from_secs_f64(self.experiment.rules.budget_seconds))),
            };
            self.enter(case)?;
            let executed = execute(&plan, 0, &mut self.surroundings(), &mut |_| {}, &mut |_| {});
            // Switched off again also when it failed; then that failure is the one to tell.
            let left = self.toggles.leave();
            let Executed { execution, failure } = executed?;
            if self.interrupted() {
                return Ok(None);
            }
            if let Some(failure) = failure {
                return Err(Error::Failed(format!("{}: {failure}", self.name(case))));
            }
            left?;
            slices.push(SliceRecord { case: Some(case), reading: SliceReading::Execution(execution) });
        }
        Ok(Some((slices, Vec::new())))
    }
}
