//! The latencies of a job as a curve over the percentiles: where the tail begins, and how long it is.

use super::latency;
use crate::document::{Audience, Axis, Block, Body, Chart, Note, Point, Series, Tone};
use crate::number::{self, NANOS};
use model::finding::{JobFinding, LatencyFinding, RunFinding};

/// More charts are no help.
const MOST: usize = 8;
/// Fewer points are no curve.
const LEAST_POINTS: usize = 3;
/// Percentiles with a name on the axis, as far as there are points.
const NAMED: [f64; 7] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
/// The last percentile with a place.
const LAST: f64 = 99.999_999;

/// A chart for each job and direction.
pub fn block(finding: &RunFinding) -> Block {
    let several = finding.merged_jobs.len() > 1;
    let of = |job: &JobFinding| {
        let name = if several { format!("{}, ", job.name) } else { String::new() };
        let rows = latency::rows(job).into_iter();
        rows.filter_map(|(direction, _, latency)| chart(format!("{name}{direction}"), latency)).collect::<Vec<_>>()
    };
    let charts: Vec<Chart> = finding.merged_jobs.iter().flat_map(of).take(MOST).collect();
    let note =
        "Each further nine has the same width: one I/O in 100 took longer than p99, one in 1,000 longer than p99.9.";
    let notes = if charts.is_empty() { Vec::new() } else { vec![Note::new(Tone::Faint, note)] };
    Block::new("", Body::Charts(charts)).of(Audience::PAGE).with(notes)
}

/// Where a percentile is on the axis: one I/O in this many took longer.
fn place(percent: f64) -> f64 {
    100.0 / (100.0 - percent)
}

fn chart(of: String, latency: &LatencyFinding) -> Option<Chart> {
    let LatencyFinding { p50, p90, p99, p999, p9999, .. } = latency;
    let usual = [(50.0, *p50), (90.0, *p90), (99.0, *p99), (99.9, *p999), (99.99, *p9999)];
    let all = latency.percentiles.iter().copied().chain(usual);
    let known = all.filter_map(|(percent, value)| Some((percent, value?)));
    let mut known: Vec<(f64, f64)> =
        known.filter(|(percent, value)| (0.0..=LAST).contains(percent) && (1e-3..1e18).contains(value)).collect();
    known.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    known.dedup_by(|(one, _), (other, _)| one == other);
    let last = place(known.last()?.0);
    let points = known.iter().map(|(percent, value)| {
        let hint = format!("p{percent}: {}", number::with_unit(NANOS, *value));
        Point { hint, ..Point::new(place(*percent), *value) }
    });
    let points: Vec<Point> = points.collect();
    // Up to the first name at or behind the last point.
    let behind = NAMED.iter().position(|percent| place(*percent) >= last * (1.0 - 1e-9)).unwrap_or(NAMED.len() - 1);
    let name = |percent: &f64| (place(*percent), format!("p{percent}"));
    let named: Vec<(f64, String)> = NAMED.iter().take(behind + 1).map(name).collect();
    (points.len() >= LEAST_POINTS && named.len() > 1).then(|| Chart {
        title: "latency by percentile".to_owned(),
        of,
        x: Axis::Named(named),
        y: Axis::Amount { units: NANOS, from_zero: true },
        marks: Vec::new(),
        series: vec![Series { subject: 1, joined: true, dot: 6, points }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::fixture;

    #[test]
    fn a_job_has_a_curve_up_to_its_last_percentile() {
        let latency = &fixture::psync_4k().merged_jobs[0].read.latency_ns;
        let chart = chart("read".to_owned(), latency).unwrap();
        let points = &chart.series[0].points;
        assert!(points.len() >= 5 && points.is_sorted_by(|one, other| one.x < other.x), "{points:?}");
        let p99 = points.iter().find(|point| point.hint.starts_with("p99:")).unwrap();
        assert_eq!((p99.hint.as_str(), p99.y), ("p99: 8.44 µs", latency.p99.unwrap()));
        let Axis::Named(named) = &chart.x else { panic!("{:?}", chart.x) };
        let names: Vec<&str> = named.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["p0", "p50", "p90", "p99", "p99.9", "p99.99"]);
        assert!((p99.x - 100.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_known_is_not_drawn() {
        assert!(chart(String::new(), &LatencyFinding::default()).is_none());
        let two = LatencyFinding { p50: Some(1e3), p99: Some(2e3), ..LatencyFinding::default() };
        assert!(chart(String::new(), &two).is_none(), "two points are no curve");
        let wild = LatencyFinding {
            percentiles: vec![(f64::NAN, Some(1.0)), (100.0, Some(1.0)), (-3.0, Some(2.0)), (50.0, Some(f64::NAN))],
            ..LatencyFinding::default()
        };
        assert!(chart(String::new(), &wild).is_none());
    }
}
