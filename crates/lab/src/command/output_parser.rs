//! Programs that report their I/O in their output: one row of the table each. A new one is a file and a row here.

use super::{CommandPlan, Count, fio, iperf3};
use crate::error::{Error, Result};
use crate::shell::{our_stderr, scratch};
use crate::starters::look_through;
use model::record::{JobRecord, Latency};
use model::unit::Nanos;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::Stdio;

/// Tolerance for a program's clock: its resolution, and the time between its last I/O and its report.
pub(super) const CLOCK_SLACK: Nanos = Nanos(100_000_000);

/// What a program reported about its own I/O.
#[derive(Debug, Default)]
pub struct ProgramReport {
    pub jobs: Vec<JobRecord>,
    /// When it did I/O, in Unix time, if the program reports that.
    pub io_unix_nanos: Option<(u64, u64)>,
    /// Why the time of its I/O is unknown although the program reports its duration.
    pub unclear: Option<String>,
    /// Why its counts leave out work that the machine paid for.
    pub uncounted: Option<String>,
    /// Which of its figures are replaced or left out because they cannot be, and why.
    pub notes: Vec<String>,
    /// The part of the output that is text for the user.
    pub text: String,
    /// Why it failed, from a program that fails with exit status 0.
    pub failure: Option<String>,
}

/// Why a latency that a program reports of `ios` I/Os cannot be theirs, which it did within `wall`, at most `in_flight` of them at a time.
pub(super) fn impossible(latency: &Latency, ios: u64, wall: Nanos, in_flight: Option<f64>) -> Option<&'static str> {
    /// A wrong clock is wrong by more. An I/O may begin before the time that counts, and times have a resolution.
    const WIDE: f64 = 2.0;
    let Latency::Reported { mean_nanos, max_nanos, percentiles } = latency else { return None };
    let longest = percentiles.iter().map(|(_, value)| *value).fold(*max_nanos, Nanos::max).as_f64().max(*mean_nanos);
    let time = WIDE * wall.as_f64() + CLOCK_SLACK.as_f64();
    if longest > time {
        return Some("is longer than the run");
    }
    // Little's law: the sum of all latencies is the time by the number in flight.
    let fits = in_flight.is_none_or(|most| mean_nanos * ios as f64 <= time * most);
    (!fits).then_some("would take more I/Os in flight than there were")
}

/// A program that reports its I/O.
struct Row {
    program: &'static str,
    /// Source of the I/O count, in words.
    counted_by: &'static str,
    /// The option that makes the program print its report.
    option: &'static str,
    /// Whether an argument hides the report, makes it one of less than all that the machine pays for, or lets the program end before its work.
    is_in_the_way: fn(&str) -> bool,
    /// The report, by what the program printed.
    parse: fn(&str) -> std::result::Result<ProgramReport, String>,
}

static PROGRAMS: [Row; 2] = [
    Row {
        program: "fio",
        counted_by: "fio's JSON",
        // Both: JSON for iotoll, and the normal output for the user.
        option: "--output-format=normal,json",
        is_in_the_way: fio::is_in_the_way,
        parse: fio::parse,
    },
    Row {
        program: "iperf3",
        counted_by: "iperf3's JSON: I/Os are blocks (TCP) or packets (UDP)",
        option: "--json",
        is_in_the_way: iperf3::is_in_the_way,
        parse: iperf3::parse,
    },
];

/// The row of a program, whatever its path.
fn row(program: Option<&String>) -> Option<&'static Row> {
    let file = Path::new(program?).file_name()?;
    PROGRAMS.iter().find(|row| file == row.program)
}

/// The row of the program that a command starts.
fn row_of(command: &[String]) -> Option<&'static Row> {
    row(command.get(look_through(command)))
}

/// Whether a command starts a program that reports its own I/O.
pub fn reports(command: &[String]) -> bool {
    row_of(command).is_some()
}

/// A command that reports its I/Os if it can.
pub struct Prepared {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Where its standard output goes.
    pub stdout: Stdio,
    pub output: Output,
}

/// The plan's command with the options that make it report its I/Os.
///
/// # Errors
/// When an option of the command is in the way.
pub fn prepared(plan: &CommandPlan) -> Result<Prepared> {
    let (mut command, before) = (plan.command.clone(), look_through(&plan.command));
    let Some(row) = row(command.get(before)).filter(|_| plan.count == Count::Program) else {
        let stdout = if plan.printed { our_stderr() } else { Stdio::null() };
        return Ok(Prepared { command, stdout, output: Output(None) });
    };
    if let Some(argument) = command.iter().skip(before + 1).find(|argument| (row.is_in_the_way)(argument)) {
        return Err(Error::Refused(format!(
            "{0}'s {argument} conflicts with iotoll, which reads {0}'s output as JSON, once, at the end, and what it did in all of its time; \
             leave it out, or count with --ios",
            row.program
        )));
    }
    command.insert(before + 1, row.option.to_owned());
    let (kept, stdout) =
        scratch().map_err(|error| Error::instrument("making a temporary file for the command's output", error))?;
    Ok(Prepared { command, stdout: stdout.into(), output: Output(Some((row, kept))) })
}

/// The standard output of a program that reports its I/O, in an unnamed file: the program can write to it as any user, without a
/// limit, and the file disappears however iotoll ends.
pub struct Output(Option<(&'static Row, File)>);

impl Output {
    /// The report, once the program has ended.
    pub fn report(&mut self) -> std::result::Result<ProgramReport, String> {
        let Some((row, file)) = &mut self.0 else { return Ok(ProgramReport::default()) };
        let mut bytes = Vec::new();
        // Both descriptors share one file offset, so rewind first.
        let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
        read.map_err(|error| error.to_string())?;
        // It may contain file names, which need not be UTF-8.
        (row.parse)(&String::from_utf8_lossy(&bytes))
    }
}

/// Source of the I/O count, in words.
pub fn counted_by(plan: &CommandPlan) -> String {
    match &plan.count {
        Count::Program => {
            row_of(&plan.command).map_or("nothing: give --ios, --bytes or --count", |row| row.counted_by).to_owned()
        }
        Count::Stated { .. } => "stated on the command line".to_owned(),
        Count::Kernel(counter) => format!("the kernel's counters of {counter}, of all processes{}", counter.remark()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Isolation;

    fn plan(program: &str, count: Count) -> CommandPlan {
        let command = vec![program.to_owned()];
        CommandPlan { command, count, repeat: 1, printed: false, custody: Isolation::Shared }
    }

    #[test]
    fn a_program_is_known_by_its_name_in_any_folder() {
        for (program, words) in
            [("fio", "fio's"), ("/usr/bin/iperf3", "iperf3's"), ("fio.sh", "nothing"), ("", "nothing")]
        {
            let plan = plan(program, Count::Program);
            assert!(counted_by(&plan).starts_with(words), "{program}: {}", counted_by(&plan));
            let command = prepared(&plan).unwrap().command;
            assert_eq!(command.len() > 1, words != "nothing", "a known program gets options: {command:?}");
        }
    }

    #[test]
    fn a_command_without_a_known_program_is_not_counted() {
        let words = |text: &[&str]| text.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for text in ["cat fio", "nice cat fio", "sudo -u fio ./bench", "env rsync -a s/ /backup/fio", "taskset -c 0"] {
            assert!(row_of(&words(&text.split(' ').collect::<Vec<_>>())).is_none(), "{text}");
        }
    }

    #[test]
    fn a_program_with_a_stated_count_gets_no_options() {
        let plan = plan("fio", Count::Stated { ios: Some(1), bytes: None });
        assert!(counted_by(&plan).starts_with("stated"));
        assert_eq!(prepared(&plan).unwrap().command, plan.command);
    }
}
