//! `iotoll completions` and `iotoll generate`: the command line.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `iotoll completions`.
#[derive(Args, Clone, Debug)]
pub struct CompletionsArguments {
    /// The shell
    pub shell: CompletionShell,
}

/// A supported shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

/// `iotoll generate`.
#[derive(Args, Clone, Debug)]
pub struct GenerateArguments {
    /// What to write
    pub what: Generated,
    /// Write the files to this folder
    pub folder: PathBuf,
}

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// A man page for each verb
    Man,
    /// A completion script for each shell
    Completions,
    /// The reference, as Markdown, and the JSON Schemas
    Reference,
    /// An SVG image of each record in the folder, NAME.record.jsonl
    Images,
}
