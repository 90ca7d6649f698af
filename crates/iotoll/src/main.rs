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

use command_line::Verb;
use std::process::ExitCode;

fn main() -> ExitCode {
    if verbs::guest::measure::agent::is_first_process() {
        verbs::guest::measure::agent::live();
    }
    lab::reset_inherited_signals();
    // Workers start by way of /proc/self/exe, and would be called "exe" among the tasks.
    let _ = rustix::thread::set_name(c"iotoll");
    failure::exit_code(Verb::from_command_line().and_then(|(verb, words)| execute(&verb, &words)))
}

fn execute(verb: &Verb, words: &[String]) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Run(arguments) => run::run(arguments, words),
        Verb::Cost(arguments) => cost::cost(arguments, words),
        Verb::Compare(arguments) => compare::compare(arguments, words),
        Verb::Worker { threads } => compare::worker(*threads),
        Verb::Guardian => signals::serve_as_guardian(),
        Verb::Blast(arguments) => blast::blast(arguments, words),
        Verb::Ftq(arguments) => ftq::ftq(arguments, words),
        Verb::Guest { verb } => guest::guest(verb, words),
        Verb::Serve(arguments) => serve::run(arguments),
        Verb::Report(arguments) => report::report(arguments),
        Verb::History(arguments) => report::history(arguments),
        Verb::Doctor(shown) => report::doctor(*shown),
        Verb::Demo(output) => demo::demo(output, words),
        Verb::Completions { shell } => generate::completions(*shell),
        Verb::Generate { what, folder } => generate::generate(*what, folder),
    }
}
