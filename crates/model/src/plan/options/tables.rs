//! All options, in the order in which help lists them: a table for each subject, then those of single engines. A row is written as
//! `work("iodepth", count("I/Os", 1..=DEEPEST, field!(depth.in_flight)), Is("1"), "32", "0").help("…")`.

mod content;
mod engines;
mod files;
mod job;
mod logs;
mod path;
mod requests;

use super::Default::{self, Is, Required, Words};
use super::*;
use crate::plan::job::*;
use crate::plan::parse::Start;
use crate::plan::value::TimeUnit::{Microseconds, Seconds};
use crate::plan::value::typed::{self, shown};
use crate::plan::value::{
    BLOCK, LARGEST_BLOCK, LARGEST_CPU, blocks, choice, count_in, cpus, distribution, each_direction, file_names,
    name_format, percentages, percentiles, range, split,
};

const GIB: u64 = 1 << 30;

/// Upper limit of counts. A larger value is a typing error: as nanoseconds or cycles, this is up to one second for each
/// I/O.
const MANY: u32 = 1_000_000_000;
const MANY_64: u64 = MANY as u64;

/// The options of each subject. Those of single engines have none.
const SUBJECTS: [(&str, &[JobOption]); 16] = [
    ("Jobs", job::OPTIONS),
    ("Requests", requests::OPTIONS),
    ("Sizes of requests", requests::SIZES),
    ("Positions of requests", requests::POSITIONS),
    ("What is written", content::OPTIONS),
    ("Whether it is read back right", content::VERIFY),
    ("Files", files::OPTIONS),
    ("Making, opening and syncing files", files::CALLS),
    ("Pace and length", job::PACE),
    ("Jobs among others", job::TOGETHER),
    ("Threads", job::THREAD),
    ("Traces that are replayed", logs::REPLAY),
    ("Logs", logs::OPTIONS),
    ("Reports and clocks of fio", logs::REPORTS),
    ("", engines::OPTIONS),
    ("", path::OPTIONS),
];

/// Any text.
fn any(text: &str) -> Result<String, Wrong> {
    Ok(text.to_owned())
}

fn file_name(text: &str) -> Result<String, Wrong> {
    if text.ends_with('/') { Err(Wrong::because(text, "is a folder")) } else { Ok(text.to_owned()) }
}

/// All options, each with its subject.
pub(super) fn by_subject() -> impl Iterator<Item = (&'static str, &'static JobOption)> {
    SUBJECTS.into_iter().flat_map(|(subject, options)| options.iter().map(move |option| (subject, option)))
}

/// All options.
pub(super) fn all() -> impl Iterator<Item = &'static JobOption> {
    by_subject().map(|(_, option)| option)
}

/// The beginnings of rows: the name, the kind of the value with its place, the default, a valid value, an invalid one.
macro_rules! roles {
    ($($function:ident: $role:ident),+) => {
        $(const fn $function(
            name: &'static str,
            Kind { get, set }: Kind,
            default: Default,
            example: &'static str,
            bad_example: &'static str,
        ) -> JobOption {
            let (form, help, role) = ("", "", Role::$role);
            JobOption { name, aliases: &[], help, default, engines: &[], role, example, bad_example, form, get, set }
        })+
    };
}

roles!(work: Work, extent: Extent, other: Other);

/// An option of fio without effect, and why.
const fn nothing(name: &'static str, why: &'static str) -> JobOption {
    let kind = Kind { get: |_| None, set: Value::Ignored { words: &[], bare: false } };
    let (option, role) = (other(name, kind, Default::Words("none"), "1", ""), Role::Nothing);
    JobOption { role, help: why, form: "any value", ..option }
}

/// The same where fio would do something: a caveat says what happens instead.
const fn said(name: &'static str, instead: &'static str) -> JobOption {
    JobOption { role: Role::Said, ..nothing(name, instead) }
}

impl JobOption {
    const fn form(self, form: &'static str) -> Self {
        Self { form, ..self }
    }

    /// The default in words, where a row has no room for it.
    const fn otherwise(self, words: &'static str) -> Self {
        Self { default: Default::Words(words), ..self }
    }

    const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn of(self, engines: &'static [EngineKind]) -> Self {
        Self { engines, ..self }
    }

    const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// An option without effect that has one of these values only; the first is an example.
    const fn only(self, words: &'static [&'static str]) -> Self {
        let [example, ..] = words else { return self };
        Self { set: Value::Ignored { words, bare: false }, example, ..self }
    }

    /// An option without effect that needs no value.
    const fn bare(self) -> Self {
        Self { set: Value::Ignored { words: &[], bare: true }, ..self }
    }
}
