//! `iotoll cost -- CMD`: measures a command, saves the record, studies it and prints the finding.

use crate::arguments::CostArguments;
use crate::failure::{self, BadInput};
use crate::guardian::guardian;
use crate::input::Inputs;
use crate::probes;
use crate::progress::ProgressLine;
use crate::run::measurement;
use crate::saving::{self, Saving};
use crate::services::Services;
use crate::signals::{self, LaterSignals, LeftBehind};
use crate::stdout;
use crate::stored;
use lab::cost::{CommandPlan, Count, Isolation, Printed};
use lab::session::Settings;
use model::finding::RunFinding;
use model::placement::Place;
use model::record::{Exit, Outcome, Record, Source};
use report::Format;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub fn cost(arguments: &CostArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    if measuring.session.probes.lists() {
        return probes::list();
    }
    let Some(program) = arguments.command.first().filter(|program| !program.is_empty()) else {
        return Err(BadInput(
            "cost: no COMMAND; give it after --, as in: iotoll cost -- fio job.fio; see --help".into(),
        )
        .into());
    };
    if let Some(why) = measuring.place.place.as_ref().and_then(Place::refuses_command) {
        return Err(BadInput(why).into());
    }
    let count = match (arguments.count.clone(), arguments.ios, arguments.bytes) {
        (Some(counter), ..) => Count::Kernel(counter),
        (None, None, None) => Count::Program,
        (None, ios, bytes) => Count::Stated { ios, bytes },
    };
    let printed = if arguments.no_output { Printed::Nowhere } else { Printed::ToStderr };
    let services = Services::of(&measuring.session.services)?;
    let command = services.fill_in(&arguments.command)?;
    let inputs = Inputs::default();
    inputs.note_command(&command);
    let around = services.around(&measuring.session.around)?;
    let custody = Isolation::Shared;
    let plan = CommandPlan { command: command.clone(), count, repeat: arguments.repeat, printed, custody };
    let source = Source::Cost { command, counted_by: String::new() };
    let limits = stored::limits::<Record>(&arguments.earlier, &source)?;
    let stored = stored::load(arguments.earlier.stored.as_deref(), &source)?;
    let left = LeftBehind::default();
    // The second signal ends the command; its readings are kept.
    let interruption = signals::interruption(LaterSignals::Exit(3, left.clone()))?;
    let guardian = guardian(words);
    let saving = Saving::prepare(&arguments.output, program.rsplit('/').next().unwrap_or(program))?;
    let settings = Settings {
        around,
        services: services.settings(&guardian),
        saver: saving.saver(),
        ..measurement(measuring, interruption, inputs.command_line(words, limits), &guardian)
    };
    left.unless({
        let saving = saving.clone();
        move || saving.abandon()
    });
    let line = ProgressLine::new(arguments.output.quiet);
    let mut print = |text: &str| {
        // The command's output is not iotoll's result, so it goes to standard error.
        let _ = std::io::stderr().write_all(text.as_bytes());
    };
    let outcome = lab::cost::cost(&plan, &settings, &mut |progress| line.show(&progress), &mut print);
    line.clear();
    let record = outcome.inspect_err(|_| saving.abandon()).map_err(mended)?;
    let for_people = !matches!(arguments.output.shown.format, Format::Json | Format::Csv);
    if let Some(why) = did_nothing(&record, &plan).filter(|_| for_people) {
        saving.abandon();
        failure::complain(&why);
        return Ok(failed(&record, settings.interruption.is_by_failure()).unwrap_or(ExitCode::SUCCESS));
    }
    let output = &arguments.output;
    let note = !output.quiet && !output.shown.is_glance();
    let print = |finding: &RunFinding, folder: Option<&Path>| stdout::print(finding, output.shown, folder);
    let finding = saving::keep_and_print(&record, stored.as_ref(), &saving, note, &print)?;
    let failed = failed(&record, settings.interruption.is_by_failure());
    Ok(failed.unwrap_or_else(|| failure::of_finding(&finding)))
}

/// Why there is no cost, if a program that reports its I/O failed before it did any.
fn did_nothing(record: &Record, plan: &CommandPlan) -> Option<String> {
    let executions = || record.phases.iter().flat_map(|phase| &phase.executions);
    let did = executions().flat_map(|execution| &execution.jobs).any(|job| job.reported_ios() > 0);
    let Outcome::Failed(why) = &record.outcome else { return None };
    let reports = plan.count == Count::Program && lab::cost::reports(&plan.command);
    (reports && !did).then(|| format!("`{}`: {why}; it reported no I/O, so there is no cost", plan.command.join(" ")))
}

/// Adds how to fix a command that cannot be started.
pub fn mended(error: lab::Error) -> anyhow::Error {
    match error {
        lab::Error::NotStarted { .. } => BadInput(format!("{error}; check the command after --")).into(),
        error => error.into(),
    }
}

/// The status of the last execution that failed, or the outcome of the measurement if that did not end as planned. The command's
/// status says nothing if iotoll interrupted the command because a service `failed`.
fn failed(record: &Record, failed: bool) -> Option<ExitCode> {
    let of_outcome = || (record.outcome != Outcome::Completed).then(|| failure::of_outcome(&record.outcome));
    if failed {
        return of_outcome();
    }
    let exits = record.phases.iter().flat_map(|phase| &phase.executions).filter_map(|execution| execution.exit);
    match exits.rev().find(|exit| *exit != Exit::Status(0)) {
        Some(exit) => Some(failure::of_command(exit)),
        None => of_outcome(),
    }
}
