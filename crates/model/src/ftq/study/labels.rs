//! Which probe moves with the stalls, and how much more often than chance.
//!
//! Chance is the same probe at random other places: for a period, each of its windows is moved by its own random part
//! of the period; for a single stall, all windows of its length in the recording. This assumes nothing about the probe,
//! which may drift, jump or be a random walk.

use super::periods::running;
use super::words;
use crate::ftq::finding::Label;
use crate::ftq::series::{Grid, Series};
use crate::probe::{Descriptor, Kind};
use crate::stats::random::Random;
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

/// What a probe did during stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moved {
    pub(super) change: f64,
    pub(super) motion: Motion,
}

/// How a probe can move with a stall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Motion {
    /// From the begin of the stall to its end.
    #[default]
    Rise,
    /// In the stall, against before and after: only a gauge does.
    Bump,
}

/// A label, and what orders and describes it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) label: Label,
    /// Standard deviations of chance.
    strength: f64,
}

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

/// The windows of a period's stalls, and the length of the period in slots.
pub(super) struct Windows {
    pub(super) windows: Vec<Range<usize>>,
    pub(super) period: f64,
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
    pub(super) fn of_period(&self, stalls: &Windows) -> Option<Found> {
        let every = stalls.windows.len().div_ceil(MOST_WINDOWS).max(1);
        let windows: Vec<Range<usize>> = stalls.windows.iter().step_by(every).map(later).collect();
        let found = motions(self.probe.kind).iter().filter_map(|&motion| self.tested(&windows, stalls.period, motion));
        found.max_by(|one, other| one.strength.total_cmp(&other.strength))
    }

    fn tested(&self, windows: &[Range<usize>], period: f64, motion: Motion) -> Option<Found> {
        let observed: Vec<f64> = windows.iter().filter_map(|window| self.motion(window, motion)).collect();
        if observed.len() < 2 {
            return None;
        }
        let random = &mut Random(self.seed);
        let most = (MOVES_PER_TEST * self.tests).max(MOVES);
        let mut chance = Chance::default();
        let mean = mean(&observed);
        while chance.means.len() < most {
            for _ in 0..MOVES {
                self.move_all(windows, period, motion, random, &mut chance);
            }
            if chance.reached(mean, self.probe.kind) >= ENOUGH {
                return None;
            }
        }
        let reached = chance.reached(mean, self.probe.kind);
        let alarm = (1 + reached) as f64 / (1 + chance.means.len()) as f64 * self.tests as f64;
        let (typical, spread) = chance.typical();
        let strength = (mean - typical) / spread.max(f64::MIN_POSITIVE);
        let times = times_chance(&observed, &chance.values, mean.midpoint(typical), mean > typical);
        if alarm > PERIOD_ALARM || times < LEAST_TIMES {
            return None;
        }
        Some(self.found(windows, (mean, motion), (times, alarm), (strength.abs(), chance.elsewhere)))
    }

    /// Moves each window by a random part of the period, and adds what the probe did there.
    fn move_all(
        &self,
        windows: &[Range<usize>],
        period: f64,
        motion: Motion,
        random: &mut Random,
        chance: &mut Chance,
    ) {
        let (mut sum, mut count) = (0.0, 0.0);
        for window in windows {
            let part = random.part();
            // Back or forth, so that it stays near.
            let by = ((part - 0.5) * period).round() as i64;
            let Some(moved) = shifted(window, by) else { continue };
            let Some(value) = self.motion(&moved, motion) else { continue };
            sum += value;
            count += 1.0;
            if chance.values.len() < MOVES * MOST_WINDOWS {
                chance.values.push(value);
            }
            if by.unsigned_abs() as usize >= window.len() {
                chance.elsewhere.add(self.during(&moved));
            }
        }
        chance.means.push(if count > 0.0 { sum / count } else { 0.0 });
    }

    /// The label of one stall, if this probe moves with it.
    pub(super) fn of_stall(&self, slots: &Range<usize>) -> Option<Found> {
        let window = later(slots);
        let found = motions(self.probe.kind).iter().filter_map(|&motion| self.tested_once(&window, motion));
        found.max_by(|one, other| one.strength.total_cmp(&other.strength))
    }

    fn tested_once(&self, window: &Range<usize>, motion: Motion) -> Option<Found> {
        let observed = self.motion(window, motion)?;
        let slots = self.edges.len().saturating_sub(1);
        let every = (window.len() / 2).max(slots / MOST_PLACES).max(1);
        let mut elsewhere = Mean::default();
        let mut values = Vec::new();
        for begin in (0..slots.saturating_sub(window.len())).step_by(every) {
            let other = begin..begin + window.len();
            if other.start < window.end && window.start < other.end {
                continue;
            }
            values.extend(self.motion(&other, motion));
            elsewhere.add(self.during(&other));
        }
        let (typical, spread) = mean_and_spread(&values);
        let reaches = |value: &&f64| match self.probe.kind {
            Kind::Counter => **value >= observed,
            Kind::Gauge => (**value - typical).abs() >= (observed - typical).abs(),
        };
        let reached = values.iter().filter(reaches).count();
        let places = values.len() + 1;
        let alarm = (1 + reached) as f64 / places as f64 * self.tests as f64;
        let times = places as f64 / (1 + reached) as f64;
        if alarm > STALL_ALARM || times < LEAST_TIMES {
            return None;
        }
        let strength = ((observed - typical) / spread.max(f64::MIN_POSITIVE)).abs();
        Some(self.found(std::slice::from_ref(window), (observed, motion), (times, alarm), (strength, elsewhere)))
    }

    fn found(
        &self,
        windows: &[Range<usize>],
        (change, motion): (f64, Motion),
        (times_chance, false_alarm): (f64, f64),
        (strength, elsewhere): (f64, Mean),
    ) -> Found {
        let mut during = Mean::default();
        windows.iter().for_each(|window| during.add(self.during(window)));
        let label = Label {
            probe: self.probe.name.clone(),
            unit: self.probe.unit.clone(),
            during: during.value(),
            elsewhere: elsewhere.value(),
            change,
            times_chance,
            false_alarm: false_alarm.min(1.0),
            words: words::moved(self.probe, &Moved { change, motion }),
        };
        Found { label, strength }
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

    /// The increase of a counter or the level of a gauge in a window.
    fn during(&self, window: &Range<usize>) -> Option<f64> {
        match self.probe.kind {
            Kind::Counter => self.motion(window, Motion::Rise),
            Kind::Gauge => self.level(window),
        }
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
    let own = |found: &Found| found.label.probe.starts_with("worker.");
    found.sort_by(|one, other| own(one).cmp(&own(other)).then(other.strength.total_cmp(&one.strength)));
    found.into_iter().map(|found| found.label).collect()
}

/// What chance does.
#[derive(Default)]
struct Chance {
    /// The mean over all windows, by move.
    means: Vec<f64>,
    /// The motions themselves, of the first moves.
    values: Vec<f64>,
    /// Increases or levels outside the stalls.
    elsewhere: Mean,
}

impl Chance {
    fn typical(&self) -> (f64, f64) {
        mean_and_spread(&self.means)
    }

    /// How many moves reach `observed`: a counter is expected to rise, a gauge may do either.
    fn reached(&self, observed: f64, kind: Kind) -> usize {
        let (typical, _) = self.typical();
        let reaches = |mean: &&f64| match kind {
            Kind::Counter => **mean >= observed,
            Kind::Gauge => (**mean - typical).abs() >= (observed - typical).abs(),
        };
        self.means.iter().filter(reaches).count()
    }
}

/// The part of `observed` beyond `limit` ÷ the part of `by_chance`.
fn times_chance(observed: &[f64], by_chance: &[f64], limit: f64, above: bool) -> f64 {
    let beyond = |values: &[f64]| values.iter().filter(|value| (**value > limit) == above).count() as f64;
    let part = beyond(observed) / observed.len().max(1) as f64;
    part / (beyond(by_chance).max(1.0) / by_chance.len().max(1) as f64)
}

#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1.0;
        }
    }

    fn value(self) -> f64 {
        self.sum / f64::max(self.count, 1.0)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn mean_and_spread(values: &[f64]) -> (f64, f64) {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / values.len().max(1) as f64).sqrt())
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
