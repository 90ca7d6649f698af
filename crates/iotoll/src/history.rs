//! `iotoll history`: what stored records of one experiment say over time.

use crate::arguments::HistoryArguments;
use crate::failure::{self, BadInput};
use crate::kinds;
use crate::stdout;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the verb. A record that cannot be read is named and left out.
pub fn history(arguments: &HistoryArguments) -> anyhow::Result<ExitCode> {
    let paths = match arguments.paths.as_slice() {
        [] => vec![PathBuf::from(lab::store::RUNS)],
        paths => paths.to_vec(),
    };
    let records = lab::store::records_below(&paths)?;
    let mut observations = Vec::new();
    for path in &records {
        match kinds::observe_at(path) {
            Ok(observation) => observations.push(observation),
            Err(error) => failure::complain(&format!("left out: {error}")),
        }
    }
    let finding = model::history::study(observations);
    if finding.experiments.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let message = format!(
            "history: no two of the {} records in {} were made by the same command line; measure again, or give other folders",
            records.len(),
            names.join(", ")
        );
        return Err(BadInput(message).into());
    }
    stdout::print(&finding, arguments.shown, None)?;
    Ok(ExitCode::SUCCESS)
}
