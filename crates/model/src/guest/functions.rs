//! Functions of the guests of a point and of its baseline: instructions, calls, and what moved.
//!
//! Another kernel may have a function under another name: one that only the baseline executes, and one that only the candidate
//! executes, in the same place and of the same size. Told as one function, they do not look like two changes. Such a pair is a guess, so it needs
//! evidence, and each of the two must be the best match of the other: the same callers, or, where calls were not followed, almost the same
//! number of instructions, or a similar number and a common word in the names.

use super::finding::{ChainFinding, FunctionFinding, MoveFinding};
use super::fold;
use super::record::{FunctionCount, Measured};
use std::collections::{BTreeMap, BTreeSet};

/// Chains of calls shown for one function.
const CHAINS: usize = 3;
/// Smaller functions are not paired: many functions are that small.
const LEAST: f64 = 2.0;
/// With the same callers, the larger may be this many times the smaller: a function is rarely only renamed.
const FACTOR_OF_CALLED: f64 = 1.5;
/// Without callers, but with a common word.
const FACTOR_OF_ALIKE: f64 = 1.25;
/// With nothing but the number of instructions.
const FACTOR_OF_EQUAL: f64 = 1.02;
/// Fewer instructions are equal by chance.
const LEAST_OF_EQUAL: f64 = 20.0;
/// Part of the callers that both must have.
const COMMON_CALLERS: f64 = 0.5;
/// Shorter words are in too many names: `get`, `tcp`.
const LETTERS_OF_WORD: usize = 4;

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
    locked: f64,
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
            sum.locked += mean(function.locked);
            sum.calls += if fold::is_part(&function.name) { 0.0 } else { mean(function.entries) };
        }
    }
    sums
}

/// A function that one of two arms executes, and the other does not.
#[derive(Clone, Debug, PartialEq)]
struct Unmatched<'a> {
    named: Named<'a>,
    /// Instructions per I/O.
    instructions: f64,
    /// Functions that call it; empty if calls were not followed.
    callers: BTreeSet<&'a str>,
}

/// The baseline's functions that have another name here, by that name.
fn renamed<'a>(own: &[&'a Measured], baseline: &[&'a Measured]) -> BTreeMap<Named<'a>, Named<'a>> {
    let (mine, theirs) = (by_function(own), by_function(baseline));
    let only = |of: &Parts<'a>, other: &Parts<'a>, replicates: &[&'a Measured]| -> Vec<Unmatched<'a>> {
        let callers = direct_callers(replicates);
        let executes = |named: &Named| other.get(named).is_some_and(|part| part.all > 0.0);
        let unmatched = of.iter().filter(|(named, part)| part.all > 0.0 && !executes(named));
        let of = |(named, part): (&Named<'a>, &Part)| {
            let callers = callers.get(named.name).cloned().unwrap_or_default();
            Unmatched { named: *named, instructions: part.all, callers }
        };
        unmatched.map(of).collect()
    };
    pairs(&only(&theirs, &mine, baseline), &only(&mine, &theirs, own))
        .into_iter()
        .map(|(old, new)| (new, old))
        .collect()
}

/// The pairs of an old and a new name.
fn pairs<'a>(old: &[Unmatched<'a>], new: &[Unmatched<'a>]) -> Vec<(Named<'a>, Named<'a>)> {
    fn best<'a, 'b>(one: &Unmatched, others: &'b [Unmatched<'a>]) -> Option<&'b Unmatched<'a>> {
        let mut scores: Vec<_> = others.iter().filter_map(|other| Some((other, likeness(one, other)?))).collect();
        scores.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        match scores.as_slice() {
            // Two that are equally alike are not told apart.
            [(_, first), (_, second), ..] if first == second => None,
            [(other, _), ..] => Some(other),
            [] => None,
        }
    }
    let found = old.iter().filter_map(|one| Some((one, best(one, new)?)));
    let mutual = found.filter(|(one, other)| best(other, old).is_some_and(|back| back.named == one.named));
    mutual.map(|(one, other)| (one.named, other.named)).collect()
}

/// How much speaks for one being the other; `None` if not enough does.
fn likeness(one: &Unmatched, other: &Unmatched) -> Option<f64> {
    // A rename stays where it is.
    let (here, there) = (one.named, other.named);
    if (here.module, here.program) != (there.module, there.program)
        || one.instructions < LEAST
        || other.instructions < LEAST
    {
        return None;
    }
    let (small, large) = (one.instructions.min(other.instructions), one.instructions.max(other.instructions));
    let factor = large / small;
    // Before the names are compared, which takes longest: there may be thousands on each side.
    if one.callers.is_empty() != other.callers.is_empty() || factor > FACTOR_OF_CALLED {
        return None;
    }
    let alike = common_word(one.named.name, other.named.name);
    let word = if alike { 1.0 } else { 0.0 };
    if !one.callers.is_empty() {
        let common = one.callers.intersection(&other.callers).count() as f64;
        let all = one.callers.union(&other.callers).count() as f64;
        let fits = common / all >= COMMON_CALLERS && factor <= FACTOR_OF_CALLED;
        return fits.then(|| common / all + word - factor / 10.0);
    }
    let equal =
        factor <= FACTOR_OF_EQUAL && small >= LEAST_OF_EQUAL && one.named.subsystem() == other.named.subsystem();
    (equal || (alike && factor <= FACTOR_OF_ALIKE)).then_some(word - factor / 10.0)
}

/// Whether two names share a word of some length: `folio_add_lru` and `lru_cache_folio`. A word with which both begin is
/// that of their subsystem: `ext4_map_blocks`, `ext4_get_inode`.
fn common_word(one: &str, other: &str) -> bool {
    let words = |name: &'_ str| -> BTreeSet<String> {
        name.split('_').filter(|word| word.len() >= LETTERS_OF_WORD).map(str::to_owned).collect()
    };
    let first = |name: &'_ str| name.trim_start_matches('_').split('_').next().map(str::to_owned);
    let prefix = first(one).filter(|word| first(other).as_ref() == Some(word));
    words(one).intersection(&words(other)).any(|word| Some(word) != prefix.as_ref())
}

/// The functions that call each function, clones folded. Empty if calls were not followed.
fn direct_callers<'a>(replicates: &[&'a Measured]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut callers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for chain in replicates.iter().flat_map(|measured| &measured.instructions.chains) {
        let mut calls = chain.calls.rsplit(';').map(fold::function);
        if let (Some(last), Some(caller)) = (calls.next(), calls.next()) {
            callers.entry(last).or_default().insert(caller);
        }
    }
    callers
}

/// The functions of a point, the most expensive first.
pub(super) fn functions(own: &[&Measured], baseline: Option<&[&Measured]>) -> Vec<FunctionFinding> {
    let mine = by_function(own);
    let theirs = baseline.map(by_function);
    let renamed = baseline.map(|baseline| renamed(own, baseline)).unwrap_or_default();
    let finding = |named: Named, part: Part| {
        let was = renamed.get(&named);
        FunctionFinding {
            name: named.name.to_owned(),
            module: named.module.map(str::to_owned),
            program: named.program.map(str::to_owned),
            subsystem: named.subsystem().or_else(|| was?.subsystem()).map(str::to_owned),
            instructions_per_io: part.all,
            locked_per_io: part.locked,
            calls_per_io: part.calls,
            baseline_calls_per_io: theirs
                .as_ref()
                .map(|theirs| theirs.get(was.unwrap_or(&named)).copied().unwrap_or_default().calls),
            change: theirs
                .as_ref()
                .map(|theirs| part.all - theirs.get(was.unwrap_or(&named)).copied().unwrap_or_default().all),
            called_from: callers(own, named.name),
            was: was.map(|was| was.name.to_owned()),
        }
    };
    let told: BTreeSet<&Named> = renamed.values().collect();
    let here = mine.iter().filter(|(named, _)| !told.contains(*named));
    let mut all: Vec<_> = here.map(|(named, part)| finding(*named, *part)).collect();
    let gone = theirs.iter().flatten().filter(|(named, _)| !mine.contains_key(*named) && !told.contains(*named));
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

/// Functions grouped by subsystem, so that a function that was split or renamed within one does not count as two moves. One that was
/// renamed into or out of a subsystem stays in it.
pub(super) fn moved(own: &[&Measured], baseline: &[&Measured]) -> Vec<MoveFinding> {
    let renamed = renamed(own, baseline);
    let both = |(new, old): (&_, &_)| [(*new, (*new, *old)), (*old, (*new, *old))];
    let pairs: BTreeMap<Named, (Named, Named)> = renamed.iter().flat_map(both).collect();
    let group = |named: Named| match pairs.get(&named) {
        Some((new, old)) if old.program.is_none() => match old.subsystem().or(new.subsystem()) {
            Some(subsystem) => subsystem.to_owned(),
            None => format!("{} → {}", old.name, new.name),
        },
        Some((_, old)) => old.group(),
        None => named.group(),
    };
    let mut groups: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    by_function(baseline).into_iter().for_each(|(named, part)| groups.entry(group(named)).or_default().0 += part.all);
    by_function(own).into_iter().for_each(|(named, part)| groups.entry(group(named)).or_default().1 += part.all);
    let finding = |(name, (baseline, candidate))| MoveFinding { name, baseline, candidate };
    let mut all: Vec<_> = groups.into_iter().map(finding).collect();
    all.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()).then_with(|| a.name.cmp(&b.name)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &'static str, instructions: f64, callers: &[&'static str]) -> Unmatched<'static> {
        let named = Named { name, module: None, program: None };
        Unmatched { named, instructions, callers: callers.iter().copied().collect() }
    }

    fn named<'a>(old: &[Unmatched<'a>], new: &[Unmatched<'a>]) -> Vec<(&'a str, &'a str)> {
        pairs(old, new).into_iter().map(|(old, new)| (old.name, new.name)).collect()
    }

    #[test]
    fn the_same_callers_make_a_pair() {
        let old = [function("copy_user_generic_string", 410.0, &["copyin", "copyout"]), function("x", 400.0, &["y"])];
        let new = [function("z", 400.0, &["w"]), function("rep_movs_alternative", 398.0, &["copyin", "copyout"])];
        assert_eq!(named(&old, &new), [("copy_user_generic_string", "rep_movs_alternative")]);
    }

    #[test]
    fn without_callers_the_number_or_a_word_decides() {
        let old = [function("__alloc_skb_head", 100.0, &[]), function("lookup_slow", 50.0, &[])];
        let new = [function("skb_head_from_pool", 118.0, &[]), function("something_different", 50.2, &[])];
        let expected = [("__alloc_skb_head", "skb_head_from_pool"), ("lookup_slow", "something_different")];
        assert_eq!(named(&old, &new), expected);
        assert_eq!(named(&old, &[function("another", 61.0, &[])]), []);
        let old = [function("ext4_map_blocks", 100.0, &[])];
        assert_eq!(named(&old, &[function("ext4_get_inode", 110.0, &[])]), [], "the prefix of a subsystem is no word");
    }

    #[test]
    fn what_is_ambiguous_small_or_elsewhere_is_no_pair() {
        let old = [function("aaaa", 50.0, &[])];
        assert_eq!(named(&old, &[function("bbbb", 50.0, &[]), function("cccc", 50.0, &[])]), []);
        assert_eq!(named(&[function("aaaa", 1.0, &[])], &[function("bbbb", 1.0, &[])]), []);
        let elsewhere = Unmatched {
            named: Named { name: "bbbb", module: Some("nfs"), program: None },
            ..function("bbbb", 50.0, &[])
        };
        assert_eq!(named(&old, &[elsewhere]), []);
    }
}
