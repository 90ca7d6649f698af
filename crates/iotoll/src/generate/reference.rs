//! The generated pages of the reference.

use super::markdown::{Page, code, default_apart, prose};
use super::{GeneratedFile, JOB_OPTIONS, documented, offered, verbs};
use crate::failure;
use clap::{Arg, Command};
use lab::guest::programs::Program;
use lab::guest::stack::{Expected, STACKS, Stack};
use model::plan::options::{OfFio, Reference, of_fio, reference};
use model::plan::{ENGINES, Engine, Medium, Queue};
use model::warning::Code;

/// All of them.
pub fn files() -> Vec<GeneratedFile> {
    let page = |(name, text): (&str, String)| (name.to_owned(), text);
    [
        ("commands.md", commands()),
        ("job-options.md", job_options()),
        ("fio-options.md", fio_options()),
        ("path-tunings.md", path_tunings()),
        ("exit-codes.md", exit_codes()),
        ("caveats.md", caveats()),
        ("stacks.md", stacks()),
        ("features.md", features()),
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

/// The engine that has path tunings.
const PATH_ENGINE: &str = "nbd";

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
    for group in reference().map(|option| option.group) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        page.section(&group);
        let mut options = reference().filter(|option| option.group == group).peekable();
        if options.peek().is_some_and(|option| option.engines == [PATH_ENGINE]) {
            page.paragraph("For the same tunings of the server, see [Path tunings](path-tunings.md).");
        }
        page.table(&["Option", "Meaning", "Values"], options.map(|option| option_row(&option)));
    }
    page.finish()
}

/// A table row. Names are long and cannot be wrapped, so the values and the default share a column.
fn option_row(option: &Reference) -> Vec<String> {
    let aliases: Vec<String> = option.aliases.iter().map(|name| code(name)).collect();
    let also = if aliases.is_empty() { String::new() } else { format!(". Also {}", aliases.join(", ")) };
    let example = code(option.example);
    vec![
        code(option.name),
        prose(option.help) + &also,
        format!("{}, as in {example}. Default: {}", prose(&capital(&option.value)), prose(&option.default)),
    ]
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The page of the path tunings: the client's job option and the server's flag.
fn path_tunings() -> String {
    let mut page = Page::new("Path tunings");
    page.paragraph(
        "How the reference block path moves requests and payloads. The client is engine `nbd` and takes its tunings as job \
         options. The server is `iotoll serve` and takes them as flags. The two sides are independent. An \
         option of `Any job` applies to jobs of every engine.",
    );
    let command = documented();
    let server: Vec<_> = command.find_subcommand("serve").into_iter().flat_map(|serve| serve.get_arguments()).collect();
    let of_server = |name: &str| server.iter().find(|flag| flag.get_id() == name);
    let path = reference().filter(|option| option.engines == [PATH_ENGINE] || of_server(option.name).is_some());
    for option in path {
        page.section(option.name);
        let mut rows = Vec::new();
        // Some of the options that the server has too apply to all engines.
        let side = if option.engines == [PATH_ENGINE] { "Client" } else { "Any job" };
        let meaning = prose(option.help);
        rows.push(vec![side.to_owned(), code(option.name), prose(&option.value), prose(&option.default), meaning]);
        if let Some(flag) = of_server(option.name) {
            let defaults = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>();
            let value = flag.get_value_names().and_then(<[_]>::first).filter(|_| flag.get_action().takes_values());
            let value = value.map_or("", |name| name.as_str());
            let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
            let (help, said) = default_apart(&help);
            let default = if said.is_empty() { defaults.join(", ") } else { said.to_owned() };
            let name = format!("--{}", flag.get_long().unwrap_or_default());
            rows.push(vec!["Server".to_owned(), code(&name), prose(value), prose(&default), prose(help)]);
        }
        page.table(&["Side", "Name", "Values", "Default", "Meaning"], rows);
    }
    page.finish()
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
        count(|what| matches!(what, OfFio::Accepted(_))),
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
        OfFio::Accepted(of) => ("no effect", help(of)),
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
    let row = |stack: &Stack| vec![code(stack.name), prose(&capital(stack.about)), modules(stack), programs(stack)];
    page.table(&["Stack", "What the I/O goes through", "Modules", "Programs"], STACKS.iter().map(row));
    page.section("Counters that prove the path");
    page.paragraph(
        "Each is read in the guest before and after the measured I/Os. Its increase stands in `points[].path_proof` of the \
         [JSON](json.md#guest). A measurement whose I/O took another path is refused.",
    );
    let rows = STACKS.iter().flat_map(|stack| {
        stack.counters().map(|counter| vec![code(stack.name), code(counter.name), meaning(counter.expected).to_owned()])
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

fn programs(stack: &Stack) -> String {
    let name = |program: &Program| format!("{} [{}]", code(program.name), program.package);
    stack.programs.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The verbs that measure.
const VERBS: [&str; 6] = ["run", "cost", "compare", "ftq", "blast", "guest run"];
/// The flags that are to work for each of them.
const FLAGS: [&str; 10] =
    ["meters", "events", "probe", "service", "place", "setup", "prepare", "cleanup", "stored", "fail-on"];
/// Which verbs lack which of these flags, and why.
const WITHOUT: [(&[&str], &[&str], &str); 6] = [
    (
        &["meters", "service", "place", "setup", "prepare", "cleanup"],
        &["guest run"],
        "a guest counts instructions in a machine of its own: nothing that runs on this one is measured",
    ),
    (&["probe"], &["guest run"], "its probes are the counters that prove the path of each [stack](stacks.md)"),
    (&["events"], &["ftq", "guest run"], "there is no cost of the machine per I/O that they explain"),
    (&["meters"], &["ftq"], "a recording counts what one worker does, not the cycles of the machine"),
    (
        &["place"],
        &["ftq"],
        "the recorder needs a CPU apart from the worker's: `--recorder-cpu` and `--worker-cpu` choose both",
    ),
    (
        &["place"],
        &["blast"],
        "submitters, drainer and receiver are placed one by one: `--submitter-cpus`, `--task-cpu`, `--receiver-cpu`",
    ),
];

/// Which verb has which feature, read from the command line, and why a verb lacks one.
fn features() -> String {
    let mut page = Page::new("Features of the verbs that measure");
    page.paragraph(
        "The record of each of them is saved while it is measured: after a crash or `kill -9`, `iotoll report` shows what was \
         measured until then.",
    );
    let verbs: Vec<(&str, Command)> = VERBS.iter().map(|name| (*name, verb(name))).collect();
    let head: Vec<&str> = std::iter::once("Flag").chain(VERBS).collect();
    let row = |flag: &&str| {
        let cells = verbs.iter().map(|(_, verb)| if has(verb, flag) { "yes" } else { "—" }.to_owned());
        std::iter::once(code(&format!("--{flag}"))).chain(cells).collect::<Vec<_>>()
    };
    page.table(&head, FLAGS.iter().map(row));
    page.section("What is missing, and why");
    let row = |(flags, verbs, why): &(&[&str], &[&str], &str)| {
        let flags: Vec<String> = flags.iter().map(|flag| code(&format!("--{flag}"))).collect();
        let verbs: Vec<String> = verbs.iter().map(|verb| code(verb)).collect();
        vec![verbs.join(", "), flags.join(", "), prose(why)]
    };
    page.table(&["Verb", "Without", "Why"], WITHOUT.iter().map(row));
    page.paragraph(
        "`compare --prepare` works for commands only: for jobs, `--cache` prepares the files. `compare --probe` does not work where \
         arms are boots, whose kernels need not have the same counters; `--events` does not either, because no round of one boot has both arms.",
    );
    page.finish()
}

/// The verb of this name.
fn verb(name: &str) -> Command {
    let below = |command: Command, name: &str| command.find_subcommand(name).cloned().unwrap_or(command);
    name.split(' ').fold(offered(), below)
}

fn has(verb: &Command, flag: &str) -> bool {
    verb.get_arguments().any(|argument| argument.get_long() == Some(flag))
}

/// The page of commands: each verb with its usage, arguments and options.
fn commands() -> String {
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
        show_verb(&mut page, &name, verb);
    }
    page.finish()
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    prose(&about.map(ToString::to_string).unwrap_or_default())
}

fn show_verb(page: &mut Page, name: &str, mut verb: Command) {
    page.section(&format!("iotoll {name}"));
    page.paragraph(&format!("{}.", about(&verb).trim_end_matches('.')));

    page.verbatim(&verb.render_usage().to_string());
    let arguments: Vec<&Arg> = verb.get_arguments().filter(|argument| !argument.is_hide_set()).collect();
    let (places, flags): (Vec<&Arg>, Vec<&Arg>) = arguments.iter().partition(|argument| argument.is_positional());
    let places = places.iter().map(|place| vec![as_typed(place), prose(&meaning_of(place))]);
    page.table(&["Argument", "Meaning"], places);
    let (job, own): (Vec<&Arg>, Vec<&Arg>) =
        flags.iter().partition(|flag| flag.get_help_heading() == Some(JOB_OPTIONS));
    let own = own.iter().map(|flag| {
        let help = meaning_of(flag);
        let (meaning, default) = default_apart(&help);
        let default = if default.is_empty() { default_of(flag) } else { prose(default) };
        vec![as_typed(flag), prose(meaning), default]
    });
    page.table(&["Option", "Meaning", "Default"], own);
    if !job.is_empty() {
        page.paragraph("It also takes the [job options](job-options.md).");
    }
}

/// As on the command line: `--out DIR`, `RECORD`.
fn as_typed(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default().join(" ");
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let takes = argument.is_positional() || argument.get_action().takes_values();
    let names = [short, long].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let value = if takes { values } else { String::new() };
    code(format!("{names} {value}").trim())
}

fn meaning_of(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let words: Vec<_> = argument.get_possible_values().iter().map(|word| word.get_name().to_owned()).collect();
    if words.is_empty() || argument.is_hide_possible_values_set() || !argument.get_action().takes_values() {
        help
    } else {
        format!("{help}: {}", words.join(", "))
    }
}

/// The default that clap knows.
fn default_of(argument: &Arg) -> String {
    if argument.is_hide_default_value_set() || !argument.get_action().takes_values() {
        return String::new();
    }
    code(&argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(", "))
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
    fn a_tuning_of_both_sides_shows_both() {
        let page = path_tunings();
        let section = page.split("\n## path_send\n").nth(1).unwrap().split("\n## ").next().unwrap();
        assert!(
            section.contains("| Client | `path_send` |") && section.contains("| Server | `--path-send` |"),
            "{section}"
        );
    }

    #[test]
    fn every_stack_has_a_row_and_a_counter() {
        let page = stacks();
        for stack in &STACKS {
            let rows = page.matches(&format!("\n| `{}` |", stack.name)).count();
            assert_eq!(rows, 1 + stack.counters().count(), "{}", stack.name);
            assert!(stack.counters().next().is_some(), "{}", stack.name);
        }
    }

    /// What clap knows and what the page explains are the same.
    #[test]
    fn every_hole_has_one_reason_and_every_reason_is_a_hole() {
        for name in VERBS {
            let verb = verb(name);
            assert_eq!(Some(verb.get_name()), name.split(' ').next_back(), "no such verb");
            for flag in FLAGS {
                let explains = |row: &&(&[&str], &[&str], &str)| row.0.contains(&flag) && row.1.contains(&name);
                let reasons = WITHOUT.iter().filter(explains).count();
                assert_eq!(reasons, usize::from(!has(&verb, flag)), "{name} --{flag}");
            }
        }
    }

    #[test]
    fn the_page_has_a_row_for_each_flag() {
        let page = features();
        assert!(page.contains("| `--probe` | yes | yes | yes | yes | yes | — |"), "{page}");
        assert!(FLAGS.iter().all(|flag| page.contains(&format!("\n| `--{flag}` |"))), "{page}");
    }
}
