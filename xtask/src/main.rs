//! What developers run: `tidy` holds the tree against the rules that no compiler checks, `fuzz` tries to break what reads strangers' bytes.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command for developers talks on the terminal")]

mod fuzz;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["tidy"] => tidy(&workspace()),
        ["tidy", root] => tidy(Path::new(root)),
        ["fuzz", rest @ ..] => match fuzz::run(&workspace(), rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("fuzz: {error:#}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy [ROOT]");
            eprintln!("{}", fuzz::usage());
            ExitCode::from(2)
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
        println!("tidy: {} files keep {} rules", tree.files.len(), tidy::RULES.len());
        return ExitCode::SUCCESS;
    }
    eprintln!("tidy: {} to mend", breaches.len());
    ExitCode::FAILURE
}

/// The directory above this crate's.
fn workspace() -> PathBuf {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_root.parent().unwrap_or(crate_root).to_path_buf()
}
