//! How a verb ends: exit codes, and the one line that gives the reason.

use crate::standard_error;
use model::kind::Head;
use model::limit::{self, LimitState};
use model::plan::Refused;
use model::record::{Exit, Outcome};
use std::process::ExitCode;

pub const FAILED: u8 = 1;
/// Bad usage or bad input.
pub const BAD_INPUT: u8 = 2;
/// A limit of `--fail-on` was exceeded.
pub const EXCEEDED: u8 = 3;
/// A limit of `--fail-on` is undecided.
pub const UNDECIDED: u8 = 4;
/// Ended by Ctrl-C or SIGTERM; the value that shells report.
pub const INTERRUPTED: u8 = 130;

/// Every exit status, and when the program ends with it.
pub const STATUSES: [(u8, &str); 6] = [
    (0, "Done."),
    (FAILED, "It failed: a job, the machine, or iotoll itself. One line on standard error says why."),
    (
        BAD_INPUT,
        "Bad usage or bad input, or a measurement that cannot be made as asked (`compare`: a command that catches up what it missed \
         while it was frozen). There is no result. One line on standard error says what, where and the fix.",
    ),
    (EXCEEDED, "A limit of `--fail-on` was exceeded. One line on standard error says which, and what was measured."),
    (UNDECIDED, "A limit of `--fail-on` is undecided, and none was exceeded."),
    (INTERRUPTED, "Interrupted by Ctrl-C or SIGTERM. What was measured until then is saved and reported."),
];

/// Bad usage or bad input: what, where, how to fix it.
#[derive(Debug)]
pub struct BadInput(pub String);

impl std::fmt::Display for BadInput {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// The same as the error of a verb.
pub fn bad(message: impl Into<String>) -> anyhow::Error {
    BadInput(message.into()).into()
}

/// Prints the reason of a failure on standard error and returns the exit code.
pub fn exit_code(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match outcome {
        Ok(code) => return code,
        Err(error) => error,
    };
    match error.downcast_ref::<Refused>() {
        None => complain(&in_words(&error)),
        // A line for each thing that is wrong, and one with what to do.
        Some(refused) => {
            refused.errors().for_each(|error| complain(&error.to_string()));
            refused.advice().iter().for_each(|advice| complain(advice));
        }
    }
    if error.downcast_ref::<lab::Error>().is_some_and(|error| matches!(error, lab::Error::Interrupted(_))) {
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::from(if is_bad_input(&error) { BAD_INPUT } else { FAILED })
}

/// Ends writing to standard output. A closed pipe (`iotoll … | head`) is not an error and does not change the exit code.
pub fn written(written: std::io::Result<()>) -> anyhow::Result<()> {
    use std::io::{ErrorKind, Write, stdout};
    match written.and_then(|()| stdout().flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(anyhow::Error::new(error)
            .context("writing to standard output; redirect it to a file or device with enough space")),
        _ => Ok(()),
    }
}

/// An error with its source. An error of the lab names its source itself; for others the chain is printed.
pub fn in_words(error: &anyhow::Error) -> String {
    if error.is::<lab::Error>() { format!("{error}") } else { format!("{error:#}") }
}

/// ELOOP.
const LOOP: i32 = 40;

fn is_bad_input(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind;
    match error.downcast_ref::<lab::Error>() {
        Some(lab::Error::Refused(_) | lab::Error::Misleading(_)) => true,
        Some(lab::Error::File { source, .. }) => {
            let kinds = [
                ErrorKind::NotFound,
                ErrorKind::PermissionDenied,
                ErrorKind::IsADirectory,
                ErrorKind::NotADirectory,
                ErrorKind::InvalidData,
                ErrorKind::FileTooLarge,
                ErrorKind::InvalidFilename,
            ];
            // The kind of a loop of links is not stable yet.
            kinds.contains(&source.kind()) || source.raw_os_error() == Some(LOOP)
        }
        Some(_) => false,
        None => error.is::<BadInput>() || error.is::<Refused>(),
    }
}

/// One line on standard error.
pub fn complain(message: &str) {
    standard_error::say(&one_line(message));
}

/// A message as one line. Names of files and jobs may contain control characters: replacing them keeps the message on one
/// line and the terminal safe.
pub fn one_line(message: &str) -> String {
    format!("iotoll: {}", message.replace(|letter: char| letter.is_control() || report::shell::is_hidden(letter), " "))
}

/// The exit code after a measurement with this outcome.
pub fn of_outcome(outcome: &Outcome) -> ExitCode {
    match outcome {
        Outcome::Completed => ExitCode::SUCCESS,
        Outcome::Interrupted => ExitCode::from(INTERRUPTED),
        Outcome::Failed(_) => ExitCode::from(FAILED),
    }
}

/// The exit code after a measurement with this finding. A measurement that did not end as planned precedes its limits: they were not
/// judged by all that was asked for.
pub fn of_finding(head: &Head) -> ExitCode {
    if head.outcome != Outcome::Completed {
        return of_outcome(&head.outcome);
    }
    let limits = &head.limits;
    for limit in limit::not_kept(limits) {
        complain(&verbs::pages::limits::sentence(limit));
    }
    match limits.iter().map(|limit| limit.state).max() {
        Some(LimitState::Exceeded) => ExitCode::from(EXCEEDED),
        Some(LimitState::Undecided) => ExitCode::from(UNDECIDED),
        Some(LimitState::Kept) | None => ExitCode::SUCCESS,
    }
}

/// The exit status of a measured command, as a shell reports it.
pub fn of_command(exit: Exit) -> ExitCode {
    match exit {
        Exit::Status(status) => ExitCode::from(u8::try_from(status & 0xff).unwrap_or(FAILED)),
        Exit::Signal(signal) => ExitCode::from(u8::try_from((128 + signal) & 0xff).unwrap_or(FAILED)),
    }
}
