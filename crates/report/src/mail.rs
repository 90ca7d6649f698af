//! A document as a mail: plain text in 72 columns, to paste into a patch thread.
//!
//! It is written for readers who do not know iotoll, and contains in this order: the answer, the command, the machine
//! and the method, the numbers as tables, and the caveats.

use crate::document::Document;
use crate::text;
use crate::text::page::Page;

/// Short enough to be quoted a few times in an 80-column mail client.
pub const COLUMNS: usize = 72;

/// The mail.
pub fn mail(document: &Document) -> String {
    let page = Page::mail(COLUMNS);
    // With shell line continuations, so that the reader can paste it.
    let command = if document.command.is_empty() { &document.title } else { &document.command };
    let command = page.narrower(2).wrap("    ", command).replace('\n', " \\\n");
    let lead = if document.lead.is_empty() { String::new() } else { format!("{}:", document.lead) };
    let mut paragraphs = vec![text::headline(page, document, "", "."), page.wrap("", &lead), command];
    paragraphs.push(text::provenance(page, document));
    paragraphs.push(text::subjects(page, document));
    paragraphs.extend(text::sections(page, &document.sections));
    paragraphs.extend(text::caveats(page, document));
    text::joined(paragraphs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::page::fits;
    use crate::{Finding, compare, cost};
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
        insta::assert_snapshot!("a_mail_as_it_is_sent", mail(&cost::fixture::udp_like()));
        insta::assert_snapshot!("options", mail(&compare::fixture::options()));
        insta::assert_snapshot!("sweep", mail(&compare::fixture::sweep()));
        insta::assert_snapshot!("stored", mail(&compare::fixture::stored()));
    }

    #[test]
    fn a_long_command_can_be_pasted_back() {
        let finding = cost::fixture::psync_4k();
        let text = mail(&finding);
        let command = text.split("\n\n").find(|part| part.starts_with("    ")).unwrap().replace(" \\\n", " ");
        assert_eq!(command.split_whitespace().collect::<Vec<_>>(), finding.command_line);
    }

    #[test]
    fn a_missing_number_is_a_dash() {
        let text = mail(&cost::fixture::meters_unavailable());
        let row = text.lines().find(|line| line.starts_with("randread-4k ")).unwrap();
        let fields = ["randread-4k", "-", "-", "-", "-", "284", "k", "1.08", "GiB/s"];
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), fields);
    }

    #[test]
    fn no_column_is_left_out_of_a_usual_table() {
        use compare::fixture::{identical, inconclusive, options, sweep};
        for finding in [options(), sweep(), inconclusive(), identical()] {
            let text = mail(&finding);
            let head = text.lines().find(|line| line.ends_with("verdict")).unwrap();
            assert!(head.contains("baseline") && head.contains("candidate") && head.contains("95 %"), "{text}");
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
