//! Which metrics the answer is about: those that were asked for, or what could be had in their place.

use crate::experiment::Metric;

/// What tells executions of a command apart that says nothing of its I/O.
const OF_EXECUTIONS: [Metric; 2] = [Metric::Cycles, Metric::Seconds];

/// The metrics that were `asked` for, if any of them has a value: one that has none is shown with its reason. Otherwise
/// those of whole executions that have one, otherwise all that have one.
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
    fn what_was_asked_for_stays_while_any_of_it_is_known() {
        let asked = [Metric::CyclesPerIo, Metric::Iops];
        let of = |known: &[Metric]| targets(&asked, |metric| known.contains(&metric));
        assert_eq!(of(&[Metric::Iops, Metric::Seconds]), asked);
        assert_eq!(of(&[Metric::Seconds, Metric::LatencyMean]), [Metric::Seconds]);
        assert_eq!(of(&[Metric::LatencyMean, Metric::LatencyP99]), [Metric::LatencyMean, Metric::LatencyP99]);
        assert_eq!(of(&[]), asked);
    }
}
