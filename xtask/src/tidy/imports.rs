//! Which crate may import which. The table is here and nowhere else; ARCHITECTURE.md quotes it.

use super::source::Line;
use super::tree::{File, Tree};
use super::{Breach, test_code};

/// A crate and the workspace crates that it may import.
struct Row {
    name: &'static str,
    imports: &'static [&'static str],
}

const TABLE: [Row; 11] = [
    Row { name: "stats", imports: &[] },
    Row { name: "model", imports: &["stats"] },
    Row { name: "sys", imports: &[] },
    Row { name: "nbd", imports: &["sys"] },
    Row { name: "lab", imports: &["model", "sys", "nbd"] },
    Row { name: "jobs", imports: &["model", "sys", "nbd", "lab"] },
    Row { name: "report", imports: &["model"] },
    Row { name: "verbs", imports: &["stats", "model", "sys", "nbd", "lab", "jobs", "report"] },
    Row { name: "iotoll", imports: &["model", "lab", "jobs", "nbd", "report", "verbs"] },
    Row { name: "validation", imports: &["model", "sys", "nbd", "verbs"] },
    Row { name: "xtask", imports: &[] },
];

const ARCHITECTURE: &str = "ARCHITECTURE.md";

impl Row {
    /// The line that ARCHITECTURE.md must have.
    fn quoted(&self) -> String {
        let imports = if self.imports.is_empty() { "nothing of ours".to_owned() } else { self.imports.join(", ") };
        format!("{} → {imports}", self.name)
    }

    fn of(name: &str) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.name == name)
    }
}

/// The workspace crate that a dependency or a path names: `model` and `iotoll-model` are the same.
fn ours(name: &str) -> Option<&'static Row> {
    let name = name.strip_prefix("iotoll-").or(name.strip_prefix("iotoll_")).unwrap_or(name);
    Row::of(name)
}

fn refused(row: &Row, other: &str) -> Option<String> {
    let other = ours(other)?;
    let allowed = other.name == row.name || row.imports.contains(&other.name);
    let mend = format!("({}): move the code, or change the table in xtask and {ARCHITECTURE}", row.quoted());
    (!allowed).then(|| format!("{} may not import {} {mend}", row.name, other.name))
}

/// Checks the dependencies in the manifests, including dev-dependencies.
pub fn against_manifests(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let Some(member) = file.member() else {
            continue;
        };
        let Some(row) = Row::of(member) else {
            breaches.push(Breach::new(
                &file.path,
                1,
                format!("{member} has no row in the import table: add one in xtask"),
            ));
            continue;
        };
        for (number, name) in dependencies(file) {
            breaches.extend(refused(row, name).map(|message| Breach::new(&file.path, number, message)));
        }
    }
    breaches
}

/// Line and name of each dependency of a manifest.
fn dependencies(file: &File) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies");
            found.extend(section.split_once("dependencies.").map(|(_, name)| (index + 1, name)));
        } else if inside && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().filter(|name| !name.is_empty());
            found.extend(name.map(|name| (index + 1, name.trim_matches('"'))));
        }
    }
    found
}

/// Checks `use` lines, and modules taken from another crate's files, which no manifest shows.
pub fn against_sources(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.sources() {
        let Some(row) = file.member().and_then(Row::of) else {
            continue;
        };
        for (index, line) in file.lines.iter().enumerate() {
            let code = line.code.trim();
            let used = code.strip_prefix("pub ").unwrap_or(code).strip_prefix("use ");
            let used = used.and_then(|used| used.split([':', ';', ' ']).find(|part| !part.is_empty()));
            let refused = used.and_then(|name| refused(row, name));
            breaches.extend(refused.map(|message| Breach::new(&file.path, index + 1, message)));
            if code.starts_with("#[path") || code.starts_with("#![path") {
                let message = "#[path] can include another crate's file: make it a module of this crate";
                breaches.push(Breach::new(&file.path, index + 1, message));
            }
        }
    }
    breaches
}

const VERBS: &str = "crates/verbs/src/";
/// What reaches the machine: of a verb, only what measures does.
const MACHINE: [&str; 8] = ["jobs::", "lab::", "sys::", "nbd::", "rustix::", "std::fs", "std::net", "std::process"];

/// Checks that no verb knows another, and that only what measures reaches the machine. What verbs share has no page.
pub fn of_verbs(tree: &Tree) -> Vec<Breach> {
    let verb = |file: &File| Some(file.path.strip_prefix(VERBS)?.strip_suffix("/page.rs")?.to_owned());
    let verbs: Vec<String> = tree.sources().filter_map(verb).collect();
    let tests = test_code::files(tree);
    let of_verbs = tree.sources().filter(|file| file.path.starts_with(VERBS) && !tests.contains(file.path.as_str()));
    let lines =
        of_verbs.flat_map(|file| (1..).zip(file.lines.iter().zip(test_code::lines(file))).map(move |it| (file, it)));
    let breach = |(file, (number, (line, is_test))): (&File, (usize, (&Line, bool)))| {
        let mut rooms = file.path.strip_prefix(VERBS)?.trim_end_matches(".rs").split('/');
        let (own, measures) = (rooms.next().filter(|room| *room != "lib")?, rooms.next() == Some("measure"));
        let known = verbs.iter().find(|verb| *verb != own && line.code.contains(&format!("crate::{verb}::")));
        let reached = MACHINE.into_iter().find(|what| !measures && line.code.contains(what));
        let why = match (known, reached) {
            (Some(verb), _) => format!("{own} may not know the verb {verb}: share it below them"),
            (None, what) => format!("only what measures may use {}: move it there", what?),
        };
        (!is_test).then(|| Breach::new(&file.path, number, why))
    };
    lines.filter_map(breach).collect()
}

/// Checks that ARCHITECTURE.md quotes every row, and no different one.
pub fn against_architecture(tree: &Tree) -> Vec<Breach> {
    let text = tree.file(ARCHITECTURE).map_or("", |file| file.text.as_str());
    let mut breaches = Vec::new();
    let mut missing: Vec<&Row> = TABLE.iter().collect();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let Some(row) = line.split_once(" → ").and_then(|(name, _)| Row::of(name)) else {
            continue;
        };
        missing.retain(|other| other.name != row.name);
        if line != row.quoted() {
            let message = format!("differs from xtask's table: `{}`", row.quoted());
            breaches.push(Breach::new(ARCHITECTURE, index + 1, message));
        }
    }
    breaches.extend(missing.iter().map(|row| Breach::new(ARCHITECTURE, 1, format!("add the line `{}`", row.quoted()))));
    breaches
}

/// The rows for a test's ARCHITECTURE.md.
#[cfg(test)]
pub fn architecture() -> String {
    TABLE.iter().map(|row| row.quoted() + "\n").collect()
}
