//! The noise as charts: how strong each period is, how often each amount occurred, and where in a period the stalls are.

use crate::document::{Axis, Chart, Mark, Note, Point, Series};
use crate::ftq::{remark, words};
use crate::number::{self, COUNT, NANOS};
use model::ftq::FtqFinding;
use model::ftq::finding::HeatMap;

/// Columns of a spectrum: a column shows its strongest period.
const COLUMNS: f64 = 420.0;
/// Least strength drawn: a hundredth of what is beside it is nothing, and in a series that hardly varies all else is rounding.
const WEAKEST: f64 = 0.01;
/// Radius of the dot of a period that was found.
const DOT: u32 = 9;
/// Periods that have a dot.
const DOTS: usize = 12;

/// The charts, without those that have nothing to show.
pub(super) fn charts(finding: &FtqFinding) -> Vec<Chart> {
    let heat_map = finding.pictures.heat_map.as_ref().and_then(|map| heat_map(finding, map));
    [spectrum(finding), histogram(finding), heat_map].into_iter().flatten().collect()
}

/// How to read them.
pub(super) fn notes(finding: &FtqFinding) -> Vec<Note> {
    let mut notes = Vec::new();
    if spectrum(finding).is_some() {
        notes.push(remark(
            "Periods: strength against the periods beside it. Above the dashed line a series without a period comes by \
             chance only as often as a false alarm is accepted. Dots are the periods that were found; those of short \
             stalls may be below the line, because folding the series sees them better than this spectrum.",
        ));
    }
    if finding.pictures.heat_map.is_some() {
        notes.push(remark(
            "Heat map: every quantum by its amount and by its place in the period; the darker, the more quanta.",
        ));
    }
    notes
}

/// The strength of each period. Many periods share a column, which shows the strongest.
fn spectrum(finding: &FtqFinding) -> Option<Chart> {
    let pictures = &finding.pictures;
    let sound = pictures
        .frequencies
        .iter()
        .zip(&pictures.power)
        .filter(|(hertz, power)| (1e-9..1e9).contains(*hertz) && (0.0..1e18).contains(*power));
    let points: Vec<(f64, f64)> = sound.map(|(hertz, power)| (1e9 / hertz, power.max(WEAKEST))).collect();
    let (shortest, longest) =
        points.iter().fold((f64::INFINITY, 0.0f64), |(low, high), (nanos, _)| (low.min(*nanos), high.max(*nanos)));
    if points.len() < 2 || longest <= shortest {
        return None;
    }
    let mut columns = std::collections::BTreeMap::<u32, (f64, f64)>::new();
    for point in points {
        let column = ((point.0 / shortest).ln() / (longest / shortest).ln() * COLUMNS) as u32;
        let strongest = columns.entry(column).or_insert(point);
        if point.1 > strongest.1 {
            *strongest = point;
        }
    }
    let line: Vec<Point> = columns.values().map(|(nanos, power)| Point::new(*nanos, *power)).collect();
    let found = finding.periodic.iter().take(DOTS).filter_map(|period| {
        let nanos = period.period_seconds * 1e9;
        let nearest = columns
            .values()
            .min_by(|(one, _), (other, _)| (one / nanos).ln().abs().total_cmp(&(other / nanos).ln().abs()))?;
        let within = (shortest..=longest).contains(&nanos);
        within.then(|| Point { hint: words::begun(&period.sentence), ..Point::new(nearest.0, nearest.1) })
    });
    let found: Vec<Point> = found.collect();
    let alarm = Some(pictures.alarm_power).filter(|power| (1e-9..1e18).contains(power));
    Some(Chart {
        title: "Strength of each period".to_owned(),
        of: String::new(),
        x: Axis::Amount { units: NANOS, from_zero: false },
        y: Axis::Amount { units: COUNT, from_zero: true },
        marks: alarm.map(Mark::Level).into_iter().collect(),
        series: vec![
            Series { subject: 1, joined: true, dot: 0, points: line },
            Series { subject: 5, joined: false, dot: DOT, points: found },
        ],
    })
}

/// How often each amount occurred. Empty bins have no bar, so that the scale may be logarithmic.
fn histogram(finding: &FtqFinding) -> Option<Chart> {
    let pictures = &finding.pictures;
    let bounds = pictures.histogram_bounds.iter().zip(pictures.histogram_bounds.iter().skip(1));
    let bars = bounds
        .zip(&pictures.histogram)
        .filter(|((low, high), count)| **count > 0 && low < high && low.abs() < 1e18 && high.abs() < 1e18);
    let marks: Vec<Mark> = bars.map(|((low, high), count)| Mark::Bar(*low, *high, *count as f64)).collect();
    (!marks.is_empty()).then(|| Chart {
        title: "How often each amount occurred".to_owned(),
        of: format!("quanta by {} per quantum", finding.unit),
        x: Axis::Amount { units: words::units(&finding.unit), from_zero: true },
        y: Axis::Amount { units: COUNT, from_zero: true },
        marks,
        series: Vec::new(),
    })
}

/// Quanta by amount and phase. Counts cover orders of magnitude, so the shade is that of their logarithm.
fn heat_map(finding: &FtqFinding, map: &HeatMap) -> Option<Chart> {
    let most = map.counts.iter().copied().max().filter(|most| *most > 0)?;
    let width = map.period_seconds / map.columns as f64;
    let known = (1e-9..1e9).contains(&map.period_seconds) && map.columns > 0;
    if !known || !map.bounds.iter().all(|bound| bound.abs() < 1e18) {
        return None;
    }
    let rows = map.bounds.iter().zip(map.bounds.iter().skip(1)).zip(map.counts.chunks(map.columns));
    let mut cells: Vec<(f64, Mark)> = Vec::new();
    for ((low, high), counts) in rows {
        for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let dark = 0.12 + 0.88 * (*count as f64).ln_1p() / (most as f64).ln_1p();
            let (from, to) = (column as f64 * width, (column + 1) as f64 * width);
            cells.push((dark, Mark::Cell((from, *low), (to, *high), dark)));
        }
    }
    // Cells with the same shade follow each other, so that they are one element of the page.
    cells.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Some(Chart {
        title: "Amount by place in the period".to_owned(),
        of: format!("of {}", number::seconds(map.period_seconds)),
        x: Axis::Time,
        y: Axis::Amount { units: words::units(&finding.unit), from_zero: true },
        marks: cells.into_iter().map(|(_, mark)| mark).collect(),
        series: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftq::fixture;

    #[test]
    fn every_picture_of_a_recording_with_a_period_is_a_chart() {
        let charts = charts(&fixture::dirty_limit());
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            ["Strength of each period", "How often each amount occurred", "Amount by place in the period"]
        );
        let [spectrum, ..] = charts.as_slice() else { panic!("no chart") };
        let dot = &spectrum.series[1].points[0];
        assert!((dot.x / 5e9 - 1.0).abs() < 0.05 && dot.hint.starts_with("Every 5.00"), "{dot:?}");
        assert!(spectrum.series[0].points.len() <= COLUMNS as usize + 1, "columns");
        let strongest = spectrum.series[0].points.iter().map(|point| point.y).fold(0.0, f64::max);
        assert!(strongest > fixture::dirty_limit().pictures.alarm_power);
    }

    #[test]
    fn a_bin_is_a_bar_of_its_count() {
        let mut finding = fixture::empty();
        finding.pictures.histogram_bounds = vec![0.0, 10.0, 20.0, 30.0];
        finding.pictures.histogram = vec![3, 0, 7];
        let chart = histogram(&finding).unwrap();
        let bars: Vec<(f64, f64, f64)> = chart
            .marks
            .iter()
            .map(|mark| if let Mark::Bar(from, to, top) = mark { (*from, *to, *top) } else { panic!("{mark:?}") })
            .collect();
        assert_eq!(bars, [(0.0, 10.0, 3.0), (20.0, 30.0, 7.0)]);
    }

    #[test]
    fn what_is_not_known_is_not_drawn() {
        assert!(charts(&fixture::empty()).is_empty());
        let mut finding = fixture::dirty_limit();
        finding.pictures.frequencies = vec![f64::NAN, 0.0];
        finding.pictures.histogram_bounds = vec![f64::INFINITY; 3];
        finding.pictures.heat_map = Some(HeatMap { period_seconds: 1.0, columns: 0, ..HeatMap::default() });
        assert!(charts(&finding).is_empty());
    }
}
