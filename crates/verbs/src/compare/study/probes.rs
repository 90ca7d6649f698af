//! Probes in a comparison: what each one reads while either arm runs.
//!
//! As in a cost sheet, the growth of a counter per I/O is net of the idle machine, and its rate and the mean of a gauge include it.
//! Probes explain an answer and are no part of it, so they belong to no family: each interval holds alone.

use super::View;
use crate::compare::finding::{BothArms, ProbeComparison};
use crate::compare::record::{RoundRecord, SliceReading};
use model::probe::{Descriptor, Kind};
use model::record::Snapshot;
use model::slice::Rounds;
use model::stats::estimate::CONFIDENCE;
use model::stats::{Evidence, Neighbours, Pair, PairedRound, Resolution, log_ratio, ratio_of_sums};
use model::study::io_seconds;
use model::study::probes::Probe;

/// Every probe in two cases of a cell.
pub(super) fn comparisons(record: View, sums: &Rounds, baseline: usize, candidate: usize) -> Vec<ProbeComparison> {
    let of = |(place, descriptor): (usize, &Descriptor)| {
        Compared { record, sums, probe: Probe { place, descriptor } }.finding(baseline, candidate)
    };
    record.header.probes.iter().enumerate().map(of).collect()
}

/// A probe, and where it was read.
struct Compared<'a> {
    record: View<'a>,
    sums: &'a Rounds,
    probe: Probe<'a>,
}

/// What was read in the slices of a case in a round.
#[derive(Clone, Copy, Default)]
struct Growth {
    /// A counter's growth, or a gauge's level times the seconds.
    amount: f64,
    /// Between the readings.
    seconds: f64,
    /// In which the I/Os were done.
    io_seconds: f64,
    slices: f64,
}

impl Compared<'_> {
    fn finding(&self, baseline: usize, candidate: usize) -> ProbeComparison {
        let Descriptor { name, meaning, unit, kind, .. } = self.probe.descriptor.clone();
        let (per_io, per_second, mean) = (None, None, None);
        let mut found = ProbeComparison { name, meaning, unit, kind, per_io, per_second, mean, reason: None };
        let cases = [baseline, candidate];
        if let Some(reason) = self.went_backwards(cases) {
            found.reason = Some(reason);
            return found;
        }
        let over_time =
            self.both(cases, |_, growth| Some(Pair { numerator: growth.amount, denominator: growth.seconds }));
        if over_time.is_none() {
            found.reason = Some("it was not read at both ends of every slice".to_owned());
        }
        match kind {
            Kind::Gauge => found.mean = over_time,
            Kind::Counter => {
                found.per_second = over_time;
                found.per_io = self.both(cases, |(round, case), growth| {
                    let idle = self.growth(self.record.rounds.get(round)?, None)?;
                    let rate = growth.amount / growth.seconds - idle.amount / idle.seconds;
                    let ios = self.sums.rounds.get(round)?.cases.get(case)?.ios?;
                    Some(Pair { numerator: rate * growth.io_seconds, denominator: ios })
                });
            }
        }
        found
    }

    /// A ratio of both cases. `pair` is given a round, a case and what was read in it; `None` makes the ratio unknown.
    fn both(
        &self,
        [baseline, candidate]: [usize; 2],
        pair: impl Fn((usize, usize), Growth) -> Option<Pair>,
    ) -> Option<BothArms> {
        let of = |case: usize| {
            let rounds = self.record.rounds.iter().enumerate();
            let pairs = rounds.map(|(number, round)| pair((number, case), self.growth(round, Some(case))?));
            pairs.collect::<Option<Vec<Pair>>>()
        };
        let (baselines, candidates) = (of(baseline)?, of(candidate)?);
        let rounds: Vec<PairedRound> =
            baselines.iter().zip(&candidates).map(|(a, b)| PairedRound { baseline: *a, candidate: *b }).collect();
        let slices = self.growth(self.record.rounds.first()?, Some(candidate)).map_or(1.0, |growth| growth.slices);
        // A counter grows by whole numbers; the steps of a gauge are unknown.
        let step = if self.probe.descriptor.kind == Kind::Counter { 1.0 } else { 0.0 };
        let ratio = log_ratio(&rounds, Resolution { numerator: step, denominator: 0.0, readings: 2.0 * slices });
        Some(BothArms {
            baseline: ratio_of_sums(&baselines, Neighbours::Independent)?.estimate(),
            candidate: ratio_of_sums(&candidates, Neighbours::Independent)?.estimate(),
            change: ratio.and_then(|ratio| ratio.change(CONFIDENCE).bounded()),
        })
    }

    /// What was read in a round while a case ran, or the idle machine; `None` if a reading is missing.
    fn growth(&self, round: &RoundRecord, case: Option<usize>) -> Option<Growth> {
        let mut sum = Growth::default();
        for slice in round.slices.iter().filter(|slice| slice.case == case && !slice.reading.is_uncounted()) {
            let windows = match &slice.reading {
                SliceReading::Slice { before, after, .. } | SliceReading::Command { before, after, .. } => {
                    vec![self.probe.between(before, after)?]
                }
                SliceReading::Execution(execution) => {
                    let within = self.probe.windows(&execution.stretch, execution.io_interval);
                    if within.is_empty() { self.probe.windows(&execution.stretch, None) } else { within }
                }
            };
            let seconds: f64 = windows.iter().map(|window| window.capacity_seconds).sum();
            sum.amount += windows.iter().map(|window| window.cycles).sum::<f64>();
            sum.seconds += seconds;
            sum.io_seconds += match &slice.reading {
                SliceReading::Execution(execution) => io_seconds(execution),
                SliceReading::Slice { .. } | SliceReading::Command { .. } => seconds,
            };
            sum.slices += 1.0;
        }
        (sum.seconds > 0.0).then_some(sum)
    }

    /// Why a counter is unusable: it decreased.
    fn went_backwards(&self, cases: [usize; 2]) -> Option<String> {
        let slices = self.record.rounds.iter().flat_map(|round| &round.slices);
        let of_these = slices.filter(|slice| slice.case.is_none_or(|case| cases.contains(&case)));
        let of_these = of_these.map(|slice| slice.reading.pairs().flat_map(<[&Snapshot; 2]>::from));
        of_these.into_iter().find_map(|snapshots| self.probe.went_backwards(snapshots))
    }
}

#[cfg(test)]
mod tests {
    use super::super::study;
    use super::super::tests::{Load, experiment, record, wobble};
    use super::*;
    use crate::compare::record::CompareRecord;
    use model::experiment::draft::Draft;
    use model::probe::{Readings, Scope};
    use model::unit::Nanos;

    fn descriptor(name: &str, kind: Kind) -> Descriptor {
        let (meaning, unit) = ("made up".to_owned(), "packets".to_owned());
        Descriptor { name: name.to_owned(), meaning, unit, kind, scope: Scope::Machine }
    }

    /// A counter that grows by `per_io[case]` for each I/O and by 100 per second of any time, and a gauge with the level of the case.
    fn probed(per_io: [f64; 2], levels: [f64; 2]) -> CompareRecord {
        let load = |round, case| Load { nanos_per_io: 1000 + wobble(round, case), ios: 40_000 };
        let mut record = record(experiment(Draft::default()), 12, load);
        record.header.probes = vec![descriptor("counter", Kind::Counter), descriptor("gauge", Kind::Gauge)];
        for slice in record.rounds.iter_mut().flat_map(|round| &mut round.slices) {
            let SliceReading::Slice { before, after, work, .. } = &mut slice.reading else { panic!("no slice") };
            let seconds = |at: Nanos| at.seconds() * 100.0;
            let own = slice.case.map_or(0.0, |case| per_io[case] * work.ios as f64);
            let level = slice.case.map_or(0.0, |case| levels[case]);
            for (snapshot, own) in [(before, 0.0), (after, own)] {
                let at_nanos = snapshot.at_nanos;
                let values = vec![Some(seconds(at_nanos) + own), Some(level)];
                snapshot.probes = Some(Box::new(Readings { at_nanos, values }));
            }
        }
        record
    }

    fn near(found: f64, truth: f64) {
        assert!((found / truth - 1.0).abs() < 1e-6, "{found}, not {truth}");
    }

    #[test]
    fn a_counter_is_net_per_io_and_gross_per_second_and_a_gauge_has_a_mean() {
        let finding = study(&probed([2.0, 3.0], [10.0, 20.0]));
        let [counter, gauge] = finding.cells[0].probes.as_slice() else { panic!("{:?}", finding.cells[0].probes) };
        let per_io = counter.per_io.as_ref().unwrap();
        near(per_io.baseline.value, 2.0);
        near(per_io.candidate.value, 3.0);
        near(per_io.change.unwrap().value, 0.5);
        assert!(counter.per_second.as_ref().unwrap().baseline.value > 100.0 && counter.mean.is_none());
        let mean = gauge.mean.as_ref().unwrap();
        near(mean.baseline.value, 10.0);
        near(mean.change.unwrap().value, 1.0);
        assert!(gauge.per_io.is_none() && gauge.per_second.is_none() && gauge.reason.is_none());
    }

    #[test]
    fn an_unread_or_reset_counter_has_a_reason() {
        let mut lost = probed([2.0, 2.0], [1.0, 1.0]);
        let mut reset = lost.clone();
        let last = |record: &mut CompareRecord, value: Option<f64>| {
            let slice =
                record.rounds.last_mut().unwrap().slices.iter_mut().find(|slice| slice.case == Some(1)).unwrap();
            let SliceReading::Slice { after, .. } = &mut slice.reading else { panic!("no slice") };
            after.probes.as_mut().unwrap().values[0] = value;
        };
        last(&mut lost, None);
        last(&mut reset, Some(0.0));
        for (record, told) in [(lost, "not read"), (reset, "decreased")] {
            let found = &study(&record).cells[0].probes[0];
            assert!(found.reason.as_ref().unwrap().contains(told), "{found:?}");
            assert!(found.per_io.is_none() && found.per_second.is_none());
        }
        // Zero in both arms is a value, and no ratio of zeros exists.
        let none = &study(&probed([0.0, 0.0], [0.0, 0.0])).cells[0].probes[1];
        let mean = none.mean.as_ref().unwrap();
        assert_eq!((mean.baseline.value, mean.change), (0.0, None));
    }
}
