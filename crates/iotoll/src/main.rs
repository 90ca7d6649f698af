//! iotoll: what one I/O costs the whole machine.

mod arguments;
mod compare;
mod cost;
mod demo;
mod doctor;
mod failure;
mod guardian;
mod probes;
mod progress;
mod render;
mod run;
mod serve;
mod signals;
mod stored;

use arguments::{Invocation, Verb};
use std::process::ExitCode;

fn main() -> ExitCode {
    failure::exit_code(Invocation::from_command_line().and_then(|invocation| execute(&invocation)))
}

fn execute(invocation: &Invocation) -> anyhow::Result<ExitCode> {
    match &invocation.verb {
        Verb::Run(arguments) => run::run(arguments, &invocation.words),
        Verb::Cost(arguments) => cost::cost(arguments, &invocation.words),
        Verb::Compare(arguments) => compare::compare(arguments, &invocation.words),
        Verb::Worker { threads } => compare::worker(*threads),
        Verb::Guardian => guardian::serve(),
        Verb::Serve(arguments) => serve::run(arguments),
        Verb::Report(arguments) => render::report(arguments),
        Verb::Doctor(arguments) => doctor::doctor(arguments),
        Verb::Demo(arguments) => demo::demo(arguments, &invocation.words),
    }
}
