//! A document as a mail: plain text in 72 columns, to paste into a patch thread.
//!
//! It is written for readers who do not know iotoll, and contains in this order: the answer, the command, the caveats, the
//! machine and the method, the numbers as tables, and the files that the command refers to.

use crate::document::{Command, Document};
use crate::shell::{is_hidden, quoted};
use crate::text;
use crate::text::page::{Page, width};
use model::origin::Input;

/// Short enough to be quoted a few times in an 80-column mail client.
pub const COLUMNS: usize = 72;

pub fn mail(document: &Document) -> String {
    let page = Page::mail(COLUMNS);
    let command = match document.command.is_empty() {
        true => page.wrap("    ", &document.title),
        false => pasted(&document.command, COLUMNS),
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

/// The command with shell line continuations, so that the reader can paste it: a line ends between two words, or between two
/// quoted parts of a word that is too long for a line. The shell joins these, because nothing is between them.
fn pasted(command: &Command, columns: usize) -> String {
    // For " \\" at the end.
    let room = columns - 2;
    let mut text = String::new();
    let mut line = INDENT.to_owned();
    for (place, word) in command.words.iter().enumerate() {
        let (name, value) = command.parted(place, word);
        for (place, part) in quoted_within(room - INDENT.len(), name, value).iter().enumerate() {
            if place > 0 {
                text += &format!("{line}\\\n");
                line.clone_from(part);
            } else if line == INDENT {
                line += part;
            } else if width(&line) + 1 + width(part) <= room {
                line += &format!(" {part}");
            } else {
                text += &format!("{line} \\\n");
                line = format!("{INDENT}{part}");
            }
        }
    }
    text + &line
}

/// A word in quoted parts of at most `columns`: usually one. `name` is not quoted.
fn quoted_within(columns: usize, name: &str, value: &str) -> Vec<String> {
    let whole = format!("{name}{}", quoted(value));
    if width(&whole) <= columns {
        return vec![whole];
    }
    let mut parts = Vec::new();
    if !name.is_empty() {
        parts.push(name.to_owned());
    }
    let mut part = String::new();
    for letter in value.chars() {
        let longer = format!("{part}{letter}");
        if part.is_empty() || width(&quoted(&longer)) <= columns {
            part = longer;
        } else {
            parts.push(quoted(&part));
            part = letter.to_string();
        }
    }
    parts.push(quoted(&part));
    parts
}

/// A file that the command refers to, indented. A line that is too long is cut where a backslash ends it.
fn file(page: Page, input: &Input) -> String {
    let Some(contents) = &input.text else {
        return page.wrap("", &format!("{}: too long to be kept", input.name));
    };
    let mut lines = Vec::new();
    let mut is_cut = false;
    for line in contents.lines() {
        let mut part = INDENT.to_owned();
        let letters = line.chars().map(|letter| if letter.is_control() || is_hidden(letter) { ' ' } else { letter });
        for letter in letters {
            let longer = format!("{part}{letter}");
            if width(&longer) < COLUMNS {
                part = longer;
            } else {
                is_cut = true;
                lines.push(part + "\\");
                part = letter.to_string();
            }
        }
        lines.push(part.trim_end().to_owned());
    }
    let cut = if is_cut { " (a backslash at the end of a line joins it with the next one)" } else { "" };
    let head = page.wrap("", &format!("{}{cut}:", input.name));
    format!("{head}\n\n{}", lines.join("\n").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::page::fits;
    use crate::{Finding, compare, cost};
    use model::origin::Origin;
    use proptest::prelude::*;

    fn mail(finding: &impl Finding) -> String {
        super::mail(&finding.document())
    }

    #[test]
    fn every_mail_fits_and_is_ascii_of_our_own() {
        let runs = cost::fixture::all().into_iter().map(|(name, finding)| (name, mail(&finding)));
        let comparisons = compare::fixture::all().into_iter().map(|(name, finding)| (name, mail(&finding)));
        for (name, text) in runs.chain(comparisons) {
            assert_eq!(fits(&text, COLUMNS), Ok(()), "{name}");
            assert!(name.starts_with("hostile") || text.is_ascii(), "{name}: {text}");
            assert!(!text.contains('\u{1b}'), "{name}");
        }
    }

    #[test]
    fn mails_as_they_are_sent() {
        insta::assert_snapshot!("a_mail_as_it_is_sent", mail(&cost::fixture::named("udp_like")));
        insta::assert_snapshot!("options", mail(&compare::fixture::named("options")));
        insta::assert_snapshot!("sweep", mail(&compare::fixture::named("sweep")));
        insta::assert_snapshot!("stored", mail(&compare::fixture::named("stored")));
    }

    #[test]
    fn a_long_command_can_be_pasted_back() {
        let finding = cost::fixture::named("psync_4k");
        let text = mail(&finding);
        let command = text.split("\n\n").find(|part| part.starts_with("    ")).unwrap().replace(" \\\n", " ");
        assert_eq!(command.split_whitespace().collect::<Vec<_>>(), finding.head.command_line);
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
        let text = pasted(&command, COLUMNS);
        assert_eq!(fits(&text, COLUMNS), Ok(()));
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
        assert_eq!(fits(&text, COLUMNS), Ok(()));
        assert!(text.contains("\n    [a]\n    rw=randread\n    filename=aaa"), "{text}");
        let joined = text.replace("\\\n", "");
        assert!(joined.contains(&long), "{text}");
    }

    #[test]
    fn a_missing_number_is_a_dash() {
        let text = mail(&cost::fixture::named("meters_unavailable"));
        let row = text.lines().find(|line| line.starts_with("randread-4k ")).unwrap();
        let fields = ["randread-4k", "-", "-", "-", "-", "284", "k", "1.08", "GiB/s"];
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), fields);
    }

    #[test]
    fn no_column_is_left_out_of_a_usual_table() {
        for finding in ["options", "sweep", "inconclusive", "identical"].map(compare::fixture::named) {
            let text = mail(&finding);
            let head = text.lines().find(|line| line.ends_with("verdict")).unwrap();
            assert!(head.contains("baseline") && head.contains("candidate") && head.contains("interval"), "{text}");
            let published = text.lines().find(|line| line.starts_with("Published"));
            assert!(published.is_none_or(|line| line.ends_with("ours")), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_finding_overflows_a_mail(number in any::<f64>(), text in any::<String>()) {
            prop_assert_eq!(fits(&mail(&cost::fixture::hostile(number, &text)), COLUMNS), Ok(()));
            prop_assert_eq!(fits(&mail(&compare::fixture::hostile(number, &text)), COLUMNS), Ok(()));
        }
    }
}
