//! No import cycle between the modules at the root of a crate: each can be read after those that it imports.
//!
//! A module and its own children may import each other. Code that is compiled only for tests does not count.

use super::Breach;
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
    let tests: Vec<String> = sources.iter().flat_map(|(file, path)| test_modules(file, path)).collect();
    let mut graph: BTreeMap<&str, Imports> = BTreeMap::new();
    for (file, path) in sources {
        let of_tests =
            tests.iter().any(|test| path.strip_prefix(test.as_str()).is_some_and(|rest| rest.starts_with(['.', '/'])));
        if of_tests {
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

/// Paths, without extension, of the files that `#[cfg(test)] mod NAME;` includes.
fn test_modules(file: &File, path: &str) -> Vec<String> {
    let folder = match path.strip_suffix(".rs").unwrap_or(path) {
        "lib" | "main" => String::new(),
        module => format!("{module}/"),
    };
    let pairs = file.lines.iter().zip(file.lines.iter().skip(1));
    let tests = pairs.filter(|(line, _)| line.code.contains("#[cfg(test)]"));
    let named = tests.filter_map(|(_, next)| next.code.trim().strip_suffix(';')?.rsplit_once("mod "));
    named.map(|(_, name)| format!("{folder}{name}")).collect()
}

/// Line and name of each import behind a path to the root of the crate, in a file whose module is `depth` below it.
fn imports(file: &File, depth: usize) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    // Depth of braces behind `crate::`, and depth within an item for tests.
    let (mut group, mut skipped) = (None, None);
    for (index, line) in file.lines.iter().enumerate() {
        if let Some(open) = skipped.as_mut() {
            *open += braces(&line.code);
            if *open == 0 && line.code.contains(['}', ';']) {
                skipped = None;
            }
            continue;
        }
        if line.code.contains("#[cfg(test)]") {
            skipped = Some(0);
            continue;
        }
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
                let now = open + braces(part);
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

fn braces(code: &str) -> i32 {
    code.chars().map(|letter| i32::from(letter == '{') - i32::from(letter == '}')).sum()
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
