//! The metrics that the answer covers: the requested ones, or the available ones.

use crate::experiment::Metric;

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
