//! `iotoll cost -- CMD`: a foreign command, measured, kept, studied, printed.

use crate::arguments::CostArguments;
use crate::failure::{self, BadInput};
use crate::guardian;
use crate::probes;
use crate::progress::ProgressLine;
use crate::render::{self, Keeping};
use crate::run::measurement;
use crate::signals::{LaterSignals, LeftBehind};
use crate::stored;
use lab::cost::{CommandPlan, Count, Custody, Printed};
use model::placement::Place;
use model::record::{Exit, Record, Source};
use std::io::Write;
use std::process::ExitCode;

/// Runs the verb.
pub fn cost(arguments: &CostArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if arguments.measuring.lists_probes() {
        return probes::list();
    }
    let Some(program) = arguments.command.first().filter(|program| !program.is_empty()) else {
        return Err(BadInput(
            "cost: no COMMAND; give it after --, as in: iotoll cost -- fio job.fio; see --help".into(),
        )
        .into());
    };
    if let Some(why) = arguments.measuring.place.as_ref().and_then(Place::refuses_command) {
        return Err(BadInput(why).into());
    }
    let count = match (arguments.count.clone(), arguments.ios, arguments.bytes) {
        (Some(counter), ..) => Count::Kernel(counter),
        (None, None, None) => Count::Program,
        (None, ios, bytes) => Count::Stated { ios, bytes },
    };
    let printed = if arguments.no_output { Printed::Nowhere } else { Printed::ToStderr };
    let plan = CommandPlan {
        command: arguments.command.clone(),
        count,
        repeat: arguments.repeat,
        printed,
        custody: Custody::Shared,
        around: arguments.around.around(),
        guardian: guardian::guardian(words),
    };
    let source = Source::Cost { command: arguments.command.clone(), counted_by: String::new() };
    let stored = stored::load(arguments.output.stored.as_deref(), &source)?;
    let left = LeftBehind::default();
    // The second ends the command, and what it did is kept.
    let measurement = measurement(&arguments.measuring, LaterSignals::Exit(3, left.clone()), words)?;
    guardian::put_back();
    let keeping = Keeping::prepare(&arguments.output, program.rsplit('/').next().unwrap_or(program))?;
    left.unless({
        let keeping = keeping.clone();
        move || keeping.abandon()
    });
    let line = ProgressLine::new(arguments.output.quiet);
    let mut print = |text: &str| {
        // What the command said to a person is not our result, so it does not go where that goes.
        let _ = std::io::stderr().write_all(text.as_bytes());
    };
    let outcome = lab::cost::cost(&plan, &measurement, &mut |progress| line.show(&progress), &mut print);
    line.clear();
    let record = outcome.inspect_err(|_| keeping.abandon()).map_err(mended)?;
    render::keep_and_print(&record, stored.as_ref(), &keeping, &arguments.output)?;
    Ok(exit_code(&record))
}

/// With what the user can do about it.
fn mended(error: lab::Error) -> anyhow::Error {
    match error {
        lab::Error::NotStarted { .. } => BadInput(format!("{error}; check the command after --")).into(),
        error => error.into(),
    }
}

/// As the command ended: the last execution that failed, or as the measurement ended.
fn exit_code(record: &Record) -> ExitCode {
    let exits = record.phases.iter().flat_map(|phase| &phase.executions).filter_map(|execution| execution.exit);
    match exits.rev().find(|exit| *exit != Exit::Status(0)) {
        Some(exit) => failure::of_command(exit),
        None => failure::of_outcome(&record.outcome),
    }
}
