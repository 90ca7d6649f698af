//! Text that is safe between tags and in attributes.

/// `text` in which nothing is markup, on one line.
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

/// Marks that turn the direction of what follows: a name with one could rewrite the line it stands in.
fn is_hidden(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// An element of a class around markup.
pub fn element(tag: &str, class: &str, inside: &str) -> String {
    if class.is_empty() {
        format!("<{tag}>{inside}</{tag}>")
    } else {
        format!("<{tag} class=\"{class}\">{inside}</{tag}>")
    }
}

/// A part of the page with its heading; nothing when there is nothing in it.
pub fn part(heading: &str, inside: &str) -> String {
    if inside.is_empty() {
        String::new()
    } else {
        format!("<section>\n<h2>{}</h2>\n{inside}\n</section>\n", escape(heading))
    }
}

/// Something to be opened by whoever wants it.
pub fn folded(summary: &str, inside: &str, open: bool) -> String {
    if inside.is_empty() {
        return String::new();
    }
    let open = if open { " open" } else { "" };
    format!("<details{open}>\n<summary>{}</summary>\n{inside}\n</details>\n", escape(summary))
}

/// Labels with their texts.
pub fn facts<'a>(facts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let rows = facts.map(|(label, text)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(label), escape(text)));
    let rows: String = rows.collect();
    if rows.is_empty() { rows } else { format!("<dl>\n{rows}</dl>\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup_any_more() {
        assert_eq!(
            escape("<a href=\"x\" onclick='y'>&\u{1b}\n\u{202e}"),
            "&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;   "
        );
        assert_eq!(part("Empty", ""), "");
    }
}
