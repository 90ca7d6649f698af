//! Whether text may contain terminal colours. The binary decides; no renderer queries the terminal.

/// How text is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// With ANSI escape sequences of ECMA-48 (select graphic rendition), in the terminal's own palette.
    Colour,
    /// Without escape sequences.
    Plain,
}

impl Ink {
    /// Most important.
    pub fn bold(self, text: &str) -> String {
        self.drawn("1", text)
    }

    /// Least important.
    pub fn dim(self, text: &str) -> String {
        self.drawn("2", text)
    }

    /// Good.
    pub fn green(self, text: &str) -> String {
        self.drawn("32", text)
    }

    /// Needs attention.
    pub fn yellow(self, text: &str) -> String {
        self.drawn("33", text)
    }

    /// A problem.
    pub fn red(self, text: &str) -> String {
        self.drawn("31", text)
    }

    /// An empty text stays empty, without escape sequences.
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
