//! What ran, by samples of stacks.

use crate::account::{AccountKind, TaskOwner};
use crate::stats::Estimate;
use crate::unit::Nanos;
use serde::{Deserialize, Serialize};

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
