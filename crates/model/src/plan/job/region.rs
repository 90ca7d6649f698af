//! The part of its files that each copy of a job uses, beyond `offset` and `size`.

use super::Size;
use crate::unit::Bytes;
use serde::{Deserialize, Serialize};

/// How the beginning of the region is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegionPlan {
    /// `offset_increment`: the copies begin this far apart.
    pub increment: Size,
    /// `offset_align`: percentages of offsets are rounded up to this; 0 means to the smallest block.
    pub align: Bytes,
}
