//! The first line of every record, and the kinds of measurement.

use crate::origin::{CommandLine, Origin};
use serde::{Deserialize, Serialize};

/// The schema name in the envelope of every record.
pub const SCHEMA: &str = "iotoll.record/5";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The cost of the I/Os of jobs or of a command: `iotoll run`, `iotoll cost`.
    Cost,
    /// Arms compared with each other: `iotoll compare`.
    Compare,
    /// The instructions of I/Os in guests: `iotoll guest run`.
    Guest,
    /// What a worker did in each quantum of time: `iotoll ftq`.
    Ftq,
    /// Small packets from several submitters: `iotoll blast`.
    Blast,
}

/// A row of [`KINDS`].
#[derive(Debug)]
struct Row {
    kind: Kind,
    /// The name in the envelope.
    name: &'static str,
    /// The schema name in the JSON of its findings.
    schema: &'static str,
    /// The noun for messages: "the record of a run".
    noun: &'static str,
    /// The commands that create it.
    made_by: &'static str,
    /// Increased when the meaning of a number changes. Records of another version are not shown as if they were of this
    /// version.
    method_version: u32,
}

static KINDS: [Row; 5] = [
    row(Kind::Cost, ["cost", "iotoll.run/1", "a run", "iotoll run or iotoll cost"], 6),
    row(Kind::Compare, ["compare", "iotoll.compare/1", "a comparison", "iotoll compare"], 6),
    row(Kind::Guest, ["guest", "iotoll.guest/1", "a measurement of guests", "iotoll guest run"], 2),
    row(Kind::Ftq, ["ftq", "iotoll.ftq/1", "a recording", "iotoll ftq"], 3),
    row(Kind::Blast, ["blast", "iotoll.blast/1", "a blast of packets", "iotoll blast"], 6),
];

const fn row(kind: Kind, [name, schema, noun, made_by]: [&'static str; 4], method_version: u32) -> Row {
    Row { kind, name, schema, noun, made_by, method_version }
}

impl Kind {
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|row| row.kind)
    }

    /// Finds a kind by name.
    pub fn named(name: &str) -> Option<Self> {
        KINDS.iter().find(|row| row.name == name).map(|row| row.kind)
    }

    /// Its name in the envelope.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The schema name in the JSON of its findings.
    pub fn schema(self) -> &'static str {
        self.row().schema
    }

    /// The noun for messages: "a run".
    pub fn noun(self) -> &'static str {
        self.row().noun
    }

    /// The commands that create a record of this kind.
    pub fn made_by(self) -> &'static str {
        self.row().made_by
    }

    /// The version of the method with which this program measures and reads records.
    pub fn method_version(self) -> u32 {
        self.row().method_version
    }

    fn row(self) -> &'static Row {
        // Unreachable fallback: a test checks that every kind has a row.
        let [first, ..] = &KINDS;
        KINDS.iter().find(|row| row.kind == self).unwrap_or(first)
    }
}

/// The first line of every record: its kind, and which program measured it when.
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
    /// When the measurement began, in seconds since 1970.
    pub started_unix_seconds: f64,
    /// What was typed, and what it refers to.
    #[serde(flatten)]
    pub typed: CommandLine,
}

impl Envelope {
    /// The envelope of a measurement that begins now.
    pub fn new(kind: Kind, started_unix_seconds: f64, typed: impl Into<CommandLine>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            kind: kind.name().to_owned(),
            method_version: kind.method_version(),
            iotoll_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_seconds,
            typed: typed.into(),
        }
    }

    /// What a finding says about where it came from.
    pub fn origin(&self) -> Origin {
        Origin {
            iotoll_version: Some(self.iotoll_version.clone()).filter(|version| !version.is_empty()),
            inputs: self.typed.inputs.clone(),
            variables: self.typed.variables.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Input;

    #[test]
    fn every_kind_has_its_row() {
        for kind in [Kind::Cost, Kind::Compare, Kind::Guest, Kind::Ftq, Kind::Blast] {
            assert_eq!((kind.row().kind, Kind::named(kind.name())), (kind, Some(kind)));
        }
        assert_eq!(Kind::named("unheard of"), None);
    }

    #[test]
    fn an_envelope_is_read_back() {
        let inputs = vec![Input::new("j.fio", "[a]\nrw=read")];
        let now = Envelope::new(Kind::Cost, 1.0, CommandLine { inputs, ..CommandLine::default() });
        let again: Envelope = serde_json::from_str(&serde_json::to_string(&now).unwrap()).unwrap();
        assert_eq!(again, now);
    }
}
