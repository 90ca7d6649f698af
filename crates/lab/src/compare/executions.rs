//! Rounds of executions: runs each command once, from start to end.

use super::{Measured, RoundRunner};
use crate::cost::{CommandPlan, Count, Executed, Isolation, Printed, execute};
use crate::error::{Error, Result};
use crate::shell::short;
use model::comparison::record::{SliceReading, SliceRecord};
use model::experiment::{Around, Cell, Work};

impl RoundRunner<'_> {
    /// Measures one round; `None` if it was interrupted.
    pub(super) fn round_of_executions(&mut self) -> Result<Option<Measured>> {
        self.round_of_turns(|runner, case| {
            runner.around.before_execution(&runner.cell(case))?;
            Ok((runner.execution(case)?, None))
        })
    }

    /// The point of the sweep that a case belongs to.
    pub(super) fn cell(&self, case: usize) -> Cell {
        let cell = self.experiment.cases.get(case).and_then(|case| self.experiment.cells.get(case.cell));
        cell.cloned().unwrap_or_default()
    }

    /// The command of a case.
    pub(super) fn command_plan(&self, case: usize) -> CommandPlan {
        let command = match self.experiment.cases.get(case).map(|case| &case.work) {
            Some(Work::Command(command)) => command.clone(),
            Some(Work::Jobs(_)) | None => Vec::new(),
        };
        CommandPlan {
            command,
            count: Count::Program,
            repeat: 1,
            printed: Printed::Nowhere,
            custody: Isolation::Alone { longest: self.limit.longest },
            // Its commands run before each turn, not as a part of it.
            around: Around::default(),
            guardian: self.settings.guardian.clone(),
        }
    }

    fn execution(&mut self, case: usize) -> Result<SliceRecord> {
        let plan = self.command_plan(case);
        let name = self.name(case);
        let Executed { execution, failure } = execute(&plan, 0, &mut self.surroundings(), &mut |_| {}, &mut |_| {})
            .map_err(|error| match error {
                Error::Refused(why) => Error::Refused(format!("{name}: {why}")),
                Error::NotStarted { .. } => Error::Refused(format!("{name}: {error}; check the command")),
                error => error,
            })?;
        match failure {
            // A command that iotoll ended itself has not failed.
            Some(failure) if !self.interrupted() => {
                let command = short(&plan.command.join(" "));
                Err(Error::Failed(format!("{name} (`{command}`): {failure}")))
            }
            _ => Ok(SliceRecord { case: Some(case), reading: SliceReading::Execution(execution) }),
        }
    }
}
