//! Which lines and files are compiled only for tests.

use super::source::Line;
use super::tree::{File, Tree};
use std::collections::BTreeSet;

fn begins(line: &Line) -> bool {
    line.code.contains("#[cfg(test)]") || line.code.contains("#[cfg(all(test")
}

/// For each line of a file, whether it belongs to an item for tests.
pub fn lines(file: &File) -> Vec<bool> {
    // Depth of brackets within an item for tests.
    let mut inside: Option<i32> = None;
    let of_test = |line: &Line| {
        let Some(open) = inside.as_mut() else {
            inside = begins(line).then_some(0);
            return inside.is_some();
        };
        *open += nesting(&line.code, "({[", ")}]");
        if *open == 0 && line.code.trim_end().ends_with(['}', ';', ',']) {
            inside = None;
        }
        true
    };
    file.lines.iter().map(of_test).collect()
}

/// By how much `code` opens more than it closes.
fn nesting(code: &str, opens: &str, closes: &str) -> i32 {
    code.chars().map(|letter| i32::from(opens.contains(letter)) - i32::from(closes.contains(letter))).sum()
}

/// Paths of the files that hold only tests.
pub fn files(tree: &Tree) -> BTreeSet<&str> {
    let included: Vec<String> = tree.sources().flat_map(included).collect();
    let is_included = |path: &str| {
        let below = |test: &String| path.strip_prefix(test.as_str()).is_some_and(|rest| rest.starts_with(['.', '/']));
        included.iter().any(below)
    };
    let paths = tree.sources().map(|file| file.path.as_str());
    paths.filter(|path| path.contains("/tests/") || path.ends_with("/tests.rs") || is_included(path)).collect()
}

/// Paths, without extension, of the files that `#[cfg(test)] mod NAME;` includes.
fn included(file: &File) -> Vec<String> {
    let path = file.path.trim_end_matches(".rs");
    let folder = path.strip_suffix("/lib").or_else(|| path.strip_suffix("/main")).unwrap_or(path);
    let pairs = file.lines.iter().zip(file.lines.iter().skip(1));
    let tests = pairs.filter(|(line, _)| begins(line));
    let named = tests.filter_map(|(_, next)| next.code.trim().strip_suffix(';')?.rsplit_once("mod "));
    named.map(|(_, name)| format!("{folder}/{name}")).collect()
}
