//! Functions that another kernel has under another name: one that only the baseline executes, and one that only the candidate
//! executes, in the same place and of the same size. Told as one function, they do not look like two changes.
//!
//! A pair is a guess, so it needs evidence, and each of the two must be the best match of the other: the same callers, or, where calls
//! were not followed, almost the same number of instructions, or a similar number and a common word in the names.

use std::collections::BTreeSet;

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

/// A function that one of two arms executes, and the other does not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unmatched<'a> {
    /// Its name, clones folded.
    pub(super) name: &'a str,
    /// Its module, and its program: a rename stays where it is.
    pub(super) home: (Option<&'a str>, Option<&'a str>),
    /// Its subsystem, if it is one that is grouped.
    pub(super) subsystem: Option<&'static str>,
    /// Instructions per I/O.
    pub(super) instructions: f64,
    /// Functions that call it; empty if calls were not followed.
    pub(super) callers: BTreeSet<&'a str>,
}

/// The pairs, by their places in `old` and `new`.
pub(super) fn pairs(old: &[Unmatched], new: &[Unmatched]) -> Vec<(usize, usize)> {
    let best = |one: &Unmatched, others: &[Unmatched]| {
        let scores = others.iter().enumerate().filter_map(|(place, other)| Some((place, likeness(one, other)?)));
        let mut scores: Vec<(usize, f64)> = scores.collect();
        scores.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        match scores.as_slice() {
            // Two that are equally alike are not told apart.
            [(_, first), (_, second), ..] if first == second => None,
            [(place, _), ..] => Some(*place),
            [] => None,
        }
    };
    let found = old.iter().enumerate().filter_map(|(place, one)| Some((place, best(one, new)?)));
    found.filter(|(place, other)| new.get(*other).and_then(|other| best(other, old)) == Some(*place)).collect()
}

/// How much speaks for one being the other; `None` if not enough does.
fn likeness(one: &Unmatched, other: &Unmatched) -> Option<f64> {
    if one.home != other.home || one.instructions < LEAST || other.instructions < LEAST {
        return None;
    }
    let (small, large) = (one.instructions.min(other.instructions), one.instructions.max(other.instructions));
    let factor = large / small;
    // Before the names are compared, which takes longest: there may be thousands on each side.
    if one.callers.is_empty() != other.callers.is_empty() || factor > FACTOR_OF_CALLED {
        return None;
    }
    let alike = common_word(one.name, other.name);
    let word = if alike { 1.0 } else { 0.0 };
    if !one.callers.is_empty() {
        let common = one.callers.intersection(&other.callers).count() as f64;
        let all = one.callers.union(&other.callers).count() as f64;
        let fits = common / all >= COMMON_CALLERS && factor <= FACTOR_OF_CALLED;
        return fits.then(|| common / all + word - factor / 10.0);
    }
    let equal = factor <= FACTOR_OF_EQUAL && small >= LEAST_OF_EQUAL && one.subsystem == other.subsystem;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &'static str, instructions: f64, callers: &[&'static str]) -> Unmatched<'static> {
        Unmatched {
            name,
            home: (None, None),
            subsystem: None,
            instructions,
            callers: callers.iter().copied().collect(),
        }
    }

    #[test]
    fn the_same_callers_make_a_pair() {
        let old = [function("copy_user_generic_string", 410.0, &["copyin", "copyout"]), function("x", 400.0, &["y"])];
        let new = [function("z", 400.0, &["w"]), function("rep_movs_alternative", 398.0, &["copyin", "copyout"])];
        assert_eq!(pairs(&old, &new), [(0, 1)]);
    }

    #[test]
    fn without_callers_the_number_or_a_word_decides() {
        let old = [function("__alloc_skb_head", 100.0, &[]), function("lookup_slow", 50.0, &[])];
        let new = [function("skb_head_from_pool", 118.0, &[]), function("completely_different", 50.2, &[])];
        assert_eq!(pairs(&old, &new), [(0, 0), (1, 1)]);
        assert_eq!(pairs(&old, &[function("another", 61.0, &[])]), []);
        let old = [function("ext4_map_blocks", 100.0, &[])];
        assert_eq!(pairs(&old, &[function("ext4_get_inode", 110.0, &[])]), [], "the prefix of a subsystem is no word");
    }

    #[test]
    fn what_is_ambiguous_small_or_elsewhere_is_no_pair() {
        let old = [function("aaaa", 50.0, &[])];
        assert_eq!(pairs(&old, &[function("bbbb", 50.0, &[]), function("cccc", 50.0, &[])]), []);
        assert_eq!(pairs(&[function("aaaa", 1.0, &[])], &[function("bbbb", 1.0, &[])]), []);
        let elsewhere = Unmatched { home: (Some("nfs"), None), ..function("bbbb", 50.0, &[]) };
        assert_eq!(pairs(&old, &[elsewhere]), []);
    }
}
