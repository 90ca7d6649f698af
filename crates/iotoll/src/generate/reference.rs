//! The generated pages of the reference, and the JSON Schemas.

mod caveats;
mod commands;
mod json_keys;
mod options;
mod stacks;
mod units;

use super::GeneratedFile;
use super::markdown::{Page, code, prose};
use crate::failure;
use model::blast::BlastFinding;
use model::comparison::CompareFinding;
use model::finding::RunFinding;
use model::ftq::FtqFinding;
use model::guest::GuestFinding;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// All of them.
///
/// # Errors
/// When a schema cannot be written as JSON.
pub fn files() -> anyhow::Result<Vec<GeneratedFile>> {
    let (run, compare, guest) = (schema::<RunFinding>(), schema::<CompareFinding>(), schema::<GuestFinding>());
    let (ftq, blast) = (schema::<FtqFinding>(), schema::<BlastFinding>());
    let page = |name: &str, text: String| GeneratedFile { name: name.to_owned(), text };
    let json = |schema: &Schema| serde_json::to_string_pretty(schema).map(|text| text + "\n");
    Ok(vec![
        page("commands.md", commands::page()),
        page("job-options.md", options::job_options()),
        page("path-tunings.md", options::path_tunings()),
        page("exit-codes.md", exit_codes()),
        page("caveats.md", caveats::page(&schema::<model::warning::Code>())),
        page("json-run.md", json_keys::page(&json_keys::RUN, &run)),
        page("json-compare.md", json_keys::page(&json_keys::COMPARE, &compare)),
        page("json-guest.md", json_keys::page(&json_keys::GUEST, &guest)),
        page("json-ftq.md", json_keys::page(&json_keys::FTQ, &ftq)),
        page("json-blast.md", json_keys::page(&json_keys::BLAST, &blast)),
        page("stacks.md", stacks::page()),
        page("run.schema.json", json(&run)?),
        page("compare.schema.json", json(&compare)?),
        page("guest.schema.json", json(&guest)?),
        page("ftq.schema.json", json(&ftq)?),
        page("blast.schema.json", json(&blast)?),
    ])
}

/// The JSON Schema of a serialized `T`.
fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
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
