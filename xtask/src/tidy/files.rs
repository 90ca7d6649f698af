//! Rules for names, openings, and lengths of source files.

use super::Breach;
use super::tree::Tree;

/// Names that do not describe the content and therefore attract anything.
const VAGUE: [&str; 10] =
    ["utils", "util", "common", "shared", "helpers", "helper", "core", "misc", "manager", "managers"];
/// The longest source file.
const LONGEST: usize = 600;
/// Exceptions, each with its reason.
const LONGER: [(&str, &str); 0] = [];

/// No source file or directory has a vague name.
pub fn names(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.sources() {
        let parts = file.path.trim_end_matches(".rs").split('/');
        for vague in parts.filter(|part| VAGUE.contains(part)) {
            let message = format!("`{vague}` is too vague for a file name: name it after its main type or job");
            breaches.push(Breach::new(&file.path, 1, message));
        }
    }
    breaches
}

/// Every source file starts with a description.
pub fn openings(tree: &Tree) -> Vec<Breach> {
    let closed = tree.sources().filter(|file| !file.text.starts_with("//! "));
    let message = "does not start with //!: describe in a sentence what enters, what leaves, what it must not do";
    closed.map(|file| Breach::new(&file.path, 1, message)).collect()
}

/// No file is too long.
pub fn lengths(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.sources() {
        let excepted = LONGER.iter().any(|(path, _)| *path == file.path);
        let lines = file.text.lines().count();
        if lines > LONGEST && !excepted {
            let message = format!("{lines} lines, more than {LONGEST}: split it by purpose");
            breaches.push(Breach::new(&file.path, LONGEST + 1, message));
        }
    }
    for (path, _) in LONGER {
        if tree.file(path).is_none_or(|file| file.text.lines().count() <= LONGEST) {
            breaches.push(Breach::new(path, 1, "needs no exception to the length rule: remove it from xtask's list"));
        }
    }
    breaches
}
