//! A document as text, shared by the terminal and the mail. Each part is a paragraph of lines.

mod drawing;
pub mod page;
pub mod sketch;
mod table;

use crate::document::{Block, Body, Document, Fact, Figure, Note, Section, Sentence, Tone};
use crate::ink::Ink;
use crate::phrase;
use model::warning::Warning;
use page::{Page, width};

/// Maximum width of labels, so that one long name does not widen all.
const WIDEST_LABEL: usize = 30;
/// Columns between two figures on one line.
const GAP: usize = 3;
/// Most caveats on one screen.
const MOST_CAVEATS: usize = 3;

/// Joins paragraphs with an empty line between them.
pub fn joined(mut paragraphs: Vec<String>) -> String {
    paragraphs.retain(|paragraph| !paragraph.trim().is_empty());
    paragraphs.join("\n\n") + "\n"
}

/// Joins lines that are not empty.
pub fn lines(mut lines: Vec<String>) -> String {
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

/// The answer, and the outcome if it is not as planned. `title` is shown if there is no answer; `end` ends a sentence.
pub fn headline(page: Page, document: &Document, title: &str, end: &str) -> String {
    let outcome = document.outcome.iter().map(|note| page.wrap_toned(note.tone, "", &note.text));
    let title = document.headline.is_empty().then(|| page.wrap_toned(Tone::Strong, "", title));
    let answer = document.headline.iter().map(|sentence| self::sentence(page, sentence, end));
    // The title comes before the outcome, the answer after it.
    lines(title.into_iter().chain(outcome).chain(answer).collect())
}

/// A sentence in bold, or in the colour of its verdict.
fn sentence(page: Page, sentence: &Sentence, end: &str) -> String {
    let whole = sentence.whole();
    let end = if whole.ends_with('.') { "" } else { end };
    let tone = sentence.verdict.as_ref().map_or(Tone::Strong, |verdict| verdict.tone);
    page.wrap_toned(if tone == Tone::Plain { Tone::Strong } else { tone }, "", &(whole + end))
}

/// What ran, on one line, if the answer is shown instead of it.
pub fn what_ran(page: Page, document: &Document) -> String {
    let what = if document.headline.is_empty() { "" } else { document.what_ran() };
    page.line(Tone::Faint, "", what)
}

/// The workload and the arms, below the title if the answer is shown instead of it.
pub fn subjects(page: Page, document: &Document) -> String {
    let title = if document.headline.is_empty() { "" } else { &document.title };
    let subjects = document.subjects.iter().filter(|fact| fact.audience.has(page.reader()));
    let about = document.workload_for(page.reader()).chain(subjects);
    lines(vec![page.wrap_toned(Tone::Faint, "", title), facts(page, Tone::Plain, "", about)])
}

/// The machine and the method.
pub fn provenance(page: Page, document: &Document) -> String {
    facts(page, Tone::Strong, "", document.provenance_for(page.reader()))
}

/// The caveats, one paragraph each; on one screen the gravest, one line each, and how many more there are.
pub fn caveats(page: Page, document: &Document) -> Vec<String> {
    let all = document.gravest_first();
    if !page.is_glance() {
        return all.into_iter().map(|it| page.labelled(Tone::Notice, "!", 3, &it.message)).collect();
    }
    let more = all.len().saturating_sub(MOST_CAVEATS);
    let more = (more > 0).then(|| format!("{more} more: --full"));
    let shown = all.into_iter().take(MOST_CAVEATS).map(|it| in_one_line(page, it, page.columns().saturating_sub(3)));
    let mark = page.paint(Tone::Notice, "!");
    let line = |text: String| page.line(Tone::Plain, "!  ", &text).replacen('!', &mark, 1);
    shown.chain(more).map(line).collect()
}

/// A caveat in `room` columns: in full, or as many of its clauses or words as fit, and what to do. Behind a semicolon it says that itself.
fn in_one_line(page: Page, caveat: &Warning, room: usize) -> String {
    let Warning { code, message } = caveat;
    let mend = format!("; {}", code.mend());
    let says_it = message.contains("; ") || message.contains(code.mend());
    let whole = if says_it { message.clone() } else { format!("{message}{mend}") };
    if width(&whole) <= room {
        return whole;
    }
    let room = room.saturating_sub(width(&mend));
    let message = phrase::without_parentheses(message);
    match clauses(&message, room) {
        Some(clauses) if clauses.contains(code.mend()) => clauses.to_owned(),
        Some(clauses) => format!("{clauses}{mend}"),
        None => format!("{}{mend}", page.words(&message, room)),
    }
}

/// As many clauses of a text as fit into `room` columns, if they fill half of them: less may be only the name of a job.
fn clauses(text: &str, room: usize) -> Option<&str> {
    let ends = ["; ", ": ", ". "].iter().flat_map(|end| text.match_indices(end)).map(|(place, _)| place);
    let parts = ends.chain([text.len()]).filter_map(|place| text.get(..place));
    parts.filter(|text| (room / 2..=room).contains(&width(text))).max_by_key(|text| text.len())
}

/// All blocks for this page's reader. A section's title precedes its first block.
pub fn sections(page: Page, sections: &[Section]) -> Vec<String> {
    let mut paragraphs = Vec::new();
    for section in sections {
        let (title, blocks) = section.seen_by(page.reader());
        let mut above: Option<&Block> = None;
        for block in blocks {
            let title = if above.is_none() { page.wrap_toned(Tone::Strong, "", title) } else { String::new() };
            let text = lines(vec![title, self::block(page, block)]);
            // Its small print has no place on one screen.
            if text.is_empty() {
                continue;
            }
            // Remarks belong to the figures above them.
            let follows =
                matches!((above.map(|above| &above.body), &block.body), (Some(Body::Figures(_)), Body::Notes));
            match paragraphs.last_mut().filter(|_| follows) {
                Some(last) => *last = format!("{last}\n{text}"),
                None => paragraphs.push(text),
            }
            above = Some(block);
        }
    }
    paragraphs
}

fn block(page: Page, block: &Block) -> String {
    let title = || page.wrap_toned(Tone::Strong, "", &block.title);
    let mut parts = match &block.body {
        Body::Notes => vec![title()],
        Body::Figures(figures) => figures.iter().map(|line| page.flow(2, GAP, &chips(line))).collect(),
        Body::Facts(facts) => vec![title(), self::facts(page, Tone::Plain, page.indent(), facts)],
        Body::Table(table) => vec![table::table(page, &block.title, table)],
        Body::Charts(_) => Vec::new(),
        Body::Timeline(timeline) => vec![title(), sketch::sketch(page, timeline)],
        Body::FlameGraph(_) => Vec::new(),
    };
    parts.extend(block.notes.iter().map(|note| remark(page, note)));
    lines(parts)
}

/// A remark; on one screen its first sentence, and no small print.
fn remark(page: Page, note: &Note) -> String {
    match (page.is_glance(), note.tone) {
        (true, Tone::Faint) => String::new(),
        (true, tone) => {
            let (first, room) = (phrase::first_sentence(&note.text), page.columns() - width(page.indent()));
            page.line(tone, page.indent(), clauses(first, room).unwrap_or(first))
        }
        (false, tone) => page.wrap_toned(tone, page.indent(), &note.text),
    }
}

fn chips(figures: &[Figure]) -> Vec<(Tone, String)> {
    let of = |figure: &Figure| {
        let interval = figure.interval.clone().map(|interval| (Tone::Plain, interval));
        std::iter::once((figure.tone, figure.value.clone())).chain(interval)
    };
    figures.iter().flat_map(of).collect()
}

/// Aligned labels, each with its text. If some have marks, all leave room for one.
fn facts<'a>(page: Page, tone: Tone, indent: &str, facts: impl IntoIterator<Item = &'a Fact>) -> String {
    let facts: Vec<&Fact> = facts.into_iter().collect();
    let marked = facts.iter().any(|fact| fact.mark.is_some());
    let label = |fact: &Fact| {
        let mark = fact.letter().unwrap_or(' ');
        let mark = if marked { page.spell(&format!("{mark} ")) } else { String::new() };
        page.cut(&page.spell(&format!("{indent}{mark}{}", fact.label)), WIDEST_LABEL)
    };
    let room = facts.iter().map(|fact| width(&label(fact))).max().unwrap_or(0) + 2;
    let lines = facts.iter().map(|fact| {
        let line = page.labelled(tone, &label(fact), room, &fact.text);
        // Only the mark is coloured, after the text has been wrapped.
        let (Some(letter), Some(tone)) = (fact.letter(), fact.mark) else { return line };
        let mark = page.spell(&letter.to_string());
        line.replacen(&mark, &page.paint(tone, &mark), 1)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// No line is longer than `columns` (or [`crate::text::page::LEAST_COLUMNS`]).
pub fn terminal(document: &Document, ink: Ink, columns: usize) -> String {
    let page = Page::terminal(ink, columns);
    let mut paragraphs = vec![headline(page, document, &document.title, ""), subjects(page, document)];
    // Before the numbers, because they say how far to trust them.
    paragraphs.push(caveats(page, document).join("\n"));
    paragraphs.extend(sections(page, &document.sections));
    paragraphs.push(provenance(page, document));
    joined(paragraphs)
}

/// One screen of it: what ran, the gravest caveats, the numbers that are read first, and `rest`, which says where all others are.
pub fn glance(document: &Document, ink: Ink, columns: usize, rest: &str) -> String {
    let page = Page::glance(ink, columns);
    let title = page.line(Tone::Plain, "", document.what_ran());
    let head = [headline(page, document, &title, ""), what_ran(page, document)];
    let mut paragraphs = vec![lines(head.to_vec()), caveats(page, document).join("\n")];
    paragraphs.extend(sections(page, &document.sections));
    paragraphs.push(page.wrap_toned(Tone::Faint, "", rest));
    joined(paragraphs)
}
