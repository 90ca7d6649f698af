//! What each kind of record is made of and what is found in it: a file below this one for each row of the table in
//! [`envelope`](crate::envelope).

pub mod compare;
pub mod cost;

use crate::envelope::{Envelope, Kind};
use crate::stored::Stored;
use serde::de::DeserializeOwned;

/// A line that cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Which, from 0; the envelope is not counted.
    pub line: usize,
    /// Why, in words: "is a second header".
    pub why: String,
}

/// A record of one kind.
pub trait Recorded: Sized {
    /// Which kind.
    const KIND: Kind;
    /// A line after the envelope.
    type Line: DeserializeOwned;
    /// What was to be measured.
    type Plan;
    /// Every number that follows from it.
    type Finding;

    /// The record of these lines, as far as it goes: measuring may have been cut off after any of them.
    ///
    /// # Errors
    /// When a line cannot stand where it does.
    fn assemble(envelope: Envelope, lines: Vec<Self::Line>) -> Result<Self, Misplaced>;

    /// Its first line.
    fn envelope(&self) -> &Envelope;

    /// What was to be measured.
    fn plan(&self) -> &Self::Plan;

    /// Whether a measurement of `plan` can stand beside this one, which is an earlier one.
    ///
    /// # Errors
    /// When there is nothing that both have: why.
    fn fits(&self, plan: &Self::Plan) -> Result<(), String>;

    /// Without what is not needed to stand beside another one: it waits in memory while that is measured.
    fn trimmed(self) -> Self {
        self
    }

    /// Works out everything that can be known from it, beside an earlier one where there is one.
    fn study(&self, stored: Option<&Stored<Self>>) -> Self::Finding;
}
