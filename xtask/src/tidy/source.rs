//! Splits a Rust source into lines with code and comments separated and literals emptied.
//!
//! So a rule about code is not triggered by prose about it, nor by a rule's own string literals.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Code, with the content of literals removed. A literal that goes on has a quote in each line.
    pub code: String,
    pub comment: String,
}

impl Line {
    /// Whether the code contains `word` as a whole word.
    pub fn has_word(&self, word: &str) -> bool {
        has_word(&self.code, word)
    }
}

/// Whether `text` contains `word` as a whole word.
pub fn has_word(text: &str, word: &str) -> bool {
    let part_of_a_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(start, _)| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + word.len()..).and_then(|after| after.chars().next());
        let opens = word.starts_with(part_of_a_word);
        let closes = word.ends_with(part_of_a_word);
        !(opens && before.is_some_and(part_of_a_word) || closes && after.is_some_and(part_of_a_word))
    })
}

enum State {
    Code,
    LineComment,
    /// Nesting depth.
    BlockComment(usize),
    Text,
    /// Number of hashes in its delimiter.
    RawText(usize),
}

/// The lines of `text`.
pub fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    let mut state = State::Code;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if letter == '\n' {
            if matches!(state, State::Text | State::RawText(_)) {
                line.code.push('"');
            }
            lines.push(std::mem::take(&mut line));
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            rest = after(rest, 1);
            continue;
        }
        let (next, length) = step(state, rest, letter, &mut line);
        state = next;
        rest = after(rest, length);
    }
    if !line.code.is_empty() || !line.comment.is_empty() {
        lines.push(line);
    }
    lines
}

/// Consumes the next characters into `line`. Returns the next state, and the number of bytes consumed.
fn step(state: State, rest: &str, letter: char, line: &mut Line) -> (State, usize) {
    let one = letter.len_utf8();
    match state {
        State::Code if rest.starts_with("//") => {
            line.comment.push_str("//");
            (State::LineComment, 2)
        }
        State::Code if rest.starts_with("/*") => (State::BlockComment(1), 2),
        State::Code => code(rest, letter, line),
        State::LineComment => {
            line.comment.push(letter);
            (State::LineComment, one)
        }
        State::BlockComment(depth) if rest.starts_with("*/") => {
            (if depth > 1 { State::BlockComment(depth - 1) } else { State::Code }, 2)
        }
        State::BlockComment(depth) if rest.starts_with("/*") => (State::BlockComment(depth + 1), 2),
        State::BlockComment(depth) => {
            line.comment.push(letter);
            (State::BlockComment(depth), one)
        }
        // An escaped quote does not end the literal; an escaped line end is left for the loop to count.
        State::Text if letter == '\\' => {
            (State::Text, 1 + usize::from(rest.starts_with("\\\"") || rest.starts_with("\\\\")))
        }
        State::Text if letter == '"' => {
            line.code.push('"');
            (State::Code, 1)
        }
        State::Text => (State::Text, one),
        State::RawText(hashes) if letter == '"' && after(rest, 1).starts_with(&"#".repeat(hashes)) => {
            line.code.push('"');
            (State::Code, 1 + hashes)
        }
        State::RawText(hashes) => (State::RawText(hashes), one),
    }
}

fn code(rest: &str, letter: char, line: &mut Line) -> (State, usize) {
    let in_word = line.code.ends_with(|before: char| before.is_alphanumeric() || before == '_');
    if letter == '"' {
        line.code.push('"');
        return (State::Text, 1);
    }
    if let Some((hashes, length)) = raw_text(rest).filter(|_| !in_word) {
        line.code.push('"');
        return (State::RawText(hashes), length);
    }
    if letter == '\''
        && let Some(length) = letter_literal(rest)
    {
        line.code.push_str("''");
        return (State::Code, length);
    }
    line.code.push(letter);
    (State::Code, letter.len_utf8())
}

/// The number of hashes of a raw literal that starts here, and the length of its opening.
fn raw_text(rest: &str) -> Option<(usize, usize)> {
    let marked = rest.strip_prefix("br").or(rest.strip_prefix("cr")).or(rest.strip_prefix('r'))?;
    let hashes = marked.len() - marked.trim_start_matches('#').len();
    after(marked, hashes).starts_with('"').then(|| (hashes, rest.len() - marked.len() + hashes + 1))
}

/// The length of a character literal that starts here; `None` for a lifetime.
fn letter_literal(rest: &str) -> Option<usize> {
    let inside = after(rest, 1);
    if inside.starts_with('\\') {
        let escaped = after(inside, 2);
        return escaped.find('\'').map(|end| 3 + end + 1);
    }
    let letter = inside.chars().next()?.len_utf8();
    after(inside, letter).starts_with('\'').then_some(1 + letter + 1)
}

fn after(text: &str, bytes: usize) -> &str {
    text.get(bytes..).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn comments_and_literals_are_separated() {
        assert_eq!(code("let a = \"unsafe // {\"; // unsafe"), ["let a = \"\"; "]);
        assert_eq!(code("let a = r#\"x \" y\"#; b"), ["let a = \"\"; b"]);
        assert_eq!(code("a /* b /* c */ d\ne */ f"), ["a ", " f"]);
        assert_eq!(
            code("let q = '\"'; let e = '\\''; fn f<'a>(x: &'a str)"),
            ["let q = ''; let e = ''; fn f<'a>(x: &'a str)"]
        );
        assert_eq!(code("\"a\\\\\"; b"), ["\"\"; b"]);
        assert_eq!(code("\"one\ntwo\\\nthree\"; b"), ["\"\"", "\"", "\"; b"]);
        assert_eq!(lines("x // why").first().unwrap().comment, "// why");
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("unsafe {", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
        assert!(has_word("std::println!(", "println!"));
        assert!(!has_word("eprintln!(", "println!"));
    }
}
