//! What ran, by samples of stacks; and cycles per I/O by function: the part of an account's samples that are in it, times the account.

use crate::account::named::account_in_words;
use crate::account::{AccountKind, TaskOwner};
use crate::finding::AccountFinding;
use crate::meter::Meter;
use crate::record::{Execution, IoInterval, Mode, Snapshot};
use crate::stats::{Estimate, wilson};
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Of fewer samples of a function nothing is told: count ± 1.96 √count, 95 % of a Poisson distribution, includes 0 below 4.
pub(crate) const FEWEST_SAMPLES: u64 = 4;

/// The samples of a window. Those of idle CPUs are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The time between two samples of a CPU, for which each sample stands.
    pub period_nanos: Nanos,
    /// The functions that the stacks refer to.
    pub functions: Vec<Function>,
    pub stacks: Vec<Stack>,
    /// Samples that the kernel could not keep.
    pub lost: u64,
    /// When the first of its windows began; other times it may cover are gaps.
    pub begin_nanos: Nanos,
    /// Whether the kernel hides the addresses of its functions from this user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel_unnamed: bool,
    /// Files of which nothing or not all was used, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

/// A function of the kernel or of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Function {
    pub name: String,
    /// The file of a program, or the module of the kernel; empty for the kernel itself.
    pub module: String,
    pub kernel: bool,
    /// The path of a program's file, if it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Its address in the file or the kernel, which tells functions of one name apart; 0 if it is not known.
    pub begin: u64,
}

/// Equal stacks of one account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stack {
    /// A task, or a softirq. Interrupts and idle entry run with interrupts off, where the timer of the samples cannot fire.
    pub kind: AccountKind,
    /// Of the task; of a softirq its vector.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<TaskOwner>,
    /// Places in the list of functions, the outermost first.
    pub functions: Vec<u32>,
    /// Whether the part of the program begins with its first function.
    pub whole: bool,
    pub samples: u64,
}

/// What a report calls the module of a function.
pub(crate) fn module_of(function: &Function) -> &str {
    if function.kernel && function.module.is_empty() { "kernel" } else { &function.module }
}

impl Profile {
    /// What was sampled in the windows of which the last one is between these, and when the first of them began.
    pub(crate) fn between<'a>(before: &Snapshot, after: &'a Snapshot) -> Option<(Nanos, &'a Self)> {
        let profile = after.profile.as_deref().filter(|_| before.mode == Mode::Alone(Meter::Sampler))?;
        Some((if profile.begin_nanos > Nanos(0) { profile.begin_nanos } else { before.at_nanos }, profile))
    }

    /// The innermost function of a stack.
    pub fn innermost(&self, stack: &Stack) -> Option<&Function> {
        self.function(*stack.functions.last()?)
    }

    /// The calls of a stack within an account, the outermost first, separated by semicolons.
    pub fn calls(&self, account: &str, stack: &Stack) -> String {
        let names = stack.functions.iter().filter_map(|place| Some(self.function(*place)?.name.as_str()));
        // A semicolon separates calls.
        std::iter::once(account).chain(names).map(|call| call.replace(';', ":")).collect::<Vec<_>>().join(";")
    }

    pub fn function(&self, place: u32) -> Option<&Function> {
        self.functions.get(usize::try_from(place).ok()?)
    }
}

/// Cycles per I/O of one function, in one account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SymbolFinding {
    /// Name of the function; in brackets what has none. The last row may be all those with fewer than 4 samples, or whose interval
    /// includes 0, with their number.
    pub symbol: String,
    /// The file of the program, the module of the kernel, or `kernel`; empty for several functions together.
    pub module: String,
    /// The account, as in `accounts`; empty for several functions together.
    pub account: String,
    /// Cycles per I/O of the function itself, without those that it calls: its part of the account's samples, times the account.
    pub cycles_per_io: Estimate,
    /// Its part of the net cost, 0 to 1.
    pub share: f64,
    /// Samples in it.
    pub samples: u64,
    /// The function that calls it most often; `null` if none is known.
    pub caller: Option<String>,
    /// Whether it is where the kernel lets interrupts in again: the time before, with interrupts off, is counted here too.
    pub interrupts_on: bool,
}

/// Cycles per I/O of a stack of calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackFinding {
    /// The account and the calls in it, the outermost first, separated by semicolons.
    pub calls: String,
    /// Cycles per I/O while the innermost of them ran.
    pub cycles_per_io: f64,
}

/// The functions of a phase; empty without a profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FunctionsFinding {
    /// Functions of the kernel and of programs, the largest first.
    pub symbols: Vec<SymbolFinding>,
    /// Their stacks of calls.
    pub stacks: Vec<StackFinding>,
    /// How good the profile is; `null` without one.
    pub profile: Option<ProfileFinding>,
}

/// How good a profile is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileFinding {
    /// Samples that the functions are of: those of the load's accounts.
    pub samples: u64,
    /// Records that the kernel could not keep.
    pub lost: u64,
    /// Part of the samples of the workload's programs whose calls are known up to the first function, 0 to 1; `null` without any.
    pub whole_stacks_fraction: Option<f64>,
    /// Part of the net cost in accounts that were sampled. Interrupts, and idle entry and exit, run with interrupts off and are not.
    pub seen_fraction: Option<f64>,
    /// Whether the kernel shows the addresses of its functions to this user.
    pub kernel_named: bool,
    /// Files of programs of which nothing or not all was used, and why: they have no names or no calls.
    pub refused: Vec<String>,
}

/// An account of a report.
type Name = (Option<AccountKind>, Option<TaskOwner>, String);

/// What the samples are parts of.
struct Sampled {
    samples: u64,
    cycles: Estimate,
}

/// Every window that was sampled while the jobs did I/O.
fn profiles(executions: &[Execution]) -> impl Iterator<Item = &Profile> {
    executions.iter().flat_map(|execution| {
        execution.stretch.pairs().filter_map(move |(before, after)| {
            let (begin, profile) = Profile::between(before, after)?;
            IoInterval::covers(execution.io_interval, begin, after.at_nanos).then_some(profile)
        })
    })
}

fn stacks(executions: &[Execution]) -> impl Iterator<Item = (&Profile, &Stack)> {
    profiles(executions).flat_map(|profile| profile.stacks.iter().map(move |stack| (profile, stack)))
}

/// The functions, the largest part first, and the stacks.
pub(crate) fn study(executions: &[Execution], accounts: &[AccountFinding], net: Option<Estimate>) -> FunctionsFinding {
    let exact = accounts.iter().any(|account| account.kind.is_some());
    // Without exact accounts, everything that the load may have caused is one account.
    let name = |stack: &Stack| -> Option<Name> {
        if exact {
            let words = account_in_words(stack.kind, stack.owner, &stack.name);
            return Some((Some(stack.kind), stack.owner, words));
        }
        let others = matches!(stack.owner, Some(TaskOwner::Iotoll | TaskOwner::Other));
        (!others).then(|| (None, None, WHOLE.to_owned()))
    };
    let mut found: BTreeMap<Name, Sampled> = BTreeMap::new();
    if exact {
        for account in accounts.iter().filter(|account| account.kind.is_some()) {
            let cycles = Estimate { value: account.cycles_per_io, low: account.low, high: account.high };
            found.insert((account.kind, account.owner, account.name.clone()), Sampled { samples: 0, cycles });
        }
    } else if let Some(net) = net {
        found.insert((None, None, WHOLE.to_owned()), Sampled { samples: 0, cycles: net });
    }
    let mut all = Totals::default();
    for (_, stack) in stacks(executions) {
        all.samples = all.samples.saturating_add(stack.samples);
        if let Some(account) = name(stack).and_then(|name| found.get_mut(&name)) {
            account.samples = account.samples.saturating_add(stack.samples);
            if stack.owner.is_some_and(|owner| owner != TaskOwner::Kernel) {
                all.of_programs = all.of_programs.saturating_add(stack.samples);
                all.whole = all.whole.saturating_add(if stack.whole { stack.samples } else { 0 });
            }
        }
    }
    if all.samples == 0 {
        return FunctionsFinding::default();
    }
    let mut by_function: BTreeMap<(&Function, Name), Innermost> = BTreeMap::new();
    let mut by_stack: BTreeMap<String, f64> = BTreeMap::new();
    for (profile, stack) in stacks(executions) {
        let Some(name) = name(stack) else { continue };
        let Some(account) = found.get(&name).filter(|account| account.cycles.value > 0.0) else { continue };
        let Some(function) = profile.innermost(stack) else { continue };
        let per_sample = account.cycles.value / account.samples.max(1) as f64;
        *by_stack.entry(profile.calls(&name.2, stack)).or_default() += per_sample * stack.samples as f64;
        let innermost = by_function.entry((function, name)).or_default();
        innermost.samples = innermost.samples.saturating_add(stack.samples);
        let caller = stack.functions.iter().rev().nth(1).and_then(|place| profile.function(*place));
        if let Some(caller) = caller {
            let samples = innermost.callers.entry(&caller.name).or_default();
            *samples = samples.saturating_add(stack.samples);
        }
    }
    let sum: f64 = net.map_or(0.0, |net| net.value);
    let share = |cycles: Estimate| if sum > 0.0 { cycles.value / sum } else { 0.0 };
    let mut symbols: Vec<SymbolFinding> = Vec::new();
    // By account, functions and samples of those of which nothing is told.
    let mut untold: BTreeMap<Name, (u64, u64)> = BTreeMap::new();
    for ((function, name), innermost) in by_function {
        let Some(account) = found.get(&name) else { continue };
        let cycles = part(account, innermost.samples);
        if innermost.samples < FEWEST_SAMPLES || cycles.low.is_some_and(|low| low <= 0.0) {
            let (functions, samples) = untold.entry(name).or_default();
            *functions += 1;
            *samples = samples.saturating_add(innermost.samples);
            continue;
        }
        let interrupts_on = function.kernel && lets_interrupts_in(&function.name);
        let caller = innermost.callers.iter().max_by_key(|(_, samples)| **samples).map(|(name, _)| (*name).to_owned());
        symbols.push(SymbolFinding {
            symbol: function.name.clone(),
            module: module_of(function).to_owned(),
            account: name.2,
            cycles_per_io: cycles,
            share: share(cycles),
            samples: innermost.samples,
            caller,
            interrupts_on,
        });
    }
    symbols.sort_by(|one, other| other.cycles_per_io.value.total_cmp(&one.cycles_per_io.value));
    let sampled = || found.values().filter(|account| account.samples > 0 && account.cycles.value > 0.0);
    let samples = sampled().map(|account| account.samples).fold(0, u64::saturating_add);
    let parts = untold.iter().filter_map(|(name, (_, samples))| Some(part(found.get(name)?, *samples)));
    if let Some(cycles_per_io) = parts.reduce(together) {
        let functions = untold.values().map(|(functions, _)| functions).sum::<u64>();
        let each = if functions == 1 { "1 function," } else { &format!("{functions} functions, each") };
        symbols.push(SymbolFinding {
            symbol: format!("{each} below what {samples} samples can tell"),
            module: String::new(),
            account: String::new(),
            cycles_per_io,
            share: share(cycles_per_io),
            samples: untold.values().map(|(_, samples)| samples).fold(0, |sum, samples| sum.saturating_add(*samples)),
            caller: None,
            interrupts_on: false,
        });
    }
    let lost = profiles(executions).map(|profile| profile.lost).fold(0, u64::saturating_add);
    let seen = sampled().map(|account| account.cycles.value).sum::<f64>();
    let profile = ProfileFinding {
        samples,
        lost,
        whole_stacks_fraction: (all.of_programs > 0).then(|| all.whole as f64 / all.of_programs as f64),
        seen_fraction: (sum > 0.0).then(|| seen / sum),
        kernel_named: !profiles(executions).any(|profile| profile.kernel_unnamed),
        refused: {
            let refused: BTreeSet<&String> = profiles(executions).flat_map(|profile| &profile.refused).collect();
            refused.into_iter().cloned().collect()
        },
    };
    let stacks = by_stack.into_iter().map(|(calls, cycles_per_io)| StackFinding { calls, cycles_per_io }).collect();
    FunctionsFinding { symbols, stacks, profile: Some(profile) }
}

/// All samples together, if there are no exact accounts.
const WHOLE: &str = "all that the workload causes";

#[derive(Default)]
struct Totals {
    samples: u64,
    of_programs: u64,
    whole: u64,
}

/// Samples whose innermost function is the same.
#[derive(Default)]
struct Innermost<'a> {
    samples: u64,
    callers: BTreeMap<&'a str, u64>,
}

/// The cycles of a part of an account's samples. Its error is that of the part, a binomial proportion, and that of the account; they are
/// independent, because they come from different windows.
fn part(account: &Sampled, samples: u64) -> Estimate {
    let Sampled { samples: all, cycles } = account;
    let part = wilson(samples, *all);
    let value = cycles.value * samples as f64 / (*all).max(1) as f64;
    let end = |of_part: Option<f64>, of_account: Option<f64>| {
        let by_part = (of_part? * cycles.value - value).abs();
        let by_account = (of_account? - cycles.value).abs() * samples as f64 / (*all).max(1) as f64;
        Some(by_part.hypot(by_account))
    };
    Estimate {
        value,
        low: end(part.low, cycles.low).map(|below| value - below),
        high: end(part.high, cycles.high).map(|above| value + above),
    }
}

/// The sum of parts of two accounts, whose errors are independent.
fn together(one: Estimate, other: Estimate) -> Estimate {
    let value = one.value + other.value;
    let reach = |of: fn(&Estimate) -> Option<f64>| Some((of(&one)? - one.value).hypot(of(&other)? - other.value));
    Estimate {
        value,
        low: reach(|it| it.low).map(|below| value - below),
        high: reach(|it| it.high).map(|above| value + above),
    }
}

/// Kernel functions in which interrupts come on again. Without an interrupt that cannot be masked, the timer of the samples fires there
/// for all the time before, in which interrupts were off.
fn lets_interrupts_in(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "_raw_spin_unlock_irqrestore",
        "_raw_spin_unlock_irq",
        "_raw_write_unlock_irq",
        "_raw_write_unlock_irqrestore",
        "_raw_read_unlock_irqrestore",
        "__raw_spin_unlock_irqrestore",
        "finish_task_switch",
        "do_syscall_64",
        "entry_SYSCALL_64_after_hwframe",
        "syscall_exit_to_user_mode",
        "irqentry_exit_to_user_mode",
        "handle_softirqs",
    ];
    NAMES.contains(&name.split('.').next().unwrap_or(name))
}
