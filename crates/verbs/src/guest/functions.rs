//! Functions of the guests of a point and of its baseline: instructions, calls, and what moved.

use super::finding::{FunctionFinding, MoveFinding};
use super::fold;
use super::record::{FunctionCount, Measured};
use std::collections::BTreeMap;

/// A function, clones folded: its name, its module or program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named<'a> {
    name: &'a str,
    module: Option<&'a str>,
    program: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn of(function: &'a FunctionCount) -> Self {
        let (module, program) = (function.module.as_deref(), function.program.as_deref());
        Self { name: fold::function(&function.name), module, program }
    }

    fn subsystem(self) -> Option<&'static str> {
        if self.program.is_some() { None } else { fold::subsystem(self.name, self.module) }
    }

    /// What it moves with.
    fn group(self) -> String {
        match self.program {
            Some(program) => format!("program {program}"),
            None => self.subsystem().unwrap_or(self.name).to_owned(),
        }
    }
}

/// Instructions per I/O of one function.
#[derive(Clone, Copy, Default)]
struct Part {
    all: f64,
    calls: f64,
}

type Parts<'a> = BTreeMap<Named<'a>, Part>;

/// Instructions per I/O of each function, means over replicates.
fn by_function<'a>(replicates: &[&'a Measured]) -> Parts<'a> {
    let mut sums = Parts::new();
    let counted: Vec<&&Measured> = replicates.iter().filter(|measured| measured.ios > 0).collect();
    for measured in &counted {
        let mean = |number: u64| number as f64 / measured.ios as f64 / counted.len() as f64;
        for function in &measured.instructions.functions {
            let sum: &mut Part = sums.entry(Named::of(function)).or_default();
            sum.all += mean(function.count);
            sum.calls += if fold::is_part(&function.name) { 0.0 } else { mean(function.entries) };
        }
    }
    sums
}

/// The functions of a point, the most expensive first.
pub(super) fn functions(own: &[&Measured], baseline: Option<&[&Measured]>) -> Vec<FunctionFinding> {
    let mine = by_function(own);
    let theirs = baseline.map(by_function);
    let finding = |named: Named, part: Part| {
        let before = theirs.as_ref().map(|theirs| theirs.get(&named).copied().unwrap_or_default());
        FunctionFinding {
            name: named.name.to_owned(),
            module: named.module.map(str::to_owned),
            program: named.program.map(str::to_owned),
            subsystem: named.subsystem().map(str::to_owned),
            instructions_per_io: part.all,
            calls_per_io: part.calls,
            baseline_calls_per_io: before.map(|before| before.calls),
            change: before.map(|before| part.all - before.all),
        }
    };
    let mut all: Vec<_> = mine.iter().map(|(named, part)| finding(*named, *part)).collect();
    let gone = theirs.iter().flatten().filter(|(named, _)| !mine.contains_key(*named));
    all.extend(gone.map(|(named, _)| finding(*named, Part::default())));
    all.sort_by(|a, b| b.instructions_per_io.total_cmp(&a.instructions_per_io).then_with(|| a.name.cmp(&b.name)));
    all
}

/// Functions grouped by subsystem, so that a function that was split or renamed within one does not count as two moves.
pub(super) fn moved(own: &[&Measured], baseline: &[&Measured]) -> Vec<MoveFinding> {
    let mut groups: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    by_function(baseline).into_iter().for_each(|(named, part)| groups.entry(named.group()).or_default().0 += part.all);
    by_function(own).into_iter().for_each(|(named, part)| groups.entry(named.group()).or_default().1 += part.all);
    let finding = |(name, (baseline, candidate))| MoveFinding { name, baseline, candidate };
    let mut all: Vec<_> = groups.into_iter().map(finding).collect();
    all.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()).then_with(|| a.name.cmp(&b.name)));
    all
}
