//! The latency shift: how much each percentile moved, from the quick I/Os to the slow ones.

use super::axis::Axis;
use super::chart::{Hint, Shape, chart};
use super::markup::{element, escape};
use super::svg::Paint;
use crate::compare::change::Change;
use crate::compare::{contents, words};
use crate::number;
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, ShiftPoint};
use model::experiment::Metric;

/// Radius of a percentile's dot.
const DOT: u32 = 9;

/// The chart and the table of one comparison.
pub fn shift(finding: &CompareFinding, cell: &CellFinding) -> String {
    if cell.shift.is_empty() {
        return String::new();
    }
    let chart = drawn(finding, cell);
    let figure = if chart.is_empty() {
        chart
    } else {
        format!("<figure><figcaption>change of latency at each percentile</figcaption>{chart}</figure>\n")
    };
    element("div", "charts", &(figure + &table(finding, cell)))
}

fn name(point: &ShiftPoint) -> String {
    format!("p{}", point.percent)
}

fn drawn(finding: &CompareFinding, cell: &CellFinding) -> String {
    let known = |point: &ShiftPoint| point.change.map(Change::from).filter(|change| change.ends().is_some());
    let changes: Vec<(f64, &ShiftPoint, Change)> =
        cell.shift.iter().enumerate().filter_map(|(index, point)| Some((index as f64, point, known(point)?))).collect();
    let margin = finding.rules.margin;
    let ends = changes.iter().filter_map(|(_, _, change)| change.ends());
    let ends = ends.chain([(-margin, margin)]).filter(|(low, high)| low.abs() < 1e3 && high.abs() < 1e3);
    let (low, high) = ends.fold((0.0f64, 0.0f64), |(low, high), ends| (low.min(ends.0), high.max(ends.1)));
    if changes.is_empty() || low >= high {
        return String::new();
    }
    let names: Vec<(f64, String)> =
        cell.shift.iter().enumerate().map(|(index, point)| (index as f64, name(point))).collect();
    let Some(across) = Axis::of_steps(&names) else { return String::new() };
    let Some(up) = Axis::of_changes(low, high) else { return String::new() };
    let paint = Paint::Arm(contents::arm_index(finding, &cell.arm));
    let mut shapes = vec![Shape::Band(-margin, margin, Paint::Margin), Shape::Level(0.0, Paint::Zero)];
    shapes.extend(changes.iter().filter_map(|(place, _, change)| {
        let (low, high) = change.ends()?;
        Some(Shape::Interval(*place, low, high, paint))
    }));
    let dots = changes.iter().filter_map(|(place, _, change)| Some((*place, change.value?)));
    let dots: Vec<(f64, f64)> = dots.collect();
    let hints: Vec<Hint> = changes
        .iter()
        .filter_map(|(place, point, change)| {
            Some(Hint { at: (*place, change.value?), text: format!("{}: {}", name(point), change.whole()) })
        })
        .collect();
    shapes.push(Shape::Curve(dots.clone(), paint));
    shapes.push(Shape::Dots(dots, DOT, paint));
    chart("change of latency at each percentile, with its interval", &across, &up, &shapes, &hints)
}

fn table(finding: &CompareFinding, cell: &CellFinding) -> String {
    let words = words::of(Metric::LatencyMean);
    let rows = cell.shift.iter().map(|point| {
        let (baseline, candidate) = words.pair(Some(point.baseline_ns), Some(point.candidate_ns));
        let change = point.change.map(Change::from).unwrap_or_default();
        let fields = [baseline, candidate, change.percent(), change.interval()];
        let fields: String = fields.iter().map(|field| format!("<td class=\"n\">{}</td>", escape(field))).collect();
        format!("<tr><th scope=\"row\">{}</th>{fields}</tr>\n", escape(&name(point)))
    });
    let heads = ["percentile", contents::baseline(finding), &cell.arm, "change", "95 %"];
    let heads = heads.iter().enumerate().map(|(index, head)| {
        let class = if index == 0 { "" } else { " class=\"n\"" };
        format!("<th scope=\"col\"{class}>{}</th>", escape(head))
    });
    let (heads, rows) = (heads.collect::<String>(), rows.collect::<String>());
    let missing = cell.shift.iter().any(|point| point.change.is_none());
    let note = if missing {
        format!("<p class=\"note\">{} without a change: too few I/Os for its interval</p>", number::MISSING)
    } else {
        String::new()
    };
    format!(
        "<div class=\"scroll\"><table><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table>{note}</div>\n"
    )
}
