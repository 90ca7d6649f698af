//! The notes below every comparison with an earlier measurement: its date, and the known differences.

use model::stored::StoredFinding;
use report::document::{Block, Body, Fact, Note, tied, units_tied};
use report::phrase;

/// A block of facts about the difference to a stored `what`, with notes on how to read them.
pub fn block(
    what: &str,
    stored: &StoredFinding,
    facts: Vec<Fact>,
    caution: &str,
    remarks: impl IntoIterator<Item = String>,
) -> Block {
    let time = phrase::time(stored.started_unix_seconds);
    let day = time.as_deref().and_then(|time| time.split(' ').next());
    let of_day = day.map(|day| format!(" of {day}")).unwrap_or_default();
    let mut notes = vec![differs(stored), caution.to_owned()];
    notes.extend(remarks);
    notes.push(match &time {
        Some(time) => format!("stored: {}, measured {}", stored.from, tied(time)),
        None => format!("stored: {}", stored.from),
    });
    let notes = notes.into_iter().map(Note::remark).collect();
    Block::new(format!("Against the stored {what}{of_day}"), Body::Facts(facts)).with(notes)
}

fn differs(stored: &StoredFinding) -> String {
    if stored.differs.is_empty() {
        return "no known difference between the machines then and now".to_owned();
    }
    format!("then → now: {}", units_tied(&stored.differs.join("; ")))
}
