//! A document as a mail: plain text in 72 columns, to paste into a patch thread.
//!
//! It is written for readers who do not know iotoll, and contains in this order: the answer, the command, the caveats, the
//! machine and the method, the numbers as tables, and the files that the command refers to.

use crate::document::{Command, Document};
use crate::shell::is_hidden;
use crate::text;
use crate::text::{Page, width};
use model::origin::Input;

/// Short enough to be quoted a few times in an 80-column mail client.
pub const COLUMNS: usize = 72;

pub fn mail(document: &Document) -> String {
    let page = Page::mail(COLUMNS);
    let command = match document.command.is_empty() {
        true => page.wrap("    ", &document.title),
        false => pasted(&document.command),
    };
    let lead = if document.lead.is_empty() { String::new() } else { format!("{}:", document.lead) };
    let mut paragraphs = vec![text::headline(page, document, "", "."), page.wrap("", &lead), command];
    paragraphs.extend(text::caveats(page, document));
    paragraphs.push(text::provenance(page, document));
    paragraphs.push(text::subjects(page, document));
    paragraphs.extend(text::sections(page, &document.sections));
    paragraphs.extend(document.command.inputs.iter().map(|input| file(page, input)));
    text::joined(paragraphs)
}

/// Indentation of what the reader may paste.
const INDENT: &str = "    ";

/// The command with shell line continuations, so that the reader can paste it. A word that is longer than a line has one of its own.
fn pasted(command: &Command) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in command.quoted() {
        match lines.last_mut() {
            Some(line) if width(line) + width(&word) < COLUMNS - " \\".len() => *line += &format!(" {word}"),
            _ => lines.push(format!("{INDENT}{word}")),
        }
    }
    lines.join(" \\\n")
}

/// A file that the command refers to, indented. Its lines stay whole.
fn file(page: Page, input: &Input) -> String {
    let Some(contents) = &input.text else {
        return page.wrap("", &format!("{}: too long to be kept", input.name));
    };
    let bare = |letter: char| if letter.is_control() || is_hidden(letter) { ' ' } else { letter };
    let lines = contents.lines().map(|line| format!("{INDENT}{}", line.chars().map(bare).collect::<String>()));
    let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    format!("{}\n\n{}", page.wrap("", &format!("{}:", input.name)), lines.join("\n").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::origin::Origin;

    #[test]
    fn a_shell_reads_the_pasted_command_as_it_was_typed() {
        let words = [
            "printf",
            "%s;",
            "--fail-on",
            "cycles_per_io > +3% and   more words that are longer than one line of a mail may ever be",
            &"x".repeat(200),
            "it's",
            "two\nlines",
            "-",
        ];
        let words = words.map(str::to_owned);
        let command = Command::new(&words, &Origin::default());
        let text = pasted(&command);
        let out = std::process::Command::new("bash").args(["-c", &text]).output().unwrap();
        let expected: String = words.iter().skip(2).map(|word| format!("{word};")).collect();
        assert_eq!(String::from_utf8_lossy(&out.stdout), expected, "{text}");
    }
}
