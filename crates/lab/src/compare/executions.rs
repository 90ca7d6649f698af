//! Rounds of executions: runs each command once, from start to end.

use super::{Measured, RoundRunner};
use crate::cost::{CommandPlan, Count, Counter, Executed, Isolation, Printed, execute};
use crate::error::{Error, Result};
use crate::network_namespace;
use crate::shell::short;
use model::comparison::record::{SliceReading, SliceRecord};
use model::experiment::{Cell, Work};
use model::warning::add_once;
use std::collections::BTreeSet;

impl RoundRunner<'_> {
    /// Measures one round; `None` if it was interrupted.
    pub(super) fn round_of_executions(&mut self) -> Result<Option<Measured>> {
        self.round_of_turns(|runner, case| {
            runner.session.prepare(&runner.cell(case))?;
            Ok((runner.execution(case)?, None))
        })
    }

    /// The point of the sweep that a case belongs to.
    pub(super) fn cell(&self, case: usize) -> Cell {
        let cell = self.experiment.cases.get(case).and_then(|case| self.experiment.cells.get(case.cell));
        cell.cloned().unwrap_or_default()
    }

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
        }
    }

    /// How the I/Os of whole executions are counted.
    fn count_of_executions(&self) -> Result<Count> {
        let rules = &self.experiment.commands;
        if rules.states_work() {
            return Ok(Count::Stated { ios: rules.ios, bytes: rules.bytes });
        }
        let Some(name) = &rules.count else { return Ok(Count::Program) };
        let counter = name.parse::<Counter>().and_then(|counter| counter.read().map(|_| counter));
        counter.map(Count::Kernel).map_err(|why| Error::Refused(format!("--count {why}")))
    }

    fn execution(&mut self, case: usize) -> Result<SliceRecord> {
        let plan = CommandPlan { count: self.count_of_executions()?, ..self.command_plan(case) };
        let name = self.name(case);
        let Executed { execution, failure, elsewhere } =
            execute(&plan, 0, &mut self.surroundings(), &mut |_| {}, &mut |_| {}).map_err(|error| match error {
                Error::Refused(why) => Error::Refused(format!("{name}: {why}")),
                Error::NotStarted { .. } => Error::Refused(format!("{name}: {error}; check the command")),
                error => error,
            })?;
        self.note_namespace(&plan.command, elsewhere);
        match failure {
            // A command that iotoll ended itself has not failed.
            Some(failure) if !self.interrupted() => {
                let command = short(&plan.command.join(" "));
                Err(Error::Failed(format!("{name} (`{command}`): {failure}")))
            }
            _ => Ok(SliceRecord { case: Some(case), reading: SliceReading::Execution(execution) }),
        }
    }

    /// Settings of this network namespace do not reach a command in another one.
    pub(super) fn note_namespace(&mut self, command: &[String], elsewhere: bool) {
        let settings = self.experiment.arms.iter().flat_map(|arm| &arm.settings);
        let of_network = settings.filter(|setting| network_namespace::is_of_one(&setting.path));
        let counter =
            self.experiment.commands.count.iter().filter(|name| ["net:", "net."].iter().any(|of| name.starts_with(of)));
        let probes = network_namespace::flags_of_one(&self.settings.session.probes);
        let counter = counter.map(|name| format!("--count {name}"));
        let ours: BTreeSet<String> = of_network.map(ToString::to_string).chain(counter).chain(probes).collect();
        let ours: Vec<String> = ours.into_iter().collect();
        if let Some(caveat) = network_namespace::caveat(&ours, command, elsewhere) {
            add_once(&mut self.warnings, caveat);
        }
    }
}
