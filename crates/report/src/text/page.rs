//! The page of a text report: its width, colours and characters.
//!
//! All wrapping and measuring of lines happens here. Text from outside (job names, command lines, host strings) loses
//! its control characters, so that no name can move the cursor.

use crate::document::{Audience, Tone};
use crate::ink::Ink;
use crate::shell::is_hidden;
use textwrap::{Options, WordSeparator, WordSplitter};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phrase::tied;
    use proptest::prelude::*;

    #[test]
    fn a_number_keeps_its_unit() {
        let page = Page::mail(60);
        let text = format!("{} costs {}", "x".repeat(45), tied("6.91 kcycles"));
        assert_eq!(page.wrap("  ", &text), format!("  {} costs\n  6.91 kcycles", "x".repeat(45)));
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
}
