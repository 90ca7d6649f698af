//! The generated pages of the reference.

use super::markdown::{Page, code, prose};
use super::{GeneratedFile, offered, verbs};
use crate::arguments::help;
use crate::failure;
use clap::Command;
use model::plan::options::{JobOption, OfFio, of_fio, reference};
use model::plan::{ENGINES, Engine, Medium, Queue};
use model::warning::Code;
use verbs::guest::measure::programs::Program;
use verbs::guest::measure::stack::{self, Expected, Stack};

/// All of them.
pub fn files() -> Vec<GeneratedFile> {
    let page = |(name, text): (&str, String)| (name.to_owned(), text);
    [
        ("commands.md", commands()),
        ("job-options.md", job_options()),
        ("fio-options.md", fio_options()),
        ("exit-codes.md", exit_codes()),
        ("caveats.md", caveats()),
        ("stacks.md", stacks()),
    ]
    .map(page)
    .to_vec()
}

fn exit_codes() -> String {
    let mut page = Page::new("Exit codes");
    page.paragraph(
        "`iotoll cost` exits with the status of its command, and with 128 plus the signal's number if a signal ended it.",
    );
    let row = |(status, meaning): &(u8, &str)| vec![code(&status.to_string()), prose(meaning)];
    page.table(&["Status", "Meaning"], failure::STATUSES.iter().map(row));
    page.finish()
}

/// Each code, the gravest first.
fn caveats() -> String {
    let mut page = Page::new("Caveats");
    page.paragraph(
        "A caveat is a warning that stays with a record or a finding: `warnings[]` in the JSON, each with a `code` for scripts \
         and a `message` for people. A code is never renamed. The order is that of reports: the gravest first.",
    );
    let name = |code: &Code| serde_json::to_value(code).ok().and_then(|name| name.as_str().map(super::markdown::code));
    let row = |code: &Code| vec![name(code).unwrap_or_default(), prose(code.meaning()), prose(code.mend())];
    page.table(&["Code", "Meaning", "What to do"], Code::ALL.iter().map(row));
    page.finish()
}

/// The page of all job options, grouped by engine.
fn job_options() -> String {
    let mut page = Page::new("Job options");
    page.paragraph(
        "Options of a job, as `NAME=VALUE` in a job file or as `--NAME=VALUE` on the command line of `iotoll run` and \
         `iotoll compare`. Names, meanings and units are those of fio where fio has the option. Numbers take the suffixes \
         `k`, `m`, `g` and `t`, which are powers of 1024.",
    );
    page.section("Engines");
    let about = |engine: &Engine| {
        let goes = match engine.medium {
            Medium::Files => "files or devices",
            Medium::Remote => "the export of a server",
            Medium::Nothing => "nothing: `size` is needed",
        };
        let depth = match engine.queue {
            Queue::One => "1",
            Queue::Deep => "iodepth",
        };
        vec![code(engine.name), prose(engine.about), goes.to_owned(), depth.to_owned()]
    };
    page.table(&["Engine", "What it does", "Its I/O goes to", "I/Os in flight"], ENGINES.iter().map(about));
    let mut groups: Vec<String> = Vec::new();
    for group in reference().map(JobOption::group) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        page.section(&group);
        let options = reference().filter(|option| option.group() == group);
        page.table(&["Option", "Meaning", "Values"], options.map(option_row));
    }
    page.finish()
}

/// A table row. Names are long and cannot be wrapped, so the values and the default share a column.
fn option_row(option: &JobOption) -> Vec<String> {
    let aliases: Vec<String> = option.aliases.iter().map(|name| code(name)).collect();
    let also = if aliases.is_empty() { String::new() } else { format!(". Also {}", aliases.join(", ")) };
    let example = code(option.example);
    vec![
        code(option.name),
        prose(option.help) + &also,
        format!(
            "{}, as in {example}. Default: {}",
            prose(&capital(&option.values())),
            prose(&option.default_in_words())
        ),
    ]
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What iotoll makes of each option of fio.
fn fio_options() -> String {
    let options = of_fio();
    let count = |which: fn(&OfFio) -> bool| options.iter().filter(|(_, what)| which(what)).count();
    let mut page = Page::new("Options of fio");
    page.paragraph(&format!(
        "All options of fio 3.33 with their other names and the options of its engines: {} are *supported* (see [Job options](job-options.md), \
         and [Where a job differs from fio's](../guide/fio.md)), {} are accepted with *no effect* (what fio would do otherwise is said), and {} are \
         *refused*, each with its reason. A plan with a refused option does not run, unless `--ignore-unknown` leaves it out.",
        count(|what| matches!(what, OfFio::Supported(_))),
        count(|what| matches!(what, OfFio::Accepted(..))),
        count(|what| matches!(what, OfFio::Refused(_)))
    ));
    page.table(
        &["Option", "iotoll", "Meaning, or the reason"],
        options.iter().map(|(name, what)| fio_row(name, *what)),
    );
    page.finish()
}

fn fio_row(name: &str, what: OfFio) -> Vec<String> {
    let help = |of: &str| {
        let option = reference().find(|option| option.name == of);
        let help = option.map_or_else(String::new, |option| prose(option.help));
        if of == name { help } else { format!("As {}", code(of)) }
    };
    let (state, meaning) = match what {
        OfFio::Supported(of) => ("supported", help(of)),
        OfFio::Accepted(of, why) => ("no effect", if of == name { prose(why) } else { format!("As {}", code(of)) }),
        OfFio::Refused(why) => ("refused", prose(why)),
    };
    vec![code(name), state.to_owned(), meaning]
}

/// The stacks of guests, from the table that sets them up.
fn stacks() -> String {
    let mut page = Page::new("Stacks of guests");
    page.paragraph(
        "What `iotoll guest run --stack NAME` sends I/O through. Modules come from the guest's kernel, with those that they \
         depend on. Programs come from the host, or from the package in brackets, which apt downloads.",
    );
    let row =
        |stack: &'static Stack| vec![code(&stack.name), prose(&capital(&stack.about)), modules(stack), programs(stack)];
    page.table(&["Stack", "What the I/O goes through", "Modules", "Programs"], stack::stacks().iter().map(row));
    page.section("Counters that prove the path");
    page.paragraph(
        "Each is read in the guest before and after the measured I/Os. Its increase stands in `points[].path_proof` of the \
         [JSON](json.md#guest). A measurement whose I/O took another path is refused.",
    );
    let rows = stack::stacks().iter().flat_map(|stack| {
        stack
            .counters()
            .map(|counter| vec![code(&stack.name), code(&counter.name), meaning(counter.expected).to_owned()])
    });
    page.table(&["Stack", "Counter", "Must be"], rows);
    page.finish()
}

fn meaning(expected: Expected) -> &'static str {
    match expected {
        Expected::EachDirectIo => "at least 1 for each I/O, if the job has `direct=1`",
        Expected::EachDirectByte => "at least 1 for each byte, if the job has `direct=1`",
        Expected::Some => "at least 1",
        Expected::None => "0",
        Expected::Any => "anything: it is reported",
    }
}

fn modules(stack: &Stack) -> String {
    stack.modules().map(|(name, _)| code(name)).collect::<Vec<_>>().join(", ")
}

fn programs(stack: &'static Stack) -> String {
    let name = |program: Program| format!("{} [{}]", code(program.name), program.package);
    stack.programs().filter(|program| !program.name.starts_with('/')).map(name).collect::<Vec<_>>().join(", ")
}

/// The page of commands: what `--help` says of each verb.
fn commands() -> String {
    let mut page = Page::new("Commands");
    // The width does not depend on a terminal.
    let mut command = help::with_texts(offered()).term_width(100);
    // Gives each verb its usage.
    command.build();
    page.paragraph(
        "What `iotoll VERB --help` says. Verbs that take a job have the [job options](job-options.md) as flags too.",
    );
    // Those that do something.
    let verbs = verbs(&command, &[]).into_iter().filter(|(_, verb)| !verb.has_subcommands());
    let verbs: Vec<(String, Command)> = verbs.map(|(path, verb)| (path.join(" "), verb)).collect();
    let about = |verb: &Command| prose(&verb.get_about().map(ToString::to_string).unwrap_or_default());
    let row =
        |(name, verb): &(String, Command)| vec![format!("[`{name}`](#iotoll-{})", name.replace(' ', "-")), about(verb)];
    page.table(&["Verb", "What it does"], verbs.iter().map(row));
    for (name, mut verb) in verbs {
        page.section(&format!("iotoll {name}"));
        let help = verb.render_long_help().to_string();
        page.verbatim(&help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"));
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_stands_in_one_section() {
        let page = job_options();
        let (_, options) = page.split_once("## Jobs").unwrap_or_default();
        for option in reference() {
            assert_eq!(options.matches(&format!("\n| `{}`", option.name)).count(), 1, "{}", option.name);
        }
        assert!(page.contains("## Requests") && page.contains("## Engine io_uring"), "{page}");
    }

    #[test]
    fn every_stack_has_a_row_and_a_counter() {
        let page = stacks();
        for stack in stack::stacks() {
            let rows = page.matches(&format!("\n| `{}` |", stack.name)).count();
            assert_eq!(rows, 1 + stack.counters().count(), "{}", stack.name);
            assert!(stack.counters().next().is_some(), "{}", stack.name);
        }
    }
}
