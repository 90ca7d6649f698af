//! One comparison: each metric's change with its interval and verdict, and the shift of latency percentiles.

use super::round_sums::ComparisonSums;
use super::{View, latencies};
use crate::comparison::finding::{CellFinding, Interval, MetricFinding, ShiftPoint};
use crate::comparison::record::Schedule;
use crate::experiment::Metric;
use crate::stats::holm::holm;
use crate::stats::log_ratio::log_ratio;
use crate::stats::percentile::{LatencyRound, PercentileShift, percentile, shift_function};
use crate::stats::typical::{shape_changed, typical};
use crate::stats::verdict::{Shown, verdict};
use crate::stats::{Estimate, LogRatio, Pair, PairedRound, Verdict, stopping};
use std::collections::BTreeMap;

/// Percentiles of the shift function: the whole distribution, and its tail.
const SHIFT: [f64; 11] = [5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99];
/// A difference in a sweep is detected below this p-value after Holm's correction.
const LEVEL: f64 = 0.05;
/// The same level for one-sided p-values.
pub(super) const ONE_SIDED: f64 = LEVEL / 2.0;

/// Why a sliced command has no latencies.
const FROZEN_CLOCK: &str = "the program's own clock ran on while it was frozen; --slices off";

/// The inputs of the judgement.
pub(super) struct Judge<'a> {
    pub sums: &'a ComparisonSums,
    pub record: View<'a>,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
}

/// A metric's change and its values in both arms.
struct Found {
    ratio: LogRatio,
    typical: Option<Estimate>,
    baseline: f64,
    candidate: f64,
}

impl Judge<'_> {
    /// Judges every metric.
    pub fn metrics(&self, baseline: usize, candidate: usize) -> BTreeMap<String, MetricFinding> {
        let finding = |metric: Metric| {
            let found = match metric.percent() {
                Some(percent) => self.percentile(percent, baseline, candidate),
                None => self.ratio(metric, baseline, candidate),
            };
            (metric.name().to_owned(), self.finding(metric, found))
        };
        Metric::ALL.into_iter().map(finding).collect()
    }

    fn ratio(&self, metric: Metric, baseline: usize, candidate: usize) -> Result<Found, String> {
        let rounds = self.sums.paired(metric, baseline, candidate).filter(|rounds| !rounds.is_empty());
        let rounds = rounds.ok_or_else(|| self.absence(metric, [baseline, candidate]))?;
        let ratio = log_ratio(&rounds)
            .ok_or_else(|| "≈ 0 in an arm: below the noise of the background, or nothing was done".to_owned())?;
        let value = |arm: fn(&PairedRound) -> Pair| {
            let sum = |of: fn(&Pair) -> f64| rounds.iter().map(|round| of(&arm(round))).sum::<f64>();
            sum(|pair| pair.numerator) / sum(|pair| pair.denominator)
        };
        let (baseline, candidate) = (value(|round| round.baseline), value(|round| round.candidate));
        Ok(Found { ratio, typical: typical(&rounds), baseline, candidate })
    }

    fn absence(&self, metric: Metric, cases: [usize; 2]) -> String {
        if metric.is_of_whole_machine()
            && let Some(busy) = cases.into_iter().find_map(|case| self.sums.never_idle(case))
        {
            return format!(
                "the machine was {:.0} % busy without the workload, so the cost of an arm cannot be seen; stop other \
                 work",
                busy * 100.0
            );
        }
        let unmetered = self.sums.meter.is_none();
        match metric {
            _ if self.sums.rounds.is_empty() => "no round was completed",
            Metric::CyclesPerIo | Metric::CyclesPerByte | Metric::Cycles if unmetered => {
                "no meter of the whole machine is available"
            }
            Metric::Cycles | Metric::Seconds => "the length of a slice is fixed",
            Metric::LatencyMean if self.is_sliced() => FROZEN_CLOCK,
            Metric::ThreadCyclesPerIo if self.is_sliced() => "a process of the command ended during a slice",
            Metric::ThreadCyclesPerIo | Metric::LatencyMean => "not every execution reported it",
            _ => "the number of I/Os or bytes is unknown",
        }
        .to_owned()
    }

    /// Whether commands took turns.
    fn is_sliced(&self) -> bool {
        matches!(self.record.header.schedule, Schedule::SlicedCommands { .. })
    }

    fn percentile(&self, percent: f64, baseline: usize, candidate: usize) -> Result<Found, String> {
        let Some(rounds) = self.latency_rounds(baseline, candidate) else {
            return self.reported(percent, baseline, candidate);
        };
        let shift = percentile(&rounds, percent).map_err(|why| why.to_string())?;
        let (baseline, candidate) = (self.nanos(shift.baseline_ticks), self.nanos(shift.candidate_ticks));
        Ok(Found { ratio: shift.ratio, typical: None, baseline, candidate })
    }

    /// Percentiles reported by a foreign program cannot be pooled, so each execution is one unit.
    fn reported(&self, percent: f64, baseline: usize, candidate: usize) -> Result<Found, String> {
        let of = |case: usize| -> Option<Vec<f64>> {
            let value = |reported: &[(f64, f64)]| {
                reported.iter().find(|(at, _)| (at - percent).abs() < 1e-6).map(|(_, nanos)| *nanos)
            };
            self.sums.rounds.iter().map(|round| value(&round.cases.get(case)?.reported)).collect()
        };
        let unknown = || match self.is_sliced() {
            true => FROZEN_CLOCK.to_owned(),
            false => format!("not every execution reported p{percent}"),
        };
        let (baselines, candidates) = of(baseline).zip(of(candidate)).ok_or_else(unknown)?;
        let logs: Vec<f64> = baselines.iter().zip(&candidates).map(|(a, b)| (b / a).ln()).collect();
        if let [first, _, ..] = logs.as_slice()
            && logs.iter().all(|log| log == first)
        {
            return Err(
                "every round reported the same value: the program rounds more coarsely than the values vary".to_owned()
            );
        }
        let ratio = LogRatio::of_units(&logs).ok_or_else(unknown)?;
        let mean = |values: &[f64]| (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp();
        Ok(Found { ratio, typical: None, baseline: mean(&baselines), candidate: mean(&candidates) })
    }

    fn latency_rounds(&self, baseline: usize, candidate: usize) -> Option<Vec<LatencyRound<'_>>> {
        let (baselines, candidates) = latencies(self.record, baseline).zip(latencies(self.record, candidate))?;
        let rounds = baselines.into_iter().zip(candidates);
        Some(rounds.map(|(baseline, candidate)| LatencyRound { baseline, candidate }).collect())
    }

    fn nanos(&self, ticks: f64) -> f64 {
        ticks * 1e9 / self.record.header.host.tsc_hertz
    }

    /// The shift of latency at several percentiles.
    pub fn shift(&self, baseline: usize, candidate: usize) -> Vec<ShiftPoint> {
        let rounds = self.latency_rounds(baseline, candidate).unwrap_or_default();
        let shifts = shift_function(&rounds, &SHIFT).into_iter().filter_map(Result::ok);
        let point = |shift: PercentileShift| ShiftPoint {
            percent: shift.percent,
            baseline_ns: self.nanos(shift.baseline_ticks),
            candidate_ns: self.nanos(shift.candidate_ticks),
            change: interval(&shift.ratio.change()),
        };
        shifts.map(point).collect()
    }

    fn finding(&self, metric: Metric, found: Result<Found, String>) -> MetricFinding {
        let rules = &self.record.header.experiment.rules;
        let found = match found {
            Ok(found) => found,
            Err(reason) => return MetricFinding::unknown(reason),
        };
        let change = found.ratio.change();
        let detected = found.ratio.excludes_zero();
        let differs = found.typical.filter(|typical| shape_changed(&change, typical));
        MetricFinding {
            baseline: Some(found.baseline),
            candidate: Some(found.candidate),
            change: Some(change.value),
            low: change.low,
            high: change.high,
            mde80: found.ratio.mde80(),
            detected,
            // Without other cells, the interval alone decides whether the change is beyond the margin.
            verdict: verdict(&change, Shown { detected, beyond: true }, rules.margin, metric.good()),
            p_value: found.ratio.p_value(),
            log_ratio: Some(found.ratio),
            typical: found.typical.as_ref().and_then(interval),
            shape_changed: differs.is_some(),
            seconds_to_decide: stopping::seconds_to_decide(self.seconds, &found.ratio, rules.precision),
            units: found.ratio.units,
            reason: None,
            stored: None,
        }
    }
}

fn interval(estimate: &Estimate) -> Option<Interval> {
    Some(Interval { change: estimate.value, low: estimate.low?, high: estimate.high? })
}

/// Decides what depends on all cells: which changes are detected after Holm's correction.
pub(super) fn conclude(cells: &mut [CellFinding], margin: f64, seconds: f64) {
    if cells.len() > 1 {
        correct_for_many(cells, margin, seconds);
    }
    for found in cells.iter_mut().flat_map(|cell| cell.metrics.values_mut()) {
        found.seconds_to_decide = found.seconds_to_decide.filter(|_| found.verdict == Verdict::Inconclusive);
    }
}

/// With many cells, some differ by chance: applies Holm's correction for each metric over cells and arms.
fn correct_for_many(cells: &mut [CellFinding], margin: f64, seconds: f64) {
    for metric in Metric::ALL {
        let p_values: Vec<Option<f64>> =
            cells.iter().map(|cell| cell.metrics.get(metric.name()).and_then(|found| found.p_value)).collect();
        let tests = p_values.iter().flatten().count();
        let beyond = |cell: &CellFinding| {
            let ratio = cell.metrics.get(metric.name())?.log_ratio?;
            let above = ratio.theta > 0.0;
            ratio.p_beyond(if above { margin } else { -margin }, above)
        };
        let beyond = holm(&cells.iter().map(beyond).collect::<Vec<_>>());
        for ((cell, corrected), beyond) in cells.iter_mut().zip(holm(&p_values)).zip(beyond) {
            let Some(found) = cell.metrics.get_mut(metric.name()) else { continue };
            let Some(value) = found.change else { continue };
            let detected = found.detected && corrected.is_some_and(|p| p < LEVEL);
            if found.detected && !detected {
                // The precision for a single cell may be reached already; with many cells, more is needed.
                let surer = found.p_value.and_then(|p| stopping::seconds_to_detect(seconds, p, tests, found.units));
                found.seconds_to_decide = found.seconds_to_decide.zip(surer).map(|(alone, surer)| alone.max(surer));
            }
            (found.p_value, found.detected) = (corrected, detected);
            let change = Estimate { value, low: found.low, high: found.high };
            let shown = Shown { detected, beyond: beyond.is_some_and(|p| p < ONE_SIDED) };
            found.verdict = verdict(&change, shown, margin, metric.good());
        }
    }
}
