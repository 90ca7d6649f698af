//! Published numbers next to the measured ones.

use super::conditions;
use crate::compare::CompareFinding;
use crate::compare::finding::{CellFinding, MetricFinding};
use crate::pages::words::{self, Change};
use model::elided_list::{distinct, elided_list, grouped};
use model::experiment::Published;
use model::stats::Estimate;
use report::document::{Block, Body, Cell, Column, Note, Table, Tone};
use report::number::MISSING;

/// One row for each published number. A number without a measured one has a remark that says why.
pub fn of_comparison(finding: &CompareFinding) -> Option<Block> {
    let published = &finding.published;
    let first = published.first()?;
    let in_sweep = published.iter().any(|row| !row.cell.is_empty());
    let of_arms = published.iter().any(|row| row.arm.is_some()) && super::candidates(finding).len() > 1;
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
        let point = super::point(finding, &row.cell);
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
        let arms = super::candidates(finding);
        return Err(match fitting.first() {
            None => "it was not measured".to_owned(),
            Some(first) if fitting.iter().any(|cell| cell.arm != first.arm) => {
                format!("it does not say which arm it belongs to ({}); add arm = to its [[published]]", arms.join(", "))
            }
            Some(_) => "it fits several points of the sweep; add cell = to its [[published]]".to_owned(),
        });
    };
    let found = super::metric(only, published.metric);
    found.filter(|found| found.change.is_some()).ok_or_else(|| {
        let reason = found.and_then(|found| found.reason.as_deref()).unwrap_or("it was not measured");
        conditions::reason(reason).to_owned()
    })
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
