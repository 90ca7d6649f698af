//! How a measurement was asked for, so that a reader can ask for the same: the command line and the files that it refers to.

use crate::phrase::quoted;
use crate::text::page::width;
use model::origin::{Input, Origin};

/// A command line, and the files and variables that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The words: assignments of variables, then the command line as typed.
    pub words: Vec<String>,
    /// The words of them that assign variables, at the beginning.
    pub assignments: usize,
    /// The text files.
    pub inputs: Vec<Input>,
}

impl Command {
    /// The command line of a finding. Without one, there is nothing to show.
    pub fn new(command_line: &[String], origin: &Origin) -> Self {
        if command_line.is_empty() {
            return Self::default();
        }
        let assignments = origin.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let words = assignments.chain(command_line.iter().cloned()).collect();
        Self { words, assignments: origin.variables.len(), inputs: origin.inputs.clone() }
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words, quoted for a shell.
    pub fn quoted(&self) -> Vec<String> {
        self.words.iter().enumerate().map(|(place, word)| self.quote(place, word)).collect()
    }

    /// The command on one line, quoted for a shell.
    pub fn line(&self) -> String {
        self.quoted().join(" ")
    }

    /// Each word in quoted parts of at most `columns`: usually one. A shell joins parts with nothing between them.
    pub fn quoted_within(&self, columns: usize) -> Vec<Vec<String>> {
        let parts = |(place, word): (usize, &String)| {
            let whole = self.quote(place, word);
            if width(&whole) <= columns {
                return vec![whole];
            }
            let mut parts = vec![String::new()];
            let mut rest = word.as_str();
            if let Some((name, value)) = word.split_once('=').filter(|_| place < self.assignments) {
                parts = vec![format!("{name}=")];
                rest = value;
            }
            let mut part = String::new();
            for letter in rest.chars() {
                let longer = format!("{part}{letter}");
                if width(&quoted(&longer)) <= columns {
                    part = longer;
                } else {
                    parts.push(quoted(&part));
                    part = letter.to_string();
                }
            }
            parts.push(quoted(&part));
            parts.retain(|part| !part.is_empty());
            parts
        };
        self.words.iter().enumerate().map(parts).collect()
    }

    /// Of an assignment only the value is quoted, because a quoted name is not one.
    fn quote(&self, place: usize, word: &str) -> String {
        match word.split_once('=').filter(|_| place < self.assignments) {
            Some((name, value)) => format!("{name}={}", quoted(value)),
            None => quoted(word),
        }
    }
}

/// The language of a file, for readers that colour it.
pub fn language(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "toml")) => "toml",
        Some((_, "fio" | "ini")) => "ini",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_precede_the_command() {
        let origin = Origin { variables: [("FILE".to_owned(), "/a b".to_owned())].into(), ..Origin::default() };
        let command = Command::new(&["iotoll", "run", "a b.fio"].map(str::to_owned), &origin);
        assert_eq!(command.line(), "FILE='/a b' iotoll run 'a b.fio'");
        assert!(Command::new(&[], &origin).is_empty());
    }

    #[test]
    fn a_file_has_the_language_of_its_name() {
        assert_eq!(["a.toml", "b.fio", "c"].map(language), ["toml", "ini", "text"]);
    }
}
