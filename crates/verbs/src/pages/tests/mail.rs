//! Findings as mails: narrow, and in ASCII.

use crate::{Finding, compare, cost};
use model::origin::Input;

fn mail(finding: &impl Finding) -> String {
    report::mail::mail(&finding.document())
}

/// What can be pasted is as long as it is.
fn fits(text: &str) -> Result<(), String> {
    let wrapped: Vec<&str> = text.lines().filter(|line| !line.starts_with("    ")).collect();
    super::fits(&wrapped.join("\n"), 72)
}

#[test]
fn every_mail_fits_and_is_ascii_of_our_own() {
    let runs = cost::page::fixture::all().into_iter().map(|(name, finding)| (name, mail(&finding)));
    let comparisons = compare::page::fixture::all().into_iter().map(|(name, finding)| (name, mail(&finding)));
    for (name, text) in runs.chain(comparisons) {
        assert_eq!(fits(&text), Ok(()), "{name}");
        assert!(name.starts_with("hostile") || text.is_ascii(), "{name}: {text}");
        assert!(!text.contains('\u{1b}'), "{name}");
    }
}

#[test]
fn a_file_of_the_command_is_in_the_mail() {
    let mut finding = compare::page::fixture::named("options");
    let long = format!("filename={}", "a".repeat(90));
    finding.head.origin.inputs = vec![Input::new("j.fio", &format!("[a]\nrw=randread\n{long}\n"))];
    let text = mail(&finding);
    assert!(text.contains(&format!("\n    [a]\n    rw=randread\n    {long}\n")), "{text}");
}
