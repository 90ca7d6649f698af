//! A document as text, shared by the terminal and the mail. Each part is a paragraph of lines.

mod drawing;
pub mod sketch;
mod table;

use crate::document::{Audience, Block, Body, Document, Fact, Figure, Note, Section, Sentence, Tone};
use crate::phrase;
use crate::shell::is_hidden;
use model::warning::Warning;
use textwrap::{Options, WordSeparator, WordSplitter};

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

/// No line is longer than `columns` (or [`crate::text::LEAST_COLUMNS`]).
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

/// Minimum width for a table; narrower terminals get lines of this length.
pub const LEAST_COLUMNS: usize = 60;

/// The characters of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    Unicode,
    /// ASCII, for mail. Names from outside are unchanged.
    Ascii,
}

/// A page of a given width.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    ink: Ink,
    glyphs: Glyphs,
    columns: usize,
    reader: Audience,
}

impl Page {
    pub fn terminal(ink: Ink, columns: usize) -> Self {
        Self { ink, glyphs: Glyphs::Unicode, columns: columns.max(LEAST_COLUMNS), reader: Audience::SCREEN }
    }

    /// One screen of a terminal.
    pub fn glance(ink: Ink, columns: usize) -> Self {
        Self { reader: Audience::GLANCE, ..Self::terminal(ink, columns) }
    }

    pub fn mail(columns: usize) -> Self {
        Self { glyphs: Glyphs::Ascii, reader: Audience::POST, ..Self::terminal(Ink::Plain, columns) }
    }

    /// The readers of this page.
    pub fn reader(self) -> Audience {
        self.reader
    }

    /// Whether it is one screen, on which a remark has one line.
    pub fn is_glance(self) -> bool {
        self.reader == Audience::GLANCE
    }

    /// The indentation of lines below a title; a mail has none.
    pub fn indent(self) -> &'static str {
        match self.glyphs {
            Glyphs::Unicode => "  ",
            Glyphs::Ascii => "",
        }
    }

    /// Whether it has the characters for drawings.
    pub fn can_draw(self) -> bool {
        self.glyphs == Glyphs::Unicode
    }

    /// The maximum line length.
    pub fn columns(self) -> usize {
        self.columns
    }

    /// `text` in the colour of `tone`.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        self.ink.paint(tone, text)
    }

    /// `text` on one line, in this page's characters, without control characters.
    pub fn spell(self, text: &str) -> String {
        let text = text.chars().map(|letter| if letter.is_control() || is_hidden(letter) { ' ' } else { letter });
        match self.glyphs {
            Glyphs::Unicode => text.collect(),
            Glyphs::Ascii => text.fold(String::new(), |mut line, letter| {
                match ascii(letter) {
                    Some(spelled) => line.push_str(spelled),
                    None => line.push(letter),
                }
                line
            }),
        }
    }

    /// `text` wrapped into lines: the first after `first`, the others indented to the same width.
    pub fn wrap(self, first: &str, text: &str) -> String {
        self.wrap_toned(Tone::Plain, first, text)
    }

    /// [`Page::wrap`] in one tone.
    pub fn wrap_toned(self, tone: Tone, first: &str, text: &str) -> String {
        let first = self.spell(first);
        let rest = " ".repeat(width(&first));
        let options = Options::new(self.columns)
            .initial_indent(&first)
            .subsequent_indent(&rest)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        let text = self.spell(text);
        let lines = textwrap::wrap(&text, options);
        // A no-break space may end a line if the tied text is longer than a line.
        let lines = lines.iter().map(|line| self.paint(tone, &free(line.trim_end_matches('\u{a0}'))));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// `text` after `first` on one line. If it is too long, whole words are left out at its end: a part of a number would be another
    /// number.
    pub fn line(self, tone: Tone, first: &str, text: &str) -> String {
        self.paint(tone, self.words(&format!("{first}{text}"), self.columns).trim_end())
    }

    /// Cuts a text after the last word that fits into `columns`, and marks the cut with an ellipsis.
    pub fn words(self, text: &str, columns: usize) -> String {
        let text = self.spell(text);
        let cut = self.cut(&text, columns);
        let end = cut.rfind(' ').filter(|end| cut != text && *end > columns / 2);
        let words = end.and_then(|end| cut.get(..end)).map(|words| format!("{words} …"));
        free(&words.unwrap_or(cut))
    }

    /// `text` after a highlighted label; further lines are aligned with the text.
    pub fn labelled(self, tone: Tone, label: &str, columns: usize, text: &str) -> String {
        let label = self.spell(label);
        let first = format!("{label}{}", " ".repeat(columns.saturating_sub(width(&label))));
        let lines = self.wrap(&first, text);
        match lines.strip_prefix(label.as_str()) {
            Some(rest) => self.paint(tone, &label) + rest,
            None => lines,
        }
    }

    /// The first `columns` columns of a text that is already spelled, with an ellipsis if it is cut.
    pub fn cut(self, text: &str, columns: usize) -> String {
        if width(text) <= columns {
            return text.to_owned();
        }
        let ellipsis = match self.glyphs {
            Glyphs::Unicode => "…",
            Glyphs::Ascii => "..",
        };
        let mut kept = String::new();
        for letter in text.chars() {
            let longer = format!("{kept}{letter}");
            if width(&longer) + width(ellipsis) > columns {
                break;
            }
            kept = longer;
        }
        kept + ellipsis
    }

    /// Short texts next to each other, as many per line as fit.
    pub fn flow(self, indent: usize, gap: usize, chips: &[(Tone, String)]) -> String {
        let room = self.columns.saturating_sub(indent);
        let mut lines = vec![String::new()];
        let mut used = 0;
        for (tone, text) in chips {
            let text = self.cut(&free(&self.spell(text)), room);
            let before = if used == 0 { 0 } else { gap };
            let fits = used + before + width(&text) <= room;
            match lines.last_mut() {
                Some(line) if fits => {
                    line.push_str(&" ".repeat(before));
                    line.push_str(&self.paint(*tone, &text));
                    used += before + width(&text);
                }
                _ => {
                    lines.push(self.paint(*tone, &text));
                    used = width(&text);
                }
            }
        }
        let indent = " ".repeat(indent);
        let lines: Vec<_> =
            lines.iter().filter(|line| !line.is_empty()).map(|line| format!("{indent}{line}")).collect();
        lines.join("\n")
    }
}

/// The width of `text` in columns.
pub fn width(text: &str) -> usize {
    textwrap::core::display_width(text)
}

fn free(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

fn ascii(letter: char) -> Option<&'static str> {
    Some(match letter {
        'µ' => "u",
        '±' => "+/-",
        '×' => "x",
        '·' => ",",
        '—' => "-",
        '→' => "->",
        '≈' => "~",
        '✓' => "+",
        '✗' => "x",
        '…' => "...",
        '\u{2212}' => "-",
        _ => return None,
    })
}

/// How text is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// With ANSI escape sequences of ECMA-48 (select graphic rendition), in the terminal's own palette.
    Colour,
    /// Without escape sequences.
    Plain,
}

impl Ink {
    /// A text of this tone. An empty one stays empty, without escape sequences.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let rendition = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Own => "32",
            Tone::Notice => "33",
            Tone::Bad => "31",
        };
        match self {
            Self::Colour if !text.is_empty() => format!("\u{1b}[{rendition}m{text}\u{1b}[0m"),
            Self::Colour | Self::Plain => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{tied, units_tied};
    use proptest::prelude::*;

    #[test]
    fn a_number_keeps_its_unit() {
        let page = Page::mail(60);
        let text = format!("{} costs {}", "x".repeat(45), tied("6.91 kcycles"));
        assert_eq!(page.wrap("  ", &text), format!("  {} costs\n  6.91 kcycles", "x".repeat(45)));
        assert_eq!(units_tied("±2 % in 10 s, or 3 things"), "±2\u{a0}% in 10\u{a0}s, or 3 things");
    }

    #[test]
    fn a_mail_is_spelled_in_ascii() {
        assert_eq!(Page::mail(72).spell("3 µs ±1 % × 2 — \u{1b}[31m"), "3 us +/-1 % x 2 -  [31m");
    }

    #[test]
    fn options_are_not_wrapped_at_hyphens() {
        let text = Page::mail(60).wrap("", &format!("{} --group-reporting", "y".repeat(50)));
        assert!(text.ends_with("\n--group-reporting"), "{text}");
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(width("読み"), 4);
        assert_eq!(Page::terminal(Ink::Plain, 80).cut("読み書き", 5), "読み…");
        assert_eq!(Page::mail(72).cut("abcdef", 4), "ab..");
    }

    proptest! {
        #[test]
        fn no_line_is_too_long(text in any::<String>(), columns in 60usize..120) {
            let page = Page::terminal(Ink::Colour, columns);
            let chips = vec![(Tone::Strong, text.clone()), (Tone::Plain, text.clone())];
            for line in page.wrap("  note: ", &text).lines().chain(page.flow(2, 3, &chips).lines()) {
                prop_assert!(width(line) <= columns, "{line:?}");
            }
        }
    }

    #[test]
    fn colour_ends_where_the_text_ends_and_plain_ink_adds_nothing() {
        assert_eq!(Ink::Plain.paint(Tone::Bad, "poor"), "poor");
        assert_eq!(Ink::Colour.paint(Tone::Own, "good"), "\u{1b}[32mgood\u{1b}[0m");
        assert_eq!(Ink::Colour.paint(Tone::Strong, ""), "");
    }
}
