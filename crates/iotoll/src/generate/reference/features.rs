//! The page of features: which verb has which, read from the command line, and why a verb lacks one.

use super::super::markdown::{Page, code, prose};
use crate::arguments::offered;
use clap::Command;

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

/// The page.
pub fn page() -> String {
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
    page.table(&head, &FLAGS.iter().map(row).collect::<Vec<_>>());
    page.section("What is missing, and why");
    let row = |(flags, verbs, why): &(&[&str], &[&str], &str)| {
        let flags: Vec<String> = flags.iter().map(|flag| code(&format!("--{flag}"))).collect();
        let verbs: Vec<String> = verbs.iter().map(|verb| code(verb)).collect();
        vec![verbs.join(", "), flags.join(", "), prose(why)]
    };
    page.table(&["Verb", "Without", "Why"], &WITHOUT.iter().map(row).collect::<Vec<_>>());
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let page = page();
        assert!(page.contains("| `--probe` | yes | yes | yes | yes | yes | — |"), "{page}");
        assert!(FLAGS.iter().all(|flag| page.contains(&format!("\n| `--{flag}` |"))), "{page}");
    }
}
