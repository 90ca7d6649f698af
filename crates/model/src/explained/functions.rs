//! Which functions a change of the cost is in, from explaining rounds that sample stacks.
//!
//! A sample stands for one period of CPU time. What other programs and iotoll itself run is left out by its name.

use super::{
    BothCases, ExplainingRounds, FEWEST_ROUNDS, OfCase, Part, PartChange, ReadTime, largest_first, read_times,
    times_read, with_slices,
};
use crate::account::TaskOwner;
use crate::account::named::account_in_words;
use crate::profile::{FEWEST_SAMPLES, Profile, Stack, module_of};
use crate::slice::{RoundRecord, SliceRecord};
use crate::stats::PairedRound;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Functions with a smaller part of the cost of both arms, or with fewer than [`FEWEST_SAMPLES`], are one row: they are noise, and each of
/// them would widen the intervals of the others.
const LEAST_SHARE: f64 = 0.01;
/// What these are called.
const SMALL: &str = "functions below 1 %, or of fewer than 4 samples";

/// A function in both arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SymbolChange {
    /// Name of the function; in brackets what has none.
    pub symbol: String,
    /// The file of the program, the module of the kernel, or `kernel`; empty for the sum of small functions.
    pub module: String,
    /// Cycles per I/O of the function itself.
    #[serde(flatten)]
    pub per_io: PartChange,
}

/// A stack of calls in both arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackChange {
    /// The account and the calls in it, the outermost first, separated by semicolons.
    pub calls: String,
    /// Cycles per I/O of the baseline while the innermost of them ran.
    pub baseline: f64,
    /// The same of the arm.
    pub candidate: f64,
}

/// Cycles of each function and stack, and I/Os, of every case, round by round.
pub(super) struct Functions(pub Vec<Vec<OfCase<Name, Sampled>>>);

/// A function and its module.
type Name = (String, String);

/// What else was sampled of a case in a round.
#[derive(Default)]
pub(super) struct Sampled {
    /// In each function.
    samples: BTreeMap<Name, u64>,
    /// Cycles.
    stacks: BTreeMap<String, f64>,
}

/// The times of a slice that were sampled.
fn sampled(slice: &SliceRecord) -> Vec<ReadTime<'_, Profile>> {
    read_times(slice, |before, after| {
        let (begin, read) = Profile::between(before, after)?;
        Some(ReadTime { before, after, begin, read })
    })
}

/// Whether it may be caused by the load.
fn counts(stack: &Stack) -> bool {
    !matches!(stack.owner, Some(TaskOwner::Iotoll | TaskOwner::Other))
}

impl Functions {
    /// The rounds in which every case was sampled; `None` if they are too few.
    pub fn of(explaining: &ExplainingRounds) -> Option<Self> {
        let with_samples = |round: &RoundRecord| with_slices(round, |slice| !sampled(slice).is_empty());
        let rounds: Vec<RoundRecord> = explaining.rounds.iter().map(with_samples).collect();
        let of_round = |(ios, round): (Vec<Option<f64>>, &RoundRecord)| {
            let of_case = |(case, ios): (usize, Option<f64>)| {
                let slices: Vec<&SliceRecord> = round.slices.iter().filter(|it| it.case == Some(case)).collect();
                let ios = ios.filter(|ios| *ios > 0.0 && !slices.is_empty())?;
                Some(sum(&slices, ios, explaining.host.clock().0))
            };
            ios.into_iter().enumerate().map(of_case).collect::<Option<Vec<_>>>()
        };
        let rounds: Vec<_> = explaining.ios(&rounds).into_iter().zip(&rounds).filter_map(of_round).collect();
        (rounds.len() >= FEWEST_ROUNDS).then_some(Self(rounds))
    }

    /// The functions of two cases that are not small, and the rest.
    pub fn parts(&self, baseline: usize, candidate: usize) -> Vec<Part<Name>> {
        let both = BothCases::of(&self.0, baseline, candidate);
        // A choice by the sum of both arms does not depend on how they differ.
        let least = LEAST_SHARE * both.cases().map(|case| case.total).sum::<f64>();
        let samples = |name: &Name| {
            let samples = both.cases().filter_map(|case| case.more.samples.get(name));
            samples.fold(0_u64, |sum, samples| sum.saturating_add(*samples))
        };
        both.parts(|name, rounds| {
            let cycles = |round: &PairedRound| round.baseline.numerator + round.candidate.numerator;
            rounds.iter().map(cycles).sum::<f64>() >= least && samples(name) >= FEWEST_SAMPLES
        })
    }

    /// The stacks of two cases.
    pub fn stacks(&self, baseline: usize, candidate: usize) -> Vec<StackChange> {
        let mut stacks: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
        for (arm, case) in [baseline, candidate].into_iter().enumerate() {
            let ios: f64 = self.0.iter().filter_map(|round| round.get(case)).map(|case| case.ios).sum();
            for (calls, cycles) in self.0.iter().filter_map(|round| round.get(case)).flat_map(|case| &case.more.stacks)
            {
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

/// What slices of one case in a round show.
fn sum(slices: &[&SliceRecord], ios: f64, hertz: f64) -> OfCase<Name, Sampled> {
    let mut sum = OfCase { amounts: BTreeMap::new(), total: 0.0, ios, more: Sampled::default() };
    for slice in slices {
        let sampled = sampled(slice);
        let times = times_read(slice, &sampled);
        for profile in sampled.iter().map(|it| it.read).filter(|_| times.is_finite()) {
            let per_sample = profile.period_nanos.seconds() * hertz * times;
            for stack in profile.stacks.iter().filter(|stack| counts(stack)) {
                let cycles = stack.samples as f64 * per_sample;
                sum.total += cycles;
                if let Some(function) = profile.innermost(stack) {
                    let name = (function.name.clone(), module_of(function).to_owned());
                    let samples = sum.more.samples.entry(name.clone()).or_default();
                    *samples = samples.saturating_add(stack.samples);
                    *sum.amounts.entry(name).or_default() += cycles;
                }
                let account = account_in_words(stack.kind, stack.owner, &stack.name);
                *sum.more.stacks.entry(profile.calls(&account, stack)).or_default() += cycles;
            }
        }
    }
    sum
}

/// The changes of all functions, each with an interval of this confidence; first those that are detected, the largest first.
pub(super) fn changes(parts: &[Part<Name>], confidence: f64) -> Vec<SymbolChange> {
    let change = |part: &Part<Name>| {
        let per_io = part.change(confidence)?;
        let (symbol, module) = part.key.clone().unwrap_or_else(|| (SMALL.to_owned(), String::new()));
        Some(SymbolChange { symbol, module, per_io })
    };
    let mut changes: Vec<SymbolChange> = parts.iter().filter_map(change).collect();
    largest_first(&mut changes, |it| it.per_io);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountKind;
    use crate::meter::Meter;
    use crate::profile::Function;
    use crate::record::{Execution, IoInterval, Mode, Snapshot, Stretch};
    use crate::slice::{SliceReading, SliceWork};
    use crate::unit::Nanos;

    /// A round of two cases with these samples in `read` and `copy` for 1000 I/Os.
    fn functions(rounds: &[[[u64; 2]; 2]]) -> Functions {
        let name = |name: &str| (name.to_owned(), "kernel".to_owned());
        let case = |[read, copy]: &[u64; 2]| OfCase {
            amounts: [(name("read"), *read as f64), (name("copy"), *copy as f64)].into(),
            total: (read + copy) as f64,
            ios: 1000.0,
            more: Sampled {
                samples: [(name("read"), *read), (name("copy"), *copy)].into(),
                stacks: [("load;read".to_owned(), *read as f64), ("load;read;copy".to_owned(), *copy as f64)].into(),
            },
        };
        Functions(rounds.iter().map(|round| round.iter().map(case).collect()).collect())
    }

    #[test]
    fn a_change_is_found_in_its_function_only() {
        let rounds: Vec<[[u64; 2]; 2]> =
            (0..12).map(|round| [[100 + round % 3, 300 + round % 2], [160 + round % 2, 301 - round % 2]]).collect();
        let functions = functions(&rounds);
        let parts = functions.parts(0, 1);
        assert_eq!((functions.0.len(), parts.len()), (12, 2));
        let changes = changes(&parts, 0.975);
        let told: Vec<(&str, bool)> = changes.iter().map(|it| (it.symbol.as_str(), it.per_io.detected)).collect();
        assert_eq!(told, [("read", true), ("copy", false)]);
        assert!((changes[0].per_io.change.value - 0.0595).abs() < 0.001, "{:?}", changes[0]);
        let stacks = functions.stacks(0, 1);
        assert_eq!(stacks[0].calls, "load;read");
        assert!((stacks[0].candidate - stacks[0].baseline - 0.0595).abs() < 0.001);
    }

    /// Three samples of 243 are more than 1 % and tell nothing; four do.
    #[test]
    fn a_function_of_few_samples_is_no_row() {
        let rows = |samples: u64| {
            let rounds: Vec<[[u64; 2]; 2]> =
                (0..12).map(|round| [[if round == 5 { samples } else { 0 }, 10], [0, 10]]).collect();
            functions(&rounds).parts(0, 1).into_iter().map(|part| part.key.map(|(function, _)| function)).collect()
        };
        let named = |name: &str| Some(name.to_owned());
        let (few, enough): (Vec<_>, Vec<_>) = (rows(3), rows(4));
        assert_eq!((few, enough), (vec![named("copy"), None], vec![named("copy"), named("read")]));
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
        let sum = sum(&[&slice], 10.0, 2e9);
        assert!((sum.total - 5.0 * 0.001 * 2e9).abs() < 1.0, "{}", sum.total);
        assert_eq!(sum.more.stacks.keys().collect::<Vec<_>>(), ["the workload's own threads;f"]);
    }

    /// 4 s of I/O, of which the sampler saw the last 2 in three windows; their profile is at the end of the third.
    #[test]
    fn a_profile_of_several_windows_stands_for_all_of_them() {
        let stack = Stack {
            kind: AccountKind::Task,
            name: "x".to_owned(),
            owner: Some(TaskOwner::Workload),
            functions: vec![0],
            whole: true,
            samples: 100,
        };
        let profile = Profile {
            period_nanos: Nanos(1_000_000),
            functions: vec![Function { name: "f".to_owned(), ..Function::default() }],
            stacks: vec![stack],
            begin_nanos: Nanos::from_millis(3000),
            ..Profile::default()
        };
        let at = |millis, mode| Snapshot { at_nanos: Nanos::from_millis(millis), mode, ..Snapshot::default() };
        let alone = Mode::Alone(Meter::Sampler);
        let mut snapshots =
            vec![at(1000, Mode::Quiet), at(3000, alone), at(4000, alone), at(4500, alone), at(5000, Mode::Gap)];
        snapshots.last_mut().unwrap().profile = Some(Box::new(profile));
        let interval = IoInterval { begin_nanos: Nanos::from_millis(1000), end_nanos: Nanos::from_millis(5000) };
        let stretch = Stretch { snapshots, tasks: None, starved: None };
        let execution = Execution { stretch, io_interval: Some(interval), ..Execution::default() };
        let slice = SliceRecord { case: Some(0), reading: SliceReading::Execution(execution) };
        let sum = sum(&[&slice], 10.0, 1e9);
        // 100 ms in 2 s are 200 ms in 4 s.
        assert!((sum.total - 0.2e9).abs() < 1.0, "{}", sum.total);
    }
}
