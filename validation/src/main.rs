//! Proves the claims of docs/validation by measuring them: `cargo run --release -p validation -- NAME`.
//!
//! A validation runs the built `iotoll`, parses its JSON as a user's script would, and prints the table that docs/validation/output
//! contains. `load NAME` runs the programs with known behaviour that validations measure.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer command prints to the terminal")]

mod bench;
mod load;
mod runner;
mod validations;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = match arguments.as_slice() {
        ["load", rest @ ..] => load::main(rest),
        rest => validations::main(rest),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::FAILURE
    })
}

/// The workspace root: the parent of this crate's directory.
fn workspace() -> PathBuf {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_root.parent().unwrap_or(crate_root).to_path_buf()
}
