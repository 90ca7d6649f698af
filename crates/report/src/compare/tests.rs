//! All fixtures on a terminal: important lines, widths, and whole texts as snapshots.

use super::*;
use crate::text::page::fits_closely;
use crate::{Format, Ink};

fn terminal(finding: &CompareFinding, ink: Ink, columns: usize) -> String {
    Format::Table.render(finding, ink, columns)
}

fn text(finding: &CompareFinding) -> String {
    terminal(finding, Ink::Plain, 100)
}

#[test]
fn comparisons_as_they_are_read() {
    insta::assert_snapshot!("options_at_80", terminal(&fixture::named("options"), Ink::Plain, 80));
    insta::assert_snapshot!("options_at_120", terminal(&fixture::named("options"), Ink::Plain, 120));
    insta::assert_snapshot!("sweep_at_80", terminal(&fixture::named("sweep"), Ink::Plain, 80));
    insta::assert_snapshot!("sweep_at_120", terminal(&fixture::named("sweep"), Ink::Plain, 120));
    insta::assert_snapshot!("inconclusive_at_80", terminal(&fixture::named("inconclusive"), Ink::Plain, 80));
    insta::assert_snapshot!("identical_at_80", terminal(&fixture::named("identical"), Ink::Plain, 80));
    insta::assert_snapshot!("unmeasured_at_80", terminal(&fixture::named("unmeasured"), Ink::Plain, 80));
    insta::assert_snapshot!("three_arms_at_80", terminal(&fixture::named("three_arms"), Ink::Plain, 80));
    insta::assert_snapshot!("probed_at_80", terminal(&fixture::named("probed"), Ink::Plain, 80));
    insta::assert_snapshot!("explained_at_80", terminal(&fixture::named("explained"), Ink::Plain, 80));
    insta::assert_snapshot!("explained_sweep_at_100", terminal(&fixture::named("explained_sweep"), Ink::Plain, 100));
    insta::assert_snapshot!("stored_at_80", terminal(&fixture::named("stored"), Ink::Plain, 80));
    insta::assert_snapshot!("stored_sweep_at_80", terminal(&fixture::named("stored_sweep"), Ink::Plain, 80));
    insta::assert_snapshot!("empty_at_80", terminal(&fixture::named("empty"), Ink::Plain, 80));
    insta::assert_snapshot!("hostile_at_80", terminal(&fixture::hostile(f64::NAN, "\u{1b}[31m読み"), Ink::Plain, 80));
}

#[test]
fn a_comparison_of_one_cell_is_one_screen() {
    let glance = |finding: &CompareFinding| Format::Table.glance(finding, Ink::Plain, 100, "The rest: --full");
    let all = || fixture::all().into_iter().filter(|(_, finding)| finding.cells.len() == 1);
    for (name, finding) in all() {
        let text = glance(&finding);
        assert!(text.lines().count() <= 24, "{name}:\n{text}");
        assert_eq!(fits_closely(&text, 100), Ok(()), "{name}");
    }
    assert!(all().count() > 5);
    insta::assert_snapshot!("explained_at_a_glance", glance(&fixture::named("explained")));
    insta::assert_snapshot!("options_at_a_glance", glance(&fixture::named("options")));
}

#[test]
fn what_holds_for_all_sentences_of_the_answer_is_said_once() {
    let mut finding = fixture::named("options");
    finding.unseen.unseen_fraction = Some(0.09);
    for metric in finding.cells[0].metrics.values_mut() {
        metric.verdict = model::stats::Verdict::NoDifference;
    }
    let text = terminal(&finding, Ink::Plain, 200);
    assert_eq!(text.matches("do not show a state").count(), 1, "{text}");
}

#[test]
fn an_event_in_place_of_another_is_neither_good_nor_bad() {
    let finding = fixture::named("explained");
    let events = &finding.cells[0].cost.events;
    assert!(events.iter().any(|event| event.per_io.detected && event.per_io.change.value > 0.0), "{events:?}");
    let coloured = terminal(&finding, Ink::Colour, 100);
    let rows = coloured.split("Events per I/O").nth(1).unwrap().lines().skip(1);
    let rows: String = rows.take_while(|line| line.contains(':')).collect();
    assert!(rows.contains("\u{1b}[1m") && !rows.contains("\u{1b}[31m") && !rows.contains("\u{1b}[32m"), "{rows:?}");
}

#[test]
fn the_verdict_has_a_colour_and_a_word() {
    let text = terminal(&fixture::named("options"), Ink::Colour, 80);
    let answer = text.lines().next().unwrap();
    assert!(answer.starts_with("\u{1b}[31m") && answer.ends_with(": worse\u{1b}[0m"), "{text}");
    assert!(text.contains("\u{1b}[33mundecided\u{1b}[0m") && text.contains("\u{1b}[32mkept\u{1b}[0m"), "{text}");
}

#[test]
fn no_column_is_left_out_at_80() {
    for finding in [fixture::named("options"), fixture::named("sweep"), fixture::named("three_arms")] {
        let text = terminal(&finding, Ink::Plain, 80);
        let head = text.lines().find(|line| line.ends_with("verdict")).unwrap();
        assert!(head.contains("change") && head.contains("interval") && head.split_whitespace().count() >= 5, "{text}");
    }
}

#[test]
fn metrics_without_a_value_have_one_line_for_each_reason() {
    let text = text(&fixture::named("unmeasured"));
    assert_eq!(text.matches("not compared: ").count(), 2, "{text}");
    assert!(text.starts_with("Interrupted: the figures cover only the time before the interruption.\n"), "{text}");
}
