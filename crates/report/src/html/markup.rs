//! Escapes text for use between tags and in attributes.

use crate::shell::is_hidden;

/// `text` without markup, on one line.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ if letter.is_control() || is_hidden(letter) => escaped.push(' '),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// An element with a class around markup.
pub fn element(tag: &str, class: &str, inside: &str) -> String {
    if class.trim().is_empty() {
        format!("<{tag}>{inside}</{tag}>")
    } else {
        format!("<{tag} class=\"{class}\">{inside}</{tag}>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            escape("<a href=\"x\" onclick='y'>&\u{1b}\n\u{202e}"),
            "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;   "
        );
    }
}
