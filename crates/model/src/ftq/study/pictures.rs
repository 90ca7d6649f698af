//! What a report draws, and the probes over the whole recording. Every array is small enough to be drawn but the series, which
//! the page thins out itself.

use super::periods::{Period, deviations};
use crate::ftq::finding::{HeatMap, Pictures, ProbeFinding};
use crate::ftq::record::FtqRecord;
use crate::ftq::series::{Grid, Series};
use crate::probe::{Descriptor, Kind};
use crate::stats::basics::quantile;
use crate::stats::series::level::trend;
use crate::stats::series::mean;
use crate::stats::series::spectrum::Spectrum;

/// Most points of the spectrum. Each is the maximum of its bins, so that no line is lost.
const MOST_POINTS: usize = 4000;
/// Bins of the histogram, and rows of the heat map.
const ROWS: usize = 60;
/// Columns of the heat map.
const COLUMNS: usize = 100;
/// Values above this multiple of the 99.9th percentile share the last row: one of them must not flatten the picture.
const CLEAR: f64 = 1.1;

pub(super) fn pictures(record: &FtqRecord, series: &Series, grid: &Grid, periods: &[Period]) -> Pictures {
    let bounds = bounds(&grid.values);
    let mut pictures = Pictures {
        seconds: series.seconds.iter().skip(1).copied().collect(),
        spans: series.spans.iter().skip(1).map(|span| u32::try_from(*span).unwrap_or(u32::MAX)).collect(),
        amount_per_quantum: series.amount_per_quantum().collect(),
        probes: (0..).zip(record.probes()).map(|(number, probe)| by_reading(series, number, probe)).collect(),
        histogram: counts(grid, &bounds, 1, |_| 0),
        heat_map: periods.first().map(|period| heat_map(grid, period, &bounds)),
        histogram_bounds: bounds,
        ..Pictures::default()
    };
    spectrum(grid, &mut pictures);
    pictures
}

fn spectrum(grid: &Grid, pictures: &mut Pictures) {
    let Some(spectrum) = Spectrum::of(&deviations(grid, trend)) else { return };
    let hertz = spectrum.periods_per_bin / grid.seconds();
    let joined = spectrum.bins().div_ceil(MOST_POINTS).max(1);
    let bins: Vec<(f64, f64)> =
        (1..).map(|bin| f64::from(bin) * hertz).zip(spectrum.power.iter().skip(1).copied()).collect();
    let strongest = |bins: &[(f64, f64)]| bins.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1));
    (pictures.frequencies, pictures.power) = bins.chunks(joined).filter_map(strongest).unzip();
    pictures.alarm_power = spectrum.alarm_power();
}

/// Equal bins from 0 on; a single one if nothing was done.
fn bounds(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    let high = quantile(&mut sorted, 0.999).unwrap_or(0.0) * CLEAR;
    let greatest = quantile(&mut sorted, 1.0).unwrap_or(0.0);
    let top = if high > 0.0 { high.min(greatest) } else { greatest };
    if top <= 0.0 || !top.is_finite() {
        return Vec::new();
    }
    (0..=ROWS).map(|row| top * row as f64 / ROWS as f64).collect()
}

/// The bin of a value; `None` without bins.
fn row(value: f64, bounds: &[f64]) -> Option<usize> {
    let (top, rows) = (bounds.last()?, bounds.len() - 1);
    Some(((value / top * rows as f64) as usize).min(rows - 1))
}

/// Slots by their bin, and within a bin by their column.
fn counts(grid: &Grid, bounds: &[f64], columns: usize, column: impl Fn(usize) -> usize) -> Vec<u64> {
    let mut counts = vec![0; bounds.len().saturating_sub(1) * columns];
    for (slot, value) in grid.values.iter().enumerate() {
        let place = row(*value, bounds).map(|row| row * columns + column(slot));
        if let Some(count) = place.and_then(|place| counts.get_mut(place)) {
            *count += 1;
        }
    }
    counts
}

fn heat_map(grid: &Grid, period: &Period, bounds: &[f64]) -> HeatMap {
    // Fewer columns than slots in a period, so that none is empty.
    let columns = COLUMNS.min(period.dip.period as usize).max(1);
    // The phase is counted from the start of the recording.
    let first = grid.begin / grid.step;
    let phase = |slot: usize| ((first + slot as f64 + 0.5) / period.dip.period).fract();
    let column = |slot: usize| ((phase(slot) * columns as f64) as usize).min(columns - 1);
    HeatMap { period_seconds: period.dip.period * grid.step, columns, counts: counts(grid, bounds, columns, column) }
}

/// What probe `number` did.
pub(super) fn summary(series: &Series, number: usize, probe: &Descriptor) -> ProbeFinding {
    let counter = probe.kind == Kind::Counter;
    let line = series.line(number, probe.kind);
    let mut finding = ProbeFinding {
        name: probe.name.clone(),
        meaning: probe.meaning.clone(),
        unit: probe.unit.clone(),
        counter,
        ..ProbeFinding::default()
    };
    let read = || series.seconds.iter().copied().zip(line.iter().copied()).filter(|(_, value)| value.is_finite());
    let (Some(first), Some(last)) = (read().next(), read().next_back()) else { return finding };
    let lost = line.last().is_some_and(|value| !value.is_finite());
    finding.lost_at_seconds = lost.then(|| series.seconds.iter().copied().find(|at| *at > last.0)).flatten();
    let increase =
        |((before, low), (at, high))| if probe.unit == "ns" { high - low } else { (high - low) / (at - before) };
    let values: Vec<f64> = match counter {
        true => read().zip(read().skip(1)).map(increase).filter(|rate: &f64| rate.is_finite()).collect(),
        false => read().map(|(_, value)| value).collect(),
    };
    finding.least = values.iter().copied().reduce(f64::min);
    finding.greatest = values.iter().copied().reduce(f64::max);
    finding.mean = match counter {
        true => (last.0 > first.0).then(|| (last.1 - first.1) / (last.0 - first.0)),
        false => Some(mean(&values)).filter(|mean| mean.is_finite()),
    };
    finding
}

/// For each reading but the first, a gauge's level, or a counter's increase per quantum since the reading before.
fn by_reading(series: &Series, number: usize, probe: &Descriptor) -> Vec<Option<f64>> {
    let line = series.line(number, probe.kind);
    let present = |value: f64| Some(value).filter(|value| value.is_finite());
    if probe.kind == Kind::Gauge {
        return line.into_iter().skip(1).map(present).collect();
    }
    let times = series.seconds.iter().zip(series.seconds.iter().skip(1));
    let pairs = line.iter().zip(line.iter().skip(1)).zip(times);
    pairs.map(|((low, high), (before, at))| present((high - low) / (at - before) * series.quantum)).collect()
}
