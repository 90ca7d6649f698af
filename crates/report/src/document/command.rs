//! How a measurement was asked for, so that a reader can ask for the same: the command line and the files that it refers to.

use crate::shell::quoted;
use model::origin::{self, Input, Origin};

/// A command line, and the files and variables that it refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The words: assignments of variables, then the command line as typed, without the folder that the record was saved in: a
    /// second record cannot be saved there.
    pub words: Vec<String>,
    /// The words of them that assign variables, at the beginning.
    pub assignments: usize,
    pub inputs: Vec<Input>,
}

impl Command {
    /// The command line of a finding. Without one, there is nothing to show.
    pub fn new(command_line: &[String], origin: &Origin) -> Self {
        if command_line.is_empty() {
            return Self::default();
        }
        let variables = origin.variables.iter().filter(|(name, _)| is_assignable(name));
        let mut words: Vec<String> = variables.map(|(name, value)| format!("{name}={value}")).collect();
        let assignments = words.len();
        words.extend(origin::without(command_line, &["--out"], &[]));
        Self { words, assignments, inputs: origin.inputs.clone() }
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

    /// Of an assignment only the value is quoted, because a quoted name is not one.
    fn quote(&self, place: usize, word: &str) -> String {
        let name = word.find('=').filter(|_| place < self.assignments).map_or(0, |place| place + 1);
        let (name, value) = word.split_at(name);
        format!("{name}{}", quoted(value))
    }
}

/// Whether a shell can assign a variable of this name.
fn is_assignable(name: &str) -> bool {
    let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.chars().all(word) && name.starts_with(|letter: char| !letter.is_ascii_digit())
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
        let odd = Origin { variables: [("a b".to_owned(), "1".to_owned())].into(), ..Origin::default() };
        assert_eq!(Command::new(&["iotoll".to_owned()], &odd).line(), "iotoll");
    }

    #[test]
    fn a_command_to_repeat_does_not_name_the_folder_of_the_first_record() {
        let line = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            Command::new(&words, &Origin::default()).line()
        };
        assert_eq!(line("iotoll run --out r j.fio"), "iotoll run j.fio");
        assert_eq!(line("iotoll blast --out=r --rounds 3"), "iotoll blast --rounds 3");
        assert_eq!(line("iotoll cost --out r -- dd --out x"), "iotoll cost -- dd --out x");
        assert_eq!(line("iotoll run j.fio --out"), "iotoll run j.fio");
        assert_eq!(line("iotoll run --output=x j.fio"), "iotoll run --output=x j.fio");
    }

    #[test]
    fn a_file_has_the_language_of_its_name() {
        assert_eq!(["a.toml", "b.fio", "c"].map(language), ["toml", "ini", "text"]);
    }
}
