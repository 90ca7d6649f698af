//! Published rates next to the measured ones.

use super::seed_form;
use crate::blast::BlastFinding;
use crate::blast::finding::PointFinding;
use crate::blast::plan::PublishedPackets;
use model::stats::Estimate;
use report::document::{Block, Body, Cell, Column, Fact, Note, Table};
use report::number::MISSING;

/// One row for each published figure and point that it stands for. The ratios are to the first row: two machines have no common
/// rate, but may have a common ratio.
pub fn of_packets(finding: &BlastFinding) -> Vec<Block> {
    let Some(first) = finding.published.first() else { return Vec::new() };
    let mut table = Table::new(vec![
        Column::rows("method"),
        Column::number("submitters"),
        Column::number("published kpps"),
        Column::number("÷ first"),
        Column::number("measured kpps"),
        Column::number("÷ first"),
    ]);
    let mut sources = Vec::new();
    let ours = |published: &PublishedPackets| -> Vec<&PointFinding> {
        finding.points.iter().filter(|point| published.is_of(point.point())).collect()
    };
    let first_published = first.sent_per_second();
    let first_ours = ours(first).first().copied();
    // The study divides by the first point of all.
    let begins = first_ours.zip(finding.points.first()).is_some_and(|(ours, first)| ours.point() == first.point());
    let measured = |point: &PointFinding| match point.sent_ratio.filter(|_| begins) {
        Some(Estimate { value, low: Some(low), high: Some(high) }) => format!("{value:.2} [{low:.2}, {high:.2}]"),
        _ => ratio(Some(point.sent_per_second), first_ours.map(|first| first.sent_per_second)),
    };
    for published in &finding.published {
        // Nothing that a terminal shows as a blank at the end.
        let source = published.source.trim_end_matches(|letter: char| letter.is_whitespace() || letter.is_control());
        for point in ours(published) {
            table.row(vec![
                Cell::from(point.point().way()),
                Cell::from(point.submitters.to_string()),
                Cell::from(published.kpps.as_str()),
                Cell::from(ratio(published.sent_per_second(), first_published)),
                Cell::from(seed_form(point)),
                Cell::from(measured(point)),
            ]);
        }
        sources.push(Fact::new(format!("{} × {}", published.method.name(), published.submitters), source));
    }
    let note = "Sent + refused, in thousands per second. The published ones are of other machines and devices: compare the ratios to \
                the first row, with their 95 % intervals over rounds if it is the first point.";
    vec![Block::new("", Body::Table(table)).with(vec![Note::remark(note)]), Block::new("Sources", Body::Facts(sources))]
}

/// "0.92", or a dash.
fn ratio(value: Option<f64>, first: Option<f64>) -> String {
    let ratio = value.zip(first.filter(|first| *first > 0.0)).map(|(value, first)| value / first);
    ratio.map_or_else(|| MISSING.to_owned(), |ratio| format!("{ratio:.2}"))
}
