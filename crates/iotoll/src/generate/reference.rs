//! The generated pages of the reference, and the JSON Schemas.

mod caveats;
mod commands;
mod features;
mod fio_options;
mod json_keys;
mod options;
mod stacks;
mod units;

use super::GeneratedFile;
use super::markdown::{Page, code, prose};
use crate::failure;
use crate::kinds::{self, KINDS};
use json_keys::Heading;
use model::history::HistoryFinding;
/// All of them.
///
/// # Errors
/// When a schema cannot be written as JSON.
pub fn files() -> anyhow::Result<Vec<GeneratedFile>> {
    let page = |name: &str, text: String| GeneratedFile { name: name.to_owned(), text };
    let mut files = vec![
        page("commands.md", commands::page()),
        page("job-options.md", options::job_options()),
        page("fio-options.md", fio_options::page()),
        page("path-tunings.md", options::path_tunings()),
        page("exit-codes.md", exit_codes()),
        page("caveats.md", caveats::page(&kinds::schema::<model::warning::Code>())),
        page("stacks.md", stacks::page()),
        page("features.md", features::page()),
    ];
    let of_kinds = KINDS.iter().map(|row| ((row.schema)(), Heading::of(row.kind)));
    for (schema, heading) in of_kinds.chain([(kinds::schema::<HistoryFinding>(), &Heading::HISTORY)]) {
        files.push(page(&format!("json-{}.md", heading.name), json_keys::page(heading, &schema)));
        files.push(page(&format!("{}.schema.json", heading.name), serde_json::to_string_pretty(&schema)? + "\n"));
    }
    Ok(files)
}

fn exit_codes() -> String {
    let mut page = Page::new("Exit codes");
    page.paragraph(
        "`iotoll cost` exits with the status of its command, and with 128 plus the signal's number if a signal ended it.",
    );
    let row = |(status, meaning): &(u8, &str)| vec![code(&status.to_string()), prose(meaning)];
    page.table(&["Status", "Meaning"], &failure::STATUSES.iter().map(row).collect::<Vec<_>>());
    page.finish()
}
