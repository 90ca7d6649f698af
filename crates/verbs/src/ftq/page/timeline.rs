//! The readings as a timeline: the worker's amount and every probe, in the colours of the figures that made FTQ of I/O known.

use crate::ftq::FtqFinding;
use crate::pages::probes::units;
use report::document::{Hue, Timeline, TimelineScale, Trace, Track};
use report::number;
use std::collections::BTreeSet;

/// Tracks with the same unit share a scale if their greatest values differ by less than this: smaller ones would be flat.
const SHARED: f64 = 12.0;
/// Stalls marked; more of them would be a grey ground.
const MARKS: f64 = 300.0;
/// Probes shown with little room if no stall names any.
const FEW_PROBES: usize = 3;

/// Parts of the names of probes, and the colour that they had in Sandia's figures: dirty pages blue, pages in writeback
/// purple, sleeps black, bytes on the wire green.
const HUES: [(&str, Hue); 6] = [
    ("dirty", Hue::Blue),
    ("writeback", Hue::Purple),
    ("sleep", Hue::Black),
    ("context_switches", Hue::Black),
    ("net.", Hue::Green),
    ("infiniband", Hue::Green),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftq::page::fixture;

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
