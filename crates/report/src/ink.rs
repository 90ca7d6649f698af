//! Whether text may contain terminal colours. The binary decides; no renderer queries the terminal.

use crate::document::Tone;

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

    #[test]
    fn colour_ends_where_the_text_ends_and_plain_ink_adds_nothing() {
        assert_eq!(Ink::Plain.paint(Tone::Bad, "poor"), "poor");
        assert_eq!(Ink::Colour.paint(Tone::Own, "good"), "\u{1b}[32mgood\u{1b}[0m");
        assert_eq!(Ink::Colour.paint(Tone::Strong, ""), "");
    }
}
