//! Series on one time axis as data: when each reading ended, and what each series was until then.

use crate::number::Units;
use serde::Serialize;

/// Larger values are not drawn: no counter of a machine reaches them in a quantum.
const LARGEST: f64 = 1e18;

/// The height of a track that is always 0.
pub const NOTHING: f64 = 1e-9;

/// The colour of a track. A renderer chooses one that fits its ground; a style sheet knows it by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hue {
    Red,
    Blue,
    Purple,
    /// The colour of text.
    Black,
    Green,
    Orange,
    Teal,
    Pink,
}

impl Hue {
    /// All of them, in the order in which they are given to tracks.
    pub const ALL: [Self; 8] =
        [Self::Red, Self::Blue, Self::Purple, Self::Black, Self::Green, Self::Orange, Self::Teal, Self::Pink];
}

/// How the values of a track are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trace {
    /// A dot for each reading.
    Dots,
    /// A dot for each reading that is not 0.
    Events,
    Line,
}

/// One series.
#[derive(Clone, Debug)]
pub struct Track {
    pub name: String,
    pub hue: Hue,
    /// How it is drawn.
    pub trace: Trace,
    /// Its scale: a place in [`Timeline::scales`].
    pub scale: usize,
    /// Whether a drawing with little room shows it.
    pub is_important: bool,
    /// A value for each reading; not a number where it is unknown. Between a reading and the one before, the value was this.
    pub values: Vec<f64>,
}

impl Track {
    /// Its greatest value; at least a trace above 0, so that it has a height.
    pub fn greatest(&self) -> f64 {
        self.values.iter().copied().filter(|value| value.is_finite()).fold(NOTHING, f64::max)
    }
}

/// A vertical scale, from 0, that tracks share.
#[derive(Clone, Debug)]
pub struct TimelineScale {
    /// What it measures: "bytes per quantum".
    pub name: String,
    pub units: Units,
}

/// Series on one time axis.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// When the first reading began, in seconds.
    pub began: f64,
    /// When each reading ended, in seconds, ascending.
    pub seconds: Vec<f64>,
    /// The vertical scales.
    pub scales: Vec<TimelineScale>,
    /// The tracks, each with as many values as there are readings.
    pub tracks: Vec<Track>,
    /// Times behind the tracks that are worth attention: beginning and end.
    pub marks: Vec<(f64, f64)>,
    pub marked: String,
}

/// What a track did during a part of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Its least value.
    pub least: f64,
    /// Its mean, weighted by time.
    pub mean: f64,
    /// Its greatest value.
    pub greatest: f64,
}

impl Timeline {
    /// The track's name and what its values are: "dirty, pages".
    pub fn name(&self, track: &Track) -> String {
        let scale = self.scales.get(track.scale).map_or("", |scale| scale.name.as_str());
        match track.name.as_str() {
            name if scale.starts_with(name) => scale.to_owned(),
            name if scale.is_empty() || name.contains(scale) => name.to_owned(),
            name => format!("{name}, {scale}"),
        }
    }

    /// Drops readings that have no place in time, values that have no place on a scale, and marks without length.
    pub fn sound(mut self) -> Self {
        if !self.began.is_finite() {
            self.began = 0.0;
        }
        let mut last = self.began;
        let keep: Vec<bool> = self
            .seconds
            .iter()
            .map(|at| {
                let follows = *at > last && *at < LARGEST;
                last = if follows { *at } else { last };
                follows
            })
            .collect();
        retain(&mut self.seconds, &keep);
        for track in &mut self.tracks {
            track.values.resize(keep.len(), f64::NAN);
            retain(&mut track.values, &keep);
            for value in &mut track.values {
                *value = if (0.0..LARGEST).contains(value) { *value } else { f64::NAN };
            }
        }
        let scales = self.scales.len();
        self.tracks.retain(|track| track.scale < scales && track.values.iter().any(|value| value.is_finite()));
        let end = self.end();
        self.marks.retain(|(from, to)| to > from && *from < end && *to > self.began);
        self
    }

    /// When the last reading ended, in seconds.
    pub fn end(&self) -> f64 {
        self.seconds.last().copied().unwrap_or(self.began)
    }

    /// Whether nothing can be drawn.
    pub fn is_empty(&self) -> bool {
        self.seconds.is_empty() || self.tracks.is_empty()
    }

    /// A track in `count` parts of equal time; `None` where nothing is known.
    pub fn parts(&self, track: &Track, count: usize) -> Vec<Option<Reach>> {
        let mut parts: Vec<(Reach, f64)> =
            vec![(Reach { least: f64::INFINITY, mean: 0.0, greatest: f64::NEG_INFINITY }, 0.0); count];
        let length = (self.end() - self.began) / count.max(1) as f64;
        let mut from = self.began;
        for (to, value) in self.seconds.iter().zip(&track.values) {
            let within = |time: f64| (((time - self.began) / length) as usize).min(count.saturating_sub(1));
            // A reading that ends where a part begins is not of this part.
            let (first, last) = (within(from), within(*to - length * 1e-9).max(within(from)));
            for (part, (reach, weight)) in
                parts.iter_mut().enumerate().skip(first).take(last - first + 1).filter(|_| value.is_finite())
            {
                let begin = self.began + part as f64 * length;
                let shared = (to.min(begin + length) - from.max(begin)).max(0.0) + length * 1e-12;
                reach.least = reach.least.min(*value);
                reach.greatest = reach.greatest.max(*value);
                reach.mean += value * shared;
                *weight += shared;
            }
            from = *to;
        }
        let known = |(reach, weight): (Reach, f64)| {
            (weight > 0.0).then(|| Reach { mean: (reach.mean / weight).clamp(reach.least, reach.greatest), ..reach })
        };
        parts.into_iter().map(known).collect()
    }

    /// The same in at most about `most` readings: the least and the greatest of each group. Returns how many readings a
    /// group had; 1 if there are few enough.
    pub fn thinned(&self, most: usize) -> (Self, usize) {
        let group = self.seconds.len().div_ceil((most / 2).max(1));
        if self.seconds.len() <= most {
            return (self.clone(), 1);
        }
        let ends = |times: &[f64]| [times.get(times.len() / 2), times.last()].map(|time| time.copied());
        let seconds = self.seconds.chunks(group).flat_map(ends).flatten().collect();
        let tracks = self.tracks.iter().map(|track| Track {
            values: track.values.chunks(group).flat_map(ends_of_values).collect(),
            name: track.name.clone(),
            ..*track
        });
        (
            Self {
                seconds,
                tracks: tracks.collect(),
                scales: self.scales.clone(),
                marks: self.marks.clone(),
                marked: self.marked.clone(),
                ..*self
            },
            group,
        )
    }
}

/// The least and the greatest value, in the order in which they occurred.
fn ends_of_values(values: &[f64]) -> [f64; 2] {
    let known = || values.iter().copied().enumerate().filter(|(_, value)| value.is_finite());
    let least = known().min_by(|(_, one), (_, other)| one.total_cmp(other));
    let greatest = known().max_by(|(_, one), (_, other)| one.total_cmp(other));
    match (least, greatest) {
        (Some((one, least)), Some((other, greatest))) if one <= other => [least, greatest],
        (Some((_, least)), Some((_, greatest))) => [greatest, least],
        _ => [f64::NAN; 2],
    }
}

fn retain(values: &mut Vec<f64>, keep: &[bool]) {
    let mut keep = keep.iter();
    values.retain(|_| keep.next().copied().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::COUNT;
    use proptest::prelude::*;

    fn track(values: &[f64]) -> Track {
        let values = values.to_vec();
        Track { name: "amount".to_owned(), hue: Hue::Red, trace: Trace::Dots, scale: 0, is_important: true, values }
    }

    fn timeline(seconds: &[f64], values: &[f64]) -> Timeline {
        Timeline {
            began: 0.0,
            seconds: seconds.to_vec(),
            scales: vec![TimelineScale { name: "steps".to_owned(), units: COUNT }],
            tracks: vec![track(values)],
            marks: vec![(0.5, 1.0), (9.0, 10.0), (2.0, 1.0)],
            marked: String::new(),
        }
    }

    #[test]
    fn parts_know_their_ends_and_their_mean() {
        let line = timeline(&[1.0, 2.0, 3.0, 4.0], &[4.0, 0.0, 2.0, 2.0]);
        let reach = |least, mean, greatest| Some(Reach { least, mean, greatest });
        let parts = |count| line.parts(&line.tracks[0], count);
        assert_eq!(
            parts(2).iter().map(|part| part.map(|part| (part.least, part.greatest))).collect::<Vec<_>>(),
            [Some((0.0, 4.0)), Some((2.0, 2.0))]
        );
        assert!((parts(2)[0].unwrap().mean - 2.0).abs() < 1e-9);
        // A reading that spans many parts counts in each.
        let line = timeline(&[10.0], &[3.0]);
        assert_eq!(line.parts(&line.tracks[0], 5), vec![reach(3.0, 3.0, 3.0); 5]);
        let unknown = timeline(&[1.0, 2.0], &[f64::NAN, 1.0]);
        assert_eq!(unknown.parts(&unknown.tracks[0], 2), [None, reach(1.0, 1.0, 1.0)]);
    }

    #[test]
    fn what_has_no_place_is_dropped() {
        let wild = timeline(&[1.0, 1.0, f64::NAN, 3.0, 2.0], &[1.0, 2.0, 3.0, f64::INFINITY]).sound();
        assert_eq!((wild.seconds.as_slice(), wild.marks.as_slice()), ([1.0, 3.0].as_slice(), [(0.5, 1.0)].as_slice()));
        assert!(wild.tracks[0].values[0] == 1.0 && wild.tracks[0].values[1].is_nan());
        assert!(timeline(&[1.0], &[f64::NAN]).sound().is_empty(), "nothing to draw");
    }

    #[test]
    fn thinning_keeps_what_stands_out() {
        let seconds: Vec<f64> = (1..=1000).map(f64::from).collect();
        let mut values = vec![5.0; 1000];
        (values[77], values[501]) = (0.0, 9.0);
        let (thin, group) = timeline(&seconds, &values).thinned(100);
        let kept = &thin.tracks[0].values;
        assert_eq!((group, thin.seconds.len(), kept.len()), (20, 100, 100));
        assert!(kept.contains(&0.0) && kept.contains(&9.0) && thin.end() == 1000.0);
        assert!(thin.seconds.is_sorted());
    }

    proptest! {
        #[test]
        fn every_part_is_within_its_track(values in proptest::collection::vec(0.0f64..9.0, 1..60), count in 1usize..80) {
            let seconds: Vec<f64> = (1..=values.len()).map(|at| at as f64 * 0.01).collect();
            let line = timeline(&seconds, &values).sound();
            let parts = line.parts(&line.tracks[0], count);
            let greatest = values.iter().copied().fold(0.0, f64::max);
            let found = parts.iter().flatten().map(|part| part.greatest).fold(0.0, f64::max);
            prop_assert_eq!((parts.len(), found), (count, greatest));
            prop_assert!(parts.iter().flatten().all(|part| part.least <= part.mean && part.mean <= part.greatest));
        }
    }
}
