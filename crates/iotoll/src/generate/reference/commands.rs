//! The page of commands: each verb with its usage, arguments and options.

use super::super::markdown::{Page, code, default_apart, prose};
use crate::arguments::{JOB_OPTIONS, documented, verbs};
use clap::{Arg, Command};

/// The page.
pub fn page() -> String {
    let mut page = Page::new("Commands");
    let mut command = documented();
    // Gives each verb its usage.
    command.build();
    page.paragraph(&about(&command));
    page.verbatim(&command.render_usage().to_string());
    // Those that do something.
    let verbs = verbs(&command, &[]).into_iter().filter(|(_, verb)| !verb.has_subcommands());
    let verbs: Vec<(String, Command)> = verbs.map(|(path, verb)| (path.join(" "), verb)).collect();
    let row =
        |(name, verb): &(String, Command)| vec![format!("[`{name}`](#iotoll-{})", name.replace(' ', "-")), about(verb)];
    page.table(&["Verb", "What it does"], verbs.iter().map(row));
    for (name, verb) in verbs {
        show(&mut page, &name, verb);
    }
    page.finish()
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    prose(&about.map(ToString::to_string).unwrap_or_default())
}

fn show(page: &mut Page, name: &str, mut verb: Command) {
    page.section(&format!("iotoll {name}"));
    page.paragraph(&format!("{}.", about(&verb).trim_end_matches('.')));

    page.verbatim(&verb.render_usage().to_string());
    let arguments: Vec<&Arg> = verb.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
    let (places, flags): (Vec<&Arg>, Vec<&Arg>) = arguments.iter().partition(|argument| argument.is_positional());
    let places = places.iter().map(|place| vec![self::name(place), prose(&help(place))]);
    page.table(&["Argument", "Meaning"], places);
    let (job, own): (Vec<&Arg>, Vec<&Arg>) =
        flags.iter().partition(|flag| flag.get_help_heading() == Some(JOB_OPTIONS));
    let own = own.iter().map(|flag| {
        let help = help(flag);
        let (meaning, default) = default_apart(&help);
        let default = if default.is_empty() { set(flag) } else { prose(default) };
        vec![self::name(flag), prose(meaning), default]
    });
    page.table(&["Option", "Meaning", "Default"], own);
    if !job.is_empty() {
        page.paragraph("It also takes the [job options](job-options.md).");
    }
}

/// As on the command line: `--out DIR`, `RECORD`.
fn name(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default().join(" ");
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let takes = argument.is_positional() || argument.get_action().takes_values();
    let names = [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let value = if takes { values } else { String::new() };
    code(format!("{names} {value}").trim())
}

fn help(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let words: Vec<_> = argument.get_possible_values().iter().map(|word| word.get_name().to_owned()).collect();
    if words.is_empty() || argument.is_hide_possible_values_set() || !argument.get_action().takes_values() {
        help
    } else {
        format!("{help}: {}", words.join(", "))
    }
}

/// The default that clap knows.
fn set(argument: &Arg) -> String {
    if argument.is_hide_default_value_set() || !argument.get_action().takes_values() {
        return String::new();
    }
    code(&argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(", "))
}
