//! The charts of a comparison: every slice over time, the shift of latency at each percentile, and a sweep as curves.

use crate::change::Change;
use crate::document::{Axis, Block, Body, Cell, Chart, Column, Mark, Note, Point, Series, Table};
use crate::number::MISSING;
use crate::{contents, words};
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding, ShiftPoint, SlicePoint};
use model::elided_list::distinct;
use model::experiment::Metric;
use std::collections::BTreeMap;

/// The slices of one comparison: cycles and I/Os.
pub fn slices(finding: &CompareFinding, cell: &CellFinding) -> Vec<Chart> {
    let cycles = of_metric(finding, cell, Metric::CyclesPerIo, |slice| slice.cycles_per_io);
    let rate = of_metric(finding, cell, Metric::Iops, |slice| slice.iops);
    cycles.into_iter().chain(rate).collect()
}

fn of_metric(
    finding: &CompareFinding,
    cell: &CellFinding,
    metric: Metric,
    value: fn(&SlicePoint) -> Option<f64>,
) -> Option<Chart> {
    let series = |baseline: bool| {
        let slices = cell.slices.iter().filter(|slice| slice.baseline == baseline && slice.seconds.is_finite());
        let points = slices.filter_map(|slice| Some(Point::new(slice.seconds, value(slice)?)));
        let points = points.filter(|point| point.y.is_finite()).collect();
        let subject = if baseline { 0 } else { contents::arm_index(finding, &cell.arm) };
        Series { subject, joined: false, dot: 4, points }
    };
    let series = [true, false].map(series).to_vec();
    series.iter().any(|series| !series.points.is_empty()).then(|| Chart {
        title: words::of(metric).noun.to_owned(),
        of: String::new(),
        x: Axis::Time,
        y: Axis::Amount { units: words::of(metric).units, from_zero: false },
        marks: Vec::new(),
        series,
    })
}

/// The chart and the table of one comparison.
pub fn shift(finding: &CompareFinding, cell: &CellFinding) -> Vec<Block> {
    let charts = Body::Charts(chart(finding, cell).into_iter().collect());
    let missing = cell.shift.iter().any(|point| point.change.is_none());
    let note = Note::remark(format!("{MISSING} no change: too few I/Os for an interval"));
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

/// Radius of the dot of a cell.
const DOT: u32 = 8;

/// The values of the other axes.
type Group = BTreeMap<String, String>;

/// Two charts for each target metric and each combination of the other axes' values: the changes and the values.
pub fn curves(finding: &CompareFinding) -> Vec<Chart> {
    let Some((axis, numbers)) = contents::curve_axis(finding) else { return Vec::new() };
    let named: Vec<(f64, String)> = numbers.into_iter().zip(axis.values.iter().cloned()).collect();
    let sweep = Sweep { finding, axis: &axis.name, named };
    let groups = distinct(finding.cells.iter().map(|cell| sweep.group(cell)));
    let metrics = contents::targets(finding);
    let both = |metric, group| [sweep.changes(metric, group), sweep.values(metric, group)];
    metrics.iter().flat_map(|metric| groups.iter().flat_map(move |group| both(*metric, group))).flatten().collect()
}

/// What all charts of a sweep share.
struct Sweep<'a> {
    finding: &'a CompareFinding,
    axis: &'a str,
    named: Vec<(f64, String)>,
}

impl Sweep<'_> {
    fn group(&self, cell: &CellFinding) -> Group {
        let others = cell.cell.iter().filter(|(name, _)| name.as_str() != self.axis);
        others.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The cells of an arm in a group, each with its value on the axis.
    fn cells(&self, arm: &str, group: &Group) -> Vec<(f64, &CellFinding)> {
        let cells = self.finding.cells.iter().filter(|cell| cell.arm == arm && self.group(cell) == *group);
        let mut cells: Vec<_> = cells.filter_map(|cell| Some((self.place(cell)?, cell))).collect();
        cells.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        cells
    }

    fn place(&self, cell: &CellFinding) -> Option<f64> {
        let value = cell.cell.get(self.axis)?;
        self.named.iter().find(|(_, name)| name == value).map(|(place, _)| *place)
    }

    /// The changes with their intervals, one colour for each arm.
    fn changes(&self, metric: Metric, group: &Group) -> Option<Chart> {
        let margin = self.finding.rules.margin;
        let series = contents::candidates(self.finding).into_iter().map(|arm| {
            let point = |(place, cell): (f64, &CellFinding)| {
                let found = contents::metric(cell, metric)?;
                let change = Change::from(found);
                let hint = self.hint(metric, arm, place, found);
                Some(Point { x: place, y: change.value?, ends: change.ends(), hint })
            };
            let points = self.cells(arm, group).into_iter().filter_map(point).collect();
            Series { subject: contents::arm_index(self.finding, arm), joined: true, dot: DOT, points }
        });
        let series: Vec<Series> = series.collect();
        let drawable = series.iter().any(|series| !series.points.is_empty());
        let mut marks = self.crossings(metric, group);
        marks.extend([Mark::Band(-margin, margin), Mark::Level(0.0)]);
        let title = format!("change in {}", words::of(metric).noun);
        drawable.then(|| self.chart(title, group, Axis::Change, marks, series))
    }

    /// The values of all arms.
    fn values(&self, metric: Metric, group: &Group) -> Option<Chart> {
        let words = words::of(metric);
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let mut all: Vec<Series> = Vec::new();
        for (index, arm) in contents::candidates(self.finding).into_iter().enumerate() {
            let cells = self.cells(arm, group);
            let found = || cells.iter().filter_map(|(place, cell)| Some((*place, contents::metric(cell, metric)?)));
            let mut add = |subject, points| all.push(Series { subject, joined: true, dot: DOT, points });
            // All arms share the baseline, so it is drawn once.
            if index == 0 {
                add(0, found().filter_map(|(place, found)| Some(Point::new(place, finite(found.baseline)?))).collect());
            }
            let point = |(place, found): (f64, &MetricFinding)| {
                let hint = self.hint(metric, arm, place, found);
                Some(Point { hint, ..Point::new(place, finite(found.candidate)?) })
            };
            add(contents::arm_index(self.finding, arm), found().filter_map(point).collect());
        }
        let axis = Axis::Amount { units: words.units, from_zero: true };
        let marks = self.crossings(metric, group);
        let drawable = all.iter().any(|series| !series.points.is_empty());
        drawable.then(|| self.chart(words.noun.to_owned(), group, axis, marks, all))
    }

    fn chart(&self, title: String, group: &Group, y: Axis, marks: Vec<Mark>, series: Vec<Series>) -> Chart {
        let of = contents::point(self.finding, group);
        Chart { title, of, x: Axis::Named(self.named.clone()), y, marks, series }
    }

    /// The tooltip of a cell.
    fn hint(&self, metric: Metric, arm: &str, place: f64, found: &MetricFinding) -> String {
        let (baseline, candidate) = words::of(metric).pair(found.baseline, found.candidate);
        let at = self.named.iter().find(|(other, _)| *other == place).map_or("", |(_, name)| name.as_str());
        let (change, verdict) = (Change::from(found).whole(), words::verdict(found.verdict));
        format!("{arm}, {}={at}: {baseline} → {candidate}, {change}, {verdict}", self.axis)
    }

    /// The crossovers: a line within the shaded range of its interval.
    fn crossings(&self, metric: Metric, group: &Group) -> Vec<Mark> {
        let ends = self.named.first().zip(self.named.last());
        let Some(((first, _), (last, _))) = ends else { return Vec::new() };
        let ours = self.finding.crossovers.iter().filter(|crossover| {
            crossover.axis == self.axis && crossover.metric == metric.name() && crossover.at == *group
        });
        let inside = |value: f64| value.is_finite() && (*first..=*last).contains(&value);
        ours.filter_map(|crossover| crossover.value.filter(|value| inside(*value)).map(|value| (crossover, value)))
            .flat_map(|(crossover, value)| {
                let low = crossover.low.filter(|low| inside(*low)).unwrap_or(*first);
                let high = crossover.high.filter(|high| inside(*high)).unwrap_or(*last);
                [Mark::Column(low, high), Mark::Upright(value)]
            })
            .collect()
    }
}
