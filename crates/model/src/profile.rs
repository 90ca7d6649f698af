//! What ran, by samples of stacks.

mod finding;

pub use finding::{AnnotatedFinding, LineFinding, ProfileFinding, StackFinding, SymbolFinding};

use crate::account::{AccountKind, TaskOwner};
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
    /// Where in the innermost functions the samples were.
    pub instructions: Vec<Instruction>,
    /// The instructions of functions in which much was sampled, once in a measurement: what runs may change afterwards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listings: Vec<Listing>,
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

/// The instructions of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Its place in the list of functions.
    pub function: u32,
    /// In order: bytes from the function's begin, and the instruction in words.
    pub lines: Vec<(u32, String)>,
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

/// Samples at one instruction of an innermost function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    /// Its place in the list of functions.
    pub function: u32,
    /// Bytes from the function's begin.
    pub offset: u64,
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
