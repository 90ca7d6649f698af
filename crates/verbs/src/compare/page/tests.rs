//! What the texts of `format` do not show: changed fixtures, colours.

use super::*;
use crate::{Finding, Format};
use report::{Ink, text};

fn terminal(finding: &CompareFinding, ink: Ink, columns: usize) -> String {
    Format::Table.render(finding, ink, columns)
}

#[test]
fn a_comparison_of_one_cell_is_one_screen() {
    let glance = |finding: &CompareFinding| text::glance(&finding.document(), Ink::Plain, 100, "The rest: --full");
    let all = || fixture::all().into_iter().filter(|(_, finding)| finding.cells.len() == 1);
    for (name, finding) in all() {
        let text = glance(&finding);
        assert!(text.lines().count() <= 24, "{name}:\n{text}");
    }
    assert!(all().count() > 5);
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
fn every_metric_that_was_measured_is_on_the_page() {
    for (name, mut finding) in [("options", fixture::named("options")), ("sweep", fixture::named("sweep"))] {
        for metric in finding.cells.iter_mut().flat_map(|cell| cell.metrics.values_mut()) {
            metric.verdict = Verdict::NoDifference;
            metric.detected = false;
        }
        let page = report::html::html(&finding.document());
        for metric in finding.cells.iter().flat_map(measured).map(|(metric, _)| metric) {
            assert!(page.contains(words::of(metric).noun), "{name}: {}", metric.name());
        }
    }
}
