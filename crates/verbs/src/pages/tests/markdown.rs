//! Findings as Markdown: no foreign markup.

use crate::Finding;
use crate::compare::CompareFinding;
use crate::compare::page::fixture;
use report::markdown::opens_tag;

fn markdown(finding: &CompareFinding) -> String {
    report::markdown::markdown(&finding.document())
}

#[test]
fn every_row_has_the_fields_of_its_head() {
    for (name, finding) in fixture::all() {
        let text = markdown(&finding);
        let mut fields = 0;
        for line in text.lines() {
            let found = if line.starts_with("| ") { line.replace(r"\|", "").matches('|').count() } else { 0 };
            assert!(fields == 0 || found == 0 || fields == found, "{name}: {line}");
            fields = found;
        }
    }
}

/// The first tag of a page that is not our own, with what follows.
pub(crate) fn foreign_tag(page: &str) -> Option<&str> {
    let is_foreign = |place: &usize| {
        let (before, from) = page.split_at(*place);
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let is_ours = ["<code>", "</code>", "<pre>", "</pre>"].iter().any(|tag| from.starts_with(tag));
        backslashes.is_multiple_of(2) && !is_ours && opens_tag(&from[1..])
    };
    page.match_indices('<').map(|(place, _)| place).find(is_foreign).map(|place| &page[place..])
}

#[test]
fn foreign_tags_are_found() {
    assert_eq!(foreign_tag(r"a \\<img>"), Some("<img>"));
    assert_eq!(foreign_tag(r"a \<img\> <code>\\\<b></code> <3"), None);
}
