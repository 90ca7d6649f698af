//! A comparison as a mail: plain text in 72 columns, to paste into a patch thread.
//!
//! A reader who has never heard of iotoll finds the answer, what was run, on which machine and how, the numbers as a
//! table, and what to be careful with, in that order.

use super::answer::{answer, outcome};
use super::changes::{Changes, Mark, tables};
use super::section::{Fact, sections};
use super::{contents, environment, layout, notes, words};
use crate::mail::COLUMNS;
use crate::page::{Page, Tone, command, units_tied};
use crate::table::{Cell, Column, Table};
use crate::{placement, provenance};
use model::comparison::CompareFinding;

/// Width of the labels.
const LABEL: usize = 11;
/// An arm's name at the head of a column.
const WIDEST_ARM: usize = 9;

/// The mail.
pub fn mail(finding: &CompareFinding) -> String {
    let page = Page::mail(COLUMNS);
    let metrics = contents::targets(finding);
    let mut parts = vec![head(page, finding), ran(page, finding), machine(page, finding), arms(page, finding)];
    for arm in contents::candidates(finding) {
        parts.extend(tables(finding, arm, &metrics).iter().map(|table| changes(page, finding, table)));
        let notes = notes::notes(finding, arm, &metrics);
        parts.push(notes.iter().map(|note| page.wrap("", &note.text)).collect::<Vec<_>>().join("\n"));
    }
    parts.extend(sections(finding).iter().map(|section| layout::section(page, "", section)));
    parts.extend(finding.warnings.iter().map(|warning| page.wrap("! ", &warning.message)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn head(page: Page, finding: &CompareFinding) -> String {
    let outcome = outcome(&finding.outcome).map(|(_, text)| text);
    let answer = answer(finding).into_iter().map(|sentence| sentence.whole() + ".");
    outcome.into_iter().chain(answer).map(|text| page.wrap("", &text)).collect::<Vec<_>>().join("\n")
}

fn ran(page: Page, finding: &CompareFinding) -> String {
    // Continued as a shell wants it, so that a reader can paste it back.
    page.narrower(2).wrap("    ", &command(&finding.command_line)).replace('\n', " \\\n")
}

/// The machine and the method, a line or two each.
fn machine(page: Page, finding: &CompareFinding) -> String {
    let machine = provenance::machine(&finding.environment.host);
    let cycles = format!("{}: {}", environment::cycles(finding), environment::background(finding));
    let lines = [
        ("Machine", machine),
        ("Cycles", cycles),
        ("Placement", placement::of_cases(&finding.placement).unwrap_or_default()),
        ("Method", units_tied(&finding.method)),
        ("Measured", environment::amount(finding)),
    ];
    let lines = lines.iter().filter(|(_, text)| !text.is_empty());
    lines.map(|(label, text)| page.labelled(Tone::Plain, label, LABEL, text)).collect::<Vec<_>>().join("\n")
}

fn arms(page: Page, finding: &CompareFinding) -> String {
    let arms: Vec<Fact> =
        finding.arms.iter().map(|arm| Fact { label: arm.name.clone(), text: arm.what.clone() }).collect();
    layout::labelled(page, "", &arms)
}

/// One table of changes. The values of all axes but the last stand above the lines that share them: 72 columns have
/// no room to repeat them.
fn changes(page: Page, finding: &CompareFinding, table: &Changes) -> String {
    let last = table.heads.last().map_or("", String::as_str);
    let mut columns = vec![Column::text(last)];
    columns.extend(table.arms.iter().map(|arm| Column::number(page.cut(&page.spell(arm), WIDEST_ARM)).spare(1)));
    columns.extend([Column::number("change"), Column::text("95 %"), Column::text("verdict")]);
    let mut rows = Table::new(columns);
    let mut above = Vec::new();
    for line in &table.lines {
        let (last, others) = line.labels.split_last().map_or(("", [].as_slice()), |(last, rest)| (last.as_str(), rest));
        if others != above {
            let names = table.heads.iter().zip(others).map(|(axis, value)| format!("{axis}={value}"));
            rows.title(names.collect::<Vec<_>>().join(" "));
            above = others.to_vec();
        }
        let word = match line.mark {
            Mark::Verdict(verdict) => words::verdict(verdict),
            Mark::Typical => "shape changed",
        };
        let mut cells = vec![Cell::from(last)];
        cells.extend([&line.baseline, &line.candidate].map(Cell::from));
        cells.extend([line.change.percent(), line.change.interval()].map(Cell::from));
        cells.push(Cell::from(word));
        rows.row(cells);
    }
    let several = contents::candidates(finding).len() > 1;
    let arm = table.arms.last().filter(|_| several).map_or("", String::as_str);
    let metric = table.metric.map_or("", |metric| words::of(metric).noun);
    let comma = if arm.is_empty() || metric.is_empty() { "" } else { ", " };
    let mut lines = vec![page.wrap("", &format!("{arm}{comma}{metric}")), rows.render(page)];
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture;
    use crate::page::fits;
    use proptest::prelude::*;

    #[test]
    fn every_mail_fits_and_is_ascii_of_our_own() {
        for (name, finding) in fixture::all() {
            let text = mail(&finding);
            assert_eq!(fits(&text, COLUMNS), Ok(()), "{name}");
            assert!(name.starts_with("hostile") || text.is_ascii(), "{name}: {text}");
            assert!(!text.contains('\u{1b}'), "{name}");
        }
    }

    #[test]
    fn mails_as_they_are_sent() {
        insta::assert_snapshot!("options", mail(&fixture::options()));
        insta::assert_snapshot!("sweep", mail(&fixture::sweep()));
        insta::assert_snapshot!("stored", mail(&fixture::stored()));
    }

    #[test]
    fn no_column_is_left_out_of_a_usual_table() {
        for finding in [fixture::options(), fixture::sweep(), fixture::inconclusive(), fixture::identical()] {
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
            prop_assert_eq!(fits(&mail(&fixture::hostile(number, &text)), COLUMNS), Ok(()));
        }
    }
}
