//! A document as a mail: plain text in 72 columns, to paste into a patch thread.
//!
//! It is written for readers who do not know iotoll, and contains in this order: the answer, the command, the caveats, the
//! machine and the method, the numbers as tables, and the files that the command refers to.

use crate::document::{Command, Document};
use crate::shell::is_hidden;
use crate::text;
use crate::text::page::{Page, width};
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
    use crate::{Finding, compare, cost};
    use model::origin::Origin;

    fn mail(finding: &impl Finding) -> String {
        super::mail(&finding.document())
    }

    /// What can be pasted is as long as it is.
    fn fits(text: &str) -> Result<(), String> {
        let wrapped: Vec<&str> = text.lines().filter(|line| !line.starts_with(INDENT)).collect();
        crate::text::page::fits(&wrapped.join("\n"), COLUMNS)
    }

    #[test]
    fn every_mail_fits_and_is_ascii_of_our_own() {
        let runs = cost::fixture::all().into_iter().map(|(name, finding)| (name, mail(&finding)));
        let comparisons = compare::fixture::all().into_iter().map(|(name, finding)| (name, mail(&finding)));
        for (name, text) in runs.chain(comparisons) {
            assert_eq!(fits(&text), Ok(()), "{name}");
            assert!(name.starts_with("hostile") || text.is_ascii(), "{name}: {text}");
            assert!(!text.contains('\u{1b}'), "{name}");
        }
    }

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

    #[test]
    fn a_file_of_the_command_is_in_the_mail() {
        let mut finding = compare::fixture::named("options");
        let long = format!("filename={}", "a".repeat(90));
        finding.head.origin.inputs = vec![Input::new("j.fio", &format!("[a]\nrw=randread\n{long}\n"))];
        let text = mail(&finding);
        assert!(text.contains(&format!("\n    [a]\n    rw=randread\n    {long}\n")), "{text}");
    }
}
