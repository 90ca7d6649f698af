//! Which functions a change of the cost is in, from explaining rounds that sample stacks.
//!
//! A sample stands for one period of CPU time. What other programs and iotoll itself run is left out by its name.

use super::FEWEST_ROUNDS;
use crate::account::TaskOwner;
use crate::account::named::account_in_words;
use crate::experiment::WorkCounter;
use crate::meter::Meter;
use crate::profile::{Profile, Stack, module_of};
use crate::record::{Execution, Host, Mode, Snapshot};
use crate::slice::rounds::{Choice, MeasuredSlices};
use crate::slice::{RoundRecord, SliceReading, SliceRecord};
use crate::stats::{Estimate, Neighbours, Pair, PairedRound, difference, ratio_of_sums};
use crate::study::io_time::io_seconds;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Functions with a smaller part of the cost of both arms are one row: they are noise, and each of them would widen the intervals of the
/// others.
const LEAST_SHARE: f64 = 0.01;
/// What these are called.
const SMALL: &str = "functions below 1 %";

/// A function in both arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SymbolChange {
    /// Name of the function; in brackets what has none.
    pub symbol: String,
    /// The file of the program, the module of the kernel, or `kernel`; empty for the sum of small functions.
    pub module: String,
    /// Cycles per I/O of the function itself in the baseline, in the sampled rounds.
    pub baseline: Estimate,
    /// The same in the arm.
    pub candidate: Estimate,
    /// Change of cycles per I/O: candidate − baseline. Its interval holds together with those of all functions of all cells (95 %).
    pub change_cycles_per_io: Estimate,
    /// Whether this interval excludes 0.
    pub detected: bool,
}

/// A stack of calls in both arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackChange {
    /// The account and the calls in it, the outermost first, separated by semicolons.
    pub calls: String,
    /// Cycles per I/O of the baseline while the innermost of them ran.
    pub baseline: f64,
    /// The same of the arm.
    pub candidate: f64,
}

/// Cycles of each function and stack, and I/Os, of every case, round by round.
pub(crate) struct Functions(Vec<Vec<OfCase>>);

/// A function and its module.
type Name = (String, String);

/// One case in one round.
#[derive(Default)]
struct OfCase {
    functions: BTreeMap<Name, f64>,
    stacks: BTreeMap<String, f64>,
    total: f64,
    ios: f64,
}

/// A time that was sampled.
struct Sampled<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    profile: &'a Profile,
}

fn window<'a>(before: &'a Snapshot, after: &'a Snapshot) -> Option<Sampled<'a>> {
    let profile = after.profile.as_deref().filter(|_| before.mode == Mode::Alone(Meter::Sampler))?;
    Some(Sampled { before, after, profile })
}

/// The times of a slice that were sampled: all of it, or the windows of an execution in its time of I/O.
fn sampled(slice: &SliceRecord) -> Vec<Sampled<'_>> {
    match &slice.reading {
        SliceReading::Slice { before, after, .. } | SliceReading::Command { before, after, .. } => {
            window(before, after).into_iter().collect()
        }
        SliceReading::Execution(Execution { stretch, io_interval, .. }) => {
            let windows = stretch.snapshots.iter().zip(stretch.snapshots.iter().skip(1));
            let inside = |sampled: &Sampled| {
                let [begin, end] = [sampled.before.at_nanos, sampled.after.at_nanos];
                io_interval.is_none_or(|interval| begin >= interval.begin_nanos && end <= interval.end_nanos)
            };
            windows.filter_map(|(before, after)| window(before, after)).filter(inside).collect()
        }
    }
}

/// How often a slice is as long as its sampled times: 1, but for an execution, whose I/Os are those of its whole time of I/O.
fn times_sampled(slice: &SliceRecord, sampled: &[Sampled]) -> f64 {
    let SliceReading::Execution(execution) = &slice.reading else { return 1.0 };
    let seconds = |it: &Sampled| it.after.at_nanos.since(it.before.at_nanos).seconds();
    io_seconds(execution) / sampled.iter().map(seconds).sum::<f64>()
}

/// Whether it may be caused by the load.
fn counts(stack: &Stack) -> bool {
    !matches!(stack.owner, Some(TaskOwner::Iotoll | TaskOwner::Other))
}

impl Functions {
    /// The rounds in which every case was sampled; `None` if they are too few.
    pub fn of(cases: usize, host: &Host, counter: Option<&WorkCounter>, rounds: &[RoundRecord]) -> Option<Self> {
        let with_samples = |round: &RoundRecord| {
            let slices = round.slices.iter().filter(|slice| !sampled(slice).is_empty()).cloned().collect();
            RoundRecord { slices, ..round.clone() }
        };
        let rounds: Vec<RoundRecord> = rounds.iter().map(with_samples).collect();
        let sums = MeasuredSlices::of(cases, host, counter, (Choice::Fixed(None), &rounds)).rounds;
        let of_round = |(place, round): (usize, &RoundRecord)| {
            let of_case = |case: usize| {
                let slices: Vec<&SliceRecord> = round.slices.iter().filter(|it| it.case == Some(case)).collect();
                let ios = sums.rounds.get(place)?.cases.get(case)?.ios.filter(|ios| *ios > 0.0)?;
                (!slices.is_empty()).then(|| OfCase::sum(&slices, ios, host.clock().0))
            };
            (0..cases).map(of_case).collect::<Option<Vec<OfCase>>>()
        };
        let rounds: Vec<Vec<OfCase>> = rounds.iter().enumerate().filter_map(of_round).collect();
        (rounds.len() >= FEWEST_ROUNDS).then_some(Self(rounds))
    }

    pub fn rounds(&self) -> usize {
        self.0.len()
    }

    /// The functions of two cases that are not small, and the rest.
    pub fn parts(&self, baseline: usize, candidate: usize) -> FunctionParts {
        let pair = |case: &OfCase, cycles: f64| Pair { numerator: cycles, denominator: case.ios };
        let rounds: Vec<(&OfCase, &OfCase)> =
            self.0.iter().filter_map(|round| round.get(baseline).zip(round.get(candidate))).collect();
        let paired = |of: &dyn Fn(&OfCase) -> f64| -> Vec<PairedRound> {
            let round = |(one, other): &(&OfCase, &OfCase)| PairedRound {
                baseline: pair(one, of(one)),
                candidate: pair(other, of(other)),
            };
            rounds.iter().map(round).collect()
        };
        // A choice by the sum of both arms does not depend on how they differ.
        let sum = |of: &dyn Fn(&OfCase) -> f64| rounds.iter().map(|(one, other)| of(one) + of(other)).sum::<f64>();
        let least = LEAST_SHARE * sum(&|case| case.total);
        let names: BTreeSet<&Name> =
            rounds.iter().flat_map(|(one, other)| [*one, *other]).flat_map(|case| case.functions.keys()).collect();
        let of = |name: &Name, case: &OfCase| case.functions.get(name).copied().unwrap_or(0.0);
        let (large, small): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| sum(&|case| of(name, case)) >= least);
        let mut rows: Vec<Row> =
            large.into_iter().map(|name| (Some(name.clone()), paired(&|case| of(name, case)))).collect();
        if !small.is_empty() {
            rows.push((None, paired(&|case| small.iter().map(|name| of(name, case)).sum())));
        }
        FunctionParts(rows)
    }

    /// The stacks of two cases.
    pub fn stacks(&self, baseline: usize, candidate: usize) -> Vec<StackChange> {
        let mut stacks: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
        for (arm, case) in [baseline, candidate].into_iter().enumerate() {
            let ios: f64 = self.0.iter().filter_map(|round| round.get(case)).map(|case| case.ios).sum();
            for (calls, cycles) in self.0.iter().filter_map(|round| round.get(case)).flat_map(|case| &case.stacks) {
                if let Some(sum) = stacks.entry(calls).or_default().get_mut(arm) {
                    *sum += cycles / ios;
                }
            }
        }
        let change = |(calls, [baseline, candidate]): (&str, [f64; 2])| StackChange {
            calls: calls.to_owned(),
            baseline,
            candidate,
        };
        stacks.into_iter().map(change).collect()
    }
}

impl OfCase {
    fn sum(slices: &[&SliceRecord], ios: f64, hertz: f64) -> Self {
        let mut sum = Self { ios, ..Self::default() };
        for slice in slices {
            let sampled = sampled(slice);
            let times = times_sampled(slice, &sampled);
            for profile in sampled.iter().map(|it| it.profile).filter(|_| times.is_finite()) {
                let per_sample = profile.period_nanos.seconds() * hertz * times;
                for stack in profile.stacks.iter().filter(|stack| counts(stack)) {
                    let cycles = stack.samples as f64 * per_sample;
                    sum.total += cycles;
                    if let Some(function) = profile.innermost(stack) {
                        let name = (function.name.clone(), module_of(function).to_owned());
                        *sum.functions.entry(name).or_default() += cycles;
                    }
                    let account = account_in_words(stack.kind, stack.owner, &stack.name);
                    *sum.stacks.entry(profile.calls(&account, stack)).or_default() += cycles;
                }
            }
        }
        sum
    }
}

/// Functions in both cases, round by round; `None` for the sum of small ones.
pub(crate) struct FunctionParts(Vec<Row>);

type Row = (Option<Name>, Vec<PairedRound>);

impl FunctionParts {
    /// Number of functions whose changes are tested.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The changes of all functions, each with an interval of this confidence; first those that are detected, the largest first.
    pub fn changes(&self, confidence: f64) -> Vec<SymbolChange> {
        let cost = |rounds: &[PairedRound], arm: fn(&PairedRound) -> Pair| {
            Some(ratio_of_sums(&rounds.iter().map(arm).collect::<Vec<_>>(), Neighbours::Alike)?.estimate())
        };
        let change = |(name, rounds): &Row| {
            let found = difference(rounds)?;
            let (symbol, module) = name.clone().unwrap_or_else(|| (SMALL.to_owned(), String::new()));
            Some(SymbolChange {
                symbol,
                module,
                baseline: cost(rounds, |round| round.baseline)?,
                candidate: cost(rounds, |round| round.candidate)?,
                change_cycles_per_io: found.estimate(confidence),
                detected: found.excludes_zero(confidence),
            })
        };
        let mut changes: Vec<SymbolChange> = self.0.iter().filter_map(change).collect();
        changes.sort_by(|one, other| {
            let size = |change: &SymbolChange| change.change_cycles_per_io.value.abs();
            other.detected.cmp(&one.detected).then(size(other).total_cmp(&size(one)))
        });
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountKind;
    use crate::profile::Function;
    use crate::slice::SliceWork;
    use crate::unit::Nanos;

    /// A round of two cases with these samples in `read` and `copy` for 1000 I/Os.
    fn functions(rounds: &[[[u64; 2]; 2]]) -> Functions {
        let name = |name: &str| (name.to_owned(), "kernel".to_owned());
        let case = |[read, copy]: &[u64; 2]| OfCase {
            functions: [(name("read"), *read as f64), (name("copy"), *copy as f64)].into(),
            stacks: [("load;read".to_owned(), *read as f64), ("load;read;copy".to_owned(), *copy as f64)].into(),
            total: (read + copy) as f64,
            ios: 1000.0,
        };
        Functions(rounds.iter().map(|round| round.iter().map(case).collect()).collect())
    }

    #[test]
    fn a_change_is_found_in_its_function_only() {
        let rounds: Vec<[[u64; 2]; 2]> =
            (0..12).map(|round| [[100 + round % 3, 300 + round % 2], [160 + round % 2, 301 - round % 2]]).collect();
        let functions = functions(&rounds);
        let parts = functions.parts(0, 1);
        assert_eq!((functions.rounds(), parts.count()), (12, 2));
        let changes = parts.changes(0.975);
        let told: Vec<(&str, bool)> = changes.iter().map(|it| (it.symbol.as_str(), it.detected)).collect();
        assert_eq!(told, [("read", true), ("copy", false)]);
        assert!((changes[0].change_cycles_per_io.value - 0.0595).abs() < 0.001, "{:?}", changes[0]);
        let stacks = functions.stacks(0, 1);
        assert_eq!(stacks[0].calls, "load;read");
        assert!((stacks[0].candidate - stacks[0].baseline - 0.0595).abs() < 0.001);
    }

    #[test]
    fn other_programs_are_left_out_and_a_sample_is_a_period_of_time() {
        let stack = |owner, samples| Stack {
            kind: AccountKind::Task,
            name: "x".to_owned(),
            owner: Some(owner),
            functions: vec![0],
            whole: true,
            samples,
        };
        let profile = Profile {
            period_nanos: Nanos(1_000_000),
            functions: vec![Function { name: "f".to_owned(), module: "m".to_owned(), ..Function::default() }],
            stacks: vec![stack(TaskOwner::Workload, 5), stack(TaskOwner::Other, 70), stack(TaskOwner::Iotoll, 9)],
            ..Profile::default()
        };
        let before = Snapshot { mode: Mode::Alone(Meter::Sampler), ..Snapshot::default() };
        let after = Snapshot { profile: Some(Box::new(profile)), ..Snapshot::default() };
        let reading = SliceReading::Slice {
            before: Box::new(before),
            after: Box::new(after),
            work: SliceWork::default(),
            tasks: None,
        };
        let slice = SliceRecord { case: Some(0), reading };
        let sum = OfCase::sum(&[&slice], 10.0, 2e9);
        assert!((sum.total - 5.0 * 0.001 * 2e9).abs() < 1.0, "{}", sum.total);
        assert_eq!(sum.stacks.keys().collect::<Vec<_>>(), ["the workload's own threads;f"]);
    }
}
