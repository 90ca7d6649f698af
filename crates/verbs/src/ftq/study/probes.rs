//! The probes over the whole recording, and the series that a report draws, which the page thins out itself.

use crate::ftq::finding::{Pictures, ProbeFinding};
use crate::ftq::record::FtqRecord;
use crate::ftq::series::Series;
use model::probe::{Descriptor, Kind};
use model::stats::series::mean;

pub(super) fn pictures(record: &FtqRecord, series: &Series) -> Pictures {
    let probes = record.header.probes.iter().enumerate();
    Pictures {
        seconds: series.seconds.iter().skip(1).copied().collect(),
        spans: series.spans.iter().skip(1).map(|span| u32::try_from(*span).unwrap_or(u32::MAX)).collect(),
        amount_per_quantum: series.amount_per_quantum().collect(),
        probes: probes.map(|(number, probe)| by_reading(series, number, probe)).collect(),
    }
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
