//! What a job does to its files, and in which order.

use serde::{Deserialize, Serialize};

/// Which directions a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Trims (discards) only.
    Trim,
    /// Reads and writes; `read_percent` of the I/Os are reads.
    ReadWrite,
    /// Each block is trimmed, then written.
    TrimWrite,
}

impl Access {
    /// Whether it changes the files.
    pub fn changes(self) -> bool {
        self != Self::Read
    }

    /// Whether it writes data.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite | Self::TrimWrite)
    }
}

/// The order in which blocks are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Order {
    /// In ascending order.
    Sequential,
    /// In random order. Each block is used once before any is used again, unless `no_random_map` is set.
    Random,
}

/// The values of `rw=`. Of two with the same meaning, the first is shown.
pub const PATTERNS: [(&str, Access, Order); 11] = [
    ("read", Access::Read, Order::Sequential),
    ("write", Access::Write, Order::Sequential),
    ("trim", Access::Trim, Order::Sequential),
    ("randread", Access::Read, Order::Random),
    ("randwrite", Access::Write, Order::Random),
    ("randtrim", Access::Trim, Order::Random),
    ("rw", Access::ReadWrite, Order::Sequential),
    ("readwrite", Access::ReadWrite, Order::Sequential),
    ("randrw", Access::ReadWrite, Order::Random),
    ("trimwrite", Access::TrimWrite, Order::Sequential),
    ("randtrimwrite", Access::TrimWrite, Order::Random),
];
