//! The charts of a comparison: every slice over time, the shift of latency at each percentile, and a sweep as curves.

use super::tables;
use crate::compare::CompareFinding;
use crate::compare::finding::{CellFinding, MetricFinding, ShiftPoint, SlicePoint};
use crate::pages::words::{self, Change};
use model::elided_list::distinct;
use model::experiment::Metric;
use report::document::{Axis, Block, Body, Cell, Chart, Column, Draw, Mark, Note, Point, Series, Table, Tone};
use report::number::MISSING;
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
        let subject = if baseline { 0 } else { super::arm_index(finding, &cell.arm) };
        Series { subject, joined: false, dot: 4, points }
    };
    let series = [true, false].map(series).to_vec();
    let words = words::of(metric);
    let drawable = series.iter().any(|series| !series.points.is_empty());
    drawable.then(|| Chart::over_time(words.noun, words.units, false, series))
}

/// The change of latency at each percentile.
pub fn shift(finding: &CompareFinding, cell: &CellFinding) -> Vec<Block> {
    let change = |point: &ShiftPoint| Change::from(point.change);
    let drawn = tables::scale(finding.rules.margin, cell.shift.iter().map(change));
    let heads = [super::baseline(finding), &cell.arm, "change", "95 %"].map(Column::number);
    let mut columns = [vec![Column::text("percentile")], heads.to_vec()].concat();
    columns.extend(drawn.map(|scale| Column::drawing(Draw::Interval(scale))));
    let mut table = Table::new(columns);
    for point in &cell.shift {
        let (baseline, candidate) =
            words::of(Metric::LatencyMean).pair(Some(point.baseline_ns), Some(point.candidate_ns));
        let change = change(point);
        let fields = [format!("p{}", point.percent), baseline, candidate, change.percent(), change.interval()];
        let drawing = drawn.map(|_| Cell::drawn(Tone::Plain, change.drawn()));
        table.row(fields.map(Cell::from).into_iter().chain(drawing).collect());
    }
    let missing = cell.shift.iter().any(|point| point.change.is_none());
    let note = Note::remark(format!("{MISSING} no change: too few I/Os for an interval"));
    vec![Block::new("", Body::Table(table)).with(missing.then_some(note).into_iter().collect())]
}

/// Radius of the dot of a cell.
const DOT: u32 = 8;

/// The values of the other axes.
type Group = BTreeMap<String, String>;

/// A chart of the values for each target metric and each combination of the other axes' values.
pub fn curves(finding: &CompareFinding) -> Vec<Chart> {
    let Some((axis, numbers)) = super::curve_axis(finding) else { return Vec::new() };
    let named: Vec<(f64, String)> = numbers.into_iter().zip(axis.values.iter().cloned()).collect();
    let sweep = Sweep { finding, axis: &axis.name, named };
    let groups = distinct(finding.cells.iter().map(|cell| sweep.group(cell)));
    let metrics = &finding.targets;
    let values = |metric, group| sweep.values(metric, group);
    metrics.iter().flat_map(|metric| groups.iter().filter_map(move |group| values(*metric, group))).collect()
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

    /// The values of all arms.
    fn values(&self, metric: Metric, group: &Group) -> Option<Chart> {
        let words = words::of(metric);
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let mut all: Vec<Series> = Vec::new();
        for (index, arm) in super::candidates(self.finding).into_iter().enumerate() {
            let cells = self.cells(arm, group);
            let found = || cells.iter().filter_map(|(place, cell)| Some((*place, super::metric(cell, metric)?)));
            let mut add = |subject, points| all.push(Series { subject, joined: true, dot: DOT, points });
            // All arms share the baseline, so it is drawn once.
            if index == 0 {
                add(0, found().filter_map(|(place, found)| Some(Point::new(place, finite(found.baseline)?))).collect());
            }
            let point = |(place, found): (f64, &MetricFinding)| {
                let hint = self.hint(metric, arm, place, found);
                Some(Point { hint, ..Point::new(place, finite(found.candidate)?) })
            };
            add(super::arm_index(self.finding, arm), found().filter_map(point).collect());
        }
        let of = super::point(self.finding, group);
        let drawable = all.iter().any(|series| !series.points.is_empty());
        drawable.then(|| Chart {
            title: if of.is_empty() { words.noun.to_owned() } else { format!("{}, {of}", words.noun) },
            x: Axis::Named(self.named.clone()),
            y: Axis::Amount { units: words.units, from_zero: true },
            marks: self.crossings(metric, group),
            series: all,
        })
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
        let ours = self.finding.sweep.crossovers.iter().filter(|crossover| {
            crossover.axis == self.axis && crossover.metric == metric.name() && crossover.at == *group
        });
        let inside = |value: f64| value.is_finite() && (*first..=*last).contains(&value);
        ours.filter_map(|crossover| crossover.value.filter(|value| inside(*value)).map(|value| (crossover, value)))
            .flat_map(|(crossover, value)| {
                let low = crossover.low.filter(|low| inside(*low)).unwrap_or(*first);
                let high = crossover.high.filter(|high| inside(*high)).unwrap_or(*last);
                [(low, high), (value, value)].map(|across| Mark { across: Some(across), ..Mark::default() })
            })
            .collect()
    }
}
