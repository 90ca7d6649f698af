//! Caveats of a comparison, one function each. The thresholds are those of a run (`study/caveats.rs`).

use super::change::{Comparison, Dominated, Found};
use super::which_rounds::{WarmUp, carry_over};
use super::{View, sliced_command};
use crate::compare::finding::CellFinding;
use crate::compare::record::{RoundRecord, SliceReading};
use model::elided_list::distinct;
use model::experiment::metric::Term;
use model::experiment::{Case, Cell, Metric};
use model::group_limit;
use model::number::directed;
use model::record::Lost;
use model::slice::{CaseLoad, Round, Rounds, why_unmetered};
use model::stats::stopping::FEWEST_ROUNDS;
use model::stats::{CommonShift, Pair, common_shift};
use model::study::caveats::{BUSY_BACKGROUND, DISAGREEMENT, SATURATED, STOLEN, loss_unknown, lost_packets};
use model::warning::{Code, Warning, gravest_first};

/// The caveats of the record and those that follow from the numbers, the gravest first.
pub(super) fn caveats(record: View, sums: &Rounds, warm_up: &WarmUp) -> Vec<Warning> {
    let mut warnings = record.end.map(|end| end.warnings.clone()).unwrap_or_default();
    let found = [
        few_rounds(record),
        unmetered(record, sums),
        busy_background(sums),
        squeezed_background(record, sums),
        steal(sums),
        sliced_command::uncounted(record),
        sliced_command::disagreement(record),
        sliced_command::like_log_lines(record),
        sliced_command::counting_costs(record, sums),
        unsettled(warm_up),
        carried_over(record),
        moved(sums),
    ];
    warnings.extend(found.into_iter().flatten());
    warnings.extend(packets_lost(record));
    warnings.extend(group_limit::caveats(record.rounds.iter().flat_map(RoundRecord::limits), "slices"));
    gravest_first(&mut warnings);
    warnings
}

/// Of each case, over all its executions.
fn packets_lost(record: View) -> Vec<Warning> {
    let experiment = &record.header.experiment;
    let of_case = |(place, case): (usize, &Case)| {
        let (mut sent, mut came, mut is_known) = ((0_u64, 0_u64), (0_u64, 0_u64), true);
        let slices = record.rounds.iter().flat_map(|round| &round.slices).filter(|slice| slice.case == Some(place));
        for slice in slices {
            let SliceReading::Execution(execution) = &slice.reading else { continue };
            for job in &execution.jobs {
                let Lost { read, write } = job.lost.unwrap_or(Lost::NONE);
                is_known &= read.is_some() && write.is_some();
                let (read, write) = (read.unwrap_or(0), write.unwrap_or(0));
                sent = (sent.0.saturating_add(write), sent.1.saturating_add(job.write.ios));
                came = (came.0.saturating_add(read), came.1.saturating_add(job.read.ios).saturating_add(read));
            }
        }
        let arm = experiment.arms.get(case.arm).map_or("", |arm| arm.name.as_str());
        let cell = experiment.cells.get(case.cell).map(Cell::to_string).filter(|cell| !cell.is_empty());
        let name = cell.map_or_else(|| arm.to_owned(), |cell| format!("{arm} at {cell}"));
        [lost_packets(&name, sent, came), loss_unknown(&name, is_known)]
    };
    experiment.cases.iter().enumerate().flat_map(of_case).flatten().collect()
}

fn few_rounds(record: View) -> Option<Warning> {
    let rounds = record.rounds.len();
    let message = format!(
        "only {rounds} {}: with fewer than {FEWEST_ROUNDS}, the interval itself is uncertain; increase --budget",
        if rounds == 1 { "round" } else { "rounds" }
    );
    (rounds < FEWEST_ROUNDS).then(|| Warning::new(Code::NoInterval, message))
}

fn unmetered(record: View, sums: &Rounds) -> Option<Warning> {
    let unmetered = sums.meter.is_none() && !sums.rounds.is_empty();
    unmetered.then(|| Warning::new(Code::MeterUnavailable, why_unmetered(record.rounds, &record.header.meters)))
}

fn busy_background(sums: &Rounds) -> Option<Warning> {
    let busy = sums.background_fraction().filter(|busy| *busy > BUSY_BACKGROUND)?;
    let unseen = sums.rounds.iter().filter(|round| sums.is_unseen(round)).count();
    let left_out = match (unseen, sums.never_idle()) {
        (1.., None) => {
            format!(", and {unseen} of {} rounds in which it was never idle tell no cost", sums.rounds.len())
        }
        _ => String::new(),
    };
    let message = format!(
        "the machine was {:.1} % busy without the workload; stop other work for narrower intervals{left_out}",
        busy * 100.0
    );
    Some(Warning::new(Code::BusyBackground, message))
}

/// Tests each case separately: if only one is squeezed, the change is wrong as well. If the machine was never idle, no
/// cost is shown that could be too low.
fn squeezed_background(record: View, sums: &Rounds) -> Option<Warning> {
    let margin = record.header.experiment.rules.margin;
    let busy = sums.background_fraction().is_some_and(|busy| busy > BUSY_BACKGROUND);
    let full = |load: &CaseLoad| load.busy > SATURATED && load.background > margin;
    let below_own = |load: &CaseLoad| busy && load.own.is_some_and(|own| own * (1.0 - DISAGREEMENT) > 1.0);
    let cases = if sums.never_idle().is_some() { 0 } else { sums.cases() };
    let loads = (0..cases).filter_map(|case| Some((case, sums.load(case)?)));
    let squeezed: Vec<(usize, CaseLoad)> = loads.filter(|(_, load)| full(load) || below_own(load)).collect();
    squeezed.first()?;
    let of = if squeezed.len() == sums.cases() {
        "all arms".to_owned()
    } else {
        let experiment = &record.header.experiment;
        let name =
            |(case, _): &(usize, CaseLoad)| Some(experiment.arms.get(experiment.cases.get(*case)?.arm)?.name.as_str());
        distinct(squeezed.iter().filter_map(name)).join(" and ")
    };
    let seen = if squeezed.iter().any(|(_, load)| full(load)) {
        format!("all CPUs were busy while {of} ran")
    } else {
        format!("the net cost of {of} is below that of the workers' own threads")
    };
    // Without a cost that remains, none is shown.
    let shown = squeezed.iter().any(|(_, load)| load.background.is_finite());
    let too_low = if shown { ", and the net costs are too low" } else { "" };
    let message = format!(
        "{seen}: the load displaced background work, so subtracting the whole background overcorrects{too_low}; measure on a quieter \
         machine"
    );
    Some(Warning::new(Code::BackgroundSqueezed, message))
}

fn steal(sums: &Rounds) -> Option<Warning> {
    let steal = sums.steal_fraction().filter(|steal| *steal > STOLEN)?;
    let message = format!(
        "the hypervisor stole {:.1} % of the CPU time; up to {:.1} % of an arm's gross cost is left out: time that was neither idle \
         nor known to be a task's. Costs are too low if that was interrupts or other work",
        steal * 100.0,
        sums.most_left_out() * 100.0
    );
    Some(Warning::new(Code::Steal, message))
}

fn unsettled(warm_up: &WarmUp) -> Option<Warning> {
    let message = "the rate of all arms together never settled: no rounds were left out, and absolute values depend on \
                   when they were measured; run longer";
    (!warm_up.settles).then(|| Warning::new(Code::NoSteadyState, message))
}

fn carried_over(record: View) -> Option<Warning> {
    let change = carry_over(record)?;
    let message = format!(
        "an arm's slices are {} after one of its own than after another arm's: a slice affects the next one \
         (carry-over), and up to a third of that is in the change; compare whole executions of a command instead",
        directed(change, 1, "faster", "slower")
    );
    Some(Warning::new(Code::CarryOver, message))
}

fn moved(sums: &Rounds) -> Option<Warning> {
    let together = |round: &Round| {
        let pair = |case| round.pair(Metric::Iops, case).or_else(|| round.pair(Metric::Seconds, case));
        let pairs = (0..sums.cases()).map(pair).collect::<Option<Vec<Pair>>>()?;
        Some(Pair::sum(pairs.into_iter()))
    };
    let rounds: Option<Vec<Pair>> = sums.rounds.iter().map(together).collect();
    let CommonShift { after_round, change, .. } = common_shift(&rounds?)?;
    let percent = change * 100.0;
    let message = format!(
        "after round {after_round} the rate of all arms together changed by {percent:+.0} %: the machine changed. This affects absolute values, \
         but not the comparison within each round"
    );
    Some(Warning::new(Code::EnvironmentStep, message))
}

/// Caveats about the spread of the rounds in the target metrics: what makes an interval less sure than its confidence says.
pub(super) fn spread(
    cells: &[CellFinding],
    compared: &[Comparison],
    targets: &[Metric],
    skipped: usize,
) -> Vec<Warning> {
    [correlated(cells, targets), dominated(cells, compared, targets, skipped)].into_iter().flatten().collect()
}

/// Consecutive rounds that resemble each other.
fn correlated(cells: &[CellFinding], targets: &[Metric]) -> Option<Warning> {
    let of_cell = |cell: &CellFinding| {
        let of_metric = |metric: &Metric| Some((*metric, cell.metrics.get(metric.name())?.correlation?));
        targets.iter().filter_map(of_metric).collect::<Vec<_>>()
    };
    let all = cells.iter().flat_map(of_cell);
    let (metric, most) = all.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let message = format!(
        "the change of consecutive rounds is correlated ({most:.2} in {}): something that lasts longer than a round affects one \
         arm. The intervals are wider for that, but a trend is not in them; run longer",
        metric.name()
    );
    Some(Warning::new(Code::RoundsCorrelated, message))
}

/// One round that carries much of an arm's mean. `skipped` rounds before the first do not count.
fn dominated(cells: &[CellFinding], compared: &[Comparison], targets: &[Metric], skipped: usize) -> Option<Warning> {
    let found = cells.iter().zip(compared).flat_map(|(cell, comparison)| {
        let of_metric = move |metric: &Metric| {
            let found: &Found = comparison.get(metric)?.as_ref().ok()?;
            Some((cell, *metric, found.dominated.as_ref()?))
        };
        targets.iter().filter_map(of_metric)
    });
    let (cell, metric, most): (&CellFinding, Metric, &Dominated) =
        found.max_by(|(_, _, one), (_, _, other)| one.unit.part.total_cmp(&other.unit.part))?;
    let place = Cell { values: cell.cell.clone() }.to_string();
    let [numerator, denominator] = metric.counts().map(Term::words);
    let message = format!(
        "round {} has {:.0} % of the {} of {}{}: the mean depends on it, and there are too few such rounds to estimate how often they occur; run longer",
        skipped + most.unit.place + 1,
        most.unit.part * 100.0,
        if most.unit.of_denominator { denominator } else { numerator },
        if most.is_baseline { "the baseline" } else { cell.arm.as_str() },
        if place.is_empty() { String::new() } else { format!(" at {place}") },
    );
    Some(Warning::new(Code::OneUnitCarriesTheMean, message))
}

#[cfg(test)]
mod tests {
    use super::super::study;
    use super::super::tests::{Load, experiment, record};
    use crate::compare::record::{CompareRecord, SliceReading};
    use model::experiment::Draft;
    use model::unit::Nanos;
    use model::warning::{Code, Warning};

    const LOAD: Load = Load { nanos_per_io: 1000, ios: 1000 };

    fn codes(record: &CompareRecord) -> Vec<Code> {
        study(record).head.warnings.iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn steal_has_the_threshold_of_a_run() {
        for (part, told) in [(0.003, false), (0.007, true)] {
            let mut record = record(experiment(Draft::default()), 12, |_, _| LOAD);
            for slice in record.rounds.iter_mut().flat_map(|round| &mut round.slices) {
                let SliceReading::Slice { before, after, .. } = &mut slice.reading else { continue };
                let capacity = after.at_nanos.since(before.at_nanos).as_f64() * 2.0;
                after.system.as_mut().unwrap().steal_nanos = Nanos((capacity * part) as u64);
            }
            assert_eq!(codes(&record).contains(&Code::Steal), told, "{part}");
        }
    }

    #[test]
    fn the_gravest_is_first() {
        let mut record = record(experiment(Draft::default()), 3, |_, _| LOAD);
        record.end.as_mut().unwrap().warnings = vec![Warning::new(Code::FewSamples, "seen while measuring")];
        assert_eq!(codes(&record), [Code::NoInterval, Code::BusyBackground, Code::FewSamples]);
    }
}
