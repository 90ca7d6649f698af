//! Values of the options about files.

use super::{Quoted, Wrong};

/// The words that a format of file names may contain, and what they stand for.
const WORDS: [&str; 4] = ["jobname", "jobnum", "filenum", "clientuid"];

/// A format of file names. fio leaves a word that it does not know in the name.
pub fn name_format(text: &str) -> Result<String, Wrong> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        if !WORDS.iter().any(|word| after.starts_with(word)) {
            return Err(Wrong::because(text, "has a '$' with another word"));
        }
        rest = after;
    }
    if text.chars().any(char::is_control) {
        return Err(Wrong::new(format!("{} has a control character", Quoted(text))));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_has_only_known_words() {
        assert!(name_format("a.$jobnum/$filenum$clientuid").is_ok());
        for bad in ["$", "$file", "x$job.1"] {
            assert!(name_format(bad).is_err(), "{bad}");
        }
    }
}
