//! The pages of all verbs in every format.

mod browser;
mod csv;
pub mod examples;
mod fio;
mod flame_graph;
pub mod hostile;
pub mod html;
mod json;
mod mail;
pub mod markdown;

use report::text::width;

/// Checks that `text` has at most this many columns; otherwise returns the first line that is too long.
pub fn fits(text: &str, columns: usize) -> Result<(), String> {
    match text.lines().find(|line| width(line) > columns) {
        Some(line) => Err(format!("{} columns: {line:?}", width(line))),
        None => Ok(()),
    }
}

/// [`fits`], and no line ends with a blank.
pub fn fits_closely(text: &str, columns: usize) -> Result<(), String> {
    match text.lines().find(|line| line.ends_with(' ')) {
        Some(line) => Err(format!("ends in a blank: {line:?}")),
        None => fits(text, columns),
    }
}
