//! A document on a terminal, ordered by importance: the answer, the caveats, the numbers, the evidence.

use crate::document::Document;
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
