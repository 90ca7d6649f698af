//! What a report says of a profile.

use crate::stats::Estimate;
use serde::{Deserialize, Serialize};

/// Cycles per I/O of one function, in one account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackFinding {
    /// The account and the calls in it, the outermost first, separated by semicolons.
    pub calls: String,
    /// Cycles per I/O while the innermost of them ran.
    pub cycles_per_io: f64,
}

/// Cycles per I/O by the instructions of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnnotatedFinding {
    /// Name of the function.
    pub symbol: String,
    /// The file of the program, the module of the kernel, or `kernel`.
    pub module: String,
    /// Cycles per I/O of the function itself, in all accounts.
    pub cycles_per_io: f64,
    /// Samples in it.
    pub samples: u64,
    /// All its instructions, in order.
    pub lines: Vec<LineFinding>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineFinding {
    /// Bytes from the function's begin.
    pub offset: u32,
    /// The instruction, in the notation of the GNU assembler.
    pub instruction: String,
    /// Cycles per I/O: those of the samples at the next instruction, which is what an interrupt finds after this one took the time.
    pub cycles_per_io: f64,
}

/// How good a profile is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
