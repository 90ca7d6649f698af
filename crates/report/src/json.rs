//! A finding or a diagnosis as JSON: schemas `iotoll.run/1` and `iotoll.compare/1`.

use crate::shell::is_hidden;
use serde::Serialize;

/// Indented JSON with a final newline. Numbers that are not finite become `null`.
pub fn json<T: Serialize>(finding: &T) -> String {
    match serde_json::to_string_pretty(finding) {
        Ok(text) => escaped(text) + "\n",
        // Unreachable: findings contain nothing that JSON cannot represent. A script that reads this sees no schema.
        Err(error) => format!("{}\n", serde_json::json!({ "error": error.to_string() })),
    }
}

/// JSON allows control characters beyond ASCII, and those that change the direction of a line. They only occur in strings, so escaping them
/// does not change the meaning.
fn escaped(text: String) -> String {
    let stands = |letter: char| (letter.is_control() || is_hidden(letter)) && letter != '\n';
    if !text.contains(stands) {
        return text;
    }
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, letter| {
        if stands(letter) {
            escaped += &format!("\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_direction_of_a_line_is_escaped() {
        assert_eq!(json(&"a\u{202e}b\u{2028}\u{85}"), "\"a\\u202eb\\u2028\\u0085\"\n");
    }

    #[test]
    fn no_control_character_remains() {
        assert_eq!(json(&"\u{1b}[2J\u{9b}2J\u{7f}\n"), "\"\\u001b[2J\\u009b2J\\u007f\\n\"\n");
        assert_eq!(serde_json::from_str::<String>(&json(&"\u{9b}2J")).unwrap(), "\u{9b}2J");
    }
}
