//! Help: what it says behind the options, and `iotoll help job`, which has the options of jobs, which several verbs take.

use super::{AFTER_HELP, JOB_VERBS};
use crate::failure::BadInput;
use clap::Command;
use model::plan::options::{self, JobOption};

/// Widest line.
const COLUMNS: usize = 99;
/// Where verbs with jobs say what else they take.
const JOB_OPTIONS: &str =
    "Every job option is a flag too (--bs=4k): iotoll help job lists them, iotoll help job bs explains one.";

/// Every key of an experiment file.
pub const EXPERIMENT_HELP: &str = include_str!("experiment.txt");

/// The command with what `--help` says after the options.
pub fn with_texts(command: Command) -> Command {
    extended(command, &[])
}

fn extended(command: Command, verb: &[String]) -> Command {
    let text = after(verb);
    command.after_help(text).mut_subcommands(|below| {
        let verb = [verb, &[below.get_name().to_owned()]].concat();
        extended(below, &verb)
    })
}

fn after(verb: &[String]) -> String {
    let mut parts = vec![shown_examples(verb)];
    if verb == ["compare"] {
        parts.push(EXPERIMENT_HELP.to_owned());
    }
    if verb.is_empty() || takes_job(verb) {
        parts.push(JOB_OPTIONS.to_owned());
    }
    if verb.is_empty() {
        parts.push(AFTER_HELP.to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.iter().map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n")
}

/// The examples of the program and of each verb: a command, and below it what it is for.
const EXAMPLES: &str = include_str!("examples.txt");

/// The commands of a verb, each with what it is for, by the verb's words: `["guest", "run"]`; none for the program.
pub fn examples<Word: AsRef<str>>(verb: &[Word]) -> Vec<(&'static str, &'static str)> {
    let words = std::iter::once("iotoll").chain(verb.iter().map(AsRef::as_ref));
    let heading = words.collect::<Vec<_>>().join(" ");
    let below = EXAMPLES.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<&str> = below.take_while(|line| line.starts_with(' ')).map(str::trim_start).collect();
    lines.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?))).collect()
}

fn takes_job(verb: &[String]) -> bool {
    JOB_VERBS.iter().any(|known| verb == *known)
}

/// Each example with its purpose in the line below.
fn shown_examples(verb: &[String]) -> String {
    let examples = examples(verb);
    let lines = examples.iter().map(|(command, what)| format!("  {command}\n      {what}"));
    if examples.is_empty() { String::new() } else { format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n")) }
}

/// A name, and beside it a text that keeps to its column.
fn row(name: &str, text: &str) -> String {
    const INDENT: &str = "               ";
    let first = format!("  {name:<12} ");
    let layout = textwrap::Options::new(COLUMNS).initial_indent(&first).subsequent_indent(INDENT);
    textwrap::fill(text, layout.word_splitter(textwrap::WordSplitter::NoHyphenation))
}

/// What `iotoll help job` and `iotoll help job OPTION…` print, if these words are that.
///
/// # Errors
/// When there is no such option.
pub fn of_jobs(words: &[String]) -> Option<Result<String, BadInput>> {
    let [_, help, job, names @ ..] = words else { return None };
    if help != "help" || job != "job" {
        return None;
    }
    Some(if names.is_empty() { Ok(all_options()) } else { names.iter().map(|name| one_option(name)).collect() })
}

fn all_options() -> String {
    let intro = "Job options, as flags (--bs=4k) or in a job file (bs=4k), with fio's meanings and units. iotoll help job OPTION \
                 says more of one.";
    let mut text = textwrap::fill(intro, COLUMNS) + "\n\n";
    for option in options::reference() {
        const INDENT: &str = "                              ";
        let first = format!("  {:<27} ", option.name);
        let about = format!("{} [{}]", option.full_help(), option.values());
        let layout = textwrap::Options::new(COLUMNS).initial_indent(&first).subsequent_indent(INDENT);
        text += &textwrap::fill(&about, layout);
        text.push('\n');
    }
    text
}

fn one_option(name: &str) -> Result<String, BadInput> {
    let name = name.trim_start_matches('-');
    let found = options::reference().find(|option| option.name == name || option.aliases.contains(&name));
    found.map(described).ok_or_else(|| BadInput(options::no_such(name)))
}

fn described(option: &JobOption) -> String {
    let mut text = format!("{}\n", option.name);
    let engines: Vec<&str> = option.engines.iter().map(|engine| engine.name()).collect();
    let example = format!("--{}={}", option.name, option.example);
    let lines = [
        ("", option.help),
        ("Values", &option.values()),
        ("Engine", &engines.join(", ")),
        ("Default", &option.default_in_words()),
        ("Other names", &option.aliases.join(", ")),
        ("Example", &example),
    ];
    for (name, line) in lines.iter().filter(|(_, line)| !line.is_empty()) {
        text += &row(name, line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandLine;
    use clap::CommandFactory;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_long_help_of_verbs_with_jobs_names_the_one_place_of_job_options() {
        let command = with_texts(CommandLine::command());
        for verb in JOB_VERBS {
            let found = verb.iter().fold(&command, |command, name| command.find_subcommand(name).unwrap());
            let help = found.clone().render_long_help().to_string();
            assert_eq!(help.matches("iotoll help job lists them").count(), 1, "{verb:?}");
            assert!(!help.contains("iodepth_batch_submit"), "{verb:?}");
        }
    }

    #[test]
    fn job_options_are_listed_and_explained() {
        let list = of_jobs(&words("iotoll help job")).unwrap().unwrap();
        let all = options::reference().map(|option| option.name);
        assert!(all.into_iter().all(|name| list.contains(&format!("\n  {name} "))), "{list}");
        let bs = of_jobs(&words("iotoll help job --bs")).unwrap().unwrap();
        assert!(bs.starts_with("bs\n") && bs.contains("blocksize") && bs.contains("--bs="), "{bs}");
        let unknown = of_jobs(&words("iotoll help job iodepht")).unwrap().unwrap_err();
        assert!(unknown.0.contains("iodepht") && unknown.0.contains("'iodepth'"), "{}", unknown.0);
        assert!(of_jobs(&words("iotoll help run")).is_none());
    }
}
