//! All options, in the order in which help lists them: a table for each subject, then those of single engines.

mod content;
mod engines;
mod files;
mod job;
mod logs;
mod path;
mod requests;

use super::Default::{self, Is, Required, Words};
use super::row::*;
use super::{JobOption, engine};
use crate::plan::draft::Start;
use crate::plan::job::*;
use crate::plan::value::TimeUnit::{Microseconds, Seconds};
use crate::plan::value::typed::{self, shown};
use crate::plan::value::{
    BLOCK, Effect, LARGEST_BLOCK, LARGEST_CPU, LARGEST_FILE, Wrong, blocks, choice, count_in, cpus, distribution,
    each_direction, file_names, list_words, name_format, percentages, percentiles, range, split,
};
use crate::unit::{Bytes, Nanos};

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
