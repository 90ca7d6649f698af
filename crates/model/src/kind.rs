//! What a record of each kind contains and how it is studied. Each row of the table in [`envelope`](crate::envelope)
//! has a file in this folder.

pub mod blast;
pub mod compare;
pub mod cost;
pub mod ftq;
pub mod guest;

use crate::blast::BlastFinding;
use crate::comparison::CompareFinding;
use crate::envelope::{Envelope, Kind};
use crate::finding::RunFinding;
use crate::ftq::FtqFinding;
use crate::guest::GuestFinding;
use crate::limit::{Limit, LimitFinding, Quantity};
use crate::record::Outcome;
use crate::stored::Stored;
use crate::stored::machine::Machine;
use serde::de::DeserializeOwned;

/// A line that must not follow those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Number of the line, from 0, not counting the envelope.
    pub line: usize,
    /// The reason: "is a second header".
    pub why: String,
}

fn misplaced(line: usize, why: impl Into<String>) -> Misplaced {
    Misplaced { line, why: why.into() }
}

/// The header of a record `of` its kind, and the lines after it, each with its number.
fn begun<L, H>(
    lines: Vec<L>,
    header: impl FnOnce(L) -> Option<H>,
    of: &str,
) -> Result<(H, impl Iterator<Item = (usize, L)>), Misplaced> {
    let mut lines = lines.into_iter();
    let header = lines.next().and_then(header);
    let header = header.ok_or_else(|| misplaced(0, format!("is not the header of {of}")))?;
    Ok((header, (1..).zip(lines)))
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
    type Finding: Concluded;
    /// Whether limits can be on values: those of a comparison are on changes only.
    const HAS_VALUES: bool = true;

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

    /// The machine, as a later record is compared with it; `None` if an older record does not have it.
    fn machine(&self) -> Option<Machine<'_>>;

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

    /// Computes all numbers, compared with an earlier record if there is one, and judges the limits.
    fn study(&self, stored: Option<&Stored<Self>>) -> Self::Finding;

    /// The metrics that a limit can be on.
    fn quantities() -> Vec<Quantity>;

    /// The limits that the study judges.
    fn limits_mut(&mut self) -> &mut Vec<Limit>;

    /// Whether a measurement of `plan` contains what its changes are against. Otherwise they are against a stored record.
    fn has_baseline(_: &Self::Plan) -> bool {
        false
    }
}

/// The finding of a record: how the measurement ended, and whether its limits were kept.
pub trait Concluded {
    fn outcome(&self) -> &Outcome;

    /// The limits of `--fail-on`.
    fn limits(&self) -> &[LimitFinding];
}

macro_rules! concluded {
    ($($finding:ty),* $(,)?) => { $(impl Concluded for $finding {
        fn outcome(&self) -> &Outcome {
            &self.outcome
        }

        fn limits(&self) -> &[LimitFinding] {
            &self.limits
        }
    })* };
}

concluded!(RunFinding, CompareFinding, GuestFinding, FtqFinding, BlastFinding);

/// The limits of a measurement of `plan`, with an earlier record or without.
///
/// # Errors
/// If a text is no limit of this kind, or nothing tells the change that it limits.
pub fn limits<R: Recorded>(texts: &[String], plan: &R::Plan, stored: bool) -> Result<Vec<Limit>, String> {
    let quantities = R::quantities();
    let limit = |text: &String| {
        let parse: fn(&str, &[Quantity]) -> _ = if R::HAS_VALUES { Limit::parse } else { Limit::parse_change };
        let limit = parse(text, &quantities)?;
        if limit.is_on_change() && !stored && !R::has_baseline(plan) {
            let noun = R::KIND.noun();
            return Err(format!(
                "'{text}': a change needs what it is measured against; give --stored with the record of {noun}{}",
                if R::KIND == Kind::Guest { ", or several kernels" } else { ", or limit the value" }
            ));
        }
        Ok(limit)
    };
    texts.iter().map(limit).collect()
}
