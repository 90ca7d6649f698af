//! iotoll: what one I/O costs the whole machine.

mod arguments;
mod blast;
mod command_line;
mod compare;
mod cost;
mod demo;
mod failure;
mod ftq;
mod generate;
mod guest;
mod input;
mod measure;
mod progress;
mod report;
mod run;
mod saving;
mod series;
mod serve;
mod signals;
mod standard_error;
mod stdout;

use command_line::{Invocation, Verb};
use std::process::ExitCode;

fn main() -> ExitCode {
    if lab::guest::agent::is_first_process() {
        lab::guest::agent::live();
    }
    lab::reset_inherited_signals();
    // Workers start by way of /proc/self/exe, and would be called "exe" among the tasks.
    let _ = rustix::thread::set_name(c"iotoll");
    failure::exit_code(Invocation::from_command_line().and_then(|invocation| execute(&invocation)))
}

fn execute(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    if invocation.verb.lists_probes() {
        stdout::write(&::report::probes::list(&lab::probe::list(), stdout::columns()))?;
        return Ok(ExitCode::SUCCESS);
    }
    match &invocation.verb {
        Verb::Run(arguments) => run::run(arguments, &invocation.words),
        Verb::Cost(arguments) => cost::cost(arguments, &invocation.words),
        Verb::Compare(arguments) => compare::compare(arguments, &invocation.words),
        Verb::Worker { threads } => compare::worker(*threads),
        Verb::Guardian => signals::serve_as_guardian(),
        Verb::Blast(arguments) => blast::blast(arguments, &invocation.words),
        Verb::Ftq(arguments) => ftq::ftq(arguments, &invocation.words),
        Verb::Guest { verb } => guest::guest(verb, &invocation.words),
        Verb::Serve(arguments) => serve::run(arguments),
        Verb::Report(arguments) => report::report(arguments),
        Verb::History(arguments) => report::history(arguments),
        Verb::Doctor(shown) => report::doctor(*shown),
        Verb::Demo(output) => demo::demo(output, &invocation.words),
        Verb::Completions { shell } => generate::completions(*shell),
        Verb::Generate { what, folder } => generate::generate(*what, folder),
    }
}
