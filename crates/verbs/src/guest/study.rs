//! Record of guests → finding.

use super::finding::{ChangeFinding, GuestFinding, InstructionsPerIo, PointFinding, UNIT};
use super::functions::{functions, moved};
use super::plan::{GuestPlan, MODULE, Point};
use super::record::{GuestRecord, Header, Measured};
use model::elided_list::elided_list;
use model::kind::{Head, Recorded};
use model::limit::{AtPlace, Quantity};
use model::record::Outcome;
use model::stats::estimate::CONFIDENCE;
use model::stats::{Estimate, Good, LogLevel, Uncertainty, verdict};
use model::stored::{Stored, work};
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

/// Checks whether a measurement of `plan` can be compared with an earlier record.
///
/// # Errors
/// If the two have no point in common.
pub fn fits(record: &GuestRecord, plan: &GuestPlan) -> Result<(), String> {
    let then = &record.header.plan;
    if plan.points.iter().any(|point| counterpart(then, point).is_some()) {
        return Ok(());
    }
    Err("the two have no job in common with the same stack, parameters and values of a sweep; name the jobs alike (--name)".to_owned())
}

/// The point of an earlier plan to compare this one with: the same job on the same stack, of the kernel with the same name and the
/// same module in it, or else of that kernel, or else of the first arm.
fn counterpart(then: &GuestPlan, point: &Point) -> Option<usize> {
    // A module under development is compared with the kernel's own, too.
    let cell = |of: &Point| of.place.cell.clone().into_iter().filter(|(name, _)| name != MODULE).collect::<Vec<_>>();
    let alike = |other: &Point| {
        let of = |it: &Point| (it.place.job.clone(), it.place.stack.clone(), it.place.parameters.clone(), cell(it));
        of(other) == of(point)
    };
    let found = || then.points.iter().enumerate().filter(|(_, other)| alike(other));
    let same = |module: bool| {
        found().find(|(_, other)| other.place.kernel == point.place.kernel && (!module || other.module == point.module))
    };
    same(true).or_else(|| same(false)).or_else(|| found().min_by_key(|(_, other)| other.arm)).map(|(number, _)| number)
}

/// The replicates of the earlier point that a point is compared with.
fn earlier<'a>(then: &'a GuestRecord, now: &GuestPlan, number: usize) -> Vec<&'a Measured> {
    let found = now.points.get(number).and_then(|point| counterpart(&then.header.plan, point));
    found.map_or_else(Vec::new, |number| of_point(then, number))
}

/// Computes all numbers, compared with an earlier record if there is one.
pub(crate) fn study_against(record: &GuestRecord, stored: Option<&Stored<GuestRecord>>) -> GuestFinding {
    let mut finding = study(record);
    if let Some(stored) = stored {
        let (then, now) = (&stored.record, &record.header);
        for (number, point) in finding.points.iter_mut().enumerate() {
            let before = earlier(then, &now.plan, number);
            point.since_stored = change(&of_point(record, number), &before, now.plan.margin);
        }
        stored.stand_beside(record, differing_work(&then.header.plan, &now.plan), &mut finding.head);
    }
    finding
}

/// What the guests were made of, then and now.
pub(crate) fn differences(then: &Header, now: &Header) -> Vec<String> {
    let kernels = |header: &Header| -> String {
        let releases: Vec<&str> = header.kernels.values().map(|kernel| kernel.release.as_str()).collect();
        releases.join(", ")
    };
    let modules = |header: &Header| {
        let each = header.modules.iter().map(|(module, hash)| format!("{module} ({hash})"));
        let all = each.collect::<Vec<_>>().join(", ");
        if all.is_empty() { "the kernels' own".to_owned() } else { all }
    };
    let found = [
        work::differs("kernels", kernels(then), kernels(now)),
        work::differs("modules", modules(then), modules(now)),
        work::differs("emulator", &then.emulator, &now.emulator),
        work::differs("CPU", &then.cpu, &now.cpu),
        work::differs("memory", format!("{} MiB", then.memory_mib), format!("{} MiB", now.memory_mib)),
        work::differs("iotoll", &then.envelope.iotoll_version, &now.envelope.iotoll_version),
    ];
    found.into_iter().flatten().collect()
}

/// Jobs of one name that are not the same.
fn differing_work(then: &GuestPlan, now: &GuestPlan) -> Vec<String> {
    let mut found = Vec::new();
    for point in &now.points {
        let before = counterpart(then, point).and_then(|number| then.points.get(number));
        let Some(before) = before else { continue };
        let differs = (&before.phase, before.ios, before.warm_up_ios, &before.sysctls, &before.mount_options)
            != (&point.phase, point.ios, point.warm_up_ios, &point.sysctls, &point.mount_options);
        let name = format!("job '{}'", point.place.job);
        if differs && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// A metric: the count of which it is the mean per I/O.
struct Row {
    quantity: Quantity,
    count: fn(&Measured) -> u64,
}

const fn row(name: &'static str, count: fn(&Measured) -> u64) -> Row {
    Row { quantity: Quantity { name, unit: "instructions/I/O" }, count }
}

static TABLE: [Row; 4] = [
    row("instructions_per_io", |measured| measured.instructions.total),
    row("kernel_instructions_per_io", |measured| measured.instructions.kernel()),
    row("program_instructions_per_io", |measured| measured.instructions.programs),
    row("locked_instructions_per_io", |measured| measured.instructions.locked),
];

pub(crate) fn quantities() -> Vec<Quantity> {
    TABLE.iter().map(|row| row.quantity).collect()
}

/// A metric at every point. Counts are exact: one replicate decides, several by the interval over their layouts. Changes are against the stored measurement if there is one, otherwise against the first arm.
pub fn at_places(finding: &GuestFinding, now: &GuestRecord, then: Option<&GuestRecord>, name: &str) -> Vec<AtPlace> {
    let Some(&Row { count, .. }) = TABLE.iter().find(|row| row.quantity.name == name) else { return Vec::new() };
    let plan = &now.header.plan;
    let at = |(number, point): (usize, &PointFinding)| {
        let own = per_io(&of_point(now, number), count);
        let against = match then {
            Some(then) => Some(earlier(then, plan, number)),
            None => plan.baseline_of(number).map(|baseline| of_point(now, baseline)),
        };
        let unknown = || "it was not measured".to_owned();
        AtPlace {
            cell: finding.parts(point, false).join(", "),
            arm: if plan.arms.len() > 1 { point.arm.clone() } else { String::new() },
            value: estimate(&own).map(|value| exact(value, own.len() == 1)).ok_or_else(unknown),
            change: against.map(|before| {
                let before = per_io(&before, count);
                let single = own.len() == 1 && before.len() == 1;
                ratio(&own, &before).map(|change| exact(change, single)).ok_or_else(unknown)
            }),
        }
    };
    finding.points.iter().enumerate().map(at).collect()
}

/// A count of single replicates is exact.
fn exact(estimate: Estimate, single: bool) -> Estimate {
    if single { Estimate::exact(estimate.value) } else { estimate }
}
