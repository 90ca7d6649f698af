//! Functions of the guests of a point and of its baseline: instructions, calls, and what moved.

use super::finding::{ChainFinding, FunctionFinding, MoveFinding};
use super::fold;
use super::record::{FunctionCount, Measured};
use std::collections::BTreeMap;

/// Chains of calls shown for one function.
const CHAINS: usize = 3;
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
            called_from: callers(own, named.name),
        }
    };
    let mut all: Vec<_> = mine.iter().map(|(named, part)| finding(*named, *part)).collect();
    let gone = theirs.iter().flatten().filter(|(named, _)| !mine.contains_key(*named));
    all.extend(gone.map(|(named, _)| finding(*named, Part::default())));
    all.sort_by(|a, b| b.instructions_per_io.total_cmp(&a.instructions_per_io).then_with(|| a.name.cmp(&b.name)));
    all
}

/// Chains of calls, clones of functions folded: means over the replicates.
pub(super) fn chains(replicates: &[&Measured]) -> Vec<ChainFinding> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    let counted: Vec<&&Measured> = replicates.iter().filter(|measured| measured.ios > 0).collect();
    for measured in &counted {
        for chain in &measured.instructions.chains {
            let calls: Vec<_> = chain.calls.split(';').map(fold::function).collect();
            let mean = chain.count as f64 / measured.ios as f64 / counted.len() as f64;
            *sums.entry(calls.join(";")).or_default() += mean;
        }
    }
    sums.into_iter().map(|(calls, value)| ChainFinding { calls, instructions_per_io: value }).collect()
}

/// The chains that end in a function, those with most instructions first.
fn callers(replicates: &[&Measured], name: &str) -> Vec<String> {
    let mut chains: BTreeMap<&str, u64> = BTreeMap::new();
    for chain in replicates.iter().flat_map(|measured| &measured.instructions.chains) {
        if chain.calls.rsplit(';').next().is_some_and(|last| fold::function(last) == name) {
            *chains.entry(&chain.calls).or_default() += chain.count;
        }
    }
    let mut chains: Vec<_> = chains.into_iter().collect();
    chains.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    chains.into_iter().take(CHAINS).map(|(calls, _)| calls.to_owned()).collect()
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
