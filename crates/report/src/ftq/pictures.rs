//! The readings as a timeline: the worker's amount and every probe, in the colours of the figures that made FTQ of I/O known. And
//! the noise as charts: how strong each period is, how often each amount occurred, and where in a period the stalls are.

use crate::document::{Axis, Chart, Hue, Mark, Note, Point, Series, Timeline, TimelineScale, Trace, Track};
use crate::ftq::words;
use crate::number::{self, COUNT, NANOS, SECONDS};
use crate::probes::units;
use model::ftq::FtqFinding;
use model::ftq::finding::HeatMap;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of a spectrum: a column shows its strongest period.
const COLUMNS: f64 = 420.0;
/// Least strength drawn: a hundredth of what is beside it is nothing, and in a series that hardly varies all else is rounding.
const WEAKEST: f64 = 0.01;
/// Radius of the dot of a period that was found.
const DOT: u32 = 9;
/// Periods that have a dot.
const DOTS: usize = 12;
/// Tracks with the same unit share a scale if their greatest values differ by less than this: smaller ones would be flat.
const SHARED: f64 = 12.0;
/// Stalls marked; more of them would be a grey ground.
const MARKS: f64 = 300.0;
/// Probes shown with little room if no stall names any.
const FEW_PROBES: usize = 3;

/// Parts of the names of probes, and the colour that they had in Sandia's figures: dirty pages blue, pages in writeback
/// purple, sleeps black, bytes on the wire green.
const HUES: [(&str, Hue); 7] = [
    ("dirty", Hue::Blue),
    ("writeback", Hue::Purple),
    ("sleep", Hue::Black),
    ("context_switches", Hue::Black),
    ("net.", Hue::Green),
    ("infiniband", Hue::Green),
    ("ib.", Hue::Green),
];

/// The timeline; empty without readings.
pub(super) fn timeline(finding: &FtqFinding) -> Timeline {
    let pictures = &finding.pictures;
    let first = pictures.seconds.first().copied().unwrap_or(0.0);
    let span = f64::from(pictures.spans.first().copied().unwrap_or(1));
    let mut scales = Scales::default();
    let amount = pictures.amount_per_quantum.clone();
    let per_quantum = |unit: &str| format!("{unit} per quantum").trim_start().to_owned();
    let mut tracks = vec![Track {
        name: "worker".to_owned(),
        hue: Hue::Red,
        trace: Trace::Dots,
        scale: scales.for_track(&finding.unit, &per_quantum(&finding.unit), &amount),
        is_important: true,
        values: amount,
    }];
    let mut taken = vec![Hue::Red];
    let important = important(finding);
    for (probe, column) in finding.probes.iter().zip(&pictures.probes) {
        let values: Vec<f64> = column.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        let name = if probe.counter { per_quantum(&probe.unit) } else { probe.unit.clone() };
        tracks.push(Track {
            name: probe.name.clone(),
            hue: hue(&probe.name, &mut taken),
            trace: if probe.counter { Trace::Events } else { Trace::Line },
            scale: scales.for_track(&probe.unit, &name, &values),
            is_important: important.contains(probe.name.as_str()),
            values,
        });
    }
    // A recording begins at 0, up to a quantum's rounding.
    let began = (first - span * finding.quantum_seconds).max(0.0);
    let began = if began < finding.quantum_seconds / 2.0 { 0.0 } else { began };
    let (marks, marked) = marks(finding);
    Timeline { began, seconds: pictures.seconds.clone(), scales: scales.all, tracks, marks, marked }.sound()
}

/// The probes that move with a stall; the first ones if none does.
fn important(finding: &FtqFinding) -> BTreeSet<&str> {
    let stalls = finding.stalls.iter().filter_map(|stall| stall.labels.first().map(|label| label.probe.as_str()));
    let periods = finding.periodic.iter().filter_map(|period| period.probe.as_deref());
    let named: BTreeSet<&str> = periods.chain(stalls).collect();
    let first = || finding.probes.iter().take(FEW_PROBES).map(|probe| probe.name.as_str());
    if named.is_empty() { first().collect() } else { named }
}

/// Where the strongest period expects its stalls, and that in words; without a period, the longest stalls.
fn marks(finding: &FtqFinding) -> (Vec<(f64, f64)>, String) {
    let Some(period) = finding.periodic.first() else {
        let stalls = finding.stalls.iter().map(|stall| (stall.at_seconds, stall.at_seconds + stall.seconds));
        return (stalls.collect(), "the longest stalls".to_owned());
    };
    let count = finding.seconds / period.period_seconds;
    let count = if (1.0..MARKS).contains(&count) { count.ceil() as u32 } else { 0 };
    let mark = |number: u32| {
        let begin = (f64::from(number) + period.phase) * period.period_seconds;
        (begin, begin + period.stall_seconds.max(finding.quantum_seconds))
    };
    let words = format!("where stalls of every {} are expected", number::seconds(period.period_seconds));
    ((0..count).map(mark).collect(), words)
}

/// The scales so far, with the greatest value of each.
#[derive(Default)]
struct Scales {
    all: Vec<TimelineScale>,
    greatest: Vec<f64>,
}

impl Scales {
    /// The scale of a track with this name and these values: one that exists if it fits.
    fn for_track(&mut self, unit: &str, name: &str, values: &[f64]) -> usize {
        let greatest = values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let fits = |(scale, known): (&TimelineScale, &f64)| {
            let ratio = if greatest > *known { greatest / known } else { known / greatest };
            scale.name == name && ratio < SHARED
        };
        if let Some(place) = self.all.iter().zip(&self.greatest).position(fits) {
            return place;
        }
        self.greatest.push(greatest);
        self.all.push(TimelineScale { name: name.to_owned(), units: units(unit) });
        self.all.len() - 1
    }
}

/// The colour of a probe. Those that are taken contain red, which is the worker's.
fn hue(probe: &str, taken: &mut Vec<Hue>) -> Hue {
    let own = HUES.iter().find(|(part, _)| probe.contains(part)).map(|(_, hue)| *hue);
    // Those that no name asks for come first.
    let unasked = Hue::ALL.into_iter().filter(|hue| HUES.iter().all(|(_, other)| other != hue));
    let hue = own.into_iter().chain(unasked).chain(Hue::ALL).find(|hue| !taken.contains(hue)).unwrap_or(Hue::Orange);
    taken.push(hue);
    hue
}

/// The charts, without those that have nothing to show.
pub(super) fn charts(finding: &FtqFinding) -> Vec<Chart> {
    let heat_map = finding.pictures.heat_map.as_ref().and_then(|map| heat_map(finding, map));
    [spectrum(finding), histogram(finding), heat_map].into_iter().flatten().collect()
}

/// How to read them.
pub(super) fn notes(finding: &FtqFinding) -> Vec<Note> {
    let mut notes = Vec::new();
    if spectrum(finding).is_some() {
        notes.push(Note::remark(
            "Periods: strength against the periods beside it. Above the dashed line a series without a period comes by \
             chance only as often as a false alarm is accepted. Dots are the periods that were found; those of short \
             stalls may be below the line, because folding the series sees them better than this spectrum.",
        ));
    }
    if finding.pictures.heat_map.is_some() {
        notes.push(Note::remark(
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
    let mut columns = BTreeMap::<u32, (f64, f64)>::new();
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
        x: Axis::Amount { units: NANOS, from_zero: false },
        y: Axis::Amount { units: COUNT, from_zero: true },
        marks: alarm.map(|level| Mark { upright: Some((level, level)), ..Mark::default() }).into_iter().collect(),
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
    let bar = |((low, high), count): ((&f64, &f64), &u64)| Mark {
        across: Some((*low, *high)),
        upright: Some((f64::NEG_INFINITY, *count as f64)),
        shade: Some(0.8),
    };
    let marks: Vec<Mark> = bars.map(bar).collect();
    (!marks.is_empty()).then(|| Chart {
        title: format!("How often each amount occurred: quanta by {} per quantum", finding.unit),
        x: Axis::Amount { units: units(&finding.unit), from_zero: true },
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
    let bounds = &finding.pictures.histogram_bounds;
    if !known || !bounds.iter().all(|bound| bound.abs() < 1e18) {
        return None;
    }
    let rows = bounds.iter().zip(bounds.iter().skip(1)).zip(map.counts.chunks(map.columns));
    let mut cells: Vec<(f64, Mark)> = Vec::new();
    for ((low, high), counts) in rows {
        for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let dark = 0.12 + 0.88 * (*count as f64).ln_1p() / (most as f64).ln_1p();
            let (from, to) = (column as f64 * width, (column + 1) as f64 * width);
            let mark = Mark { across: Some((from, to)), upright: Some((*low, *high)), shade: Some(dark) };
            cells.push((dark, mark));
        }
    }
    // Cells with the same shade follow each other, so that they are one element of the page.
    cells.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Some(Chart {
        title: format!("Amount by place in the period of {}", number::seconds(map.period_seconds)),
        x: Axis::Amount { units: SECONDS, from_zero: true },
        y: Axis::Amount { units: units(&finding.unit), from_zero: true },
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
        let charts = charts(&fixture::named("dirty_limit"));
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "Strength of each period",
                "How often each amount occurred: quanta by bytes per quantum",
                "Amount by place in the period of 5.00 s"
            ]
        );
        let [spectrum, ..] = charts.as_slice() else { panic!("no chart") };
        let dot = &spectrum.series[1].points[0];
        assert!((dot.x / 5e9 - 1.0).abs() < 0.05 && dot.hint.starts_with("Every 5.00"), "{dot:?}");
        assert!(spectrum.series[0].points.len() <= COLUMNS as usize + 1, "columns");
        let strongest = spectrum.series[0].points.iter().map(|point| point.y).fold(0.0, f64::max);
        assert!(strongest > fixture::named("dirty_limit").pictures.alarm_power);
    }

    #[test]
    fn a_bin_is_a_bar_of_its_count() {
        let mut finding = fixture::named("empty");
        finding.pictures.histogram_bounds = vec![0.0, 10.0, 20.0, 30.0];
        finding.pictures.histogram = vec![3, 0, 7];
        let chart = histogram(&finding).unwrap();
        let bars: Vec<(f64, f64, f64)> = chart
            .marks
            .iter()
            .map(|mark| (mark.across.unwrap().0, mark.across.unwrap().1, mark.upright.unwrap().1))
            .collect();
        assert_eq!(bars, [(0.0, 10.0, 3.0), (20.0, 30.0, 7.0)]);
    }

    #[test]
    fn what_is_not_known_is_not_drawn() {
        assert!(charts(&fixture::named("empty")).is_empty());
        let mut finding = fixture::named("dirty_limit");
        finding.pictures.frequencies = vec![f64::NAN, 0.0];
        finding.pictures.histogram_bounds = vec![f64::INFINITY; 3];
        finding.pictures.heat_map = Some(HeatMap { period_seconds: 1.0, columns: 0, ..HeatMap::default() });
        assert!(charts(&finding).is_empty());
    }

    #[test]
    fn tracks_have_the_colours_of_the_figures() {
        let line = timeline(&fixture::named("dirty_limit"));
        let hues: Vec<(&str, Hue)> = line.tracks.iter().map(|track| (track.name.as_str(), track.hue)).collect();
        let expected = [
            ("worker", Hue::Red),
            ("dirty", Hue::Blue),
            ("writeback", Hue::Purple),
            ("sleeps", Hue::Black),
            ("net.ib0.tx_bytes", Hue::Green),
        ];
        assert_eq!(hues, expected);
        let mut taken = vec![Hue::Red];
        let others = ["net.a", "net.b", "psi", "x"].map(|name| hue(name, &mut taken));
        assert_eq!(others, [Hue::Green, Hue::Orange, Hue::Teal, Hue::Pink]);
    }

    #[test]
    fn bytes_share_a_scale_unless_one_would_be_flat() {
        let line = timeline(&fixture::named("dirty_limit"));
        let scales: Vec<&str> = line.scales.iter().map(|scale| scale.name.as_str()).collect();
        assert_eq!(scales, ["bytes per quantum", "pages", "sleeps per quantum"]);
        let mut scales = Scales::default();
        let places = [100.0, 90.0, 1.0].map(|value| scales.for_track("bytes", "bytes per quantum", &[value]));
        assert_eq!(places, [0, 0, 1]);
    }

    #[test]
    fn stalls_of_the_period_are_marked() {
        let marks = timeline(&fixture::named("dirty_limit")).marks;
        assert_eq!(marks.len(), 5);
        assert!((marks[1].0 - marks[0].0 - 5.0).abs() < 0.01, "{marks:?}");
    }
}
