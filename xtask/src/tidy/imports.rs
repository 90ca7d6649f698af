//! Which crate may import which. The table is here and nowhere else; ARCHITECTURE.md quotes it.

use super::Breach;
use super::tree::{File, Tree};

/// A crate and the workspace crates that it may import.
struct Row {
    name: &'static str,
    imports: &'static [&'static str],
}

const TABLE: [Row; 9] = [
    Row { name: "stats", imports: &[] },
    Row { name: "model", imports: &["stats"] },
    Row { name: "sys", imports: &[] },
    Row { name: "nbd", imports: &["sys"] },
    Row { name: "lab", imports: &["model", "sys", "nbd"] },
    Row { name: "report", imports: &["model"] },
    Row { name: "iotoll", imports: &["model", "lab", "nbd", "report"] },
    Row { name: "validation", imports: &["model", "sys", "nbd"] },
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
    let message = || {
        let table = row.quoted();
        format!(
            "{} may not import {} ({table}): move the code, or change the table in xtask and {ARCHITECTURE}",
            row.name, other.name
        )
    };
    (!allowed).then(message)
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
            let used = used.filter(|name| !own_module(tree, row, name));
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

/// Whether `name` is a module at the root of the crate (`lab` may have a module `report`).
fn own_module(tree: &Tree, row: &Row, name: &str) -> bool {
    tree.file(&format!("crates/{}/src/{name}.rs", row.name)).is_some()
}

/// Checks that ARCHITECTURE.md quotes every row, and no different one.
pub fn against_architecture(tree: &Tree) -> Vec<Breach> {
    let Some(file) = tree.file(ARCHITECTURE) else {
        return vec![Breach::new(
            ARCHITECTURE,
            1,
            format!("missing: it has to quote the import table ({})", quoted_table()),
        )];
    };
    let mut breaches = Vec::new();
    let mut missing: Vec<&Row> = TABLE.iter().collect();
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim();
        let Some(row) = line.split_once(" → ").and_then(|(name, _)| Row::of(name)) else {
            continue;
        };
        missing.retain(|other| other.name != row.name);
        if line != row.quoted() {
            breaches.push(Breach::new(
                &file.path,
                index + 1,
                format!("differs from xtask's table: `{}`", row.quoted()),
            ));
        }
    }
    breaches.extend(missing.iter().map(|row| Breach::new(&file.path, 1, format!("add the line `{}`", row.quoted()))));
    breaches
}

fn quoted_table() -> String {
    TABLE.iter().map(Row::quoted).collect::<Vec<_>>().join("; ")
}

/// The rows for a test's ARCHITECTURE.md.
#[cfg(test)]
pub fn architecture() -> String {
    TABLE.iter().map(|row| row.quoted() + "\n").collect()
}
