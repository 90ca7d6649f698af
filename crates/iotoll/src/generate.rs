//! `iotoll completions` and `iotoll generate`: text that is made from the command line's types, the tables of the model and
//! the types of the findings, so that it cannot disagree with the program.

mod completions;
mod images;
mod man;
mod markdown;
mod reference;

use crate::arguments::{CompletionsArguments, GenerateArguments, Generated};
use crate::stdout;
use anyhow::Context;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// A file to write: its name in the folder, and its text.
pub struct GeneratedFile {
    name: String,
    text: String,
}

/// `iotoll completions`.
pub fn completions(arguments: &CompletionsArguments) -> anyhow::Result<ExitCode> {
    stdout::write(&completions::script(arguments.shell))?;
    Ok(ExitCode::SUCCESS)
}

/// `iotoll generate`.
pub fn generate(arguments: &GenerateArguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).with_context(|| format!("{}: making the folder", folder.display()))?;
    match arguments.what {
        Generated::Man => write(folder, &man::files()?)?,
        Generated::Completions => write(folder, &completions::files())?,
        Generated::Reference => write(folder, &reference::files()?)?,
        Generated::Images => write(folder, &images::files(folder)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, files: &[GeneratedFile]) -> anyhow::Result<()> {
    for file in files {
        let path = folder.join(&file.name);
        fs::write(&path, &file.text).with_context(|| format!("{}: writing it", path.display()))?;
    }
    Ok(())
}
