//! What guests say of each metric that `--fail-on` can limit. Counts are exact: one replicate decides, several by the interval over
//! their layouts.

use super::GuestFinding;
use super::finding::PointFinding;
use super::record::{GuestRecord, Measured};
use super::stored::earlier;
use super::study::{estimate, of_point, per_io, ratio};
use crate::limit::{self, AtPlace, LimitFinding, Quantity};
use crate::stats::Estimate;

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
    row("kernel_instructions_per_io", |measured| {
        measured.instructions.total.saturating_sub(measured.instructions.programs)
    }),
    row("program_instructions_per_io", |measured| measured.instructions.programs),
    row("locked_instructions_per_io", |measured| measured.instructions.locked),
];

pub(crate) fn quantities() -> Vec<Quantity> {
    TABLE.iter().map(|row| row.quantity).collect()
}

/// Every limit of the record. Changes are against the stored measurement if there is one, otherwise against the first arm.
pub(super) fn judge(record: &GuestRecord, finding: &GuestFinding, stored: Option<&GuestRecord>) -> Vec<LimitFinding> {
    let plan = &record.header.plan;
    let at = |number: usize, point: &PointFinding, count: fn(&Measured) -> u64| {
        let own = per_io(&of_point(record, number), count);
        let against = match stored {
            Some(stored) => Some(earlier(stored, plan, number)),
            None => plan.baseline_of(number).map(|baseline| of_point(record, baseline)),
        };
        let unknown = || "it was not measured".to_owned();
        AtPlace {
            cell: cell(finding, point),
            arm: if plan.arms.len() > 1 { point.arm.clone() } else { String::new() },
            value: estimate(&own).map(|value| exact(value, own.len() == 1)).ok_or_else(unknown),
            change: against.map(|before| {
                let before = per_io(&before, count);
                let single = own.len() == 1 && before.len() == 1;
                ratio(&own, &before).map(|change| exact(change, single)).ok_or_else(unknown)
            }),
        }
    };
    limit::judge(&record.header.envelope.limits, |name| {
        let row = TABLE.iter().find(|row| row.quantity.name == name);
        let points = finding.points.iter().enumerate();
        row.map_or_else(Vec::new, |row| points.map(|(number, point)| at(number, point, row.count)).collect())
    })
}

/// A count of single replicates is exact.
fn exact(estimate: Estimate, single: bool) -> Estimate {
    if single { Estimate::exact(estimate.value) } else { estimate }
}

/// What distinguishes a point from others of its arm.
fn cell(finding: &GuestFinding, point: &PointFinding) -> String {
    let compared = |name: &str| finding.compared.as_deref() == Some(name);
    let shared = |place: usize| finding.points.iter().all(|other| fixed(other).get(place) == fixed(point).get(place));
    let own = fixed(point).into_iter().enumerate().filter(|(place, (name, _))| !compared(name) && !shared(*place));
    let own = own.map(|(_, (_, value))| value.to_owned()).filter(|value| !value.is_empty());
    let swept = point.cell.iter().filter(|(name, _)| !compared(name)).map(|(name, value)| format!("{name}={value}"));
    own.chain(swept).collect::<Vec<_>>().join(" ")
}

/// What every point has, by the names of what can be compared.
fn fixed(point: &PointFinding) -> [(&'static str, &str); 4] {
    let PointFinding { job, kernel, stack, parameters, .. } = point;
    [("job", job), ("kernel", kernel), ("stack", stack), ("parameters", parameters)]
}
