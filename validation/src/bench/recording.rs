//! Runs `iotoll ftq`, and reads what it finds and saves.

use super::Bench;
use anyhow::Context;
use model::ftq::{FtqFinding, FtqRecord};
use model::kind::Recorded;
use serde_json::Value;
use std::path::Path;

/// Records with these options, without saving.
pub fn record(bench: &Bench, options: &[String]) -> anyhow::Result<FtqFinding> {
    let text = bench.output(bench.iotoll().args(["ftq", "--quiet", "--format=json", "--no-save"]).args(options))?;
    serde_json::from_str(&text).context("iotoll's JSON does not have the expected format")
}

/// Records with these options into a new `folder`; also returns the record.
pub fn record_in(bench: &Bench, folder: &Path, options: &[String]) -> anyhow::Result<(FtqFinding, FtqRecord)> {
    let out = format!("--out={}", folder.display());
    let text = bench.output(bench.iotoll().args(["ftq", "--quiet", "--format=json", &out]).args(options))?;
    let finding = serde_json::from_str(&text).context("iotoll's JSON does not have the expected format")?;
    Ok((finding, load(&folder.join("record.jsonl"))?))
}

fn load(path: &Path) -> anyhow::Result<FtqRecord> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut lines = text.lines();
    let first: Value = serde_json::from_str(lines.next().context("the record is empty")?)?;
    let envelope = first.get("envelope").cloned().context("the record has no envelope")?;
    let lines = lines.map(serde_json::from_str).collect::<Result<Vec<_>, _>>()?;
    FtqRecord::assemble(serde_json::from_value(envelope)?, lines)
        .map_err(|wrong| anyhow::anyhow!("line {}: {}", wrong.line, wrong.why))
}
