//! Which probe moves with the stalls, and how much more often than chance.
//!
//! Chance is the same probe at random other places: for a period, each of its windows is moved by its own random part
//! of the period; for a single stall, all windows of its length in the recording. This assumes nothing about the probe,
//! which may drift, jump or be a random walk.

use super::periods::{cycles, running};
use super::words;
use crate::ftq::finding::Label;
use crate::ftq::series::{Grid, Series};
use model::probe::{Descriptor, Kind};
use model::stats::basics::Random;
use model::stats::series::fold::Dip;
use model::stats::series::mean;
use std::ops::Range;

/// Probability of chance, corrected for all probes, up to which a probe is a label of a period.
const PERIOD_ALARM: f64 = 0.01;
/// The same for a single stall, which can be compared with as many places as the recording is long.
const STALL_ALARM: f64 = 0.05;
/// How many times more often than chance a probe must move, to be named.
const LEAST_TIMES: f64 = 1.5;
/// Random moves of all windows in each step of the test.
const MOVES: usize = 200;
/// Moves for each test that is corrected for, so that the probability can be as low as a quarter of the limit.
const MOVES_PER_TEST: usize = 400;
/// The test ends when this number of moves has reached the observed value: the probability is then above any limit.
const ENOUGH: usize = 10;
/// Most windows of a period that the test reads, evenly spaced.
const MOST_WINDOWS: usize = 200;
/// Most windows that a single stall is compared with.
const MOST_PLACES: usize = 4000;
/// Slots after a stall in which a probe may still show it, because it is read a little later than the amount.
const LAG: usize = 1;

/// How a probe can move with a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Motion {
    /// From the begin of the stall to its end.
    Rise,
    /// In the stall, against before and after: only a gauge does.
    Bump,
}

/// A label, and what orders it: standard deviations of chance.
pub(super) type Found = (f64, Label);

/// A probe on the grid.
pub(super) struct Line<'a> {
    probe: &'a Descriptor,
    /// Its value at each edge.
    edges: Vec<f64>,
    /// Running sums of the edges; only of a gauge.
    sums: Vec<f64>,
    /// Number of tests of all probes together.
    tests: usize,
    seed: u64,
}

/// Number of tests of these probes: a gauge has two.
pub(super) fn tests(probes: &[Descriptor]) -> usize {
    probes.iter().map(|probe| motions(probe.kind).len()).sum()
}

fn motions(kind: Kind) -> &'static [Motion] {
    match kind {
        Kind::Counter => &[Motion::Rise],
        Kind::Gauge => &[Motion::Rise, Motion::Bump],
    }
}

/// An observed motion beside what chance does.
struct Chance {
    /// The mean of chance.
    typical: f64,
    /// How often chance reaches what was observed: a counter is expected to rise, a gauge may do either.
    reached: usize,
    /// The probability of that, corrected for all probes.
    alarm: f64,
    /// Standard deviations of chance between both.
    strength: f64,
}

impl<'a> Line<'a> {
    /// Probe `number` on the grid. `None` if it never moved or was never read.
    pub(super) fn of(
        (series, grid): (&Series, &Grid),
        (number, probe): (usize, &'a Descriptor),
        (tests, seed): (usize, u64),
    ) -> Option<Self> {
        let edges = grid.line_at_edges(series, &series.line(number, probe.kind));
        let first = edges.iter().find(|value| value.is_finite())?;
        if edges.iter().filter(|value| value.is_finite()).all(|value| value == first) {
            return None;
        }
        let read = || edges.iter().map(|value| if value.is_finite() { *value } else { 0.0 }).collect::<Vec<f64>>();
        let sums = if probe.kind == Kind::Gauge { running(&read()) } else { Vec::new() };
        Some(Self { probe, edges, sums, tests: tests.max(1), seed })
    }

    /// The label of a period, if this probe moves with it.
    pub(super) fn of_period(&self, dip: &Dip) -> Option<Found> {
        let stalls: Vec<Range<usize>> = cycles(dip, self.slots()).map(|cycle| later(&cycle.dip)).collect();
        let windows: Vec<Range<usize>> =
            stalls.iter().step_by(stalls.len().div_ceil(MOST_WINDOWS).max(1)).cloned().collect();
        self.strongest(|motion| self.tested(&windows, dip.period, motion))
    }

    /// The label of one stall, if this probe moves with it.
    pub(super) fn of_stall(&self, slots: &Range<usize>) -> Option<Found> {
        let window = later(slots);
        self.strongest(|motion| self.tested_once(&window, motion))
    }

    fn strongest(&self, tested: impl Fn(Motion) -> Option<Found>) -> Option<Found> {
        let found = motions(self.probe.kind).iter().filter_map(|motion| tested(*motion));
        found.max_by(|(one, _), (other, _)| one.total_cmp(other))
    }

    fn tested(&self, windows: &[Range<usize>], period: f64, motion: Motion) -> Option<Found> {
        let observed: Vec<f64> = windows.iter().filter_map(|window| self.motion(window, motion)).collect();
        if observed.len() < 2 {
            return None;
        }
        let random = &mut Random(self.seed);
        let change = mean(&observed);
        // The mean over all windows by move; the motions themselves, of the first moves.
        let (mut means, mut values) = (Vec::new(), Vec::new());
        let chance = loop {
            for _ in 0..MOVES {
                let (mut sum, mut count) = (0.0, 0.0);
                for window in windows {
                    // By a random part of the period back or forth, so that it stays near.
                    let by = ((random.part() - 0.5) * period).round() as i64;
                    let Some(place) = shifted(window, by) else { continue };
                    let Some(value) = self.motion(&place, motion) else { continue };
                    sum += value;
                    count += 1.0;
                    if values.len() < MOVES * MOST_WINDOWS {
                        values.push(value);
                    }
                }
                means.push(sum / f64::max(count, 1.0));
            }
            let chance = self.chance(change, &means);
            if chance.reached >= ENOUGH {
                return None;
            }
            if means.len() >= MOVES_PER_TEST * self.tests {
                break chance;
            }
        };
        let times = times_chance(&observed, &values, change.midpoint(chance.typical), change > chance.typical);
        let known = chance.alarm <= PERIOD_ALARM && times >= LEAST_TIMES;
        known.then(|| self.found((change, motion), times, &chance))
    }

    fn tested_once(&self, window: &Range<usize>, motion: Motion) -> Option<Found> {
        let change = self.motion(window, motion)?;
        let every = (window.len() / 2).max(self.slots() / MOST_PLACES).max(1);
        let mut values = Vec::new();
        for begin in (0..self.slots().saturating_sub(window.len())).step_by(every) {
            let other = begin..begin + window.len();
            if other.end <= window.start || window.end <= other.start {
                values.extend(self.motion(&other, motion));
            }
        }
        let chance = self.chance(change, &values);
        let times = (values.len() + 1) as f64 / (1 + chance.reached) as f64;
        let known = chance.alarm <= STALL_ALARM && times >= LEAST_TIMES;
        known.then(|| self.found((change, motion), times, &chance))
    }

    fn chance(&self, observed: f64, by_chance: &[f64]) -> Chance {
        let typical = mean(by_chance);
        let squares: f64 = by_chance.iter().map(|value| (value - typical).powi(2)).sum();
        let spread = (squares / by_chance.len().max(1) as f64).sqrt();
        let reaches = |value: &&f64| match self.probe.kind {
            Kind::Counter => **value >= observed,
            Kind::Gauge => (**value - typical).abs() >= (observed - typical).abs(),
        };
        let reached = by_chance.iter().filter(reaches).count();
        let alarm = (1 + reached) as f64 / (1 + by_chance.len()) as f64 * self.tests as f64;
        Chance { typical, reached, alarm, strength: ((observed - typical) / spread.max(f64::MIN_POSITIVE)).abs() }
    }

    fn found(&self, (change, motion): (f64, Motion), times_chance: f64, chance: &Chance) -> Found {
        let label = Label {
            probe: self.probe.name.clone(),
            change,
            times_chance,
            false_alarm: chance.alarm.min(1.0),
            words: words::moved(self.probe, change, motion),
        };
        (chance.strength, label)
    }

    fn slots(&self) -> usize {
        self.edges.len().saturating_sub(1)
    }

    /// How the probe moved in a window; `None` where it was not read.
    fn motion(&self, window: &Range<usize>, motion: Motion) -> Option<f64> {
        let value = match motion {
            Motion::Rise => self.edges.get(window.end)? - self.edges.get(window.start)?,
            Motion::Bump => {
                let length = window.len();
                let before = self.level(&(window.start.checked_sub(length)?..window.start))?;
                let after = self.level(&(window.end..window.end + length))?;
                self.level(window)? - before.midpoint(after)
            }
        };
        Some(value).filter(|value| value.is_finite())
    }

    /// The mean level of a gauge; `None` if it was not read at both ends.
    fn level(&self, window: &Range<usize>) -> Option<f64> {
        let read = |edge: usize| self.edges.get(edge).filter(|value| value.is_finite());
        read(window.start).and(read(window.end))?;
        Some((self.sums.get(window.end)? - self.sums.get(window.start)?) / window.len().max(1) as f64)
    }
}

/// Labels, the strongest first; behind them those of the worker's own counters, which say that it stopped and not why.
pub(super) fn strongest_first(mut found: Vec<Found>) -> Vec<Label> {
    let own = |label: &Label| label.probe.starts_with("worker.");
    found.sort_by(|(one, a), (other, b)| own(a).cmp(&own(b)).then(other.total_cmp(one)));
    found.into_iter().map(|(_, label)| label).collect()
}

/// The part of `observed` beyond `limit` ÷ the part of `by_chance`.
fn times_chance(observed: &[f64], by_chance: &[f64], limit: f64, above: bool) -> f64 {
    let beyond = |values: &[f64]| values.iter().filter(|value| (**value > limit) == above).count() as f64;
    let part = beyond(observed) / observed.len().max(1) as f64;
    part / (beyond(by_chance).max(1.0) / by_chance.len().max(1) as f64)
}

/// The window with [`LAG`].
fn later(window: &Range<usize>) -> Range<usize> {
    window.start..window.end + LAG
}

fn shifted(window: &Range<usize>, by: i64) -> Option<Range<usize>> {
    let begin = i64::try_from(window.start).ok()? + by;
    let begin = usize::try_from(begin).ok()?;
    Some(begin..begin + window.len())
}
