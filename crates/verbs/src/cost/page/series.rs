//! A phase over time as charts: the rate and the cost per I/O, with the mean and regimes.

use model::experiment::Metric;
use model::finding::{PhaseFinding, SeriesPoint};
use report::document::{Audience, Block, Body, Chart, Mark, Note, Point, Section, Series};
use report::number::{self, COUNT};

/// Maximum number of points with tooltips; more would overlap.
const HINTED: usize = 120;

/// The charts of a phase.
pub fn section(phase: &PhaseFinding) -> Section {
    let rate = chart(phase, "I/Os per second", |point| point.iops, Vec::new());
    let level = |ends| Mark { upright: Some(ends), ..Mark::default() };
    let told = phase.told(Metric::CyclesPerIo);
    let mean = told.and_then(|told| told.ends()).into_iter().chain(told.map(|told| (told.value, told.value)));
    let cost = chart(phase, "cycles per I/O", |point| point.cycles_per_io, mean.map(level).collect());
    let has_mean = cost.is_some() && told.is_some();
    let mut charts: Vec<Chart> = rate.into_iter().chain(cost).collect();
    // If I/Os are not counted live, show the load instead.
    if charts.is_empty() {
        charts.extend(chart(phase, "CPUs busy, including the background", |point| point.busy_cpus, Vec::new()));
    }
    let mut notes = Vec::new();
    if has_mean {
        notes.push("The dashed line is the mean of the phase; the band is its 95 % interval.");
    }
    if !charts.is_empty() && phase.regimes.iter().any(|regime| regime.first_execution.is_none()) {
        notes.push("A dashed vertical line marks where the rate stepped and another regime began.");
    }
    let notes = notes.into_iter().map(Note::remark).collect();
    Section::on_page("Over time", vec![Block::new("", Body::Charts(charts)).of(Audience::PAGE).with(notes)])
}

fn chart(
    phase: &PhaseFinding,
    title: &str,
    value: fn(&SeriesPoint) -> Option<f64>,
    mut marks: Vec<Mark>,
) -> Option<Chart> {
    let hinted = phase.series.len() <= HINTED;
    let point = |point: &SeriesPoint| {
        let y = value(point).filter(|value| value.is_finite())?;
        let hint = || format!("{}: {}", number::seconds(point.seconds), number::with_unit(COUNT, y));
        let hint = if hinted { hint() } else { String::new() };
        Some(Point { hint, ..Point::new(point.seconds, y) })
    };
    let points: Vec<Point> = phase.series.iter().filter(|point| point.seconds.is_finite()).filter_map(point).collect();
    // A single window is the same as the mean.
    if points.len() < 2 {
        return None;
    }
    let stepped = || phase.regimes.iter().filter(|regime| regime.first_execution.is_none());
    let begins = stepped().skip(1).map(|regime| (regime.begin_seconds, regime.begin_seconds));
    marks.extend(begins.map(|at| Mark { across: Some(at), ..Mark::default() }));
    let series = vec![Series { subject: 1, joined: true, dot: if hinted { 5 } else { 0 }, points }];
    Some(Chart { marks, ..Chart::over_time(title, COUNT, true, series) })
}
