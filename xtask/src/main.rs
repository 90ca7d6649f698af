//! Developer commands: `tidy` checks rules of the tree that no compiler checks, `fuzz` fuzzes the code that parses
//! untrusted bytes, `deb` and `static` build packages.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer command prints to the terminal")]

mod fuzz;
mod package;
mod tidy;

use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["tidy"] => tidy(&workspace()),
        ["tidy", root] => tidy(Path::new(root)),
        ["fuzz", rest @ ..] => ended("fuzz", fuzz::run(&workspace(), rest)),
        ["deb", rest @ ..] => ended("deb", package::deb(&workspace(), rest)),
        ["static"] => ended("static", package::static_program(&workspace())),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy [ROOT]");
            eprintln!("{}", fuzz::usage());
            eprintln!("{}", package::usage());
            ExitCode::from(2)
        }
    }
}

fn ended(task: &str, outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn tidy(root: &Path) -> ExitCode {
    let tree = match tidy::tree::Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: {}: {error}", root.display());
            return ExitCode::from(2);
        }
    };
    let breaches = tidy::check(&tree);
    breaches.iter().for_each(|breach| println!("{breach}"));
    if breaches.is_empty() {
        println!("tidy: {} files follow {} rules", tree.files.len(), tidy::RULES.len());
        return ExitCode::SUCCESS;
    }
    eprintln!("tidy: {} to fix", breaches.len());
    ExitCode::FAILURE
}

/// The workspace root: the parent of this crate's directory.
fn workspace() -> PathBuf {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_root.parent().unwrap_or(crate_root).to_path_buf()
}

/// What this compiler builds for by itself.
fn host() -> anyhow::Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc cannot be run")?;
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it builds for")?.to_owned())
}
