//! The kinds of measurement that a record can hold.
//!
//! Every record begins with an [`Envelope`], which says what kind the rest is. A kind is a row of a table beside the envelope and
//! a file below this one, in which its record says how it is put together from its lines and what is found in it ([`Recorded`]).

pub mod compare;
pub mod cost;

pub use crate::envelope::{Envelope, Kind, SCHEMA};
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

    /// Whether a measurement of `plan` can stand beside this earlier one.
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

impl<R: Recorded> Stored<R> {
    /// A record, and the path that it was read from.
    pub fn new(from: impl Into<String>, record: R) -> Self {
        Self { from: from.into(), record: record.trimmed() }
    }

    /// Whether a measurement of `plan` can stand beside it.
    ///
    /// # Errors
    /// When there is nothing that both have: why.
    pub fn fits(&self, plan: &R::Plan) -> Result<(), String> {
        self.record.fits(plan)
    }
}
