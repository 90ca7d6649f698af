//! iotoll: what one I/O costs the whole machine.

mod arguments;
mod cost;
mod demo;
mod doctor;
mod failure;
mod progress;
mod render;
mod run;
mod signals;

use arguments::{Invocation, Verb};
use std::process::ExitCode;

fn main() -> ExitCode {
    let invocation = Invocation::from_command_line();
    let outcome = match &invocation.verb {
        Verb::Run(arguments) => run::run(arguments, &invocation.words),
        Verb::Cost(arguments) => cost::cost(arguments, &invocation.words),
        Verb::Report(arguments) => render::report(arguments),
        Verb::Doctor(arguments) => doctor::doctor(arguments),
        Verb::Demo(arguments) => demo::demo(arguments, &invocation.words),
    };
    failure::exit_code(outcome)
}
