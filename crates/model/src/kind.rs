//! What a record of each kind contains and how it is studied. Each row of the table in [`envelope`](crate::envelope)
//! has a file in this folder.

pub mod blast;
pub mod compare;
pub mod cost;
pub mod ftq;
pub mod guest;

use crate::envelope::{Envelope, Kind};
use crate::stored::Stored;
use serde::de::DeserializeOwned;

/// A line that must not follow those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Number of the line, from 0, not counting the envelope.
    pub line: usize,
    /// The reason: "is a second header".
    pub why: String,
}

/// How much of a measurement a record contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Whether it contains the end of the measurement.
    pub has_end: bool,
    /// How many complete parts it contains.
    pub parts: usize,
    /// The noun for them, in the plural.
    pub noun: &'static str,
}

/// A record of one kind.
pub trait Recorded: Sized {
    /// The kind.
    const KIND: Kind;
    /// A line after the envelope.
    type Line: DeserializeOwned;
    /// What was planned.
    type Plan;
    /// All numbers that follow from the record.
    type Finding;

    /// Assembles a record from its lines. It may be incomplete, because the measurement may have been cut off after any
    /// line.
    ///
    /// # Errors
    /// If a line is in the wrong place.
    fn assemble(envelope: Envelope, lines: Vec<Self::Line>) -> Result<Self, Misplaced>;

    /// How much of the measurement it contains.
    fn extent(&self) -> Extent;

    /// Its first line.
    fn envelope(&self) -> &Envelope;

    /// What was planned.
    fn plan(&self) -> &Self::Plan;

    /// Checks whether a measurement of `plan` can be compared with this earlier record.
    ///
    /// # Errors
    /// If the two have nothing in common.
    fn fits(&self, plan: &Self::Plan) -> Result<(), String>;

    /// Drops what a comparison with a later record does not need, because the record stays in memory during that
    /// measurement.
    fn trimmed(self) -> Self {
        self
    }

    /// Computes all numbers, compared with an earlier record if there is one.
    fn study(&self, stored: Option<&Stored<Self>>) -> Self::Finding;
}
