//! Record of guests → finding.

use super::InstructionsPerIo;
use super::finding::{ChangeFinding, GuestFinding, PointFinding, UNIT};
use super::functions::{functions, moved};
use super::record::{GuestRecord, Measured};
use model::elided_list::elided_list;
use model::kind::{Head, Recorded};
use model::record::Outcome;
use model::stats::estimate::CONFIDENCE;
use model::stats::{Estimate, Good, LogLevel, Uncertainty, verdict};
use model::warning::{Code, Warning, gravest_first};
use std::collections::BTreeMap;

/// Part of the guest's clock that is idle above which there is a note: waiting, too, costs time on a real machine.
const IDLE: f64 = 0.01;

/// All numbers but those that need an earlier record.
pub fn study(record: &GuestRecord) -> GuestFinding {
    let (header, plan) = (&record.header, &record.header.plan);
    let replicates: Vec<Vec<&Measured>> = (0..plan.points.len()).map(|number| of_point(record, number)).collect();
    let mut points: Vec<PointFinding> = Vec::new();
    for (number, point) in plan.points.iter().enumerate() {
        let own = replicates.get(number).map_or(&[][..], Vec::as_slice);
        let baseline = plan.baseline_of(number).and_then(|number| replicates.get(number)).map(Vec::as_slice);
        let per_io = per_io(own, |measured| measured.instructions.total);
        let mean_of = |part: fn(&Measured) -> u64| mean(&self::per_io(own, part)).map(InstructionsPerIo);
        let first = own.iter().min_by_key(|measured| measured.replicate);
        points.push(PointFinding {
            place: point.place.clone(),
            arm: plan.arms.get(point.arm).cloned().unwrap_or_default(),
            ios: first.map_or(0, |measured| measured.ios),
            bytes: first.map_or(0, |measured| measured.bytes),
            replicates: per_io.len(),
            instructions_per_io: estimate(&per_io),
            kernel_instructions_per_io: mean_of(|measured| measured.instructions.kernel()),
            program_instructions_per_io: mean_of(|measured| measured.instructions.programs),
            string_repetitions_per_io: mean_of(|measured| measured.instructions.string),
            locked_instructions_per_io: mean_of(|measured| measured.instructions.locked),
            instructions_per_byte: per_byte(own),
            idle_fraction: idle(own),
            path_proof: first.map(|measured| measured.counters.clone()).unwrap_or_default(),
            functions: functions(own, baseline),
            change: baseline.and_then(|baseline| change(own, baseline, plan.margin)),
            since_stored: None,
        });
    }
    let end = record.end.as_ref();
    let mut finding = GuestFinding {
        head: Head::of(
            GuestRecord::KIND,
            &header.envelope,
            plan.title.clone(),
            (&header.host, &[]),
            end.map(|end| (&end.outcome, end.warnings.as_slice())),
        ),
        unit: UNIT.to_owned(),
        emulator: header.emulator.clone(),
        cpu: header.cpu.clone(),
        memory_mib: header.memory_mib,
        kernels: header.kernels.clone(),
        modules: header.modules.clone(),
        compared: plan.compared.clone(),
        arms: plan.arms.clone(),
        margin: plan.margin,
        points,
        hashes: hashes(record),
        published: plan.published.clone(),
        seconds: end.map(|end| end.seconds),
    };
    finding.head.warnings.extend(caveats(&finding, plan.replicates));
    gravest_first(&mut finding.head.warnings);
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

/// The lowest and the highest.
fn extremes(values: &[f64]) -> Option<(f64, f64)> {
    let value = || values.iter().copied();
    value().min_by(f64::total_cmp).zip(value().max_by(f64::total_cmp))
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
    let ((low, high), (old_low, old_high)) = (extremes(&candidate)?, extremes(&baseline_values)?);
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

fn idle(replicates: &[&Measured]) -> Option<f64> {
    let clock: f64 = replicates.iter().map(|measured| measured.clock_nanos as f64).sum();
    let executed: f64 = replicates.iter().map(|measured| measured.instructions.total as f64).sum();
    (clock > 0.0).then(|| (1.0 - executed / clock).max(0.0))
}

fn hashes(record: &GuestRecord) -> BTreeMap<String, String> {
    let name = |measured: &Measured| {
        let point = record.header.plan.points.get(measured.point);
        let (job, arm) = point.map_or(("", 0), |point| (point.place.job.as_str(), point.arm));
        let arm = record.header.plan.arms.get(arm).map_or("", String::as_str);
        format!("{} {job} {arm} {}", measured.point, measured.replicate)
    };
    record.measured.iter().map(|measured| (name(measured).trim().to_owned(), measured.guest.clone())).collect()
}

fn caveats(finding: &GuestFinding, replicates: u32) -> Vec<Warning> {
    let mut caveats = Vec::new();
    let mut of_points = |code: Code, is: &dyn Fn(&PointFinding) -> bool, what: &str| {
        let names: Vec<String> =
            finding.points.iter().filter(|point| is(point)).map(|point| finding.name(point)).collect();
        if !names.is_empty() {
            caveats.push(Warning::new(code, format!("{}: {what}", elided_list(&names, "; "))));
        }
    };
    let within =
        |change: &ChangeFinding| change.change.low.is_some() && !change.beyond_layouts && change.difference != 0.0;
    of_points(
        Code::WithinLayouts,
        &|point| point.change.as_ref().is_some_and(within),
        "the change is within the spread of the replicates, which differ only in memory layout and timing; more \
         replicates (--replicates) narrow the interval",
    );
    of_points(
        Code::GuestWaited,
        &|point| point.idle_fraction.is_some_and(|idle| idle > IDLE),
        "the guest was also idle, for a timer or a delay; instructions do not show that time",
    );
    match &finding.head.outcome {
        Outcome::Interrupted => {
            let measured: usize = finding.points.iter().map(|point| point.replicates).sum();
            let planned = finding.points.len() * replicates as usize;
            let message = format!("the measurement was interrupted: {measured} of {planned} replicates were measured");
            caveats.push(Warning::new(Code::Interrupted, message));
        }
        Outcome::Failed(why) => caveats.push(Warning::new(Code::JobFailed, why.clone())),
        Outcome::Completed => {}
    }
    caveats
}
