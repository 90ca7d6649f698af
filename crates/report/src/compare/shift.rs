//! The latency shift: the change of each percentile, from the fastest I/Os to the slowest.

use super::{contents, words};
use crate::change::Change;
use crate::document::{Axis, Block, Body, Cell, Chart, Column, Mark, Note, Point, Series, Table, Tone};
use crate::number::MISSING;
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, ShiftPoint};
use model::experiment::Metric;

/// The chart and the table of one comparison.
pub fn blocks(finding: &CompareFinding, cell: &CellFinding) -> Vec<Block> {
    let charts = Body::Charts(chart(finding, cell).into_iter().collect());
    let missing = cell.shift.iter().any(|point| point.change.is_none());
    let note = Note::new(Tone::Faint, format!("{MISSING} no change: too few I/Os for an interval"));
    let table = Block::new("", Body::Table(table(finding, cell)));
    let blocks = vec![Block::new("", charts), table.with(missing.then_some(note).into_iter().collect())];
    if cell.shift.is_empty() { Vec::new() } else { blocks }
}

fn name(point: &ShiftPoint) -> String {
    format!("p{}", point.percent)
}

/// Its name on the axis, where all are percentiles and letters are scarce.
fn short_name(point: &ShiftPoint) -> String {
    point.percent.to_string()
}

fn chart(finding: &CompareFinding, cell: &CellFinding) -> Option<Chart> {
    let margin = finding.rules.margin;
    let point = |(place, point): (usize, &ShiftPoint)| {
        let change = Change::from(point.change?);
        let ends = change.ends()?;
        let hint = format!("{}: {}", name(point), change.whole());
        Some(Point { x: place as f64, y: change.value?, ends: Some(ends), hint })
    };
    let points: Vec<Point> = cell.shift.iter().enumerate().filter_map(point).collect();
    (!points.is_empty()).then(|| Chart {
        title: "change of latency at each percentile (50: the median) with its interval".to_owned(),
        of: String::new(),
        x: Axis::Steps(cell.shift.iter().map(short_name).collect()),
        y: Axis::Change,
        marks: vec![Mark::Band(-margin, margin), Mark::Level(0.0)],
        series: vec![Series { subject: contents::arm_index(finding, &cell.arm), joined: true, dot: 9, points }],
    })
}

fn table(finding: &CompareFinding, cell: &CellFinding) -> Table {
    let heads = [contents::baseline(finding), &cell.arm, "change", "95 %"].map(Column::number);
    let mut table = Table::new([vec![Column::text("percentile")], heads.to_vec()].concat());
    for point in &cell.shift {
        let (baseline, candidate) =
            words::of(Metric::LatencyMean).pair(Some(point.baseline_ns), Some(point.candidate_ns));
        let change = point.change.map(Change::from).unwrap_or_default();
        let fields = [name(point), baseline, candidate, change.percent(), change.interval()];
        table.row(fields.map(Cell::from).to_vec());
    }
    table
}
