//! `iotoll cost -- CMD`: measures a command, saves the record, studies it and prints the finding.

use crate::arguments::{Measuring, Output, amount, by};
use crate::failure::{self, BadInput, bad};
use crate::measure::{Asked, Earlier, Measurement, measure};
use clap::Args;
use lab::Interruption;
use lab::command::{CommandPlan, Count, Counter, Isolation};
use model::placement::Place;
use model::record::{Exit, Outcome, Record, Source};
use std::process::ExitCode;
use std::str::FromStr;
use verbs::{Format, cost};

/// `iotoll cost`.
#[derive(Args, Clone, Debug)]
pub struct CostArguments {
    /// I/Os that the command does in each execution
    #[arg(long, help_heading = "Count", value_name = "N", value_parser = amount)]
    pub ios: Option<u64>,
    /// Bytes that the command moves in each execution; suffixes as in fio: 4k, 1g
    #[arg(long, help_heading = "Count", value_name = "N", value_parser = amount)]
    pub bytes: Option<u64>,
    /// Count I/Os with a counter of the machine: block:vda, net:eth0, or a probe that increases
    #[arg(long, help_heading = "Count", value_name = "COUNTER", value_parser = by(Counter::from_str), conflicts_with_all = ["ios", "bytes"])]
    pub count: Option<Counter>,
    /// Execute the command N times and derive the interval from the spread
    #[arg(long, help_heading = "Command", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Do not show what the command prints on standard output
    #[arg(long, help_heading = "Command")]
    pub no_output: bool,
    #[command(flatten)]
    pub measuring: Measuring,
    #[command(flatten)]
    pub earlier: Earlier,
    #[command(flatten)]
    pub output: Output,
    /// The command and its arguments; fio and iperf3 report their I/O count themselves
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<String>,
}

pub fn cost(arguments: &CostArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let Some(program) = arguments.command.first().filter(|program| !program.is_empty()) else {
        return Err(bad("cost: no COMMAND; give it after --, as in: iotoll cost -- fio job.fio; see --help"));
    };
    if let Some(why) = measuring.observed.place.as_ref().and_then(Place::refuses_command) {
        return Err(bad(why));
    }
    let count = match (arguments.count.clone(), arguments.ios, arguments.bytes) {
        (Some(counter), ..) => Count::Kernel(counter),
        (None, None, None) => Count::Program,
        (None, ios, bytes) => Count::Stated { ios, bytes },
    };
    let asked = Asked::of(words, &arguments.output, &arguments.earlier, &measuring.observed.session)?;
    let command = asked.services.names().fill_in_all(&arguments.command).map_err(BadInput)?;
    asked.inputs.note_command(&command);
    let source = Source::Cost { command: command.clone(), counted_by: String::new() };
    let plan = CommandPlan {
        command,
        count,
        repeat: arguments.repeat,
        printed: !arguments.no_output,
        custody: Isolation::Shared,
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let for_people = !matches!(arguments.output.shown.format, Format::Json | Format::Csv);
    let cost = Measurement {
        // The second one ends the command; its readings are kept.
        last_signal: Some(3),
        did_nothing: &|record| did_nothing(record, &plan).filter(|_| for_people),
        exit_code: &failed,
        ..Measurement::whole(name, &source, measuring)
    };
    measure(cost, asked, |settings, created, observer| cost::measure::command(&plan, &settings, created, observer))
}

/// Why there is no cost, if a program that reports its I/O failed before it did any.
fn did_nothing(record: &Record, plan: &CommandPlan) -> Option<String> {
    let executions = || record.phases.iter().flat_map(|phase| &phase.executions);
    let did = executions().flat_map(|execution| &execution.jobs).any(|job| job.reported_ios() > 0);
    let Outcome::Failed(why) = &record.outcome else { return None };
    let reports = plan.count == Count::Program && lab::command::reports(&plan.command);
    (reports && !did).then(|| format!("`{}`: {why}; it reported no I/O, so there is no cost", plan.command.join(" ")))
}

/// The status of the last execution that failed, or the outcome of the measurement if that did not end as planned. The command's
/// status says nothing if iotoll interrupted the command because a service failed.
fn failed(record: &Record, interruption: &Interruption) -> Option<ExitCode> {
    let exits = record.phases.iter().flat_map(|phase| &phase.executions).filter_map(|execution| execution.exit);
    let failed = exits.rev().find(|exit| *exit != Exit::Status(0)).filter(|_| !interruption.is_by_failure());
    let of_outcome = || (record.outcome != Outcome::Completed).then(|| failure::of_outcome(&record.outcome));
    failed.map(failure::of_command).or_else(of_outcome)
}
