//! iotoll: what one I/O costs the whole machine.
//!
//! `run` takes fio's options as flags beside our own. Clap parses our own flags. All other flags are split off first
//! and parsed by the same option table as a job file.

mod arguments;
mod blast;
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
mod series;
mod serve;
mod signals;
mod standard_error;

use crate::arguments::{Generated, JOB_VERBS, Output, Probes, Shown, fio_flags, help};
use crate::blast::BlastArguments;
use crate::compare::CompareArguments;
use crate::cost::CostArguments;
use crate::failure::{BadInput, bad, written};
use crate::ftq::FtqArguments;
use crate::guest::GuestVerb;
use crate::input::{bytes_of, is_toml};
use crate::measure::columns;
use crate::report::{HistoryArguments, ReportArguments};
use crate::run::RunArguments;
use crate::serve::ServeArguments;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use model::experiment_kind::ExperimentKind;
use std::path::PathBuf;
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
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

/// Measure what one I/O costs: CPU cycles of the whole machine, latency by stage, context switches.
#[derive(Debug, Parser)]
#[command(name = "iotoll", version = env!("IOTOLL_VERSION"))]
pub struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

/// The verb.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a workload in fio's language and report its cost
    Run(RunArguments),
    /// Report the cost of any command: iotoll cost -- fio job.fio
    Cost(CostArguments),
    /// Compare options, commands or settings in interleaved measurements, with confidence intervals
    Compare(Box<CompareArguments>),
    /// Record what one worker does in each quantum of time, with the kernel's counters on the same time axis
    Ftq(Box<FtqArguments>),
    /// Send small packets from several threads to one receiver, and report what was delivered and what a packet costs
    Blast(Box<BlastArguments>),
    /// Count the instructions of one I/O through the real stacks of unmodified kernels, in emulated guests
    Guest {
        #[command(subcommand)]
        verb: GuestVerb,
    },
    /// Run an NBD server that reports its work and the cost of it: iotoll serve --backend memory:256m
    Serve(ServeArguments),
    /// Print a saved record again
    Report(ReportArguments),
    /// Show what the records of one experiment say over time: levels, where they changed, and what else changed there
    History(HistoryArguments),
    /// Report what this machine can measure, how well, and how to fix what is missing
    Doctor(Shown),
    /// Show what iotoll does in half a minute: two cost sheets and a comparison, on a scratch file that it removes
    Demo(Output),
    /// Print the completion script of a shell: source <(iotoll completions bash)
    Completions {
        /// The shell
        #[arg(value_parser = arguments::shell())]
        shell: Shell,
    },
    /// Write man pages, completions or the reference, for packages and the documentation
    #[command(hide = true)]
    Generate {
        /// What to write
        what: Generated,
        /// Write the files to this folder
        folder: PathBuf,
    },
    /// Worker process; iotoll starts it itself
    #[command(hide = true)]
    Worker {
        /// Threads.
        threads: usize,
    },
    /// Guardian process; iotoll starts it itself
    #[command(hide = true)]
    Guardian,
}

/// A verb with these flags, for what the program does by itself.
pub fn flags_of(words: &[&str]) -> anyhow::Result<Verb> {
    Ok(CommandLine::try_parse_from(words)?.verb)
}

impl Verb {
    /// Parses the command line of this process, and returns its words as typed by the user too. For `--help`, `--version` and
    /// `--probe list` it prints the text and exits.
    ///
    /// # Errors
    /// Bad usage.
    pub fn from_command_line() -> anyhow::Result<(Self, Vec<String>)> {
        let words: Result<Vec<String>, _> = std::env::args_os().map(std::ffi::OsString::into_string).collect();
        let mut typed = words.map_err(|word| {
            BadInput(format!("'{}': not UTF-8 text, which a record cannot store; rename it", word.display()))
        })?;
        if let Some(program) = typed.first_mut() {
            // The record does not need the path of the program.
            *program = "iotoll".to_owned();
        }
        if let Some(text) = help::of_jobs(&typed) {
            show_and_exit(&text?)?;
        }
        let mut command = help::with_texts(CommandLine::command());
        let (mut ours, mut job) = split(&command, &typed);
        let mut words = typed.clone();
        if let Some(others) = of_its_kind(&typed, &job)? {
            (ours, job) = split(&command, &others);
            words = others;
        }
        let parsed = command.try_get_matches_from_mut(&ours);
        let (mut misplaced, mut lists) = (None, false);
        let parsed = parsed.and_then(|matches| {
            misplaced = fio_flags::misplaced_format(&matches);
            let probes = matches.subcommand().and_then(|(_, verb)| verb.try_get_many::<Probes>("probe").ok()?);
            lists = probes.is_some_and(|mut probes| probes.any(|probes| matches!(probes, Probes::List)));
            CommandLine::from_arg_matches(&matches)
        });
        let mut verb = match parsed {
            Ok(parsed) => parsed.verb,
            Err(error) if error.use_stderr() && error.kind() != NO_VERB => {
                let line = || in_one_line(&error, &command, &words);
                return Err(bad(command_without_dashes(&error, &words).unwrap_or_else(line)));
            }
            Err(error) => {
                if error.use_stderr() {
                    error.exit()
                }
                written(error.print())?;
                std::process::exit(0)
            }
        };
        if let Some(why) = misplaced {
            return Err(bad(why));
        }
        if lists {
            show_and_exit(&verbs::pages::probes::list(&lab::probe::list(), columns()))?;
        }
        match &mut verb {
            Verb::Run(arguments) => arguments.job = job,
            Verb::Compare(arguments) => arguments.job = job,
            Verb::Ftq(arguments) => arguments.job = job,
            Verb::Guest { verb: GuestVerb::Run(arguments) } => {
                arguments.job = job;
            }
            _ => {}
        }
        Ok((verb, typed))
    }
}

/// Prints a help text, as clap does its own.
fn show_and_exit(text: &str) -> anyhow::Result<()> {
    written(std::io::Write::write_all(&mut std::io::stdout().lock(), text.as_bytes()))?;
    std::process::exit(0)
}

/// `iotoll` without a verb: print the whole help.
const NO_VERB: clap::error::ErrorKind = clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

/// `iotoll cost fio job.fio`: the command needs `--` before it.
fn command_without_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    let Some(ContextValue::String(program)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_command = words.get(1).is_some_and(|verb| verb == "cost") && !program.starts_with('-');
    is_command.then(|| format!("cost: '{program}': put -- before the command, as in: iotoll cost -- fio job.fio"))
}

/// The error and its tips, without the usage text that clap appends, and without the tip to pass an unknown option as a value.
fn in_one_line(error: &clap::Error, command: &clap::Command, words: &[String]) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    let lines = lines.filter(|line| !line.starts_with("tip: to pass"));
    let line = lines.collect::<Vec<_>>().join(" ");
    let verb = words.get(1).filter(|verb| *verb != "help" && command.find_subcommand(verb).is_some());
    let verb = verb.map(|verb| format!(" {verb}")).unwrap_or_default();
    format!("{}; see iotoll{verb} --help", line.strip_prefix("error: ").unwrap_or(&line))
}

/// Splits off the words after such a verb that are not our own flags: a job file and fio's options. A command follows
/// `--`.
fn split(command: &clap::Command, words: &[String]) -> (Vec<String>, Vec<String>) {
    let begins = |verb: &&&[&str]| {
        verb.iter().zip(words.iter().skip(1)).filter(|(name, word)| **name == **word).count() == verb.len()
    };
    let verb = JOB_VERBS.iter().find(begins).copied().unwrap_or_default();
    let found = verb.iter().try_fold(command, |command, name| command.find_subcommand(name));
    let Some(run) = found.filter(|_| !verb.is_empty()) else { return (words.to_vec(), Vec::new()) };
    let own = verb.len() + 1;
    let (mut ours, mut job) = (words.iter().take(own).cloned().collect::<Vec<_>>(), Vec::new());
    let mut rest = words.iter().skip(own);
    while let Some(word) = rest.next() {
        if word == "--" {
            ours.push(word.clone());
            ours.extend(rest.cloned());
            break;
        }
        let name = word.strip_prefix("--").map(|long| long.split('=').next().unwrap_or(long));
        let known = name.and_then(|name| run.get_arguments().find(|argument| argument.get_long() == Some(name)));
        let help = matches!(word.as_str(), "-h" | "--help");
        match known {
            Some(argument) => {
                ours.push(word.clone());
                if argument.get_action().takes_values() && !word.contains('=') {
                    ours.extend(rest.next().cloned());
                }
            }
            None if help => ours.push(word.clone()),
            None => job.push(word.clone()),
        }
    }
    (ours, job)
}

/// The words with the verb of the experiment file in `job`, if `run` is given one. A file that cannot be read is left to the
/// verb, which says so.
///
/// # Errors
/// When the file names a kind that there is not.
fn of_its_kind(words: &[String], job: &[String]) -> Result<Option<Vec<String>>, BadInput> {
    let [program, verb, rest @ ..] = words else { return Ok(None) };
    // After an option without its value, a word is that value.
    let is_value = |before: &String| before.starts_with('-') && !before.contains('=');
    let before = std::iter::once(None).chain(job.iter().map(Some));
    let words = job.iter().zip(before).filter(|(_, before)| !before.is_some_and(is_value)).map(|(word, _)| word);
    let Some(file) = words.filter(|_| verb == "run").find(|word| is_toml(word)) else { return Ok(None) };
    let read = bytes_of(file.as_ref()).ok();
    let Some(text) = read.and_then(|bytes| String::from_utf8(bytes).ok()) else { return Ok(None) };
    let kind = ExperimentKind::of(file, &text).map_err(BadInput)?;
    let verb = kind.verb().iter().map(|word| (*word).to_owned());
    Ok(Some(std::iter::once(program.clone()).chain(verb).chain(rest.iter().cloned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::help::EXPERIMENT_HELP;
    use verbs::Format;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn our_flags_and_fio_flags_mix() {
        let words = ["iotoll", "run", "--name=a", "--format", "json", "--bs", "4k", "--quiet", "--rw=read"];
        let (ours, job) = split(&CommandLine::command(), &words.map(str::to_owned));
        assert_eq!(ours, ["iotoll", "run", "--format", "json", "--quiet"]);
        assert_eq!(job, ["--name=a", "--bs", "4k", "--rw=read"]);
    }

    /// A flag of ours with the name of a fio option would hide it.
    #[test]
    fn no_flag_of_ours_hides_an_option_of_a_job() {
        let command = CommandLine::command();
        for verb in JOB_VERBS {
            let verb = verb.iter().fold(&command, |command, name| command.find_subcommand(name).unwrap());
            for option in model::plan::options::reference() {
                for name in std::iter::once(option.name).chain(option.aliases.iter().copied()) {
                    assert!(verb.get_arguments().all(|argument| argument.get_long() != Some(name)), "{name}");
                }
            }
        }
    }

    #[test]
    fn the_help_lists_every_format() {
        let listed = |verb: &str| {
            let help = CommandLine::command().find_subcommand_mut(verb).unwrap().render_help().to_string();
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            help.split("Output format").nth(1).unwrap().split('[').next().unwrap().to_owned()
        };
        for format in Format::all() {
            for verb in ["run", "cost", "compare", "report", "doctor", "demo"] {
                assert!(listed(verb).contains(format.name()), "{verb} {format:?}");
            }
        }
    }

    /// The parser names the keys that it knows where it meets another one.
    #[test]
    fn every_key_of_an_experiment_file_is_in_the_help() {
        let mut found = 0;
        for table in ["", "[[arm]]", "[[sweep]]", "[[service]]", "[[published]]"] {
            let refusal =
                model::experiment::file::parse("x.toml", &format!("{table}\nnone = 1")).unwrap_err().to_string();
            let keys = refusal.split("expected one of ").nth(1).or(refusal.split("expected ").nth(1)).unwrap();
            for key in keys.split('`').skip(1).step_by(2) {
                let word = |text: &str| {
                    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| word == key)
                };
                assert!(word(EXPERIMENT_HELP), "{key} of {refusal}");
                found += 1;
            }
        }
        assert!(found > 40, "{found}");
        assert!(EXPERIMENT_HELP.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn the_verb_is_that_of_the_file_s_kind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.toml").display().to_string();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (text, expected) in [
            ("kind = \"guest\"", &["guest", "run"][..]),
            ("kind = \"blast\"", &["blast"]),
            ("kind = \"compare\"", &["compare"]),
            ("title = \"x\"", &["compare"]),
        ] {
            std::fs::write(&file, text).unwrap();
            let verb_of =
                |verb: &str| of_its_kind(&words(&["iotoll", verb, "--quiet", &file]), &words(&[&file])).unwrap();
            let expected = words(&[&["iotoll"], expected, &["--quiet", &file]].concat());
            assert_eq!(verb_of("run"), Some(expected), "{text}");
            assert_eq!(verb_of("compare"), None, "the user chose");
        }
        std::fs::write(&file, "kind = \"ftq\"").unwrap();
        assert!(
            of_its_kind(&words(&["iotoll", "run", &file]), &words(&[&file])).unwrap_err().0.contains("no such kind")
        );
        assert_eq!(of_its_kind(&words(&["iotoll", "run", "absent.toml"]), &words(&["absent.toml"])).unwrap(), None);
    }
}
