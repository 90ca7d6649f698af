//! A measurement of guests beside an earlier one. Both are exact and depend on no host, so nothing but what the guests were made
//! of differs: kernels, emulator, iotoll's own program in the guest. And what guests say of each metric that `--fail-on` can limit.

use super::finding::{GuestFinding, PointFinding};
use super::plan::{GuestPlan, MODULE, Point};
use super::record::{GuestRecord, Header, Measured};
use super::study::{change, estimate, of_point, per_io, ratio, study};
use model::limit::{self, AtPlace, LimitFinding, Quantity};
use model::stats::Estimate;
use model::stored::{Stored, work};

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

/// Computes all numbers, compared with an earlier record if there is one, and judges the limits.
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
    finding.head.limits = judge(record, &finding, stored.map(|stored| &stored.record));
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

/// Every limit of the record. Counts are exact: one replicate decides, several by the interval over their layouts. Changes are against the stored measurement if there is one, otherwise against the first arm.
fn judge(record: &GuestRecord, finding: &GuestFinding, stored: Option<&GuestRecord>) -> Vec<LimitFinding> {
    let plan = &record.header.plan;
    let at = |number: usize, point: &PointFinding, count: fn(&Measured) -> u64| {
        let own = per_io(&of_point(record, number), count);
        let against = match stored {
            Some(stored) => Some(earlier(stored, plan, number)),
            None => plan.baseline_of(number).map(|baseline| of_point(record, baseline)),
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
    limit::judge(&record.header.envelope.typed.limits, |name| {
        let row = TABLE.iter().find(|row| row.quantity.name == name);
        let points = finding.points.iter().enumerate();
        row.map_or_else(Vec::new, |row| points.map(|(number, point)| at(number, point, row.count)).collect())
    })
}

/// A count of single replicates is exact.
fn exact(estimate: Estimate, single: bool) -> Estimate {
    if single { Estimate::exact(estimate.value) } else { estimate }
}
