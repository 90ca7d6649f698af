//! `iotoll completions` and `iotoll generate`: text that is made from the command line's types, the tables of the model and
//! the types of the findings, so that it cannot disagree with the program.

mod completions;
mod images;
mod man;
mod markdown;
mod reference;

use crate::arguments::Generated;
use crate::stdout;
use anyhow::Context;
use clap_complete::Shell;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// A file to write: its name in the folder, and its text.
pub struct GeneratedFile {
    name: String,
    text: String,
}

/// `iotoll completions`.
pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    stdout::write(&completions::script(shell))?;
    Ok(ExitCode::SUCCESS)
}

/// `iotoll generate`.
pub fn generate(what: Generated, folder: &Path) -> anyhow::Result<ExitCode> {
    fs::create_dir_all(folder).with_context(|| format!("{}: making the folder", folder.display()))?;
    match what {
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
