//! What host and guest say to each other. The host passes an [`Assignment`] as a file of fw_cfg; the agent answers with
//! lines of text, one [`Reply`] each, through debugcon.

use model::plan::Phase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The fw_cfg file of the assignment.
pub const ASSIGNMENT: &str = "opt/iotoll/assignment";
/// Its size, the same for every assignment: reading it takes the same number of instructions. JSON allows trailing blanks.
pub const ASSIGNMENT_BYTES: usize = 32 << 10;
/// The last byte of the assignment if the host also wants the symbols, otherwise a blank. The agent looks at it after the measurement, and
/// parses what comes before: a measurement executes the same instructions whether symbols follow or not.
pub const SYMBOLS: u8 = b's';
/// The file of the initramfs that lists the modules to load: `PATH PARAMETERS` a line, in order.
pub const MODULE_LIST: &str = "/iotoll.modules";
/// The kernel parameters that the agent reads.
pub const STACK_PARAMETER: &str = "iotoll.stack";
/// Which number of the perturbation.
pub const REPLICATE_PARAMETER: &str = "iotoll.replicate";

/// A measurement for a guest that waits for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The jobs that run together. The stack supplies their files.
    pub phase: Phase,
    /// Sysctls to set before the stack is attached, by their names with dots.
    pub sysctls: Vec<(String, String)>,
    /// More mount options for a stack that mounts.
    pub mount_options: Option<String>,
    /// I/Os of each job copy before the measured part.
    pub warm_up_ios: u64,
    /// I/Os of each job copy that are measured.
    pub ios: u64,
}

/// A line from the guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The stack is set up; the guest pauses. Its clock follows, as [`sys::guest::Ports::pause`] writes it.
    Ready,
    /// The measurement is done.
    Done(Done),
    /// It failed; the guest ends.
    Failed(String),
}

/// What the guest measured itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// I/Os in the measured part.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Size of the kernel's symbols, which follow this reply if they were asked for.
    pub symbols_bytes: u64,
    /// The guest's clock over the measured part: instructions, and idle time.
    pub clock_ticks: u64,
    /// The increase of the stack's counters during the measured part, by name.
    pub counters: BTreeMap<String, i64>,
}
