//! `iotoll completions` and `iotoll generate`: text that is made from the command line's types and the tables of the model, so
//! that it cannot disagree with the program.

mod markdown;
mod reference;

use crate::CommandLine;
use crate::arguments::{Generated, JOB_VERBS, SHELLS, help};
use crate::measure;
use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::{Generator, Shell};
use clap_mangen::Man;
use model::plan::options::{self, JobOption};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

/// A file to write: its name in the folder, and its text.
type GeneratedFile = (String, String);

/// `iotoll completions`.
pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    measure::write(&script(shell))?;
    Ok(ExitCode::SUCCESS)
}

/// `iotoll generate`.
pub fn generate(what: Generated, folder: &Path) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(folder).with_context(|| format!("{}: making the folder", folder.display()))?;
    let files = match what {
        Generated::Man => man_pages()?,
        Generated::Completions => SHELLS.map(|shell| (shell.file_name("iotoll"), script(shell))).to_vec(),
        Generated::Reference => reference::files(),
    };
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, &text).with_context(|| format!("{}: writing it", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The script of one shell.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut documented(), "iotoll", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Bash { script.replacen(BASH_WORDS, BASH_WORDS_AT_EQUALS, 1) } else { script }
}

/// The place in clap_complete's script after it sets the current and the previous word.
const BASH_WORDS: &str = "    cmd=\"\"\n    opts=\"\"\n";
/// bash splits `--rw=randread`, the form of fio's options, at the `=`.
const BASH_WORDS_AT_EQUALS: &str = r#"    if [[ "$cur" == "=" ]]; then
        cur=""
    elif [[ "$prev" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    fi
    cmd=""
    opts=""
"#;

/// Man pages: one for the program, one for each verb, also of a verb of a verb, and one of job options.
fn man_pages() -> io::Result<Vec<GeneratedFile>> {
    let mut program = help::with_texts(offered());
    // Gives each verb its name.
    program.build();
    let pages = verbs(&program, &[]).into_iter().map(|(_, command)| command).chain([job_options()]);
    let page = |command: Command| {
        let man = Man::new(command).source(concat!("iotoll ", env!("CARGO_PKG_VERSION"))).manual("User Commands");
        let mut text = Vec::new();
        man.render(&mut text)?;
        Ok((man.get_filename(), String::from_utf8_lossy(&text).into_owned()))
    };
    pages.map(page).collect()
}

/// The heading of the options that come from the table of job options.
const JOB_OPTIONS: &str = "Job options";

/// All visible verbs with all their options, including job options.
fn documented() -> Command {
    let takes_job = |path: &[&str]| JOB_VERBS.contains(&path);
    offered().mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        let verb = if takes_job(&[&name]) { with_job_options(verb) } else { verb };
        verb.mut_subcommands(|sub| if takes_job(&[&name, sub.get_name()]) { with_job_options(sub) } else { sub })
    })
}

/// All visible verbs with their own options.
fn offered() -> Command {
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
fn verbs(command: &Command, path: &[String]) -> Vec<(Vec<String>, Command)> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    let below = below.flat_map(|below| verbs(below, &[path, &[below.get_name().to_owned()]].concat()));
    std::iter::once((path.to_vec(), command.clone())).chain(below).collect()
}

/// The job options alone, as a command that has no others.
fn job_options() -> Command {
    Command::new("iotoll-job")
        .about("Options of a job of iotoll, as flags or in a job file, with fio's meanings and units")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(options::reference().map(argument))
}

fn with_job_options(verb: Command) -> Command {
    // Completion scripts offer no options after a positional argument that takes everything.
    let takes_all = verb.get_positionals().any(Arg::is_trailing_var_arg_set);
    let verb = if takes_all { verb.mut_arg("job", |job| job.trailing_var_arg(false)) } else { verb };
    verb.args(options::reference().map(argument))
}

fn argument(option: &JobOption) -> Arg {
    let argument = Arg::new(option.name)
        .long(option.name)
        .visible_aliases(option.aliases)
        .help(format!("{} [{}]", option.full_help(), option.values()))
        .help_heading(JOB_OPTIONS)
        .value_name("VALUE");
    let argument = match option.name {
        "filename" => argument.value_hint(ValueHint::AnyPath),
        "directory" => argument.value_hint(ValueHint::DirPath),
        _ => argument,
    };
    if options::is_switch(option.name) {
        argument.num_args(0..=1).value_parser(PossibleValuesParser::new(["0", "1"])).hide_possible_values(true)
    } else if option.words().is_empty() {
        argument
    } else {
        argument.value_parser(PossibleValuesParser::new(option.words())).hide_possible_values(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_completes_a_value_behind_an_equals_sign() {
        assert!(script(Shell::Bash).contains(BASH_WORDS_AT_EQUALS), "clap_complete's script has changed");
    }

    #[test]
    fn every_script_knows_the_options_of_a_job_and_their_words() {
        for shell in &SHELLS {
            let script = script(*shell);
            for word in ["ioengine", "io_uring", "randread", "path_tx_queue", "mp-ring", "candidate-cmd"] {
                assert!(script.contains(word), "{shell:?} {word}");
            }
            assert!(!script.contains("guardian"), "{shell:?}");
        }
    }

    #[test]
    fn a_page_names_its_version_and_has_the_verb_s_examples() {
        let version = concat!("\"iotoll ", env!("CARGO_PKG_VERSION"), "\" \"User Commands\"");
        for (name, text) in man_pages().unwrap() {
            let title = name.trim_end_matches(".1");
            assert!(text.contains(&format!(".TH {title} 1  {version}")), "{text}");
            assert_eq!(text.contains("Examples:"), title != "iotoll-job", "{name}");
            assert_eq!(text.contains("\\-\\-ioengine") && !text.contains("Examples:"), title == "iotoll-job", "{name}");
        }
    }

    #[test]
    fn every_option_of_a_job_is_an_argument_of_its_verbs() {
        let command = documented();
        for verb in JOB_VERBS {
            let verb = verb.iter().fold(&command, |command, name| command.find_subcommand(name).unwrap());
            for option in options::reference() {
                let argument = verb.get_arguments().find(|argument| argument.get_long() == Some(option.name)).unwrap();
                let words = argument.get_possible_values().len();
                assert!(words >= option.words().len(), "{}", option.name);
            }
        }
        command.debug_assert();
    }
}
