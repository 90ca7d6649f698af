//! The kinds of measurement that a record can hold.
//!
//! Every record begins with an [`Envelope`], which says what kind the rest is. A kind is a row of [`KINDS`] and a file below
//! this one, in which its record says how it is put together from its lines and what is found in it ([`Recorded`]).

pub mod compare;
pub mod cost;

use crate::stored::Stored;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The schema name in the envelope of every record.
pub const SCHEMA: &str = "iotoll.record/3";

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the I/Os of a job or a command cost: `iotoll run`, `iotoll cost`.
    Cost,
    /// Arms beside each other: `iotoll compare`.
    Compare,
}

/// A row of [`KINDS`].
#[derive(Debug)]
struct Row {
    kind: Kind,
    /// In the envelope.
    name: &'static str,
    /// In messages: "the record of a run".
    noun: &'static str,
    /// Which command makes one.
    made_by: &'static str,
    /// Raised whenever the meaning of a number changes: a record of another version is not shown as if it were one of this.
    method_version: u32,
}

/// Every kind.
static KINDS: [Row; 2] = [
    Row { kind: Kind::Cost, name: "cost", noun: "a run", made_by: "iotoll run or iotoll cost", method_version: 2 },
    Row { kind: Kind::Compare, name: "compare", noun: "a comparison", made_by: "iotoll compare", method_version: 2 },
];

impl Kind {
    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        KINDS.iter().find(|row| row.name == name).map(|row| row.kind)
    }

    /// Its name in an envelope.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What a measurement of it is called: "a run".
    pub fn noun(self) -> &'static str {
        self.row().noun
    }

    /// The commands that make one.
    pub fn made_by(self) -> &'static str {
        self.row().made_by
    }

    /// Which version of the method this program measures and reads it by.
    pub fn method_version(self) -> u32 {
        self.row().method_version
    }

    fn row(self) -> &'static Row {
        // Every kind has its row, so the first stands in for none; a test holds the table to that.
        let [first, ..] = &KINDS;
        KINDS.iter().find(|row| row.kind == self).unwrap_or(first)
    }
}

/// The first line of every record: what it is, and which program measured it when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`Kind::name`].
    pub kind: String,
    /// [`Kind::method_version`] of the program that measured.
    pub method_version: u32,
    /// Version of the program that measured.
    pub iotoll_version: String,
    /// When the measurement began.
    pub started_unix_seconds: f64,
    /// The command line, as typed.
    pub command_line: Vec<String>,
}

impl Envelope {
    /// Of a measurement that this program begins now.
    pub fn new(kind: Kind, started_unix_seconds: f64, command_line: Vec<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            kind: kind.name().to_owned(),
            method_version: kind.method_version(),
            iotoll_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_seconds,
            command_line,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row() {
        for kind in [Kind::Cost, Kind::Compare] {
            assert_eq!((kind.row().kind, Kind::named(kind.name())), (kind, Some(kind)));
        }
        assert_eq!(Kind::named("unheard of"), None);
    }
}
