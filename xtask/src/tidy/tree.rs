//! Reads the text files of a working tree.

use super::source::{self, Line};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Directories to skip anywhere, as builds at the root: git's own, recorded runs.
const SKIPPED: [&str; 2] = [".git", "iotoll-runs"];
/// Extensions of the files that are read; all others are data.
const EXTENSIONS: [&str; 5] = ["rs", "toml", "md", "sh", "lock"];
/// Scripts without an extension.
const SCRIPTS: [&str; 2] = ["check", ".ci/run"];

/// A file that rules inspect.
pub struct File {
    /// Path from the root, with `/` separators.
    pub path: String,
    pub text: String,
    /// Lines with comments separated, if it is a Rust source.
    pub lines: Vec<Line>,
}

impl File {
    /// Whether it is a Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Its workspace member: the directory under `crates/`, or `validation`, or `xtask`.
    pub fn member(&self) -> Option<&str> {
        match self.path.split_once('/') {
            Some(("crates", rest)) => rest.split_once('/').map(|(member, _)| member),
            Some((member @ ("validation" | "xtask"), _)) => Some(member),
            _ => None,
        }
    }
}

pub struct Tree {
    /// Sorted by path.
    pub files: Vec<File>,
    /// Paths of all files and folders, including those that no rule reads.
    pub paths: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree below `root`.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self { files: Vec::new(), paths: BTreeSet::new() };
        tree.walk(root, "")?;
        tree.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust sources.
    pub fn sources(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    fn walk(&mut self, root: &Path, below: &str) -> io::Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            if SKIPPED.contains(&name.as_str()) || path == "target" {
                continue;
            }
            self.paths.insert(path.clone());
            // Do not follow linked directories: they could form a cycle, and are not in the tree.
            if entry.file_type()?.is_dir() {
                self.walk(root, &path)?;
            } else if readable(&path) && entry.path().is_file() {
                let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
                let lines = if path.ends_with(".rs") { source::lines(&text) } else { Vec::new() };
                self.files.push(File { path, text, lines });
            }
        }
        Ok(())
    }
}

fn readable(path: &str) -> bool {
    let extension = Path::new(path).extension().map(|extension| extension.to_string_lossy());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_ref())) || SCRIPTS.contains(&path)
}
