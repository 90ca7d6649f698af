//! Caveats that follow from the readings; and the periods of a recording beside those of an earlier one: which appeared, which
//! went, which stayed.

use super::noise::{FEWEST_IOS, Grain, Unknown};
use super::periods::{Period, SAME, periods};
use super::words;
use crate::ftq::finding::{FtqFinding, KeptPeriod, Level, PeriodChanges};
use crate::ftq::record::{FtqPlan, FtqRecord, Worker};
use crate::ftq::series::{Grid, Series};
use model::group_limit;
use model::number::seconds as duration;
use model::record::Outcome;
use model::stats::series::spectrum::FEWEST_PERIODS;
use model::stored::{Stored, work};
use model::unit::Nanos;
use model::warning::{Code, Warning, gravest_first};

/// Part of late readings above which there is a caveat.
const LATE: f64 = 0.01;
/// Part of the time that the worker waited for a CPU above which there is a caveat.
const WAITED: f64 = 0.05;
/// Part of the length by which a period's absence in the shorter of two recordings may be due to its length.
const SHORTER: f64 = 0.8;
/// A recording in which a period of this length cannot be found is short, in seconds: writeback wakes up every 5 s.
const SHORT: f64 = 5.0;

/// Adds the caveats, the gravest first. `unknown` is why the undisturbed amount is not known.
pub(super) fn add(
    record: &FtqRecord,
    (series, grid): (&Series, &Grid),
    periods: &[Period],
    unknown: Option<(Unknown, Grain)>,
    finding: &mut FtqFinding,
) {
    let mut found = Vec::new();
    found.extend(outcome(record));
    found.extend(nothing_done(finding));
    found.extend(limited(record));
    found.extend(went_back(series));
    found.extend(stepped(finding, words::subject(&record.header.plan.worker)));
    found.extend(unknown.map(|unknown| few_ios(unknown, finding)));
    found.extend(waited(finding));
    found.extend(late(finding));
    found.extend(same_cpu(record, finding));
    found.extend(too_short(grid, periods));
    found.extend(coarse(grid));
    for probe in &finding.probes {
        let name = &probe.name;
        let message = match probe.lost_at_seconds.map(duration) {
            Some(at) => format!("probe {name} could not be read after {at}; its figures cover only the time before"),
            None if probe.mean.is_none() && finding.readings > 1 => format!("probe {name} was never read"),
            None => continue,
        };
        found.push(Warning::new(Code::ProbeLost, message));
    }
    found.append(&mut finding.head.warnings);
    gravest_first(&mut found);
    finding.head.warnings = found;
}

fn outcome(record: &FtqRecord) -> Option<Warning> {
    let (code, message) = match record.end.as_ref().map(|end| &end.outcome) {
        None => (
            Code::Interrupted,
            "the record has no last line, because iotoll was killed: the figures cover only the time before",
        ),
        Some(Outcome::Completed) => return None,
        Some(Outcome::Interrupted) => {
            (Code::Interrupted, "interrupted: the figures cover only the time before the interruption")
        }
        Some(Outcome::Failed(why)) => {
            let command = matches!(record.header.plan.worker, Worker::Command(_));
            (if command { Code::CommandFailed } else { Code::JobFailed }, why.as_str())
        }
    };
    Some(Warning::new(code, message))
}

fn nothing_done(finding: &FtqFinding) -> Option<Warning> {
    let message = format!(
        "the worker's counter did not move: {}. If it works by io_uring or memory maps, or in child processes, name a counter that \
         sees it with --count",
        finding.counted_by
    );
    (finding.amount == 0).then(|| Warning::new(Code::WorkUnknown, message))
}

/// The whole recording is one window of the limits of the worker's control groups.
fn limited(record: &FtqRecord) -> Vec<Warning> {
    let limits = record.end.as_ref().map_or(&[][..], |end| &end.group_limits);
    let [before, after] = limits else { return Vec::new() };
    let ends = [(Nanos(0), before.as_slice()), (record.header.plan.duration, after.as_slice())];
    group_limit::caveats(std::iter::once(vec![ends]), "recordings")
}

fn went_back(series: &Series) -> Option<Warning> {
    let times = match series.went_back {
        0 => return None,
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    let message = format!(
        "the worker's counter decreased {times}, as it does when a process exits or restarts; such a quantum counts as a stall"
    );
    Some(Warning::new(Code::AmountWentBack, message))
}

/// A caveat that names each step.
fn stepped(finding: &FtqFinding, subject: &str) -> Option<Warning> {
    let rate = |level: &Level| format!("{}/s", words::amount(&finding.unit, level.amount_per_second));
    let first = finding.levels.first()?;
    let steps = finding.levels.iter().skip(1);
    let steps: Vec<String> =
        steps.map(|level| format!("to {} at {}", rate(level), duration(level.begin_seconds))).collect();
    let message = format!(
        "the rate of {subject} stepped from {} {}: no mean over the recording describes it, and noise is that of each level by itself; what is \
         new to the worker (a file that it writes for the first time, an empty page cache, a dirty limit) ends with such a step",
        rate(first),
        steps.join(", then ")
    );
    Some(Warning::new(Code::TwoRegimes, message))
}

/// Whole I/Os are counted in quanta: their number varies by one, and a steady rate beats with the rate of quanta.
fn few_ios((unknown, grain): (Unknown, Grain), finding: &FtqFinding) -> Warning {
    let of_level = if finding.levels.is_empty() { "" } else { " of the level with the fewest" };
    let message = match unknown {
        Unknown::Few(per_quantum) => format!(
            "a quantum{of_level} contains {per_quantum:.1} {} on average: rounding to whole ones looks like noise, and a steady rate \
             aliases with the quantum into a period that does not exist. Use --quantum {} or longer, or record again with another \
             quantum: a true period stays",
            grain.plural,
            duration(finding.quantum_seconds * (FEWEST_IOS / per_quantum).ceil())
        ),
        Unknown::Lumps => {
            "the worker did nearly all its work in few quanta, so its undisturbed rate is unknown; use a longer --quantum"
                .to_owned()
        }
    };
    Warning::new(Code::FewIosPerQuantum, message)
}

/// Others had its CPU: what then looks like a stall of the worker is theirs.
fn waited(finding: &FtqFinding) -> Option<Warning> {
    let probe = finding.probes.iter().find(|probe| probe.name == "worker.run_delay")?;
    let part = probe.mean? / 1e9;
    let message = format!(
        "the worker wanted a CPU and had none for {:.0} % of the time: what stalls it is what else runs on its CPUs. End other programs, or \
         give it CPUs of its own",
        part * 100.0
    );
    (part > WAITED).then(|| Warning::new(Code::BusyBackground, message))
}

fn late(finding: &FtqFinding) -> Option<Warning> {
    let part = finding.late as f64 / finding.readings.saturating_sub(1).max(1) as f64;
    let message = format!(
        "{:.1} % of the readings were late; the longest spans {} quanta. Stalls within a late reading cannot be seen: use a longer \
         --quantum or fewer probes",
        part * 100.0,
        finding.longest_span
    );
    (part > LATE).then(|| Warning::new(Code::LateReadings, message))
}

fn same_cpu(record: &FtqRecord, finding: &FtqFinding) -> Option<Warning> {
    let plan = &record.header.plan;
    let recorder = finding.recorder.cpu.or(plan.recorder_cpu);
    let why = if record.header.host.cpus == 1 {
        "the machine has one CPU".to_owned()
    } else {
        let cpu = recorder.filter(|cpu| plan.worker_cpu == Some(*cpu))?;
        format!("both are on CPU {cpu}: give them two CPUs")
    };
    let message = format!("the recorder interrupts the worker at each reading, because {why}");
    Some(Warning::new(Code::RecorderShares, message))
}

fn too_short(grid: &Grid, periods: &[Period]) -> Option<Warning> {
    let longest = grid.seconds() / FEWEST_PERIODS;
    let message =
        format!("in {} only periods up to {} can be found; record longer", duration(grid.seconds()), duration(longest));
    (longest < SHORT && periods.is_empty()).then(|| Warning::new(Code::ShortRecording, message))
}

fn coarse(grid: &Grid) -> Option<Warning> {
    let message = format!(
        "periods and stalls were searched in steps of {} ({} quanta), because there are too many quanta or too few readings",
        duration(grid.step),
        grid.quanta
    );
    (grid.quanta > 1.0).then(|| Warning::new(Code::CoarseSteps, message))
}

/// A period that went may still be there if the recording is too short for it.
fn other_lengths(before: f64, today: f64) -> Option<Warning> {
    let message = format!(
        "the stored recording lasted {} and this one {}: the longer one finds longer periods and shallower stalls",
        duration(before),
        duration(today)
    );
    (before.min(today) < SHORTER * before.max(today)).then(|| Warning::new(Code::StoredWorkDiffers, message))
}

/// Adds the comparison with an earlier recording.
pub(super) fn stand_beside(finding: &mut FtqFinding, record: &FtqRecord, stored: &Stored<FtqRecord>) {
    let (then, now) = (&stored.record.header, &record.header);
    let series = Series::of(&stored.record);
    let (grid, stored_seconds) = (Grid::of(&series), series.length());
    let before: Vec<(f64, f64)> =
        periods(&grid).iter().map(|period| (period.dip.period * grid.step, period.loss.slots * grid.step)).collect();
    // One that is too long for the shorter recording has neither appeared nor gone.
    let longest = finding.seconds.min(stored_seconds) / FEWEST_PERIODS;
    let same = |one: f64, other: f64| (one / other - 1.0).abs() < SAME;
    let mut changes = PeriodChanges::default();
    for period in &finding.periodic {
        match before.iter().find(|(before, _)| same(period.period_seconds, *before)) {
            Some((before, stall)) => changes.kept.push(KeptPeriod {
                period_seconds: period.period_seconds,
                stored_period_seconds: *before,
                stall_seconds: period.stall_seconds,
                stored_stall_seconds: *stall,
            }),
            None if period.period_seconds > longest => {}
            None => changes.appeared.push(period.period_seconds),
        }
    }
    let stayed = |before: f64| finding.periodic.iter().any(|period| same(period.period_seconds, before));
    let went = before.iter().map(|(before, _)| *before).filter(|before| !stayed(*before) && *before <= longest);
    changes.went = went.collect();
    finding.against = Some(changes);
    finding.head.warnings.extend(other_lengths(stored_seconds, finding.seconds));
    stored.stand_beside(record, differing_work(&then.plan, &now.plan), &mut finding.head);
}

fn differing_work(then: &FtqPlan, now: &FtqPlan) -> Vec<String> {
    let mut found: Vec<String> = match (&then.worker, &now.worker) {
        (Worker::Job(then), Worker::Job(now)) => work::of_plans((then, &[]), (now, &[])),
        (Worker::Command(then), Worker::Command(now)) => work::of_words((then, &[]), (now, &[])),
        // A process has another number each time.
        (Worker::Cpu, Worker::Cpu) | (Worker::Process(_), Worker::Process(_)) => Vec::new(),
        (then, now) => work::differs("worker", kind(then), kind(now)).into_iter().collect(),
    };
    let quantum = |plan: &FtqPlan| format!("{} µs", plan.quantum.as_f64() / 1e3);
    found.extend(work::differs("quantum", quantum(then), quantum(now)));
    found
}

fn kind(worker: &Worker) -> &'static str {
    match worker {
        Worker::Job(_) => "a job",
        Worker::Cpu => "a thread that computes",
        Worker::Command(_) => "a command",
        Worker::Process(_) => "a process",
    }
}
