//! No crate has more lines than its ceiling, and a ceiling falls with the lines below it.

use super::tree::{File, Tree};
use super::{Breach, test_code};
use std::collections::BTreeMap;

/// The file of ceilings: a line for each crate, its lines of code and of tests.
const CEILINGS: &str = "xtask/lines.toml";
/// How many lines a crate may stay below its ceiling.
const SLACK: usize = 100;

/// The crate that a source belongs to.
fn part(file: &File) -> &str {
    let name = file.path.strip_prefix("crates/").and_then(|rest| rest.find('/')).map(|end| end + "crates/".len());
    file.path.get(..name.or_else(|| file.path.find('/')).unwrap_or(0)).unwrap_or("")
}

/// Lines of code and of tests of each crate. A line within a literal counts, one with a comment alone or nothing does not.
fn counted(tree: &Tree) -> BTreeMap<&str, [usize; 2]> {
    let files = test_code::files(tree);
    let mut counted: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for file in tree.sources() {
        let whole = files.contains(file.path.as_str());
        let sums = counted.entry(part(file)).or_default();
        let lines = file.lines.iter().zip(test_code::lines(file));
        for (_, is_test) in lines.filter(|(line, _)| !line.code.trim().is_empty()) {
            let [code, tests] = sums;
            *(if whole || is_test { tests } else { code }) += 1;
        }
    }
    counted
}

/// `"crates/lab" = [code, tests]`, with the number of the line.
fn ceilings(text: &str) -> BTreeMap<&str, (usize, [usize; 2])> {
    let rows = text.lines().zip(1..).filter_map(|(line, number)| {
        let (name, lines) = line.split_once(" = [")?;
        let (code, tests) = lines.trim_end_matches(']').split_once(", ")?;
        Some((name.trim_matches('"'), (number, [code.parse().ok()?, tests.parse().ok()?])))
    });
    rows.collect()
}

/// What each crate has against what it may have.
pub fn kept(tree: &Tree) -> Vec<Breach> {
    let ceilings = tree.file(CEILINGS).map(|file| ceilings(&file.text)).unwrap_or_default();
    let check = |(name, has): (&str, [usize; 2])| {
        let Some((line, may)) = ceilings.get(name) else {
            let message = format!("no ceiling for {name}: add `\"{name}\" = [{}, {}]`", has[0], has[1]);
            return Some(Breach::new(CEILINGS, 1, message));
        };
        let told = format!("{name} has {} lines of code and {} of tests", has[0], has[1]);
        let message = if has.iter().zip(may).any(|(has, may)| has > may) {
            format!("{told}, more than its ceiling: remove what this adds somewhere else; ceilings only fall")
        } else if has.iter().zip(may).any(|(has, may)| has + SLACK < *may) {
            format!("{told}: lower its ceiling to [{}, {}]", has[0], has[1])
        } else {
            return None;
        };
        Some(Breach::new(CEILINGS, *line, message))
    };
    counted(tree).into_iter().filter_map(check).collect()
}
