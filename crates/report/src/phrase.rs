//! Pieces of text: parts of sentences, dates, short names.

use model::finding::PhaseFinding;
use std::time::{Duration, UNIX_EPOCH};

/// The first second of the year 10000, which does not fit into a date with four digits.
const LAST_SECOND: f64 = 253_402_300_800.0;

/// A text up to the end of its first sentence.
pub fn first_sentence(text: &str) -> &str {
    text.split_once(". ").and_then(|(first, _)| text.get(..=first.len())).unwrap_or(text)
}

/// A text without what stands in parentheses, and the blank before it.
pub fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::new();
    for letter in text.chars() {
        match letter {
            '(' => {
                depth += 1;
                kept.truncate(kept.trim_end().len());
            }
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

/// A date and time from the seconds since 1970; `None` if the year does not have four digits.
pub fn time(seconds: f64) -> Option<String> {
    let known = (0.0..LAST_SECOND).contains(&seconds);
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|_| known)?;
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + time).to_string();
    Some(text.replace('T', " ").replace('Z', " UTC"))
}

/// Names of generic functions have hundreds of letters: the begin and the end tell most.
pub fn shortened(name: &str) -> String {
    const LONGEST: usize = 48;
    const END: usize = 24;
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= LONGEST {
        return name.to_owned();
    }
    let begin: String = letters.iter().take(LONGEST - END - 1).collect();
    let end: String = letters.iter().skip(letters.len() - END).collect();
    format!("{begin}…{end}")
}

/// A short name of a phase.
pub fn phase_name(phase: &PhaseFinding) -> String {
    match phase.jobs.as_slice() {
        [first, rest @ ..] if !rest.is_empty() => format!("{first} and {} more", rest.len()),
        names => names.join(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_in_parentheses_are_left_out() {
        assert_eq!(without_parentheses("others (cc1, (sd-pam)) used 3 % (of all); (x)"), "others used 3 %;");
        assert_eq!(first_sentence("It is 1.5 %. So."), "It is 1.5 %.");
    }
}
