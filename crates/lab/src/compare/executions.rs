//! Rounds of executions: each command once, from its beginning to its end.

use super::{Measured, RoundRunner};
use crate::cost::{CommandPlan, Count, Custody, Executed, Printed, execute};
use crate::error::{Error, Result};
use model::comparison::record::{SliceReading, SliceRecord};
use model::experiment::{Around, Work};

impl RoundRunner<'_> {
    /// One round; `None` when it was interrupted.
    pub(super) fn round_of_executions(&mut self) -> Result<Option<Measured>> {
        self.round_of_turns(|runner, case| {
            runner.around.before_execution()?;
            Ok((runner.execution(case)?, None))
        })
    }

    fn execution(&mut self, case: usize) -> Result<SliceRecord> {
        let command = match self.experiment.cases.get(case).map(|case| &case.work) {
            Some(Work::Command(command)) => command.clone(),
            Some(Work::Jobs(_)) | None => Vec::new(),
        };
        let plan = CommandPlan {
            command,
            count: Count::Program,
            repeat: 1,
            printed: Printed::Nowhere,
            custody: Custody::Alone { longest: self.limit.longest },
            // Once before each turn, not within it.
            around: Around::default(),
            guardian: self.settings.guardian.clone(),
        };
        let name = self.name(case);
        let Executed { execution, failure } = execute(&plan, 0, &mut self.surroundings(), &mut |_| {}, &mut |_| {})
            .map_err(|error| match error {
                Error::Refused(why) => Error::Refused(format!("{name}: {why}")),
                Error::NotStarted { .. } => Error::Refused(format!("{name}: {error}; check the command")),
                error => error,
            })?;
        match failure {
            // What we ended ourselves has not failed.
            Some(failure) if !self.interrupted() => Err(Error::Failed(format!("{name}: {failure}"))),
            _ => Ok(SliceRecord { case: Some(case), reading: SliceReading::Execution(execution) }),
        }
    }
}
