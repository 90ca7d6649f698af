//! No import cycle between the modules at the root of a crate: each can be read after those that it imports.
//!
//! A module and its own children may import each other. Code that is compiled only for tests does not count.

use super::Breach;
use super::test_code::{self, nesting};
use super::tree::{File, Tree};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The modules that a module imports, and where it first does: path and line.
type Imports<'a> = BTreeMap<&'a str, (&'a str, usize)>;

/// One breach per cycle: a shortest one through its first module.
pub fn between_modules(tree: &Tree) -> Vec<Breach> {
    let crates: BTreeSet<&str> = tree.sources().filter_map(File::member).collect();
    crates.into_iter().flat_map(|name| of_crate(tree, name)).collect()
}

fn of_crate(tree: &Tree, name: &str) -> Vec<Breach> {
    let sources: Vec<(&File, &str)> = tree.sources().filter_map(|file| Some((file, in_crate(file, name)?))).collect();
    let roots: BTreeSet<&str> = sources.iter().map(|(_, path)| root_module(path)).collect();
    let tests = test_code::files(tree);
    let mut graph: BTreeMap<&str, Imports> = BTreeMap::new();
    for (file, path) in sources {
        if tests.contains(file.path.as_str()) {
            continue;
        }
        let from = root_module(path);
        for (line, to) in imports(file, path.split('/').count()) {
            if let Some(to) = roots.get(to).filter(|to| **to != from) {
                graph.entry(from).or_default().entry(to).or_insert((&file.path, line));
            }
        }
    }
    let mut told = BTreeSet::new();
    let mut breaches = Vec::new();
    for start in graph.keys() {
        let Some(circle) = shortest(&graph, start).filter(|_| !told.contains(start)) else { continue };
        told.extend(circle.iter().map(|(module, _)| *module));
        breaches.extend(breach(start, &circle));
    }
    breaches
}

/// The path of a source below the `src` of a crate.
fn in_crate<'a>(file: &'a File, name: &str) -> Option<&'a str> {
    let path = file.path.strip_prefix("crates/").unwrap_or(&file.path);
    path.strip_prefix(name)?.strip_prefix("/src/")
}

fn root_module(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap_or(path)
}

/// Line and name of each import behind a path to the root of the crate, in a file whose module is `depth` below it.
fn imports(file: &File, depth: usize) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    // Depth of braces behind `crate::`.
    let mut group = None;
    let lines = file.lines.iter().zip(test_code::lines(file)).enumerate();
    for (index, (line, _)) in lines.filter(|(_, (_, is_test))| !is_test) {
        let to_root = format!("{}::", vec!["super"; depth].join("::"));
        let mut rest = line.code.as_str();
        while !rest.is_empty() {
            if let Some(open) = group {
                // Only the first name of each path in the braces counts.
                let end = rest.find(['{', '}', ',']).map_or(rest.len(), |end| end + 1);
                let (part, behind) = rest.split_at(end);
                if open == 1 {
                    found.extend(first_name(part).map(|name| (index + 1, name)));
                }
                let now = open + nesting(part, "{", "}");
                group = (now > 0).then_some(now);
                rest = behind;
                continue;
            }
            let next =
                ["crate::", to_root.as_str()].iter().filter_map(|path| Some((rest.find(path)?, path.len()))).min();
            let Some((start, length)) = next else { break };
            rest = rest.get(start + length..).unwrap_or("");
            match rest.strip_prefix('{') {
                Some(behind) => (group, rest) = (Some(1), behind),
                None => found.extend(first_name(rest).map(|name| (index + 1, name))),
            }
        }
    }
    found
}

fn first_name(path: &str) -> Option<&str> {
    let part_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    path.trim_start().split(|letter| !part_of_a_name(letter)).next().filter(|name| !name.is_empty())
}

/// A module, and where the previous one imports it.
type Step<'a> = (&'a str, (&'a str, usize));

/// The shortest path from `start` back to it.
fn shortest<'a>(graph: &BTreeMap<&'a str, Imports<'a>>, start: &'a str) -> Option<Vec<Step<'a>>> {
    let mut ways: VecDeque<Vec<Step>> = [Vec::new()].into();
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let at = way.last().map_or(start, |(module, _)| *module);
        for (next, place) in graph.get(at).into_iter().flatten() {
            let longer: Vec<Step> = way.iter().copied().chain([(*next, *place)]).collect();
            if *next == start {
                return Some(longer);
            }
            if seen.insert(*next) {
                ways.push_back(longer);
            }
        }
    }
    None
}

fn breach(start: &str, circle: &[Step]) -> Option<Breach> {
    let (_, (path, line)) = circle.first()?;
    let steps: Vec<String> = circle.iter().map(|(module, (path, line))| format!("{module} ({path}:{line})")).collect();
    let message = format!("import cycle: {start} → {}; move the shared code out of one of them", steps.join(" → "));
    Some(Breach::new(path, *line, message))
}
