//! Record of guests → finding.

use super::InstructionsPerIo;
use super::finding::{
    ChainFinding, ChangeFinding, FunctionFinding, GuestFinding, MoveFinding, PointFinding, SCHEMA, UNIT,
};
use super::fold;
use super::record::{FunctionCount, GuestRecord, Measured};
use super::renames::{self, Unmatched};
use crate::elided_list::elided_list;
use crate::record::Outcome;
use crate::stats::estimate::CONFIDENCE;
use crate::stats::{Estimate, Good, LogLevel, Uncertainty, verdict};
use crate::warning::{Code, Warning, gravest_first};
use std::collections::{BTreeMap, BTreeSet};

/// Chains of calls shown for one function.
const CHAINS: usize = 3;
/// Part of the guest's clock that is idle above which there is a note: waiting, too, costs time on a real machine.
const IDLE: f64 = 0.01;

pub fn study(record: &GuestRecord) -> GuestFinding {
    let plan = &record.header.plan;
    let replicates: Vec<Vec<&Measured>> = (0..plan.points.len()).map(|number| of_point(record, number)).collect();
    let mut points: Vec<PointFinding> = Vec::new();
    for (number, point) in plan.points.iter().enumerate() {
        let own = replicates.get(number).map_or(&[][..], Vec::as_slice);
        let baseline = plan.baseline_of(number).and_then(|number| replicates.get(number)).map(Vec::as_slice);
        let per_io = per_io(own, |measured| measured.instructions.total);
        let mean_of = |part: fn(&Measured) -> u64| mean(&self::per_io(own, part)).map(InstructionsPerIo);
        let first = own.iter().min_by_key(|measured| measured.replicate);
        points.push(PointFinding {
            job: point.job.clone(),
            arm: plan.arms.get(point.arm).cloned().unwrap_or_default(),
            kernel: point.kernel.clone(),
            stack: point.stack.clone(),
            parameters: point.parameters.clone(),
            cell: point.cell.clone(),
            ios: first.map_or(0, |measured| measured.ios),
            bytes: first.map_or(0, |measured| measured.bytes),
            replicates: per_io.len(),
            instructions_per_io: estimate(&per_io),
            lowest: per_io.iter().copied().min_by(f64::total_cmp).map(InstructionsPerIo),
            highest: per_io.iter().copied().max_by(f64::total_cmp).map(InstructionsPerIo),
            kernel_instructions_per_io: mean_of(|measured| {
                measured.instructions.total.saturating_sub(measured.instructions.programs)
            }),
            program_instructions_per_io: mean_of(|measured| measured.instructions.programs),
            string_repetitions_per_io: mean_of(|measured| measured.instructions.string),
            locked_instructions_per_io: mean_of(|measured| measured.instructions.locked),
            instructions_per_byte: per_byte(own),
            idle_fraction: idle(own),
            path_proof: first.map(|measured| measured.counters.clone()).unwrap_or_default(),
            functions: functions(own, baseline),
            chains: chains(own),
            change: baseline.and_then(|baseline| change(own, baseline, plan.margin)),
            since_stored: None,
        });
    }
    let mut finding = GuestFinding {
        schema: SCHEMA.to_owned(),
        method_version: record.header.envelope.method_version,
        title: plan.title.clone(),
        started_unix_seconds: record.header.envelope.started_unix_seconds,
        command_line: record.header.envelope.command_line.clone(),
        unit: UNIT.to_owned(),
        origin: record.header.envelope.origin(),
        host: record.header.host.clone(),
        emulator: record.header.emulator.clone(),
        cpu: record.header.cpu.clone(),
        memory_mib: record.header.memory_mib,
        kernels: record.header.kernels.clone(),
        modules: record.header.modules.clone(),
        compared: plan.compared.clone(),
        arms: plan.arms.clone(),
        margin: plan.margin,
        points,
        hashes: hashes(record),
        published: plan.published.clone(),
        stored: None,
        limits: Vec::new(),
        seconds: record.end.as_ref().map(|end| end.seconds),
        outcome: record.end.as_ref().map_or(Outcome::Interrupted, |end| end.outcome.clone()),
        warnings: record.end.as_ref().map(|end| end.warnings.clone()).unwrap_or_default(),
    };
    finding.warnings.extend(caveats(&finding, plan.replicates));
    gravest_first(&mut finding.warnings);
    finding
}

/// The replicates of a point.
pub(super) fn of_point(record: &GuestRecord, number: usize) -> Vec<&Measured> {
    record.measured.iter().filter(|measured| measured.point == number).collect()
}

pub(super) fn per_io(replicates: &[&Measured], part: fn(&Measured) -> u64) -> Vec<f64> {
    let with_ios = replicates.iter().filter(|measured| measured.ios > 0);
    with_ios.map(|measured| part(measured) as f64 / measured.ios as f64).collect()
}

fn per_byte(replicates: &[&Measured]) -> Option<f64> {
    let with_bytes = replicates.iter().filter(|measured| measured.bytes > 0);
    mean(&with_bytes.map(|measured| measured.instructions.total as f64 / measured.bytes as f64).collect::<Vec<_>>())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Variance of the mean, and its degrees of freedom.
fn error_of_mean(values: &[f64]) -> Option<(f64, f64)> {
    let mean = mean(values)?;
    let degrees = values.len() as f64 - 1.0;
    (degrees > 0.0).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / degrees / values.len() as f64, degrees)
    })
}

/// Mean ± t × standard error: the replicates are independent, because each is perturbed by its own number.
pub(super) fn estimate(values: &[f64]) -> Option<Estimate> {
    let value = mean(values)?;
    Some(match error_of_mean(values) {
        Some((variance, degrees)) => Estimate::with_error(value, variance.sqrt(), degrees),
        None => Estimate::bare(value),
    })
}

/// The logarithm of a mean, its error by the delta method.
fn log_level(values: &[f64], mean: f64) -> LogLevel {
    let error = error_of_mean(values);
    let error = error.map(|(variance, degrees)| Uncertainty::new(variance.sqrt() / mean, degrees));
    LogLevel { log: mean.ln(), error }
}

/// The ratio of two means − 1, its interval by Welch's t of the difference of their logarithms (delta method).
pub(super) fn ratio(candidate: &[f64], baseline: &[f64]) -> Option<Estimate> {
    let (new, old) = (mean(candidate)?, mean(baseline)?);
    (new > 0.0 && old > 0.0).then(|| log_level(candidate, new).since(&log_level(baseline, old), CONFIDENCE))
}

/// The change of a point, and what moved.
pub(super) fn change(own: &[&Measured], baseline: &[&Measured], margin: f64) -> Option<ChangeFinding> {
    let total = |measured: &Measured| measured.instructions.total;
    let (candidate, baseline_values) = (per_io(own, total), per_io(baseline, total));
    let (new, old) = (mean(&candidate)?, mean(&baseline_values)?);
    let change = ratio(&candidate, &baseline_values)?;
    let extremes = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (low, high)
    };
    let ((low, high), (old_low, old_high)) = (extremes(&candidate), extremes(&baseline_values));
    // One replicate shows no spread.
    let spread = candidate.len() > 1 && baseline_values.len() > 1;
    Some(ChangeFinding {
        change,
        difference: new - old,
        verdict: verdict(&change, margin, Good::Lower),
        beyond_layouts: spread && (low > old_high || high < old_low),
        moved: moved(own, baseline),
    })
}

/// A function, clones folded: its name, its module or program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named<'a> {
    name: &'a str,
    module: Option<&'a str>,
    program: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn of(function: &'a FunctionCount) -> Self {
        let (module, program) = (function.module.as_deref(), function.program.as_deref());
        Self { name: fold::function(&function.name), module, program }
    }

    fn subsystem(self) -> Option<&'static str> {
        if self.program.is_some() { None } else { fold::subsystem(self.name, self.module) }
    }

    fn group(self) -> String {
        match self.program {
            Some(program) => format!("program {program}"),
            None => self.subsystem().unwrap_or(self.name).to_owned(),
        }
    }
}

/// Instructions per I/O of one function.
#[derive(Clone, Copy, Default)]
struct Part {
    all: f64,
    locked: f64,
    calls: f64,
}

/// Instructions per I/O of each function, means over replicates.
fn by_function<'a>(replicates: &[&'a Measured]) -> BTreeMap<Named<'a>, Part> {
    let mut sums = BTreeMap::new();
    let counted = || replicates.iter().filter(|measured| measured.ios > 0);
    let count = counted().count() as f64;
    for measured in counted() {
        for function in &measured.instructions.functions {
            let sum: &mut Part = sums.entry(Named::of(function)).or_default();
            sum.all += function.count as f64 / measured.ios as f64 / count;
            sum.locked += function.locked as f64 / measured.ios as f64 / count;
            if !fold::is_part(&function.name) {
                sum.calls += function.entries as f64 / measured.ios as f64 / count;
            }
        }
    }
    sums
}

/// The baseline's functions that have another name here, by that name.
fn renamed<'a>(own: &[&'a Measured], baseline: &[&'a Measured]) -> BTreeMap<Named<'a>, Named<'a>> {
    let (mine, theirs) = (by_function(own), by_function(baseline));
    let (callers_here, callers_there) = (direct_callers(own), direct_callers(baseline));
    let executes = |of: &BTreeMap<Named<'a>, Part>, named: &Named| of.get(named).is_some_and(|part| part.all > 0.0);
    let only = |of: &BTreeMap<Named<'a>, Part>, other: &BTreeMap<Named<'a>, Part>| -> Vec<(Named<'a>, f64)> {
        let own = of.iter().filter(|(named, part)| part.all > 0.0 && !executes(other, named));
        own.map(|(named, part)| (*named, part.all)).collect()
    };
    let (old, new) = (only(&theirs, &mine), only(&mine, &theirs));
    let unmatched = |of: &[(Named<'a>, f64)], callers: &BTreeMap<&'a str, BTreeSet<&'a str>>| -> Vec<Unmatched<'a>> {
        of.iter()
            .map(|(named, instructions)| Unmatched {
                name: named.name,
                home: (named.module, named.program),
                subsystem: named.subsystem(),
                instructions: *instructions,
                callers: callers.get(named.name).cloned().unwrap_or_default(),
            })
            .collect()
    };
    let pairs = renames::pairs(&unmatched(&old, &callers_there), &unmatched(&new, &callers_here));
    let named = |(from, to): (usize, usize)| Some((new.get(to)?.0, old.get(from)?.0));
    pairs.into_iter().filter_map(named).collect()
}

/// The functions that call each function, clones folded. Empty if calls were not followed.
fn direct_callers<'a>(replicates: &[&'a Measured]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut callers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for chain in replicates.iter().flat_map(|measured| &measured.instructions.chains) {
        let mut calls = chain.calls.rsplit(';').map(fold::function);
        if let (Some(last), Some(caller)) = (calls.next(), calls.next()) {
            callers.entry(last).or_default().insert(caller);
        }
    }
    callers
}

fn functions(own: &[&Measured], baseline: Option<&[&Measured]>) -> Vec<FunctionFinding> {
    let mine = by_function(own);
    let theirs = baseline.map(by_function);
    let renamed = baseline.map(|baseline| renamed(own, baseline)).unwrap_or_default();
    let finding = |named: Named, part: Part| {
        let was = renamed.get(&named);
        FunctionFinding {
            name: named.name.to_owned(),
            module: named.module.map(str::to_owned),
            program: named.program.map(str::to_owned),
            subsystem: named.subsystem().or_else(|| was?.subsystem()).map(str::to_owned),
            instructions_per_io: part.all,
            locked_per_io: part.locked,
            calls_per_io: part.calls,
            baseline_calls_per_io: theirs
                .as_ref()
                .map(|theirs| theirs.get(was.unwrap_or(&named)).copied().unwrap_or_default().calls),
            change: theirs
                .as_ref()
                .map(|theirs| part.all - theirs.get(was.unwrap_or(&named)).copied().unwrap_or_default().all),
            called_from: callers(own, named.name),
            was: was.map(|was| was.name.to_owned()),
        }
    };
    let told: BTreeSet<&Named> = renamed.values().collect();
    let here = mine.iter().filter(|(named, _)| !told.contains(*named));
    let mut all: Vec<_> = here.map(|(named, part)| finding(*named, *part)).collect();
    let gone = theirs.iter().flatten().filter(|(named, _)| !mine.contains_key(*named) && !told.contains(*named));
    all.extend(gone.map(|(named, _)| finding(*named, Part::default())));
    all.sort_by(|a, b| b.instructions_per_io.total_cmp(&a.instructions_per_io).then_with(|| a.name.cmp(&b.name)));
    all
}

/// Chains of calls, clones of functions folded: means over the replicates.
fn chains(replicates: &[&Measured]) -> Vec<ChainFinding> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    let counted = || replicates.iter().filter(|measured| measured.ios > 0);
    let count = counted().count() as f64;
    for measured in counted() {
        for chain in &measured.instructions.chains {
            let calls: Vec<_> = chain.calls.split(';').map(fold::function).collect();
            *sums.entry(calls.join(";")).or_default() += chain.count as f64 / measured.ios as f64 / count;
        }
    }
    sums.into_iter().map(|(calls, value)| ChainFinding { calls, instructions_per_io: value }).collect()
}

/// The chains that end in a function, those with most instructions first.
fn callers(replicates: &[&Measured], name: &str) -> Vec<String> {
    let mut chains: BTreeMap<&str, u64> = BTreeMap::new();
    for chain in replicates.iter().flat_map(|measured| &measured.instructions.chains) {
        if chain.calls.rsplit(';').next().is_some_and(|last| fold::function(last) == name) {
            *chains.entry(&chain.calls).or_default() += chain.count;
        }
    }
    let mut chains: Vec<_> = chains.into_iter().collect();
    chains.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    chains.into_iter().take(CHAINS).map(|(calls, _)| calls.to_owned()).collect()
}

/// Functions grouped by subsystem, so that a function that was split or renamed within one does not count as two moves. One that was
/// renamed into or out of a subsystem stays in it.
fn moved(own: &[&Measured], baseline: &[&Measured]) -> Vec<MoveFinding> {
    let renamed = renamed(own, baseline);
    let group_of = |new: Named, old: Named| match old.subsystem().or(new.subsystem()).filter(|_| old.program.is_none())
    {
        Some(subsystem) => subsystem.to_owned(),
        None if old.program.is_some() => old.group(),
        None => format!("{} → {}", old.name, new.name),
    };
    let mut groups: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (named, part) in by_function(baseline) {
        let pair = renamed.iter().find(|(_, old)| **old == named);
        let group = pair.map_or_else(|| named.group(), |(new, old)| group_of(*new, *old));
        groups.entry(group).or_default().0 += part.all;
    }
    for (named, part) in by_function(own) {
        let group = renamed.get(&named).map_or_else(|| named.group(), |old| group_of(named, *old));
        groups.entry(group).or_default().1 += part.all;
    }
    let finding = |(name, (baseline, candidate))| MoveFinding { name, baseline, candidate };
    let mut all: Vec<_> = groups.into_iter().map(finding).collect();
    all.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()).then_with(|| a.name.cmp(&b.name)));
    all
}

fn idle(replicates: &[&Measured]) -> Option<f64> {
    let clock: f64 = replicates.iter().map(|measured| measured.clock_nanos as f64).sum();
    let executed: f64 = replicates.iter().map(|measured| measured.instructions.total as f64).sum();
    (clock > 0.0).then(|| (1.0 - executed / clock).max(0.0))
}

fn hashes(record: &GuestRecord) -> BTreeMap<String, String> {
    let name = |measured: &Measured| {
        let point = record.header.plan.points.get(measured.point);
        let (job, arm) = point.map_or(("", 0), |point| (point.job.as_str(), point.arm));
        let arm = record.header.plan.arms.get(arm).map_or("", String::as_str);
        format!("{} {job} {arm} {}", measured.point, measured.replicate)
    };
    record.measured.iter().map(|measured| (name(measured).trim().to_owned(), measured.guest.clone())).collect()
}

fn caveats(finding: &GuestFinding, replicates: u32) -> Vec<Warning> {
    let mut caveats = Vec::new();
    let named = |point: &PointFinding| {
        let others = point.cell.iter().filter(|(name, _)| finding.compared.as_ref() != Some(*name));
        let cell: Vec<_> = others.map(|(name, value)| format!("{name}={value}")).collect();
        [point.job.as_str(), &cell.join(" "), point.arm.as_str()]
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
            .join(", ")
    };
    match &finding.outcome {
        Outcome::Interrupted => {
            let measured: usize = finding.points.iter().map(|point| point.replicates).sum();
            let planned = finding.points.len() * replicates as usize;
            let message = format!("the measurement was interrupted: {measured} of {planned} replicates were measured");
            caveats.push(Warning::new(Code::Interrupted, message));
        }
        Outcome::Failed(why) => caveats.push(Warning::new(Code::JobFailed, why.clone())),
        Outcome::Completed => {}
    }
    let small: Vec<_> = finding
        .points
        .iter()
        .filter(|point| {
            let within = |change: &ChangeFinding| !change.beyond_layouts && change.difference != 0.0;
            point.change.as_ref().is_some_and(|change| change.change.low.is_some() && within(change))
        })
        .map(named)
        .collect();
    if !small.is_empty() {
        let message = format!(
            "{}: the change is within the spread of the replicates, which differ only in memory layout and timing; more \
             replicates (--replicates) narrow the interval",
            elided_list(&small, "; ")
        );
        caveats.push(Warning::new(Code::WithinLayouts, message));
    }
    let waiting: Vec<_> =
        finding.points.iter().filter(|point| point.idle_fraction.is_some_and(|idle| idle > IDLE)).map(named).collect();
    if !waiting.is_empty() {
        let message = format!(
            "{}: the guest was also idle, for a timer or a delay; instructions do not show that time",
            elided_list(&waiting, "; ")
        );
        caveats.push(Warning::new(Code::GuestWaited, message));
    }
    caveats
}
