//! Names, openings and lengths of source files.

use super::Breach;
use super::tree::Tree;

/// Names that say nothing of what is inside, and therefore take in anything.
const VAGUE: [&str; 10] =
    ["utils", "util", "common", "shared", "helpers", "helper", "core", "misc", "manager", "managers"];
/// The longest source file.
const LONGEST: usize = 600;
/// Files that may be longer, each with its reason.
const LONGER: [(&str, &str); 0] = [];

/// No file or directory of sources is named vaguely.
pub fn names(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.sources() {
        let parts = file.path.trim_end_matches(".rs").split('/');
        for vague in parts.filter(|part| VAGUE.contains(part)) {
            let message = format!("`{vague}` is no name for a file: call it after its main type or job");
            breaches.push(Breach::new(&file.path, 1, message));
        }
    }
    breaches
}

/// Every source file opens with what it is.
pub fn openings(tree: &Tree) -> Vec<Breach> {
    let closed = tree.sources().filter(|file| !file.text.starts_with("//! "));
    let message = "does not open with //!: say in a sentence what enters, what leaves, what it must not do";
    closed.map(|file| Breach::new(&file.path, 1, message)).collect()
}

/// No file is too long to know.
pub fn lengths(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.sources() {
        let excepted = LONGER.iter().any(|(path, _)| *path == file.path);
        let lines = file.text.lines().count();
        if lines > LONGEST && !excepted {
            let message = format!("{lines} lines, over {LONGEST}: split it by what its parts are for");
            breaches.push(Breach::new(&file.path, LONGEST + 1, message));
        }
    }
    for (path, _) in LONGER {
        if tree.file(path).is_none_or(|file| file.text.lines().count() <= LONGEST) {
            breaches.push(Breach::new(path, 1, "needs no exception to the length rule: take it out of xtask's list"));
        }
    }
    breaches
}

/// `foo.rs` beside `foo/`: a search for a module's name finds its file.
pub fn mod_rs(tree: &Tree) -> Vec<Breach> {
    let found = tree.sources().filter(|file| file.path.ends_with("/mod.rs"));
    let message = "is a mod.rs: name it after its module, beside the directory";
    found.map(|file| Breach::new(&file.path, 1, message)).collect()
}
