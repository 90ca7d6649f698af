//! Probes: how their values are shown, and the list of those that a machine has.

use model::probe::Listed;
use report::Ink;
use report::document::{Block, Body, Document, Fact, Section};
use report::number::{BYTES, COUNT, NANOS, Units};
use report::text::terminal;

/// The units of bytes and times fit the size. Other units follow the name.
pub(crate) fn units(unit: &str) -> Units {
    match unit {
        "bytes" => BYTES,
        "ns" => NANOS,
        _ => COUNT,
    }
}

/// The name, followed by its unit, unless the name contains it or the values show it.
pub(crate) fn label(name: &str, unit: &str) -> String {
    match unit {
        unit if ["", "bytes", "ns", "events"].contains(&unit) || name.contains(unit) => name.to_owned(),
        unit => format!("{name} ({unit})"),
    }
}

/// The list, for a terminal of this width.
pub fn list(listed: &[Listed], columns: usize) -> String {
    let fact = |probe: &Listed| {
        let text = match (probe.meaning.taken(), probe.meaning.reason()) {
            (Some(meaning), _) => meaning.clone(),
            (None, reason) => format!("{} {}", report::number::MISSING, reason.unwrap_or_default()),
        };
        Fact::new(probe.name.clone(), text)
    };
    let facts = Body::Facts(listed.iter().map(fact).collect());
    let document = Document {
        title: "Probes of this machine, for --probe".to_owned(),
        sections: vec![Section::new("", vec![Block::new("", facts)])],
        ..Document::default()
    };
    terminal(&document, Ink::Plain, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::fits;
    use model::reading::Reading;

    #[test]
    fn the_list_fits_any_terminal_and_says_why_one_is_missing() {
        let listed = [
            Listed { name: "dirty".to_owned(), meaning: Reading::Taken("pages that wait".repeat(20)) },
            Listed { name: "pressure.".to_owned(), meaning: Reading::unavailable("not there") },
        ];
        for columns in [60, 100] {
            let text = list(&listed, columns);
            assert_eq!(fits(&text, columns), Ok(()));
            assert!(text.contains("— not there"), "{text}");
        }
    }
}
