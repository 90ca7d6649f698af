//! Published numbers next to the measured ones.

use crate::blast::BlastFinding;
use crate::blast::finding::PointFinding;
use crate::blast::page::seed_form;
use crate::blast::plan::PublishedPackets;
use crate::compare::CompareFinding;
use crate::compare::finding::{CellFinding, MetricFinding};
use crate::pages::change::Change;
use crate::pages::{conditions, contents, words};
use model::elided_list::{distinct, elided_list, grouped};
use model::experiment::Published;
use model::stats::Estimate;
use report::document::{Block, Body, Cell, Column, Fact, Note, Table, Tone};
use report::number::MISSING;

/// One row for each published number. A number without a measured one has a remark that says why.
pub fn of_comparison(finding: &CompareFinding) -> Option<Block> {
    let published = &finding.published;
    let first = published.first()?;
    let in_sweep = published.iter().any(|row| !row.cell.is_empty());
    let of_arms = published.iter().any(|row| row.arm.is_some()) && contents::candidates(finding).len() > 1;
    let one_metric = published.iter().all(|row| row.metric == first.metric);
    let sources = distinct(published.iter().map(|row| row.source.as_str()));
    let mut columns = vec![Column::rows(if in_sweep { "cell" } else { "metric" })];
    columns.extend(of_arms.then(|| Column::text("arm")));
    columns.extend((in_sweep && !one_metric).then(|| Column::text("metric")));
    columns.extend(["baseline", "candidate"].map(|arm| Column::number(arm).spare(0)));
    columns.extend(["change", "ours"].map(Column::number));
    columns.extend((sources.len() > 1).then(|| Column::number("source")));
    let mut table = Table::new(columns);
    let mut lacking = Vec::new();
    for row in published {
        let words = words::of(row.metric);
        let point = contents::point(finding, &row.cell);
        let arm = row.arm.clone().unwrap_or_default();
        let ours = match ours(finding, row) {
            Ok(found) => Change::from(found).whole(),
            Err(why) => {
                let place = [point.as_str(), arm.as_str(), if one_metric { "" } else { words.head }];
                let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
                lacking.push((why, place));
                MISSING.to_owned()
            }
        };
        let (baseline, candidate) = words.pair(row.baseline, row.candidate);
        let change = Change::from(row.change.map(Estimate::bare));
        let mut cells = vec![Cell::from(if in_sweep { point } else { words.head.to_owned() })];
        cells.extend(of_arms.then(|| Cell::from(arm)));
        cells.extend((in_sweep && !one_metric).then(|| Cell::from(words.head)));
        cells.extend([baseline, candidate, change.percent(), ours].map(Cell::from));
        let number = sources.iter().position(|source| *source == row.source).map_or(0, |index| index + 1);
        cells.extend((sources.len() > 1).then(|| Cell::from(format!("[{number}]"))));
        table.row(cells);
    }
    let lacking = grouped(lacking).into_iter().map(|(why, places)| {
        // A reason for all rows needs no places.
        let places = if places.len() == published.len() { Vec::new() } else { places };
        let places = if places.is_empty() { String::new() } else { format!("{}: ", elided_list(&places, ", ")) };
        Note::new(Tone::Notice, format!("no measured value: {places}{why}"))
    });
    let sources = sources.iter().enumerate().map(|(index, source)| match sources.len() {
        1 => format!("source: {source}"),
        _ => format!("[{}] {source}", index + 1),
    });
    let notes = lacking.chain(sources.map(Note::remark)).collect();
    let head = if in_sweep && one_metric { format!(" {}", words::of(first.metric).head) } else { String::new() };
    Some(Block::new(format!("Published{head}"), Body::Table(table)).with(notes))
}

/// The measured value for a published one, or why there is none.
fn ours<'a>(finding: &'a CompareFinding, published: &Published) -> Result<&'a MetricFinding, String> {
    let of_arm = |cell: &&CellFinding| published.arm.as_ref().is_none_or(|arm| *arm == cell.arm);
    let at = |cell: &&CellFinding| published.cell.iter().all(|(axis, value)| cell.cell.get(axis) == Some(value));
    let fitting: Vec<&CellFinding> = finding.cells.iter().filter(of_arm).filter(at).collect();
    let [only] = fitting.as_slice() else {
        let arms = contents::candidates(finding);
        return Err(match fitting.first() {
            None => "it was not measured".to_owned(),
            Some(first) if fitting.iter().any(|cell| cell.arm != first.arm) => {
                format!("it does not say which arm it belongs to ({}); add arm = to its [[published]]", arms.join(", "))
            }
            Some(_) => "it fits several points of the sweep; add cell = to its [[published]]".to_owned(),
        });
    };
    let found = contents::metric(only, published.metric);
    found.filter(|found| found.change.is_some()).ok_or_else(|| {
        let reason = found.and_then(|found| found.reason.as_deref()).unwrap_or("it was not measured");
        conditions::reason(reason).to_owned()
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::page::fixture as comparisons;

    fn notes(change: impl FnOnce(&mut CompareFinding)) -> (String, String) {
        let mut finding = comparisons::named("three_arms");
        finding.published = comparisons::named("options").published;
        change(&mut finding);
        let block = of_comparison(&finding).unwrap();
        let Body::Table(table) = &block.body else { panic!("no table") };
        let ours = table.columns.iter().position(|column| column.head == "ours").unwrap();
        let report::document::Row::Cells(_, cells) = &table.rows[0] else { panic!("no cells") };
        (cells[ours].text.clone(), block.notes[0].text.clone())
    }

    #[test]
    fn one_of_several_arms_is_named_or_the_reason_is_shown() {
        let (ours, note) = notes(|_| {});
        assert_eq!(ours, MISSING);
        assert!(note.starts_with("no measured value: it does not say which arm it belongs to ("), "{note}");
        let (ours, note) = notes(|finding| {
            let arm = finding.arms[2].name.clone();
            finding.published[0].arm = Some(arm);
        });
        assert!(ours.contains('%') && note.starts_with("source: "), "{ours} {note}");
    }
}
