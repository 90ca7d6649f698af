//! The rules of the tree, one row each: a name, and the function that finds breaches. Reads files; changes nothing.
//!
//! A rule sees files as text. Whatever a compiler lint can check is left to the lint, except where a crate could switch
//! the lint off for itself.

mod ceilings;
mod citations;
mod files;
mod imports;
mod links;
mod safety;
mod source;
mod test_code;
pub mod tree;
mod words;

use std::fmt;
use tree::Tree;

pub struct Rule {
    /// Its name in the output.
    pub name: &'static str,
    find: fn(&Tree) -> Vec<Breach>,
}

pub const RULES: [Rule; 15] = [
    Rule { name: "imports", find: imports::against_manifests },
    Rule { name: "use", find: imports::against_sources },
    Rule { name: "verbs", find: imports::of_verbs },
    Rule { name: "architecture", find: imports::against_architecture },
    Rule { name: "unsafe", find: safety::only_in_sys },
    Rule { name: "print", find: words::prints },
    Rule { name: "unfinished", find: words::unfinished },
    Rule { name: "machine-path", find: words::machine_paths },
    Rule { name: "registry", find: words::registries },
    Rule { name: "name", find: files::names },
    Rule { name: "opening", find: files::openings },
    Rule { name: "length", find: files::lengths },
    Rule { name: "ceiling", find: ceilings::kept },
    Rule { name: "link", find: links::resolve },
    Rule { name: "citation", find: citations::resolve },
];

/// A breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    path: String,
    line: usize,
    message: String,
    rule: &'static str,
}

impl Breach {
    /// A breach at `line` (from 1) of `path`; the message states the problem and the fix.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into(), rule: "" }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {} [{}]", self.path, self.line, self.message, self.rule)
    }
}

/// All breaches, file by file.
pub fn check(tree: &Tree) -> Vec<Breach> {
    let found = RULES.iter().flat_map(|rule| {
        let breaches = (rule.find)(tree).into_iter();
        breaches.map(|breach| Breach { rule: rule.name, ..breach })
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests;
