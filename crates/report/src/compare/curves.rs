//! A sweep as curves: the change along the numeric axis, the cost of each arm, and where they cross.

use super::{contents, words};
use crate::change::Change;
use crate::document::{Axis, Chart, Mark, Point, Series};
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding};
use model::experiment::Metric;
use std::collections::BTreeMap;

/// Radius of the dot of a cell.
const DOT: u32 = 8;

/// The values of the other axes.
type Group = BTreeMap<String, String>;

/// Two charts for each target metric and each combination of the other axes' values: the changes and the values.
pub fn charts(finding: &CompareFinding) -> Vec<Chart> {
    let Some((axis, numbers)) = contents::curve_axis(finding) else { return Vec::new() };
    let named: Vec<(f64, String)> = numbers.into_iter().zip(axis.values.iter().cloned()).collect();
    let sweep = Sweep { finding, axis: &axis.name, named };
    let mut groups: Vec<Group> = Vec::new();
    for cell in &finding.cells {
        let group = sweep.group(cell);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
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
