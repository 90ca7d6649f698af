//! The text files of a working tree.

use super::source::{self, Line};
use std::fs;
use std::io;
use std::path::Path;

/// Directories that hold nothing of ours: builds, git's own, recorded runs.
const SKIPPED: [&str; 3] = ["target", ".git", "iotoll-runs"];
/// Extensions of the files that are read; the rest is data.
const EXTENSIONS: [&str; 5] = ["rs", "toml", "md", "sh", "lock"];
/// Scripts without an extension.
const SCRIPTS: [&str; 2] = ["check", ".ci/run"];

/// A file that rules look at.
pub struct File {
    /// From the root, with `/` between the parts.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// Its lines, comments apart, when it is a Rust source.
    pub lines: Vec<Line>,
}

impl File {
    /// Whether it is a Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The directory under `crates/` that it belongs to, or `validation`, or `xtask`.
    pub fn member(&self) -> Option<&str> {
        match self.path.split_once('/') {
            Some(("crates", rest)) => rest.split_once('/').map(|(member, _)| member),
            Some((member @ ("validation" | "xtask"), _)) => Some(member),
            _ => None,
        }
    }
}

/// All of them.
pub struct Tree {
    /// In order of their paths.
    pub files: Vec<File>,
}

impl Tree {
    /// Reads the tree below `root`.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { files })
    }

    /// The file at `path`.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust sources.
    pub fn sources(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }
}

fn walk(root: &Path, below: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        // A linked directory could lead round in a circle, and is not in the tree.
        if entry.file_type()?.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                walk(root, &path, files)?;
            }
        } else if readable(&path) && entry.path().is_file() {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
            let lines = if path.ends_with(".rs") { source::lines(&text) } else { Vec::new() };
            files.push(File { path, text, lines });
        }
    }
    Ok(())
}

fn readable(path: &str) -> bool {
    let extension = Path::new(path).extension().map(|extension| extension.to_string_lossy());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_ref())) || SCRIPTS.contains(&path)
}
