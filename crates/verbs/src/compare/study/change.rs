//! The comparisons: each metric's change with its interval and verdict, and the shift of latency percentiles.
//!
//! With many comparisons, some differ by chance. So the intervals of a *family* hold together: with m comparisons, each has
//! a confidence of 1 − 0.05/m (Bonferroni), and the chance that any of them is wrong is at most 5 %. A verdict is read off
//! the interval that is shown. There are two families: the target metrics in all cells, which answer the question that was
//! asked, and all other metrics in all cells, which explain the answer. A metric that is a constant multiple of another in
//! both arms (IOPS and bytes per second of one block size) is the same comparison.

use super::sliced_command::Unlike;
use super::{View, latencies};
use crate::compare::finding::{Families, MetricFinding, ShiftPoint};
use crate::compare::record::Schedule;
use model::experiment::Metric;
use model::explained::FamilyFinding;
use model::slice::{Rounds, why_unmetered};
use model::stats::estimate::CONFIDENCE;
use model::stats::evidence::arms;
use model::stats::percentile::{LatencyRound, PercentileShift, percentile};
use model::stats::typical::{shape_changed, typical};
use model::stats::{
    Dominant, Estimate, Evidence, LogRatio, Pair, Verdict, confidence_of_each, dominant, stopping, verdict,
};
use std::collections::BTreeMap;

/// Percentiles of the shift function: the whole distribution, and its tail.
const SHIFT: [f64; 11] = [5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99];
/// Evidence that differs by less, relatively, is that of one comparison.
const SAME: f64 = 1e-9;

/// Why a sliced command has no latencies.
const FROZEN_CLOCK: &str = "the program's own clock ran on while it was frozen; --slices off";

/// The inputs of the judgement.
pub(super) struct Judge<'a> {
    pub sums: &'a Rounds,
    pub record: View<'a>,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
}

/// A metric's change and its values in both arms.
pub(super) struct Found {
    pub evidence: Box<dyn Evidence>,
    typical: Option<Estimate>,
    baseline: f64,
    candidate: f64,
    /// Whether one round carries much of an arm's sum, and what it carries.
    pub dominated: Option<Dominated>,
}

/// A round that carries much of an arm's sum.
pub(super) struct Dominated {
    pub is_baseline: bool,
    /// From 0, among the rounds that count.
    pub unit: Dominant,
}

/// All metrics of one comparison, or why they have no value.
pub(super) type Comparison = BTreeMap<Metric, Result<Found, String>>;

impl Judge<'_> {
    /// Compares two cases in every metric.
    pub fn compare(&self, (baseline, candidate): (usize, usize), unlike: Option<&Unlike>) -> Comparison {
        let found = |metric: Metric| {
            let found = match (metric.percent(), unlike) {
                (Some(percent), _) => self.percentile(percent, baseline, candidate),
                (None, Some(unlike)) if unlike.concerns(metric) => Err(unlike.why.clone()),
                (None, _) => self.ratio(metric, baseline, candidate),
            };
            (metric, found)
        };
        Metric::ALL.into_iter().map(found).collect()
    }

    fn ratio(&self, metric: Metric, baseline: usize, candidate: usize) -> Result<Found, String> {
        let rounds = self.sums.paired(metric, baseline, candidate).filter(|rounds| !rounds.is_empty());
        let rounds = rounds.ok_or_else(|| self.absence(metric, [baseline, candidate]))?;
        let ratio = (self.sums.change(metric, baseline, candidate))
            .ok_or_else(|| "≈ 0 in an arm: below the noise of the background, or nothing was done".to_owned())?;
        if ratio.error.is_none() && rounds.len() > 1 {
            return Err(
                "one round has most of the work, so nothing tells how far the change may be off; run longer".to_owned()
            );
        }
        let arms = arms(&rounds);
        let [baseline, candidate] = arms.each_ref().map(|arm| Pair::sum(arm.iter().copied()).ratio());
        let dominated = arms.iter().zip([true, false]).filter_map(|(arm, is_baseline)| {
            let unit = dominant(arm)?;
            let (place, _) = self.sums.showing(metric).nth(unit.place)?;
            Some(Dominated { is_baseline, unit: Dominant { place, ..unit } })
        });
        let dominated = dominated.max_by(|one, other| one.unit.part.total_cmp(&other.unit.part));
        Ok(Found { evidence: Box::new(ratio), typical: typical(&rounds), baseline, candidate, dominated })
    }

    fn absence(&self, metric: Metric, cases: [usize; 2]) -> String {
        if let Some(busy) = self.sums.never_idle().filter(|_| metric.is_of_whole_machine()) {
            return format!(
                "the machine was {:.0} % busy without the workload, so the cost of an arm cannot be seen; stop other \
                 work",
                busy * 100.0
            );
        }
        let unmetered = self.sums.meter.is_none();
        let is_counted = cases.into_iter().all(|case| self.sums.pairs(Metric::Iops, case).is_some());
        match metric {
            _ if self.sums.rounds.is_empty() => "no round was completed",
            Metric::CyclesPerIo | Metric::CyclesPerByte | Metric::Cycles if unmetered => {
                why_unmetered(self.record.rounds, &self.record.header.meters)
            }
            Metric::Cycles | Metric::Seconds => "the length of a slice is fixed",
            Metric::LatencyMean if self.is_sliced() => FROZEN_CLOCK,
            Metric::ThreadCyclesPerIo if self.is_sliced() && is_counted => {
                "a process of the command ended during a slice"
            }
            Metric::ThreadCyclesPerIo | Metric::LatencyMean if is_counted => "not every execution reported it",
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
        Ok(Found { evidence: Box::new(shift), typical: None, baseline, candidate, dominated: None })
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
        Ok(Found {
            evidence: Box::new(ratio),
            typical: None,
            baseline: mean(&baselines),
            candidate: mean(&candidates),
            dominated: None,
        })
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
        let shifts = SHIFT.into_iter().filter_map(|percent| percentile(&rounds, percent).ok());
        let point = |shift: PercentileShift| ShiftPoint {
            percent: shift.percent,
            baseline_ns: self.nanos(shift.baseline_ticks),
            candidate_ns: self.nanos(shift.candidate_ticks),
            change: shift.change(CONFIDENCE).bounded(),
        };
        shifts.map(point).collect()
    }

    /// The finding of a metric whose interval has this confidence.
    pub fn finding(&self, metric: Metric, found: &Result<Found, String>, family: &FamilyFinding) -> MetricFinding {
        let rules = &self.record.header.experiment.rules;
        let found = match found {
            Ok(found) => found,
            Err(reason) => return MetricFinding::unknown(reason),
        };
        let confidence = family.confidence;
        let change = found.evidence.change(confidence);
        // The typical round has an interval of 95 %, and is set against the same of the sums.
        let alone = found.evidence.change(CONFIDENCE);
        let differs = found.typical.filter(|typical| shape_changed(&alone, typical));
        let verdict = verdict(&change, rules.margin, metric.good());
        let undecided = verdict == Verdict::Inconclusive;
        let half = found.evidence.half_width(confidence).filter(|_| undecided);
        let (units, correlation) = found.evidence.units();
        MetricFinding {
            baseline: Some(found.baseline),
            candidate: Some(found.candidate),
            change: Some(change.value),
            low: change.low,
            high: change.high,
            confidence: Some(confidence),
            mde80: found.evidence.mde80(confidence),
            detected: found.evidence.excludes_zero(confidence),
            verdict,
            p_value: found.evidence.p_value().map(|p| (p * family.comparisons.max(1) as f64).min(1.0)),
            typical: found.typical.and_then(Estimate::bounded),
            shape_changed: differs.is_some(),
            seconds_to_decide: half.and_then(|half| stopping::seconds_to_decide(self.seconds, half, rules.precision)),
            units,
            correlation,
            ..MetricFinding::default()
        }
    }
}

/// The two families of these comparisons.
pub(super) fn families(comparisons: &[Comparison], targets: &[Metric]) -> Families {
    Families {
        targets: family(comparisons, |comparison, metric| is_target(comparison, metric, targets)),
        others: family(comparisons, |comparison, metric| !is_target(comparison, metric, targets)),
    }
}

/// Whether a metric is a target, or the same comparison as one.
pub(super) fn is_target(comparison: &Comparison, metric: Metric, targets: &[Metric]) -> bool {
    let evidence = |metric: &Metric| comparison.get(metric)?.as_ref().ok().map(|found| found.evidence.as_ref());
    let repeats = |own: &dyn Evidence| targets.iter().filter_map(evidence).any(|target| same(own, target));
    targets.contains(&metric) || evidence(&metric).is_some_and(repeats)
}

/// Whether two metrics are multiples of each other.
fn same(one: &dyn Evidence, other: &dyn Evidence) -> bool {
    let of =
        |evidence: &dyn Evidence| (evidence.change(CONFIDENCE).value, evidence.half_width(CONFIDENCE).unwrap_or(0.0));
    let near = |one: f64, other: f64| (one - other).abs() <= SAME * one.abs().max(other.abs()).max(SAME);
    let ((change, half), (other_change, other_half)) = (of(one), of(other));
    near(change, other_change) && near(half, other_half)
}

/// The different comparisons of the metrics for which `belongs` is true.
fn family(comparisons: &[Comparison], belongs: impl Fn(&Comparison, Metric) -> bool) -> FamilyFinding {
    let different = |comparison: &Comparison| {
        let found = comparison.iter().filter(|(metric, _)| belongs(comparison, **metric));
        let mut seen: Vec<&dyn Evidence> = Vec::new();
        for evidence in found.filter_map(|(_, found)| found.as_ref().ok()).map(|found| found.evidence.as_ref()) {
            if !seen.iter().any(|known| same(*known, evidence)) {
                seen.push(evidence);
            }
        }
        seen.len()
    };
    let comparisons = comparisons.iter().map(different).sum();
    FamilyFinding { comparisons, confidence: confidence_of_each(comparisons) }
}

/// Metrics of whole executions that do not depend on the I/O.
const OF_EXECUTIONS: [Metric; 2] = [Metric::Cycles, Metric::Seconds];

/// The `asked` metrics, if any of them has a value; the others are shown with their reason. Otherwise the metrics of
/// whole executions that have a value, otherwise all that have one.
pub(super) fn targets(asked: &[Metric], has_value: impl Fn(Metric) -> bool) -> Vec<Metric> {
    if asked.iter().any(|metric| has_value(*metric)) {
        return asked.to_vec();
    }
    let known = |metrics: &[Metric]| metrics.iter().copied().filter(|metric| has_value(*metric)).collect::<Vec<_>>();
    let instead = [known(&OF_EXECUTIONS), known(&Metric::ALL)].into_iter().find(|metrics| !metrics.is_empty());
    instead.unwrap_or_else(|| asked.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(theta: f64, standard_error: f64) -> Result<Found, String> {
        let error = Some(model::stats::Uncertainty::new(standard_error, 20.0));
        let evidence = Box::new(LogRatio { theta, error, units: 21, correlation: None });
        Ok(Found { evidence, typical: None, baseline: 1.0, candidate: theta.exp(), dominated: None })
    }

    #[test]
    fn a_family_counts_comparisons_that_differ() {
        let comparison = || -> Comparison {
            [
                (Metric::Iops, found(0.02, 0.01)),
                (Metric::BytesPerSecond, found(0.02, 0.01)),
                (Metric::CyclesPerIo, found(0.03, 0.01)),
                (Metric::LatencyP99, Err("too few".to_owned())),
            ]
            .into_iter()
            .collect()
        };
        let found = families(&[comparison(), comparison()], &[Metric::Iops]);
        assert_eq!(found.targets.comparisons, 2, "in each of two cells, IOPS and bytes per second are one");
        assert_eq!(found.others.comparisons, 2, "cycles; what is unknown is no comparison");
        assert!((found.others.confidence - (1.0 - 0.05 / 2.0)).abs() < 1e-12);
        let both = families(&[comparison()], &[Metric::Iops, Metric::CyclesPerIo]);
        assert_eq!((both.targets.comparisons, both.others.comparisons), (2, 0));
        assert!(is_target(&comparison(), Metric::BytesPerSecond, &[Metric::Iops]), "it has the same interval");
        assert!(!is_target(&comparison(), Metric::CyclesPerIo, &[Metric::Iops]));
        assert_eq!(families(&[], &[Metric::Iops]).targets.comparisons, 0);
    }

    #[test]
    fn requested_targets_stay_while_any_has_a_value() {
        let asked = [Metric::CyclesPerIo, Metric::Iops];
        let of = |known: &[Metric]| targets(&asked, |metric| known.contains(&metric));
        assert_eq!(of(&[Metric::Iops, Metric::Seconds]), asked);
        assert_eq!(of(&[Metric::Seconds, Metric::LatencyMean]), [Metric::Seconds]);
        assert_eq!(of(&[Metric::LatencyMean, Metric::LatencyP99]), [Metric::LatencyMean, Metric::LatencyP99]);
        assert_eq!(of(&[]), asked);
    }
}
