//! A sweep as curves: how the change goes along the numeric axis, what each arm cost, and where they cross.

use super::axis::Axis;
use super::chart::{Hint, Shape, chart};
use super::markup::{element, escape};
use super::svg::Paint;
use crate::compare::change::Change;
use crate::compare::changes::LARGEST;
use crate::compare::{contents, words};
use model::comparison::CompareFinding;
use model::comparison::finding::{CellFinding, MetricFinding};
use model::experiment::Metric;
use std::collections::BTreeMap;

/// Radius of a cell's dot.
const DOT: u32 = 8;

/// The other axes' values.
type Group = BTreeMap<String, String>;

/// Two charts for each target metric and each combination of the other axes' values: the change, and the values.
pub fn curves(finding: &CompareFinding) -> String {
    let Some((axis, numbers)) = contents::curve_axis(finding) else { return String::new() };
    let named: Vec<(f64, String)> = numbers.into_iter().zip(axis.values.iter().cloned()).collect();
    let Some(across) = Axis::of_named(&named) else { return String::new() };
    let sweep = Sweep { finding, axis: &axis.name, named: &named, across };
    let mut groups: Vec<Group> = Vec::new();
    for cell in &finding.cells {
        let group = sweep.group(cell);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let metrics = contents::targets(finding);
    let both = |metric, group| sweep.changes(metric, group) + &sweep.values(metric, group);
    let charts = metrics.iter().flat_map(|metric| groups.iter().map(move |group| both(*metric, group)));
    let charts = charts.collect::<String>();
    if charts.is_empty() { charts } else { element("div", "charts", &charts) }
}

/// What all charts of a sweep share.
struct Sweep<'a> {
    finding: &'a CompareFinding,
    axis: &'a str,
    named: &'a [(f64, String)],
    across: Axis,
}

impl Sweep<'_> {
    fn group(&self, cell: &CellFinding) -> Group {
        let others = cell.cell.iter().filter(|(name, _)| name.as_str() != self.axis);
        others.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The cells of an arm in a group, each with its place.
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

    /// The change with its interval, each arm in its colour.
    fn changes(&self, metric: Metric, group: &Group) -> String {
        let margin = self.finding.rules.margin;
        let mut shapes = vec![Shape::Band(-margin, margin, Paint::Margin), Shape::Level(0.0, Paint::Zero)];
        let (mut hints, mut ends) = (Vec::new(), vec![-margin, margin]);
        for arm in contents::candidates(self.finding) {
            let paint = Paint::Arm(contents::arm_index(self.finding, arm));
            let mut dots = Vec::new();
            for (place, cell) in self.cells(arm, group) {
                let Some(found) = contents::metric(cell, metric) else { continue };
                let change = Change::from(found);
                let Some(value) = change.value else { continue };
                if let Some((low, high)) = change.ends() {
                    shapes.push(Shape::Interval(place, low, high, paint));
                    ends.extend([low, high]);
                }
                ends.push(value);
                dots.push((place, value));
                hints.push(Hint { at: (place, value), text: self.hint(metric, arm, place, found) });
            }
            shapes.push(Shape::Curve(dots.clone(), paint));
            shapes.push(Shape::Dots(dots, DOT, paint));
        }
        let (low, high) = ends.iter().fold((0.0f64, 0.0f64), |(low, high), end| (low.min(*end), high.max(*end)));
        if hints.is_empty() || low >= high || ends.iter().any(|end| end.abs() > LARGEST) {
            return String::new();
        }
        let Some(up) = Axis::of_changes(low, high) else { return String::new() };
        let mut all = self.crossings(metric, group);
        all.append(&mut shapes);
        self.figure(&format!("change in {}", words::of(metric).noun), group, &up, &all, &hints)
    }

    /// The values of all arms.
    fn values(&self, metric: Metric, group: &Group) -> String {
        let words = words::of(metric);
        let mut curves: Vec<(usize, Vec<(f64, f64)>)> = Vec::new();
        let mut hints: Vec<Hint> = Vec::new();
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        for (index, arm) in contents::candidates(self.finding).into_iter().enumerate() {
            let cells = self.cells(arm, group);
            let found = || cells.iter().filter_map(|(place, cell)| Some((*place, contents::metric(cell, metric)?)));
            // The baseline is the same beside every arm: the first one shows it.
            if index == 0 {
                curves.push((0, found().filter_map(|(place, found)| Some((place, finite(found.baseline)?))).collect()));
            }
            let curve = found().filter_map(|(place, found)| Some((place, finite(found.candidate)?)));
            curves.push((contents::arm_index(self.finding, arm), curve.collect()));
            hints.extend(found().filter_map(|(place, found)| {
                Some(Hint { at: (place, finite(found.candidate)?), text: self.hint(metric, arm, place, found) })
            }));
        }
        let values = curves.iter().flat_map(|(_, points)| points.iter().map(|(_, value)| *value));
        let Some(up) = Axis::of_metric(words, values, true) else { return String::new() };
        let mut shapes = self.crossings(metric, group);
        for (index, points) in curves {
            shapes.push(Shape::Curve(points.clone(), Paint::Arm(index)));
            shapes.push(Shape::Dots(points, DOT, Paint::Arm(index)));
        }
        self.figure(words.noun, group, &up, &shapes, &hints)
    }

    /// What a pointer finds at a cell.
    fn hint(&self, metric: Metric, arm: &str, place: f64, found: &MetricFinding) -> String {
        let (baseline, candidate) = words::of(metric).pair(found.baseline, found.candidate);
        let at = self.named.iter().find(|(other, _)| *other == place).map_or("", |(_, name)| name.as_str());
        let (change, verdict) = (Change::from(found).whole(), words::verdict(found.verdict));
        format!("{arm}, {}={at}: {baseline} → {candidate}, {change}, {verdict}", self.axis)
    }

    fn figure(&self, what: &str, group: &Group, up: &Axis, shapes: &[Shape], hints: &[Hint]) -> String {
        let at = contents::point(self.finding, group);
        let chart = chart(&format!("{what} along {} {at}", self.axis), &self.across, up, shapes, hints);
        if chart.is_empty() {
            return chart;
        }
        let at = element("small", "", &escape(&at));
        format!("<figure><figcaption>{} {at}</figcaption>{chart}</figure>\n", escape(what))
    }

    /// Where the curves cross: a line within the stretch of its interval.
    fn crossings(&self, metric: Metric, group: &Group) -> Vec<Shape> {
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
                [Shape::Column(low, high, Paint::Margin), Shape::Upright(value, Paint::Zero)]
            })
            .collect()
    }
}
