//! The first line of every record: which kind of measurement follows, and which program measured it when.
//!
//! A kind is a row of [`KINDS`] and a file in `kind/`.

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
