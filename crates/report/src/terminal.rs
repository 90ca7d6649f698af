//! A document on a terminal, ordered by importance: the answer, the caveats, the numbers, the evidence.

use crate::document::{Document, Tone};
use crate::ink::Ink;
use crate::text;
use crate::text::page::Page;

/// No line is longer than `columns` (or [`crate::text::page::LEAST_COLUMNS`]).
pub fn terminal(document: &Document, ink: Ink, columns: usize) -> String {
    let page = Page::terminal(ink, columns);
    let mut paragraphs = vec![text::headline(page, document, &document.title, ""), text::subjects(page, document)];
    // Before the numbers, because they say how far to trust them.
    paragraphs.push(text::caveats(page, document).join("\n"));
    paragraphs.extend(text::sections(page, &document.sections));
    paragraphs.push(text::provenance(page, document));
    text::joined(paragraphs)
}

/// One screen of it: what ran, the gravest caveats, the numbers that are read first, and `rest`, which says where all others are.
pub fn glance(document: &Document, ink: Ink, columns: usize, rest: &str) -> String {
    let page = Page::glance(ink, columns);
    let title = page.line(Tone::Plain, "", document.what_ran());
    let head = [text::headline(page, document, &title, ""), text::what_ran(page, document)];
    let mut paragraphs = vec![text::lines(head.to_vec()), text::caveats(page, document).join("\n")];
    paragraphs.extend(text::sections(page, &document.sections));
    paragraphs.push(page.wrap_toned(Tone::Faint, "", rest));
    text::joined(paragraphs)
}
