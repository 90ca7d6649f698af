//! Words that must not occur in the tree.
//!
//! Words that this file would otherwise contain itself are composed of two halves.

use super::Breach;
use super::source::has_word;
use super::tree::{File, Tree};

/// Macros that write to the terminal.
const PRINTS: [&str; 5] = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];
/// Crates that may print.
const PRINTERS: [&str; 3] = ["iotoll", "validation", "xtask"];
const UNFINISHED_CODE: [&str; 4] = ["todo!", "unimplemented!", "#[ignore]", "#[ignore "];
/// Markers of unfinished work.
const UNFINISHED_NOTES: [&str; 3] = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
/// The path of the tree on a developer's machine.
const MACHINE_PATH: &str = concat!("/wo", "rk/");
/// The only package source allowed in a lock file.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Only the binary and developer commands print.
pub fn prints(tree: &Tree) -> Vec<Breach> {
    // A build script talks to Cargo by printing.
    let builds = |file: &File| file.path.ends_with("/build.rs");
    let prints = |file: &File| builds(file) || file.member().is_some_and(|member| PRINTERS.contains(&member));
    let quiet = tree.sources().filter(|file| !prints(file));
    let mut breaches = Vec::new();
    for file in quiet {
        for (index, line) in file.lines.iter().enumerate() {
            let found = PRINTS.iter().filter(|word| line.has_word(word));
            let message = |word| format!("{word} outside the binary: return the text, or a Warning");
            breaches.extend(found.map(|word| Breach::new(&file.path, index + 1, message(word))));
        }
    }
    breaches
}

/// No stubs, no ignored tests, no markers of unfinished work.
pub fn unfinished(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in &tree.files {
        for (number, code, prose) in channels(file) {
            let code = UNFINISHED_CODE.iter().filter(|word| has_word(code, word));
            let notes = UNFINISHED_NOTES.iter().filter(|word| has_word(prose, word));
            for word in code.chain(notes) {
                breaches.push(Breach::new(
                    &file.path,
                    number,
                    format!("{word} marks unfinished work: finish it or remove it"),
                ));
            }
        }
    }
    breaches
}

/// Line number, code, and prose of each line; a file that is not Rust is all prose.
fn channels(file: &File) -> Vec<(usize, &str, &str)> {
    if file.is_rust() {
        let lines = file.lines.iter().enumerate();
        return lines.map(|(index, line)| (index + 1, line.code.as_str(), line.comment.as_str())).collect();
    }
    if file.path.ends_with(".lock") {
        return Vec::new();
    }
    file.text.lines().enumerate().map(|(index, line)| (index + 1, "", line)).collect()
}

/// No path of a developer's machine.
pub fn machine_paths(tree: &Tree) -> Vec<Breach> {
    let message = "a path that exists on one machine only: make it relative to the repository, or an argument";
    lines_with(tree, message, |_, line| {
        line.match_indices(MACHINE_PATH).any(|(start, _)| {
            let before = line.get(..start).and_then(|before| before.chars().next_back());
            !before.is_some_and(|letter| letter.is_alphanumeric() || "._-/~".contains(letter))
        })
    })
}

/// Packages come from crates.io, not from a mirror that only some machines can reach.
pub fn registries(tree: &Tree) -> Vec<Breach> {
    let message = "a private package registry: move it to the machine's own configuration";
    lines_with(tree, message, |path, line| {
        let foreign = line.starts_with("source = ") && line != format!("source = \"{SOURCE}\"");
        let replaced = line.starts_with("[source") || line.starts_with("[registries");
        path.ends_with("Cargo.lock") && foreign || path.ends_with(".cargo/config.toml") && replaced
    })
}

/// One breach for each line of which `is_wrong` is true; lines are given with their file's path and without the space around them.
fn lines_with(tree: &Tree, message: &str, is_wrong: impl Fn(&str, &str) -> bool) -> Vec<Breach> {
    let lines =
        tree.files.iter().flat_map(|file| file.text.lines().enumerate().map(move |(index, line)| (file, index, line)));
    let wrong = lines.filter(|(file, _, line)| is_wrong(&file.path, line.trim()));
    wrong.map(|(file, index, _)| Breach::new(&file.path, index + 1, message)).collect()
}
