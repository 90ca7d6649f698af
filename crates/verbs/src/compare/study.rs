//! Computes a finding from the record of a comparison: every derived number is computed here, and can be recomputed.

mod caveats;
mod change;
mod explaining;
mod page_cache;
mod placement;
mod probes;
mod sliced_command;
pub(crate) mod sweep;
#[cfg(test)]
pub(super) mod tests;
pub(super) mod which_rounds;

use super::against_stored;
use super::finding::{
    ArmFinding, CasePlan, CellFinding, CompareFinding, Environment, MetricFinding, NoiseFloor, NoiseOfMetric,
    ProbeComparison, SlicePoint, SweepFinding, TimeNeeded, Unseen,
};
use super::record::{CaseLatency, CompareRecord, End, Header, Line, RoundRecord, Schedule};
use change::{Comparison, Found, Judge, is_target};
use model::experiment::{ArmPlan, Cell, Experiment, Metric, Rules, Standing};
use model::explained::DividedCost;
use model::histogram::Histogram;
use model::injected::Injected;
use model::kind::{Envelope, Extent, Head, Kind, Misplaced, Recorded, assembled};
use model::limit::{AtPlace, Quantity};
use model::record::{Host, Outcome};
use model::slice::{Choice, MeasuredSlices, Rounds, SliceCost};
use model::stats::stopping::Goal;
use model::stats::{Estimate, LogRatio, confidence_of_each, stopping};
use model::stored::Stored;
use model::stored::machine::Machine;
use model::unit::Nanos;
use model::warning::{Code, gravest_first};
use sliced_command::Unlike;
use std::collections::BTreeMap;
use which_rounds::{Regimes, RoundsOfTheAnswer, TWO_REGIMES, WarmUp, measured};

/// A single round has no spread, so its change means nothing.
const FEWEST_ROUNDS: usize = 2;

impl Recorded for CompareRecord {
    const KIND: Kind = Kind {
        name: "compare",
        schema: "iotoll.compare/1",
        noun: "a comparison",
        made_by: "iotoll compare",
        method_version: 6,
    };
    type Line = Line;
    type Plan = Experiment;
    type Finding = CompareFinding;
    const HAS_VALUES: bool = false;

    fn assemble(envelope: Envelope, lines: Vec<Line>) -> Result<Self, Misplaced> {
        let begin = |line| {
            let Line::Header(header) = line else { return None };
            let header = Header { envelope, ..*header };
            Some(Self { header, rounds: Vec::new(), explaining: Vec::new(), end: None })
        };
        assembled(lines, begin, |record, line| {
            match line {
                Line::Round(round) => record.rounds.push(round),
                Line::Explaining(round) => record.explaining.push(round),
                Line::End(end) => record.end = Some(*end),
                Line::Header(_) => return Err("is a second header".to_owned()),
            }
            Ok(())
        })
    }

    fn extent(&self) -> Extent {
        Extent { has_end: self.end.is_some(), parts: self.rounds.len(), noun: "rounds" }
    }

    fn machine(&self) -> Machine<'_> {
        let header = &self.header;
        let canaries = std::iter::once(&header.canaries).chain(self.end.as_ref().map(|end| &end.canaries)).collect();
        Machine { canaries, ..Machine::of(&header.host, &header.envelope) }
    }

    fn header(&self) -> (&Envelope, &Host, &Experiment) {
        (&self.header.envelope, &self.header.host, &self.header.experiment)
    }

    fn fits(&self, plan: &Experiment) -> Result<(), String> {
        against_stored::fits(self, plan)
    }

    /// Drops latencies: they are most of a record, and percentiles are not compared with a stored record.
    fn trimmed(mut self) -> Self {
        self.rounds.iter_mut().for_each(|round| round.latencies = Vec::new());
        self
    }

    fn study(&self, stored: Option<&Stored<Self>>) -> CompareFinding {
        let mut finding = study(self);
        if let Some(stored) = stored {
            against_stored::stand_beside(&mut finding, self, stored);
        }
        finding
    }

    fn quantities() -> Vec<Quantity> {
        Metric::quantities()
    }

    /// The intervals hold together, so that many limits are not exceeded by chance.
    fn at_places(&self, finding: &CompareFinding, _: Option<&Stored<Self>>, metric: &str) -> Vec<AtPlace> {
        let at = |cell: &CellFinding| {
            let found = cell.metrics.get(metric);
            let change =
                found.and_then(|found| Some(Estimate { value: found.change?, low: found.low, high: found.high }));
            let reason = found.and_then(|found| found.reason.clone()).unwrap_or_else(|| "it is unknown".to_owned());
            AtPlace {
                cell: Cell { values: cell.cell.clone() }.to_string(),
                arm: cell.arm.clone(),
                value: Err("only changes are compared".to_owned()),
                change: Some(change.ok_or(reason)),
            }
        };
        finding.cells.iter().map(at).collect()
    }

    fn lacks(experiment: &Experiment, metric: &str) -> Option<&'static str> {
        let jobs = experiment.cases.iter().any(|case| case.work.phase().is_some());
        let of_commands = Metric::parse(metric).is_some_and(Metric::is_of_commands);
        (jobs && of_commands).then_some("is only for commands; use cycles_per_io, iops, …")
    }

    fn has_baseline(_: &Experiment) -> bool {
        true
    }
}

/// The progress of an experiment, updated while it is measured.
pub struct Progress {
    experiment: Experiment,
    slices: MeasuredSlices,
    schedule: Schedule,
    before: usize,
}

impl Progress {
    /// An experiment without rounds.
    pub fn new(header: &Header) -> Self {
        Self {
            experiment: header.experiment.clone(),
            slices: measured(header, Choice::FirstRound, &[]),
            schedule: header.schedule,
            before: 0,
        }
    }

    /// Adds a complete round.
    pub fn add(&mut self, round: &RoundRecord) {
        self.slices.add(round);
        self.before = Regimes::of(&self.slices.rounds, self.schedule).before;
    }

    /// Rounds before the current regime: they count neither for the answer nor for the budget.
    pub fn before(&self) -> usize {
        self.before
    }

    /// The current standing; `None` while it is unknown.
    pub fn standing(&self) -> Option<Standing> {
        let targets = self.targets();
        let known = targets.iter().filter(|(_, ratio)| ratio.is_some()).count();
        let Rules { precision, margin, .. } = self.experiment.rules;
        let goal = Goal { half_width: precision, margin, confidence: confidence_of_each(known) };
        // The widest interval determines the standing, but all must be precise, and none may lack a value.
        let precise =
            targets.iter().all(|(_, ratio)| ratio.is_some_and(|ratio| stopping::precise_enough(&ratio, goal)));
        let standing = |(metric, ratio): &(Metric, Option<LogRatio>)| {
            let ratio = ratio.as_ref()?;
            Some(Standing {
                metric: *metric,
                change: ratio.theta.exp_m1(),
                half_width: ratio.stopping_half_width(goal.confidence)?,
                wanted: stopping::allowed_half_width(ratio, precision),
                precise,
            })
        };
        let standings: Vec<Standing> =
            targets.iter().filter(|(_, ratio)| ratio.is_some()).map(standing).collect::<Option<_>>()?;
        let distance = |standing: &Standing| standing.half_width / standing.wanted;
        standings.into_iter().max_by(|one, other| distance(one).total_cmp(&distance(other)))
    }

    /// Every comparison for every target that has a value anywhere.
    fn targets(&self) -> Vec<(Metric, Option<LogRatio>)> {
        let (sums, pairs) = (self.slices.rounds.after(self.before), comparisons(&self.experiment));
        let ratios = |metric: Metric| -> Vec<(Metric, Option<LogRatio>)> {
            let ratio = |&(baseline, candidate): &(usize, usize)| (metric, sums.change(metric, baseline, candidate));
            pairs.iter().map(ratio).collect()
        };
        let known = |metric: Metric| ratios(metric).iter().any(|(_, ratio)| ratio.is_some());
        let targets = change::targets(&self.experiment.rules.targets, known);
        targets.into_iter().flat_map(ratios).collect()
    }
}

/// Each case except the baselines, with the baseline of its cell.
fn comparisons(experiment: &Experiment) -> Vec<(usize, usize)> {
    let baseline = |cell| experiment.cases.iter().position(|case| case.cell == cell && case.arm == 0);
    let candidates = experiment.cases.iter().enumerate().filter(|(_, case)| case.arm > 0);
    candidates.filter_map(|(place, case)| Some((baseline(case.cell)?, place))).collect()
}

/// A record, or a range of its rounds. Borrowed, because the rounds of a long comparison are too large to copy.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    header: &'a Header,
    pub(crate) rounds: &'a [RoundRecord],
    explaining: &'a [RoundRecord],
    /// Rounds before the first of these.
    skipped: usize,
    end: Option<&'a End>,
}

impl<'a> View<'a> {
    fn of(record: &'a CompareRecord) -> Self {
        Self {
            header: &record.header,
            rounds: &record.rounds,
            explaining: &record.explaining,
            skipped: 0,
            end: record.end.as_ref(),
        }
    }

    /// Without this many rounds at the beginning.
    fn after(self, rounds: usize) -> Self {
        let skipped = self.skipped + rounds;
        Self { rounds: self.rounds.get(rounds..).unwrap_or_default(), skipped, ..self }
    }
}

/// Computes the finding of a record.
pub fn study(record: &CompareRecord) -> CompareFinding {
    let counted = RoundsOfTheAnswer::of(record);
    let mut finding = study_of(&counted);
    finding.regimes = counted.regimes.findings(&counted.whole.rounds);
    if let Some(warning) = counted.regimes.caveat() {
        finding.head.warnings.push(warning);
    }
    finding.head.warnings.extend(page_cache::caveats(&finding));
    let placed = placement::caveats(&finding, counted.view);
    finding.head.warnings.extend(placed);
    gravest_first(&mut finding.head.warnings);
    if !counted.answers() {
        finding.withhold(TWO_REGIMES);
    } else if finding.rounds < FEWEST_ROUNDS {
        finding.withhold("fewer than two rounds were measured");
    }
    finding
}

impl CompareFinding {
    /// Removes every change and verdict, and everything based on them.
    fn withhold(&mut self, reason: &str) {
        (self.sweep, self.unseen) = Default::default();
        self.noise_floor = self.noise_floor.take().map(|_| NoiseFloor { metrics: BTreeMap::new() });
        for cell in &mut self.cells {
            cell.cost = DividedCost::default();
            cell.shift.clear();
            cell.probes.iter_mut().for_each(ProbeComparison::withhold);
            for found in cell.metrics.values_mut().filter(|found| found.change.is_some()) {
                *found = MetricFinding::unknown(reason);
            }
        }
        self.families = None;
        let explanation = &mut self.explanation;
        (explanation.account_family, explanation.function_family, explanation.event_family) = (None, None, None);
        let of_a_change = |code| matches!(code, Code::RoundsCorrelated | Code::OneUnitCarriesTheMean);
        self.head.warnings.retain(|warning| !of_a_change(warning.code));
    }
}

/// Computes the finding of the rounds that are used.
fn study_of(counted: &RoundsOfTheAnswer) -> CompareFinding {
    let RoundsOfTheAnswer { view: record, slices: measured, warm_up, .. } = counted;
    let (record, sums) = (*record, &measured.rounds);
    let header = record.header;
    let experiment = &header.experiment;
    let seconds = match (record.rounds.first(), record.rounds.last()) {
        (Some(first), Some(last)) => last.end_nanos.since(first.begin_nanos).seconds(),
        _ => 0.0,
    };
    let judge = Judge { sums, record, seconds };
    let pairs = comparisons(experiment);
    let unlike: Vec<Option<Unlike>> =
        pairs.iter().map(|&(baseline, candidate)| Unlike::of(record, [baseline, candidate])).collect();
    let compared: Vec<Comparison> =
        pairs.iter().zip(&unlike).map(|(pair, unlike)| judge.compare(*pair, unlike.as_ref())).collect();
    let has_value = |metric: Metric| compared.iter().any(|found| found.get(&metric).is_some_and(Result::is_ok));
    let targets = change::targets(&experiment.rules.targets, has_value);
    let families = change::families(&compared, &targets);
    let of_targets =
        compared.iter().flat_map(|found| targets.iter().filter_map(|metric| found.get(metric)?.as_ref().ok()));
    let independent = of_targets.map(|found| found.evidence.independent_units()).reduce(f64::min);
    let (mut explanation, mut costs) = explaining::explain(record, sums, &pairs);
    // An I/O of one arm is another in the other: a change per I/O in an account or an event is none of the work.
    let of_other_work = unlike.iter().zip(&mut costs).filter(|(unlike, _)| unlike.is_some());
    of_other_work.for_each(|(_, cost)| *cost = DividedCost::default());
    let undivided = unlike.into_iter().collect::<Option<Vec<Unlike>>>().and_then(|all| all.into_iter().next());
    explanation.unexplained = undivided.map(|unlike| unlike.why).or_else(|| explaining::reason(record));
    let cells: Vec<CellFinding> = pairs
        .into_iter()
        .zip(&compared)
        .zip(costs)
        .filter_map(|(((baseline, candidate), found), cost)| {
            let case = experiment.cases.get(candidate)?;
            let family = |metric| if is_target(found, metric, &targets) { &families.targets } else { &families.others };
            let finding = |(metric, result): (&Metric, &Result<Found, String>)| {
                (metric.name().to_owned(), judge.finding(*metric, result, family(*metric)))
            };
            Some(CellFinding {
                cell: experiment.cells.get(case.cell)?.values.clone(),
                arm: experiment.arms.get(case.arm)?.name.clone(),
                metrics: found.iter().map(finding).collect(),
                shift: judge.shift(baseline, candidate),
                slices: slices(record, measured, baseline, candidate),
                probes: probes::comparisons(record, sums, baseline, candidate),
                cost,
            })
        })
        .collect();
    let mut warnings = caveats::caveats(record, sums, warm_up);
    warnings.extend(header.events.iter().flat_map(|events| events.shortfalls(explanation.events_reason.iter())));
    warnings.extend(caveats::spread(&cells, &compared, &targets, record.skipped));
    gravest_first(&mut warnings);
    let tsc_hertz = record.end.map_or(header.host.tsc_hertz, |end| end.tsc_hertz);
    let host = Host { tsc_hertz, ..header.host.clone() };
    CompareFinding {
        head: Head {
            outcome: record.end.map_or_else(no_end, |end| end.outcome.clone()),
            warnings,
            ..Head::of(
                CompareRecord::KIND,
                &header.envelope,
                experiment.title.clone(),
                (&host, &experiment.services),
                None,
            )
        },
        seed: header.seed,
        rounds: record.rounds.len(),
        seconds,
        slice_seconds: match header.schedule {
            Schedule::Slices { slice_nanos, .. }
            | Schedule::WholeRounds { slice_nanos }
            | Schedule::SlicedCommands { slice_nanos, .. } => Some(slice_nanos.seconds()),
            Schedule::Executions => None,
        },
        method: method(record, warm_up),
        arms: experiment.arms.iter().enumerate().map(|(number, arm)| self::arm(record, number, arm)).collect(),
        axes: experiment.axes.clone(),
        sweep: SweepFinding {
            crossovers: sweep::crossovers(experiment, &targets, sums),
            lines: sweep::lines(experiment, sums),
            scalability: sweep::scalability(experiment, sums, header.host.cpus),
        },
        noise_floor: experiment.against_itself.then(|| noise_floor(&cells, seconds)),
        targets,
        families: Some(families),
        explanation,
        unseen: Unseen {
            unseen_fraction: independent.map(stopping::unseen_fraction),
            unseen_in_spells_fraction: independent.map(|rounds| stopping::unseen_fraction(rounds / stopping::SPELL)),
        },
        cells,
        rules: experiment.rules.clone(),
        environment: environment(record, sums),
        published: experiment.published.clone(),
        cache: page_cache::setup(header),
        page_cache: page_cache::cases(record, sums),
        placement: placement::cases(record, measured),
        regimes: Vec::new(),
        work_counter: header.work_counter.clone(),
        counting_fraction: sliced_command::counting_fraction(record, sums).map(|(_, part)| part),
        cases: cases(experiment),
    }
}

fn no_end() -> Outcome {
    Outcome::Failed("the record has no end: it was cut off during the measurement".to_owned())
}

/// An arm, with its measured busy work if any was added.
fn arm(record: View, number: usize, plan: &ArmPlan) -> ArmFinding {
    let cases = &record.header.experiment.cases;
    let of_arm = |latency: &&CaseLatency| cases.get(latency.case).is_some_and(|case| case.arm == number);
    let latencies = record.rounds.iter().flat_map(|round| &round.latencies);
    let injected_ns = Injected::mean(latencies.filter(of_arm).filter_map(|latency| latency.injected_ns));
    let burns = injected_ns.map(|injected| format!(" ({})", injected.in_words())).unwrap_or_default();
    let what = plan.what(&record.header.experiment.arms) + &burns;
    ArmFinding { name: plan.name.clone(), what, plan: plan.clone(), injected_ns }
}

fn cases(experiment: &Experiment) -> Vec<CasePlan> {
    let found = experiment.cases.iter().map(|case| CasePlan {
        cell: experiment.cells.get(case.cell).map(|cell| cell.values.clone()).unwrap_or_default(),
        arm: experiment.arms.get(case.arm).map(|arm| arm.name.clone()).unwrap_or_default(),
        plan: case.work.clone(),
    });
    found.collect()
}

fn method(record: View, warm_up: &WarmUp) -> String {
    let ended = record.end.map_or("cut off", |end| end.reason.as_str());
    let ended = match warm_up.rounds {
        0 => ended.to_owned(),
        rounds => format!("{ended}; {rounds} more at the beginning were discarded as warm-up"),
    };
    let ended = match record.explaining.len() {
        0 => ended,
        rounds => {
            let how = in_turn(&explaining::done(record));
            format!("{ended}; {rounds} further rounds {how}, and are not in the answer")
        }
    };
    let rounds = match record.rounds.len() {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let switched = if record.header.experiment.arms.iter().any(ArmPlan::is_toggled) {
        ", each arm's settings applied only during its slices, so that slower effects are not seen (--slice)"
    } else {
        ""
    };
    let drawn = record.rounds.iter().any(|round| !round.cpus.is_empty());
    let shared = if drawn { ", all arms on the same CPUs, drawn for each round" } else { "" };
    let in_blocks = |who: &str, slice: Nanos, blocks: u32, alone: &str, discarded: Nanos, when: &str| {
        format!(
            "{rounds} with {who}{shared}, each of {blocks} {} of one {:.0} ms slice per arm and one {alone} in random order, {:.0} ms {when} \
             discarded{switched}",
            if blocks == 1 { "block" } else { "blocks" },
            slice.seconds() * 1e3,
            discarded.seconds() * 1e3
        )
    };
    let how = match record.header.schedule {
        Schedule::Slices { slice_nanos, warm_up_nanos, blocks } => {
            let who = "fresh worker processes";
            in_blocks(who, slice_nanos, blocks, "of the idle machine", warm_up_nanos, "before each")
                + "; stalls that occur fewer than three times are not seen"
        }
        Schedule::WholeRounds { slice_nanos } => format!(
            "{rounds}, each with every arm once for {} in random order, with fresh workers{shared}, including a sync of the written data",
            in_words(slice_nanos.seconds())
        ),
        Schedule::SlicedCommands { slice_nanos, guard_nanos, blocks } => {
            let who = "freshly started commands that take turns (all others frozen)";
            in_blocks(who, slice_nanos, blocks, "with all frozen", guard_nanos, "after each switch")
        }
        Schedule::Executions => format!(
            "{rounds}, each with one execution of every command in random order, so the interval covers the variation between executions"
        ),
    };
    format!("{how}; ended: {ended}")
}

/// "kept accounts, counted events or sampled stacks".
fn in_turn(done: &[&str]) -> String {
    match done {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

/// "1.5 s", "20 ms", "0.4 ms".
fn in_words(seconds: f64) -> String {
    match seconds * 1e3 {
        millis if millis >= 1000.0 => format!("{seconds:.1} s"),
        millis if millis >= 10.0 => format!("{millis:.0} ms"),
        millis => format!("{millis:.1} ms"),
    }
}

fn slices(record: View, measured: &MeasuredSlices, baseline: usize, candidate: usize) -> Vec<SlicePoint> {
    let Some(begin) = record.rounds.first().map(|round| round.begin_nanos) else { return Vec::new() };
    let rounds = record.rounds.iter().enumerate();
    let all = rounds.flat_map(|(number, round)| round.slices.iter().map(move |slice| (number, slice)));
    let points = all.filter_map(|(round, slice)| {
        let case = slice.case.filter(|case| [baseline, candidate].contains(case))?;
        let (from, to) = (slice.reading.pairs().next()?.0.at_nanos, slice.reading.pairs().last()?.1.at_nanos);
        let seconds = (from.since(begin).seconds() + to.since(begin).seconds()) / 2.0;
        let SliceCost { ios, seconds: wall_seconds, cycles_per_io } = measured.cost(round, slice);
        let iops = ios.zip(wall_seconds).map(|(ios, seconds)| ios / seconds);
        Some(SlicePoint { seconds, round, baseline: case == baseline, ios, wall_seconds, iops, cycles_per_io })
    });
    points.collect()
}

/// The latencies of a case in every round; `None` if a round has none.
fn latencies(record: View<'_>, case: usize) -> Option<Vec<&Histogram>> {
    let of = |round: &RoundRecord| round.latencies.iter().position(|latency| latency.case == case);
    record.rounds.iter().map(|round| Some(&round.latencies.get(of(round)?)?.ticks)).collect()
}

/// The noise floor over all cells: the resolution of the noisiest cell.
fn noise_floor(cells: &[CellFinding], seconds: f64) -> NoiseFloor {
    let noise = |metric: Metric| {
        let found = || cells.iter().filter_map(|cell| cell.metrics.get(metric.name()));
        let half_widths = found().filter_map(|found| Some((found.high? - found.low?) / 2.0));
        let half_width = half_widths.reduce(f64::max)?;
        let needed = |wanted: f64| TimeNeeded { half_width: wanted, seconds: seconds * (half_width / wanted).powi(2) };
        let seconds_needed = [needed(0.01), needed(0.02), needed(0.05)];
        let false_difference = found().any(|found| found.detected);
        Some((metric.name().to_owned(), NoiseOfMetric { half_width, false_difference, seconds_needed }))
    };
    NoiseFloor { metrics: Metric::ALL.into_iter().filter_map(noise).collect() }
}

fn environment(record: View, sums: &Rounds) -> Environment {
    let header = record.header;
    let canaries = std::iter::once(&header.canaries).chain(record.end.map(|end| &end.canaries));
    Environment {
        meter: sums.meter.map(|meter| meter.name().to_owned()),
        background_busy_fraction: sums.background_fraction(),
        steal_fraction: sums.steal_fraction(),
        canaries: canaries.cloned().collect(),
    }
}
