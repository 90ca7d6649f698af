//! All options, in the order in which help lists them: a table for each subject, then those of single engines.

mod content;
mod engines;
mod file_calls;
mod files;
mod job;
mod logs;
mod pace;
mod path;
mod positions;
mod replay;
mod reports;
mod requests;
mod sizes;
mod thread;
mod together;
mod verify;

use super::{Default, JobOption, PLAIN, Role, Value};
use crate::plan::value::Wrong;

const GIB: u64 = 1 << 30;

/// Upper limit of counts. A larger value is a typing error: as nanoseconds or cycles, this is up to one second for each
/// I/O.
const MANY: u32 = 1_000_000_000;
const MANY_64: u64 = MANY as u64;

/// The options of each subject. Those of single engines have none.
const SUBJECTS: [(&str, &[JobOption]); 16] = [
    ("Jobs", job::OPTIONS),
    ("Requests", requests::OPTIONS),
    ("Sizes of requests", sizes::OPTIONS),
    ("Positions of requests", positions::OPTIONS),
    ("What is written", content::OPTIONS),
    ("Whether it is read back right", verify::OPTIONS),
    ("Files", files::OPTIONS),
    ("Making, opening and syncing files", file_calls::OPTIONS),
    ("Pace and length", pace::OPTIONS),
    ("Jobs among others", together::OPTIONS),
    ("Threads", thread::OPTIONS),
    ("Traces that are replayed", replay::OPTIONS),
    ("Logs", logs::OPTIONS),
    ("Reports and clocks of fio", reports::OPTIONS),
    ("", engines::OPTIONS),
    ("", path::OPTIONS),
];

/// An option on which no I/O depends, with its default, its example and its bad example.
const fn without_effect(
    name: &'static str,
    help: &'static str,
    (default, example, bad_example): (&'static str, &'static str, &'static str),
    set: Value,
) -> JobOption {
    JobOption { name, help, default: Default::Words(default), role: Role::Nothing, example, bad_example, set, ..PLAIN }
}

/// Accepts one of these words.
fn one_of(text: &str, words: &[&str]) -> Result<(), Wrong> {
    if words.contains(&text) { Ok(()) } else { Err(Wrong::because(text, "is not supported")) }
}

/// All options, each with its subject.
pub(super) fn by_subject() -> impl Iterator<Item = (&'static str, &'static JobOption)> {
    SUBJECTS.into_iter().flat_map(|(subject, options)| options.iter().map(move |option| (subject, option)))
}

/// All options.
pub(super) fn all() -> impl Iterator<Item = &'static JobOption> {
    by_subject().map(|(_, option)| option)
}
