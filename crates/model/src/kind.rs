//! What every record can do, whatever its kind, the first line of every record, and what every finding begins with.

use crate::limit::{AtPlace, Limit, LimitFinding, Quantity};
use crate::origin::{Input, Origin};
use crate::plan::service::Service;
use crate::record::{Host, Outcome};
use crate::stored::machine::Machine;
use crate::stored::{Stored, StoredFinding};
use crate::warning::Warning;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// What was typed, and what it refers to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandLine {
    /// The words, as typed.
    #[serde(rename = "command_line")]
    pub words: Vec<String>,
    /// The text files that define what is measured, in the order in which they were read.
    pub inputs: Vec<Input>,
    /// Environment variables that those files or options refer to.
    pub variables: BTreeMap<String, String>,
    /// The limits of `--fail-on`, and those of the experiment file.
    pub limits: Vec<Limit>,
}

/// A command line that refers to nothing.
impl From<Vec<String>> for CommandLine {
    fn from(words: Vec<String>) -> Self {
        Self { words, ..Self::default() }
    }
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

/// A line that must not follow those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Number of the line, from 0, not counting the envelope.
    pub line: usize,
    /// The reason: "is a second header".
    pub why: String,
}

/// Assembles a record of a header, which `begin` knows, and of lines after it, which `add` refuses with a reason.
pub fn assembled<R: Recorded>(
    lines: Vec<R::Line>,
    begin: impl FnOnce(R::Line) -> Option<R>,
    mut add: impl FnMut(&mut R, R::Line) -> Result<(), String>,
) -> Result<R, Misplaced> {
    let misplaced = |line, why| Misplaced { line, why };
    let mut lines = lines.into_iter();
    let first = lines.next().ok_or_else(|| misplaced(0, "is missing: nothing was measured".to_owned()))?;
    let mut record = begin(first).ok_or_else(|| misplaced(0, format!("is not the header of {}", R::KIND.noun)))?;
    for (number, line) in (1..).zip(lines) {
        add(&mut record, line).map_err(|why| misplaced(number, why))?;
    }
    Ok(record)
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
    const KIND: Kind;
    /// A line after the envelope.
    type Line: DeserializeOwned;
    type Plan;
    /// All numbers that follow from the record.
    type Finding: AsRef<Head> + AsMut<Head>;
    /// Whether limits can be on values: those of a comparison are on changes only.
    const HAS_VALUES: bool = true;
    /// What else gives a change without an earlier record, or what can be limited instead of a change.
    const INSTEAD: &'static str = "limit the value";

    /// Assembles a record from its lines. It may be incomplete, because the measurement may have been cut off after any
    /// line.
    ///
    /// # Errors
    /// If a line is in the wrong place.
    fn assemble(envelope: Envelope, lines: Vec<Self::Line>) -> Result<Self, Misplaced>;

    /// How much of the measurement it contains.
    fn extent(&self) -> Extent;

    /// What was known before anything was measured: its first line, the machine, and what was to be measured.
    fn header(&self) -> (&Envelope, &Host, &Self::Plan);

    /// Its first line.
    fn envelope(&self) -> &Envelope {
        self.header().0
    }

    fn plan(&self) -> &Self::Plan {
        self.header().2
    }

    /// The machine, as a later record is compared with it.
    fn machine(&self) -> Machine<'_> {
        let (envelope, host, _) = self.header();
        Machine::of(host, envelope)
    }

    /// What is known to differ from this record to a later one, in words: "kernel 6.9.1 → 6.18.44".
    fn differences(&self, now: &Self) -> Vec<String> {
        self.machine().differences(&now.machine())
    }

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

    /// What a limit on this metric is judged by: its values and changes in `finding`, the study of this record beside an earlier one.
    fn at_places(&self, finding: &Self::Finding, then: Option<&Stored<Self>>, metric: &str) -> Vec<AtPlace>;

    /// The metrics that a limit can be on.
    fn quantities() -> Vec<Quantity>;

    /// Why no measurement of `plan` tells this metric, and what to limit instead.
    fn lacks(_plan: &Self::Plan, _metric: &str) -> Option<&'static str> {
        None
    }

    /// Whether a measurement of `plan` contains what its changes are against. Otherwise they are against a stored record.
    fn has_baseline(_: &Self::Plan) -> bool {
        false
    }
}

/// What every finding begins with: where it came from, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// The schema name, such as `iotoll.run/1`.
    pub schema: String,
    /// Version of the method, which defines the meaning of the numbers.
    pub method_version: u32,
    /// What was measured, in one line: the job names, the command, the worker.
    pub title: String,
    /// Start of the measurement, in seconds since 1970.
    pub started_unix_seconds: f64,
    /// The command line, as typed.
    pub command_line: Vec<String>,
    /// The machine. No count of guests depends on the one that emulated them.
    pub host: Host,
    /// The servers that iotoll started: name, command, URI, CPUs and arm.
    pub services: Vec<Service>,
    /// The earlier measurement (`--stored`); `null` without one.
    pub stored: Option<StoredFinding>,
    /// The limits of `--fail-on`, each at every place, the worst first.
    pub limits: Vec<LimitFinding>,
    /// How the measurement ended.
    pub outcome: Outcome,
    /// Caveats, the gravest first.
    pub warnings: Vec<Warning>,
    /// The program that measured, and the files that its command line refers to.
    pub origin: Origin,
}

impl Head {
    /// `end` is how the measurement ended, with the caveats by then; without it, it was cut off.
    pub fn of(
        kind: Kind,
        envelope: &Envelope,
        title: impl Into<String>,
        (host, services): (&Host, &[Service]),
        end: Option<(&Outcome, &[Warning])>,
    ) -> Self {
        let (outcome, warnings) = end.unwrap_or((&Outcome::Interrupted, &[]));
        Self {
            schema: kind.schema.to_owned(),
            method_version: envelope.method_version,
            title: title.into(),
            started_unix_seconds: envelope.started_unix_seconds,
            command_line: envelope.typed.words.clone(),
            host: host.clone(),
            services: services.to_vec(),
            stored: None,
            limits: Vec::new(),
            outcome: outcome.clone(),
            warnings: warnings.to_vec(),
            origin: envelope.origin(),
        }
    }
}

/// What `AsRef` and `AsMut` of a finding's head are.
#[macro_export]
macro_rules! headed {
    ($finding:ty) => {
        impl AsRef<$crate::kind::Head> for $finding {
            fn as_ref(&self) -> &$crate::kind::Head {
                &self.head
            }
        }

        impl AsMut<$crate::kind::Head> for $finding {
            fn as_mut(&mut self) -> &mut $crate::kind::Head {
                &mut self.head
            }
        }
    };
}

/// The limits of a measurement of `plan`, with an earlier record or without.
///
/// # Errors
/// If a text is no limit of this kind, or nothing tells the metric, or the change, that it limits.
pub fn limits<R: Recorded>(texts: &[String], plan: &R::Plan, stored: bool) -> Result<Vec<Limit>, String> {
    let quantities = R::quantities();
    let limit = |text: &String| {
        let limit = Limit::parse(text, &quantities)?;
        if !limit.is_on_change() && !R::HAS_VALUES {
            return Err(format!("'{text}': expected a limit on a change, as 'iops < -5%'"));
        }
        if let Some(why) = R::lacks(plan, &limit.metric) {
            return Err(format!("'{text}': {} {why}", limit.metric));
        }
        if limit.is_on_change() && !stored && !R::has_baseline(plan) {
            return Err(format!(
                "'{text}': a change needs what it is measured against; give --stored with the record of {}, or {}",
                R::KIND.noun,
                R::INSTEAD
            ));
        }
        Ok(limit)
    };
    texts.iter().map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    #[test]
    fn an_envelope_is_read_back() {
        let inputs = vec![Input::new("j.fio", "[a]\nrw=read")];
        let now = Envelope::new(Record::KIND, 1.0, CommandLine { inputs, ..CommandLine::default() });
        let again: Envelope = serde_json::from_str(&serde_json::to_string(&now).unwrap()).unwrap();
        assert_eq!(again, now);
    }
}
