//! Source files and constants that Markdown cites exist: `lab/src/watch.rs`, (`LATE`, `lab/src/watch.rs`), (`GAP`, same file).
//!
//! A path is cited from its crate on, with or without `src`, or by its last parts. A constant stands before its file, alone or in a list.

use super::Breach;
use super::tree::{File, Tree};

/// The file of the constant before it was the one cited last.
const SAME_FILE: &str = ", same file";

/// A span of code, the text behind it, and its line.
struct Span<'a> {
    code: &'a str,
    behind: &'a str,
    line: usize,
}

/// One breach for each file and constant that is not there.
pub fn resolve(tree: &Tree) -> Vec<Breach> {
    let documents = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    documents.flat_map(|document| of_document(tree, document)).collect()
}

fn of_document(tree: &Tree, document: &File) -> Vec<Breach> {
    let spans = spans(&document.text);
    let mut breaches = Vec::new();
    let mut latest: Option<&str> = None;
    for (place, span) in spans.iter().enumerate() {
        let breach = |message| Breach::new(&document.path, span.line, message);
        if is_source(span.code) {
            latest = Some(span.code);
            if cited(tree, span.code).next().is_none() {
                breaches.push(breach(format!("`{}` is no file of this tree: name the one that is meant", span.code)));
            }
        } else if is_constant(span.code)
            && let Some(path) = file_of(&spans, place, latest)
            && cited(tree, path).next().is_some()
            && !cited(tree, path).any(|file| has_word(&file.text, span.code))
        {
            breaches.push(breach(format!(
                "`{}` is not in `{path}`: name the constant or the file that is meant",
                span.code
            )));
        }
    }
    breaches
}

/// The spans of code outside of blocks of code.
fn spans(text: &str) -> Vec<Span<'_>> {
    let mut found: Vec<Span> = Vec::new();
    let (mut in_block, mut line) = (false, 1);
    for paragraph in text.split("\n\n") {
        // A span may go over several lines, but not over a paragraph.
        let fences = paragraph.lines().filter(|line| line.trim_start().starts_with("```")).count();
        if !in_block && fences == 0 {
            let pieces: Vec<&str> = paragraph.split('`').collect();
            let mut at = line;
            for (place, piece) in pieces.iter().enumerate() {
                if place % 2 == 1 {
                    let behind = pieces.get(place + 1).copied().unwrap_or_default();
                    found.push(Span { code: piece, behind, line: at });
                }
                at += piece.matches('\n').count();
            }
        }
        in_block ^= fences % 2 == 1;
        line += paragraph.matches('\n').count() + 2;
    }
    found
}

/// A path to a source, and no placeholder such as `NAME.rs`.
fn is_source(code: &str) -> bool {
    let path = code.strip_suffix(".rs");
    path.is_some_and(|path| path.chars().all(|char| matches!(char, 'a'..='z' | '0'..='9' | '_' | '/')))
}

fn is_constant(code: &str) -> bool {
    code.len() > 1
        && code.starts_with(|char: char| char.is_ascii_uppercase())
        && code.chars().all(|char| matches!(char, 'A'..='Z' | '0'..='9' | '_'))
}

/// The file that stands at the end of the list in which this constant stands; `None` if there is none.
fn file_of<'a>(spans: &[Span<'a>], place: usize, latest: Option<&'a str>) -> Option<&'a str> {
    for (number, span) in spans.iter().enumerate().skip(place) {
        if span.behind.starts_with(SAME_FILE) {
            return latest;
        }
        if !matches!(span.behind.trim(), "," | "and" | ", and" | "in") {
            return None;
        }
        let next = spans.get(number + 1)?;
        if is_source(next.code) {
            return Some(next.code);
        }
    }
    None
}

/// The sources that a path may mean.
fn cited<'a>(tree: &'a Tree, path: &'a str) -> impl Iterator<Item = &'a File> {
    let ends = move |whole: &str| whole == path || whole.strip_suffix(path).is_some_and(|head| head.ends_with('/'));
    tree.files.iter().filter(move |file| ends(&file.path) || ends(&file.path.replacen("/src/", "/", 1)))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let behind = text.get(at + word.len()..).and_then(|behind| behind.chars().next());
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}
