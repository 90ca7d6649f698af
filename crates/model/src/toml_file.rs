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
    let says = |line: &str| {
        let (key, value) = line.split('#').next().unwrap_or_default().split_once('=')?;
        Some((key.trim(), value.trim().trim_matches(['"', '\''])) == ("kind", kind))
    };
    text.lines().any(|line| says(line).unwrap_or(false))
}

/// The experiment files of the repository: their paths, names and texts.
#[cfg(test)]
pub(crate) fn experiments() -> Vec<(String, String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().display().to_string();
        (path.display().to_string(), name, std::fs::read_to_string(&path).unwrap())
    };
    std::fs::read_dir(folder).unwrap().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_its_kind() {
        for text in ["kind = \"blast\"", "a = 1\nkind='blast' # packets"] {
            assert!(is_of_kind(text, "blast") && !is_of_kind(text, "guest"), "{text}");
        }
        assert!(!is_of_kind("# kind = \"blast\"", "blast") && !is_of_kind("kind", "blast"));
    }
}
