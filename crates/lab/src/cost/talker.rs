//! Programs that can say what they did: a row of the table for each. A new one is a file of its own and a row here.

use super::{CommandPlan, Count, Printed, fio, iperf3};
use crate::error::{Error, Result};
use model::record::JobRecord;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// A program that can say what it did.
pub(super) trait Talker {
    /// The command with what makes it talk, and where its standard output goes.
    fn prepare(&mut self, command: &[String], printed: Printed) -> Result<(Vec<String>, Stdio)>;
    /// What it said, after it ended.
    fn jobs(&mut self) -> std::result::Result<Said, String>;
}

/// What a program said of itself.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub jobs: Vec<JobRecord>,
    /// When it did I/O, on the clock of the day, where it says so.
    pub io_unix_nanos: Option<(u64, u64)>,
    /// The text that it meant for a person.
    pub text: String,
    /// Why it failed, from a program whose exit status does not say that it did.
    pub failure: Option<String>,
}

struct Row {
    program: &'static str,
    /// Where its I/O count comes from, in words.
    counted_by: &'static str,
    talker: fn() -> Box<dyn Talker>,
}

static TALKERS: [Row; 2] = [
    Row { program: "fio", counted_by: "fio's JSON", talker: || Box::new(fio::Fio::default()) },
    Row {
        program: "iperf3",
        counted_by: "iperf3's JSON: I/Os are blocks (TCP) or packets (UDP)",
        talker: || Box::new(iperf3::Iperf3::default()),
    },
];

/// Programs that only start another.
const STARTERS: [&str; 12] =
    ["chrt", "doas", "env", "ionice", "nice", "numactl", "prlimit", "setarch", "setsid", "stdbuf", "sudo", "taskset"];

/// The row of a command's program, wherever that lies and whatever starts it, and how many words are before it.
fn row(command: &[String]) -> Option<(usize, &'static Row)> {
    let named = |word: &String, name: &str| Path::new(word).file_name().is_some_and(|file| file == name);
    let known = |word: &String| TALKERS.iter().find(|row| named(word, row.program));
    let first = command.first()?;
    if let Some(row) = known(first) {
        return Some((0, row));
    }
    STARTERS.iter().find(|starter| named(first, starter))?;
    // A starter's own options are none of these names.
    command.iter().enumerate().skip(1).find_map(|(place, word)| Some((place, known(word)?)))
}

/// The words before the program that is asked what it did, and that program's own.
pub(super) fn started(command: &[String]) -> (&[String], &[String]) {
    command.split_at(row(command).map_or(0, |(place, _)| place))
}

/// Whom to ask what the command did.
pub(super) fn talker(plan: &CommandPlan) -> Box<dyn Talker> {
    match plan.count {
        Count::Program => {
            row(&plan.command).map_or_else(|| Box::new(Mute) as Box<dyn Talker>, |(_, row)| (row.talker)())
        }
        Count::Stated { .. } | Count::Kernel(_) => Box::new(Mute),
    }
}

/// Where the I/O count comes from, in words.
pub(super) fn counted_by(plan: &CommandPlan) -> String {
    match &plan.count {
        Count::Program => {
            row(&plan.command).map_or("nothing: give --ios, --bytes or --count", |(_, row)| row.counted_by).to_owned()
        }
        Count::Stated { .. } => "stated on the command line".to_owned(),
        Count::Kernel(counter) => format!("the kernel's counters of {counter}, whoever caused them"),
    }
}

/// A program whose output is not understood.
struct Mute;

impl Talker for Mute {
    fn prepare(&mut self, command: &[String], printed: Printed) -> Result<(Vec<String>, Stdio)> {
        Ok((command.to_vec(), printed.stdio()))
    }

    fn jobs(&mut self) -> std::result::Result<Said, String> {
        Ok(Said::default())
    }
}

/// A temporary file for what a program says, removed when dropped.
pub(super) fn scratch(what: &str) -> Result<(tempfile::NamedTempFile, File)> {
    let made = tempfile::Builder::new().prefix("iotoll-").suffix(".json").tempfile();
    let made = made.and_then(|file| file.reopen().map(|again| (file, again)));
    made.map_err(|error| Error::instrument(format!("a temporary file for {what}"), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Custody;

    fn plan(program: &str, count: Count) -> CommandPlan {
        let command = vec![program.to_owned()];
        CommandPlan { command, count, repeat: 1, printed: Printed::Nowhere, custody: Custody::Shared }
    }

    #[test]
    fn a_program_is_known_by_its_name_wherever_it_lies() {
        for (program, words) in
            [("fio", "fio's"), ("/usr/bin/iperf3", "iperf3's"), ("fio.sh", "nothing"), ("", "nothing")]
        {
            let plan = plan(program, Count::Program);
            assert!(counted_by(&plan).starts_with(words), "{program}: {}", counted_by(&plan));
            let (command, _) = talker(&plan).prepare(&plan.command, plan.printed).unwrap();
            assert_eq!(command.len() > 1, words != "nothing", "who is known is asked: {command:?}");
        }
    }

    #[test]
    fn a_program_is_known_behind_what_starts_it() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (text, place) in [
            ("taskset -c 0 fio job.fio", Some(3)),
            ("/usr/bin/nice -n 5 /opt/fio", Some(3)),
            ("sudo cat job", None),
            ("cat fio", None),
            ("taskset -c 0", None),
        ] {
            let command = words(text);
            assert_eq!(row(&command).map(|(place, _)| place), place, "{text}");
            assert_eq!(started(&command).0.len(), place.unwrap_or(0), "{text}");
        }
    }

    #[test]
    fn who_is_not_counted_on_is_not_asked() {
        let plan = plan("fio", Count::Stated { ios: Some(1), bytes: None });
        assert!(counted_by(&plan).starts_with("stated"));
        let (command, _) = talker(&plan).prepare(&plan.command, plan.printed).unwrap();
        assert_eq!(command, plan.command);
    }
}
