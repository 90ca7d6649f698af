//! Where a measurement came from: the texts that the command line refers to, and the program that measured. With these and what was
//! typed, a user can repeat the measurement from its report alone.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longer texts are not kept, only named: a record must not grow with what somebody generated.
pub const LONGEST_TEXT: usize = 256 << 10;

/// A text file that defines what is measured: a job file or an experiment file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its name, as typed.
    pub name: String,
    /// Its text; `null` if it is longer than 256 KiB.
    pub text: Option<String>,
}

impl Input {
    /// A file with its text, which is dropped if it is too long.
    pub fn new(name: impl Into<String>, text: &str) -> Self {
        Self { name: name.into(), text: (text.len() <= LONGEST_TEXT).then(|| text.to_owned()) }
    }
}

/// The program that measured, and what its command line refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Version of the program that measured; `null` if it is unknown.
    pub iotoll_version: Option<String>,
    /// The text files that define what was measured. Empty for a record that does not have them.
    pub inputs: Vec<Input>,
    /// Environment variables that those files or options refer to.
    pub variables: BTreeMap<String, String>,
}

/// A command line without these options, each of which has a value or none. What follows `--` is the measured command, and stays.
pub fn without(words: &[String], valued: &[&str], bare: &[&str]) -> Vec<String> {
    let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (own, measured) = words.split_at_checked(own).unwrap_or((words, &[]));
    let (mut kept, mut own) = (Vec::new(), own.iter());
    while let Some(word) = own.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if valued.contains(&name) {
            if name == word {
                own.next();
            }
        } else if !bare.contains(&word.as_str()) {
            kept.push(word.clone());
        }
    }
    kept.extend_from_slice(measured);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_left_out_with_their_values_but_not_those_of_the_measured_command() {
        let left = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            without(&words, &["--out", "--format"], &["--quiet"]).join(" ")
        };
        assert_eq!(left("iotoll run --out r --quiet --bs=4k --format=json"), "iotoll run --bs=4k");
        assert_eq!(left("iotoll cost --out r -- dd --out x --quiet"), "iotoll cost -- dd --out x --quiet");
        assert_eq!(left("iotoll run --output=x j.fio --out"), "iotoll run --output=x j.fio");
    }

    #[test]
    fn a_text_that_is_too_long_is_only_named() {
        assert_eq!(Input::new("a", "bs=4k").text.as_deref(), Some("bs=4k"));
        assert_eq!(Input::new("a", &"x".repeat(LONGEST_TEXT + 1)).text, None);
    }
}
