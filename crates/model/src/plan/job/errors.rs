//! The errors of I/Os that do not end a job.

use super::is_default;
use crate::plan::value::Wrong;
use serde::{Deserialize, Serialize};

/// With fio's defaults: every error ends the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Errors {
    /// `continue_on_error`.
    pub goes_on: GoesOn,
    /// `ignore_error`: numbers of the system's errors.
    #[serde(skip_serializing_if = "is_default")]
    pub ignored: IgnoredErrors,
}

/// After which errors a job goes on. Those of I/Os are EIO; every other one ends it, as in fio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GoesOn {
    /// None.
    #[default]
    None,
    /// Of reads.
    Read,
    /// Of writes and trims.
    Write,
    /// Of all I/Os.
    Io,
    /// Blocks that are not as they were written.
    Verify,
    /// All of these.
    All,
}

impl GoesOn {
    /// After an error of a read.
    pub fn after_reads(self) -> bool {
        matches!(self, Self::Read | Self::Io | Self::All)
    }

    /// After an error of a write or trim.
    pub fn after_writes(self) -> bool {
        matches!(self, Self::Write | Self::Io | Self::All)
    }

    /// After a block that is not as it was written.
    pub fn after_checks(self) -> bool {
        matches!(self, Self::Verify | Self::All)
    }
}

/// `ignore_error=READ,WRITE,VERIFY`: numbers of errors for each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IgnoredErrors {
    /// Of reads.
    pub read: Vec<u16>,
    /// Of writes and trims.
    pub write: Vec<u16>,
    /// Of checks: EILSEQ, 84.
    pub verify: Vec<u16>,
}

/// EILSEQ: a block is not as it was written.
pub const WRONG_BLOCK: u16 = 84;

/// Errors of I/O by name, all of which fio knows. Others are given as numbers.
const NAMES: [(&str, u16); 15] = [
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("EINVAL", 22),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("EPIPE", 32),
];

impl IgnoredErrors {
    /// Parses "EIO:ENOSPC,28".
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        Self::of(text).ok_or_else(|| Wrong::because(text, "has a part that is no error"))
    }

    fn of(text: &str) -> Option<Self> {
        let mut fields = text.split(',').map(|field| {
            let errors = field.split(':').filter(|name| !name.is_empty()).map(number);
            errors.collect::<Option<Vec<u16>>>()
        });
        let mut next = || fields.next().unwrap_or_else(|| Some(Vec::new()));
        let found = Self { read: next()?, write: next()?, verify: next()? };
        (fields.next().is_none() && !is_default(&found)).then_some(found)
    }

    /// As it is typed.
    pub(crate) fn text(&self) -> Option<String> {
        let field = |errors: &[u16]| {
            let names = errors.iter().map(|error| {
                let name = NAMES.iter().find(|(_, number)| number == error);
                name.map_or_else(|| error.to_string(), |(name, _)| (*name).to_owned())
            });
            names.collect::<Vec<_>>().join(":")
        };
        let fields = [field(&self.read), field(&self.write), field(&self.verify)];
        (!is_default(self)).then(|| fields.join(",").trim_end_matches(',').to_owned())
    }
}

fn number(name: &str) -> Option<u16> {
    let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    known.or_else(|| name.parse().ok().filter(|number| (1..4096).contains(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_or_numbered_for_each_direction() {
        let errors = IgnoredErrors::parse(",EIO:28").unwrap();
        assert_eq!((errors.read.as_slice(), errors.write.as_slice()), (&[][..], &[5, 28][..]));
        assert_eq!(errors.text().unwrap(), ",EIO:ENOSPC");
        assert_eq!(IgnoredErrors::parse("EIO,,84").unwrap().text().unwrap(), "EIO,,84");
        for wrong in ["", ",", "EIOO", "1,2,3,4", "0", "-5"] {
            assert!(IgnoredErrors::parse(wrong).is_err(), "{wrong}");
        }
    }
}
