//! SVG images of reports for the documentation, each drawn from a record in the same folder.

use super::GeneratedFile;
use crate::arguments::{Color, Earlier, Shown};
use crate::kinds;
use anyhow::Context;
use model::origin;
use report::{Format, Ink, screen};
use std::borrow::Cow;
use std::fs;
use std::path::Path;

/// Suffix of a record's file name. The image has the same name without it.
const RECORD: &str = ".record.jsonl";
/// Width of the terminal.
const COLUMNS: usize = 100;

/// An image of each record in `folder`.
///
/// # Errors
/// When a record cannot be read, or there is none.
pub fn files(folder: &Path) -> anyhow::Result<Vec<GeneratedFile>> {
    let mut pictures = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}: looking for records", folder.display()))? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(RECORD))
        else {
            continue;
        };
        pictures.push(GeneratedFile { name: format!("{name}.svg"), text: picture(&path)? });
    }
    anyhow::ensure!(!pictures.is_empty(), "{}: no record; a record is named NAME{RECORD}", folder.display());
    Ok(pictures)
}

fn picture(record: &Path) -> anyhow::Result<String> {
    let studied = kinds::study_at(record, &Earlier::default())?;
    let shown_first = Shown { format: Format::Table, full: false, color: Color::Always };
    let text = shown_first.render(&*studied.finding, Ink::Colour, COLUMNS, None);
    Ok(screen::svg(&shown(&studied.command_line), &text, COLUMNS))
}

/// The command line without the options that select where and how the report is printed, because the image shows that.
fn shown(words: &[String]) -> String {
    let typed = origin::without(words, &["--out", "--format"], &["--quiet"]);
    typed.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a user types it: quoted only if a shell would change it.
fn quoted(word: &str) -> Cow<'_, str> {
    let harmless = |letter: char| letter.is_ascii_alphanumeric() || "-_=./:,%+@".contains(letter);
    if !word.is_empty() && word.chars().all(harmless) { Cow::Borrowed(word) } else { shell_words::quote(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_shown_without_its_output_options() {
        let words = ["iotoll", "run", "--bs=4k", "--out", "kept", "--quiet", "--runtime=5"].map(str::to_owned);
        assert_eq!(shown(&words), "iotoll run --bs=4k --runtime=5");
    }

    #[test]
    fn a_word_is_quoted_only_where_a_shell_would_change_it() {
        assert_eq!(["--bs=4k", "a b", "*", ""].map(quoted), ["--bs=4k", "'a b'", "'*'", "''"]);
    }
}
