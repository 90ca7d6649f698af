//! Reading a TOML file that a user wrote: the line of a mistake, and what the file says it is.

use serde::de::DeserializeOwned;

/// Parses a file. `name` is used in messages only.
///
/// # Errors
/// One line, with the file's name, the line number and what is wrong.
pub(crate) fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let begin = error.span().map_or(0, |span| span.start);
        let line = text.get(..begin).map_or(0, |before| before.matches('\n').count()) + 1;
        format!("{name}:{line}: {}", error.message().replace('\n', " "))
    })
}

/// Whether a text says that it is an experiment of this kind.
pub(crate) fn is_of_kind(text: &str, kind: &str) -> bool {
    text.lines().any(|line| line.split('=').map(str::trim).eq(["kind", &format!("\"{kind}\"")]))
}
