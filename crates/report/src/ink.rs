//! Whether text may carry terminal colours. The binary decides; no renderer asks the terminal.

/// What a text is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// ANSI escape sequences of ECMA-48 (select graphic rendition), in the terminal's own palette.
    Colour,
    /// The bare text.
    Plain,
}

impl Ink {
    /// What to see first.
    pub fn bold(self, text: &str) -> String {
        self.drawn("1", text)
    }

    /// What to read last.
    pub fn dim(self, text: &str) -> String {
        self.drawn("2", text)
    }

    /// In order.
    pub fn green(self, text: &str) -> String {
        self.drawn("32", text)
    }

    /// To be looked at.
    pub fn yellow(self, text: &str) -> String {
        self.drawn("33", text)
    }

    /// To be mended.
    pub fn red(self, text: &str) -> String {
        self.drawn("31", text)
    }

    /// An empty text stays empty, so that nothing invisible is left where nothing is shown.
    fn drawn(self, rendition: &str, text: &str) -> String {
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
    fn plain_ink_adds_nothing() {
        assert_eq!(Ink::Plain.red("poor"), "poor");
    }

    #[test]
    fn colour_ends_where_the_text_ends() {
        assert_eq!(Ink::Colour.green("good"), "\u{1b}[32mgood\u{1b}[0m");
        assert_eq!(Ink::Colour.bold(""), "");
    }
}
