//! Reading a TOML file that a user wrote: the line of a mistake, and what the file says it is.

use serde::de::DeserializeOwned;
use toml::de::{DeTable, Deserializer};

/// Parses a file, without the kind of experiment that it names. `name` is used in messages only.
///
/// # Errors
/// One line, with the file's name, the line number and what is wrong.
pub(crate) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    let parsed = DeTable::parse(text).and_then(|mut table| {
        table.get_mut().remove("kind");
        T::deserialize(Deserializer::from(table))
    });
    parsed.map_err(|error| {
        let begin = error.span().map_or(0, |span| span.start);
        let line = text.get(..begin).map_or(0, |before| before.matches('\n').count()) + 1;
        format!("{name}:{line}: {}", error.message().replace('\n', " "))
    })
}

/// Checks that a file is TOML at all.
///
/// # Errors
/// As [`parse`].
pub(crate) fn check_syntax(name: &str, text: &str) -> Result<(), String> {
    parse::<toml::Table>(name, text).map(drop)
}

/// The kind of experiment that a text says it is. Read line by line, so that a mistake elsewhere in the file does not hide it.
pub fn kind(text: &str) -> Option<&str> {
    fn says(line: &str) -> Option<&str> {
        let (key, value) = line.split('#').next()?.split_once('=')?;
        (key.trim() == "kind").then(|| value.trim().trim_matches(['"', '\'']))
    }
    text.lines().find_map(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_its_kind() {
        for text in ["kind = \"blast\"", "a = 1\nkind='blast' # packets"] {
            assert_eq!(kind(text), Some("blast"), "{text}");
        }
        assert!(kind("# kind = \"blast\"").is_none() && kind("kind").is_none());
    }
}
