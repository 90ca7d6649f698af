//! The command line for man pages, completions and the reference: iotoll's own options, and the job options, which clap
//! does not parse.

use super::{CommandLine, JOB_VERBS};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};
use model::plan::options::{self, Reference};

/// The heading of the options that come from the table of job options.
pub const JOB_OPTIONS: &str = "Job options";

/// All visible verbs with all their options, including job options.
pub fn documented() -> Command {
    let takes_job = |path: &[&str]| JOB_VERBS.contains(&path);
    offered().mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        let verb = if takes_job(&[&name]) { with_job_options(verb) } else { verb };
        verb.mut_subcommands(|sub| if takes_job(&[&name, sub.get_name()]) { with_job_options(sub) } else { sub })
    })
}

/// All visible verbs with their own options.
pub fn offered() -> Command {
    let parsed = CommandLine::command();
    let verbs: Vec<Command> = parsed.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect();
    Command::new("iotoll")
        .about(parsed.get_about().cloned().unwrap_or_default())
        // Without the commit, so that generated files do not change with each commit.
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommands(verbs)
}

/// The command of this path and all below it, each with its path, without those that are hidden and the `help` that clap adds.
pub fn verbs(command: &Command, path: &[String]) -> Vec<(Vec<String>, Command)> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    let below = below.flat_map(|below| verbs(below, &[path, &[below.get_name().to_owned()]].concat()));
    std::iter::once((path.to_vec(), command.clone())).chain(below).collect()
}

/// The job options alone, as a command that has no others.
pub fn job_options() -> Command {
    Command::new("iotoll-job")
        .about("Options of a job of iotoll, as flags or in a job file, with fio's meanings and units")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(options::reference().map(|option| argument(&option)))
}

fn with_job_options(verb: Command) -> Command {
    // Completion scripts offer no options after a positional argument that takes everything.
    let takes_all = verb.get_positionals().any(Arg::is_trailing_var_arg_set);
    let verb = if takes_all { verb.mut_arg("job", |job| job.trailing_var_arg(false)) } else { verb };
    verb.args(options::reference().map(|option| argument(&option)))
}

fn argument(option: &Reference) -> Arg {
    let argument = Arg::new(option.name)
        .long(option.name)
        .visible_aliases(option.aliases)
        .help(format!("{} [{}]", option.full_help, option.value))
        .help_heading(JOB_OPTIONS)
        .value_name("VALUE");
    let argument = match option.name {
        "filename" => argument.value_hint(ValueHint::AnyPath),
        "directory" => argument.value_hint(ValueHint::DirPath),
        _ => argument,
    };
    if options::is_switch(option.name) {
        argument.num_args(0..=1).value_parser(PossibleValuesParser::new(["0", "1"])).hide_possible_values(true)
    } else if option.words.is_empty() {
        argument
    } else {
        argument.value_parser(PossibleValuesParser::new(option.words.clone())).hide_possible_values(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_a_job_is_an_argument_of_its_verbs() {
        let command = documented();
        for verb in JOB_VERBS {
            let verb = verb.iter().fold(&command, |command, name| command.find_subcommand(name).unwrap());
            for option in options::reference() {
                let argument = verb.get_arguments().find(|argument| argument.get_long() == Some(option.name)).unwrap();
                let words = argument.get_possible_values().len();
                assert!(words >= option.words.len(), "{}", option.name);
            }
        }
        command.debug_assert();
    }
}
