//! Drawings. A sweep as curves along its numeric axis: a curve for each arm. Chains of calls as flame graphs: width is instructions per I/O,
//! colour the change against the baseline.

use super::tables::rows;
use super::words;
use crate::document::{self, Axis, Calls, Chart, Point, Series};
use crate::flame_graph::svg;
use crate::number::COUNT;
use model::experiment::Axis as Swept;
use model::guest::GuestFinding;
use model::guest::finding::PointFinding;
use std::collections::BTreeMap;

/// Radius of the dot of a point.
const DOT: u32 = 8;
/// More charts are no help.
const MOST: usize = 12;

/// The points of each curve, by number of the arm, each with its place on the axis.
type Curves<'a> = BTreeMap<usize, Vec<(f64, &'a PointFinding)>>;

/// A chart for each combination of what is neither on the axis nor compared. None without a numeric axis.
pub(super) fn charts(finding: &GuestFinding) -> Vec<Chart> {
    let compared = finding.compared.as_deref();
    let axes: Vec<Swept> = axes(finding);
    let numeric = |axis: &&Swept| axis.numbers().is_some_and(|numbers| numbers.len() > 1);
    // What is compared gives the curves, if anything else can give the axis.
    let others = axes.iter().filter(|axis| Some(axis.name.as_str()) != compared).find(numeric);
    let Some(axis) = others.or_else(|| axes.iter().find(numeric)) else { return Vec::new() };
    let numbers = axis.numbers().unwrap_or_default();
    let named: Vec<(f64, String)> = numbers.into_iter().zip(axis.values.iter().cloned()).collect();
    let arms_are_curves = compared != Some(axis.name.as_str());
    let mut charts: BTreeMap<String, Curves> = BTreeMap::new();
    for row in rows(finding) {
        for (arm, point) in row.points.iter().enumerate() {
            let Some(point) = point else { continue };
            let Some(value) = point.cell.get(&axis.name) else { continue };
            let Some((place, _)) = named.iter().find(|(_, name)| name == value) else { continue };
            let mut rest = (*point).clone();
            rest.cell.remove(&axis.name);
            let group = charts.entry(words::named(finding, &rest)).or_default();
            group.entry(if arms_are_curves { arm } else { 0 }).or_default().push((*place, point));
        }
    }
    let chart = |(of, curves): (String, Curves)| {
        let series = curves.into_iter().map(|(subject, mut points)| {
            points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let points = points.into_iter().filter_map(|(place, point)| drawn(finding, place, point)).collect();
            Series { subject, joined: true, dot: DOT, points }
        });
        Chart {
            title: format!("instructions per I/O by {} {of}", words::axis(&axis.name)).trim_end().to_owned(),
            x: Axis::Named(named.clone()),
            y: Axis::Amount { units: COUNT, from_zero: true },
            marks: Vec::new(),
            series: series.collect(),
        }
    };
    let drawable = |chart: &Chart| chart.series.iter().any(|series| !series.points.is_empty());
    charts.into_iter().map(chart).filter(drawable).take(MOST).collect()
}

/// Every swept name with its values, in the order of the points.
fn axes(finding: &GuestFinding) -> Vec<Swept> {
    let mut axes: Vec<Swept> = Vec::new();
    for (name, value) in finding.points.iter().flat_map(|point| &point.cell) {
        match axes.iter_mut().find(|axis| axis.name == *name) {
            Some(axis) if axis.values.contains(value) => {}
            Some(axis) => axis.values.push(value.clone()),
            None => axes.push(Swept { name: name.clone(), values: vec![value.clone()] }),
        }
    }
    axes
}

fn drawn(finding: &GuestFinding, x: f64, point: &PointFinding) -> Option<Point> {
    let value = point.instructions_per_io.filter(|value| value.value.is_finite())?;
    let change = point.change.as_ref().map_or_else(String::new, |change| {
        format!(
            ", {} against {}",
            words::change_in_full(&change.change),
            finding.arms.first().map_or("", String::as_str)
        )
    });
    let hint = format!("{}: {}{change}", words::point(finding, point), words::plus_minus(&value));
    Some(Point { ends: value.ends(), hint, ..Point::new(x, value.value) })
}

/// A flame graph as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameGraph {
    /// `flame-2-debian_6.12.svg`.
    pub name: String,
    pub text: String,
}

/// A flame graph of each point whose calls were followed.
pub fn flame_graphs(finding: &GuestFinding) -> Vec<FlameGraph> {
    let with_chains = finding.points.iter().enumerate().filter(|(_, point)| !point.chains.is_empty());
    with_chains.filter_map(|(number, point)| flame_graph(finding, number, point)).collect()
}

fn flame_graph(finding: &GuestFinding, number: usize, point: &PointFinding) -> Option<FlameGraph> {
    let baseline = point.change.as_ref().and_then(|_| {
        let same = |other: &&PointFinding| {
            Some(&other.arm) == finding.arms.first()
                && words::row(finding, other) == words::row(finding, point)
                && !other.chains.is_empty()
        };
        finding.points.iter().find(same)
    });
    let mut lines: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for chain in baseline.iter().flat_map(|baseline| &baseline.chains) {
        lines.entry(&chain.calls).or_default().0 += chain.instructions_per_io;
    }
    for chain in &point.chains {
        lines.entry(&chain.calls).or_default().1 += chain.instructions_per_io;
    }
    let calls = lines.into_iter().map(|(calls, (before, after))| Calls {
        calls: calls.to_owned(),
        cost: after,
        before: baseline.map(|_| before),
    });
    let graph = document::FlameGraph {
        title: words::point(finding, point),
        subtitle: baseline.map(|baseline| format!("red: more instructions than {}, blue: fewer", baseline.arm)),
        what: "instructions".to_owned(),
        calls: calls.collect(),
    };
    let text = svg(&graph)?;
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '_' };
    let arm: String = point.arm.chars().map(plain).collect();
    Some(FlameGraph { name: format!("flame-{}-{arm}.svg", number + 1), text })
}
