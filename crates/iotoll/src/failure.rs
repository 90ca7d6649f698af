//! How a verb ends: exit codes, and the one line that says why.

use model::record::{Exit, Outcome};
use std::process::ExitCode;

/// It failed.
pub const FAILED: u8 = 1;
/// Bad usage or bad input.
pub const BAD_INPUT: u8 = 2;
/// By Ctrl-C or SIGTERM, as shells report it.
pub const INTERRUPTED: u8 = 130;

/// Bad usage or bad input: what, where, how to mend it.
#[derive(Debug)]
pub struct BadInput(pub String);

impl std::fmt::Display for BadInput {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// Prints the reason of a failure on standard error, and says how to exit.
pub fn exit_code(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match outcome {
        Ok(code) => return code,
        Err(error) => error,
    };
    complain(&in_words(&error));
    if error.downcast_ref::<lab::Error>().is_some_and(|error| matches!(error, lab::Error::Interrupted(_))) {
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::from(if is_bad_input(&error) { BAD_INPUT } else { FAILED })
}

/// An error with its source. One of the lab names that itself; others leave it to the chain.
pub fn in_words(error: &anyhow::Error) -> String {
    if error.is::<lab::Error>() { format!("{error}") } else { format!("{error:#}") }
}

fn is_bad_input(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind;
    match error.downcast_ref::<lab::Error>() {
        Some(lab::Error::Refused(_)) => true,
        Some(lab::Error::File { source, .. }) => {
            let kinds = [
                ErrorKind::NotFound,
                ErrorKind::PermissionDenied,
                ErrorKind::IsADirectory,
                ErrorKind::NotADirectory,
                ErrorKind::InvalidData,
            ];
            kinds.contains(&source.kind())
        }
        Some(_) => false,
        None => error.is::<BadInput>() || error.is::<model::plan::ParseError>(),
    }
}

/// One line on standard error.
pub fn complain(message: &str) {
    use std::io::Write;
    // Where standard error was closed there is nobody to tell; eprintln! would panic.
    // What others named (files, jobs) may hold anything; it stays one line, and cannot steer a terminal.
    let _ = writeln!(std::io::stderr(), "iotoll: {}", message.replace(char::is_control, " "));
}

/// How a measurement that ended like this makes the program exit.
pub fn of_outcome(outcome: &Outcome) -> ExitCode {
    match outcome {
        Outcome::Completed => ExitCode::SUCCESS,
        Outcome::Interrupted => ExitCode::from(INTERRUPTED),
        Outcome::Failed(_) => ExitCode::from(FAILED),
    }
}

/// The exit status of a measured command, as a shell would give it.
pub fn of_command(exit: Exit) -> ExitCode {
    match exit {
        Exit::Status(status) => ExitCode::from(u8::try_from(status & 0xff).unwrap_or(FAILED)),
        Exit::Signal(signal) => ExitCode::from(u8::try_from((128 + signal) & 0xff).unwrap_or(FAILED)),
    }
}
