//! The first line of every record.

use crate::origin::{CommandLine, Origin};
use serde::{Deserialize, Serialize};

/// The schema name in the envelope of every record.
pub const SCHEMA: &str = "iotoll.record/5";

/// A kind of record: what its `Recorded` says of it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name in the envelope.
    pub name: &'static str,
    /// The schema name in the JSON of its findings.
    pub schema: &'static str,
    /// The noun for messages: "a run".
    pub noun: &'static str,
    /// The commands that create it.
    pub made_by: &'static str,
    /// Increased when the meaning of a number changes. Records of another version are not shown as if they were of this
    /// version.
    pub method_version: u32,
}

/// The first line of every record: its kind, and which program measured it when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`Kind`]: its name.
    pub kind: String,
    /// The method version of the [`Kind`], of the program that measured.
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
            kind: kind.name.to_owned(),
            method_version: kind.method_version,
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
    use crate::kind::Recorded;
    use crate::origin::Input;
    use crate::record::Record;

    #[test]
    fn an_envelope_is_read_back() {
        let inputs = vec![Input::new("j.fio", "[a]\nrw=read")];
        let now = Envelope::new(Record::KIND, 1.0, CommandLine { inputs, ..CommandLine::default() });
        let again: Envelope = serde_json::from_str(&serde_json::to_string(&now).unwrap()).unwrap();
        assert_eq!(again, now);
    }
}
