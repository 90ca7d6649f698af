//! The pages of job options and of path tunings.

use super::super::markdown::{Page, code, default_apart, prose};
use crate::arguments::documented;
use model::plan::options::{Reference, reference};
use model::plan::{ENGINES, Engine, Medium, Queue};

/// The engine that has path tunings.
const PATH_ENGINE: &str = "nbd";

/// The page of all job options, grouped by engine.
pub fn job_options() -> String {
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
    page.table(
        &["Engine", "What it does", "Its I/O goes to", "I/Os in flight"],
        &ENGINES.iter().map(about).collect::<Vec<_>>(),
    );
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
        page.table(&["Option", "Meaning", "Values"], &options.map(|option| row(&option)).collect::<Vec<_>>());
    }
    page.finish()
}

/// A table row. Names are long and cannot be wrapped, so the values and the default share a column.
fn row(option: &Reference) -> Vec<String> {
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
pub fn path_tunings() -> String {
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
        page.table(&["Side", "Name", "Values", "Default", "Meaning"], &rows);
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
    fn a_tuning_of_both_sides_shows_both() {
        let page = path_tunings();
        let section = page.split("\n## path_send\n").nth(1).unwrap().split("\n## ").next().unwrap();
        assert!(
            section.contains("| Client | `path_send` |") && section.contains("| Server | `--path-send` |"),
            "{section}"
        );
    }
}
