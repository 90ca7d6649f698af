//! Functions of the guests of a point and of its baseline: instructions, calls, and what moved. Names are made comparable between two kernels:
//! clones of the compiler folded into their function, functions grouped by subsystem.

use super::finding::{FunctionFinding, MoveFinding};
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
        Self { name: folded(&function.name), module, program }
    }

    fn subsystem(self) -> Option<&'static str> {
        if self.program.is_some() { None } else { subsystem(self.name, self.module) }
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
            sum.calls += if is_part(&function.name) { 0.0 } else { mean(function.entries) };
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

/// Marks after which a compiler or a linker names a clone, a part or a copy of a function.
const CLONES: [&str; 6] = [".isra", ".constprop", ".part", ".cold", ".llvm", ".lto_priv"];
/// The end of a name since Linux 6.10: the function itself, behind a macro that profiles allocations.
const BEHIND_MACRO: &str = "_noprof";

/// The function that a clone of the compiler belongs to: `f.isra.0`, `f.constprop.0`, `f.part.0`, `f.cold`, `f.llvm.123` and
/// `f_noprof` are `f`.
fn folded(symbol: &str) -> &str {
    let begins = |mark: &&str| {
        let mut places = symbol.match_indices(*mark).map(|(place, _)| place);
        // A whole word: `.part` is not in `.partition`.
        let whole = |rest: &str| rest.is_empty() || rest.starts_with('.');
        places.find(|place| symbol.get(place + mark.len()..).is_some_and(whole))
    };
    let end = CLONES.iter().filter_map(begins).min().unwrap_or(symbol.len());
    let name = symbol.get(..end).unwrap_or(symbol);
    let name = name.strip_suffix(BEHIND_MACRO).unwrap_or(name);
    if name.is_empty() { symbol } else { name }
}

/// Whether a symbol is a part of a function that the function itself enters: its entries are no calls of the function.
fn is_part(symbol: &str) -> bool {
    [".part", ".cold"].iter().any(|mark| {
        let rest = symbol.split_once(mark).map(|(_, rest)| rest);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The subsystem of a function, if it is one that is grouped.
fn subsystem(function: &str, module: Option<&str>) -> Option<&'static str> {
    let lines = include_str!("functions/subsystems.txt").lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| line.split_once(": "));
    let fits = |(head, words): (&'static str, &'static str)| {
        let mut words = words.split(' ');
        match head.strip_suffix(" modules") {
            Some(name) => words.any(|name| Some(name) == module).then_some(name),
            None => words.any(|begin| function.starts_with(begin)).then_some(head),
        }
    };
    rows.filter_map(fits).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_the_compiler_are_folded() {
        for (symbol, name) in [
            ("tcp_sendmsg", "tcp_sendmsg"),
            ("tcp_v4_rcv.isra.0", "tcp_v4_rcv"),
            ("f.constprop.0.isra.3", "f"),
            ("blk_mq_submit_bio.cold", "blk_mq_submit_bio"),
            (".cold", ".cold"),
            ("submit.llvm.8213412", "submit"),
            ("find_slot.part.0.isra.0.cold", "find_slot"),
            ("kmem_cache_alloc_noprof", "kmem_cache_alloc"),
            ("__kmalloc_noprof.constprop.0", "__kmalloc"),
            ("disk.partition", "disk.partition"),
            ("_noprof", "_noprof"),
        ] {
            assert_eq!(folded(symbol), name);
        }
    }

    #[test]
    fn functions_belong_to_subsystems_by_module_first() {
        assert_eq!(subsystem("do_task", Some("rdma_rxe")), Some("rxe (soft RoCE)"));
        assert_eq!(subsystem("tcp_sendmsg", None), Some("network"));
        assert_eq!(subsystem("tcp_sendmsg", Some("nvme_tcp")), Some("NVMe"));
        assert_eq!(subsystem("__schedule", None), Some("scheduler"));
        assert_eq!(subsystem("zzz", None), None);
    }
}
