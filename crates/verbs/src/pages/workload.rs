//! The work of a measurement in fio's words: "ioengine=psync rw=randread bs=4k iodepth=1".

use model::plan::{JobPlan, options};
use report::document::{Audience, Fact};

/// Options that are shown also if they are fio's default.
const ALWAYS: [&str; 4] = ["ioengine", "rw", "bs", "iodepth"];
/// Jobs that are shown; the others are counted.
const MOST_JOBS: usize = 4;
/// A longer text is not for a terminal, whose reader typed it.
const SHORT: usize = 200;

/// What defines the work of a job, and what is not default: "ioengine=psync rw=randread bs=4k iodepth=1 filename=data".
pub fn options(job: &JobPlan) -> String {
    let words = options::shown(job, &ALWAYS).into_iter().map(|(name, value)| format!("{name}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

/// The first facts of a kind, and how many there are beside them.
pub fn listed(label: &str, all: Vec<(String, String)>) -> Vec<Fact> {
    let more = all.len().saturating_sub(MOST_JOBS);
    let mut facts: Vec<Fact> = all
        .into_iter()
        .take(MOST_JOBS)
        .map(|(name, text)| {
            let audience =
                if text.chars().count() <= SHORT { Audience::ALL } else { Audience::POST.or(Audience::PAGE) };
            Fact::of(audience, label, if name.is_empty() { text } else { format!("{name}: {text}") })
        })
        .collect();
    if more > 0 {
        facts.push(Fact::new(label, format!("and {more} more")));
    }
    facts
}
