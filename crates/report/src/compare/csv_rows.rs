//! All numbers of a comparison in raw units: one row for each cell, arm and metric.

use super::{contents, probes};
use crate::document::{Cell, Column, Table};
use model::comparison::CompareFinding;
use model::comparison::finding::{BothArms, CellFinding, MetricFinding, ProbeComparison};
use model::experiment::Metric;
use model::explained::{AccountChange, EventChange};

/// The columns after those of the axes.
const COLUMNS: [&str; 31] = [
    "arm",
    "metric",
    "unit",
    "baseline",
    "candidate",
    "change",
    "low",
    "high",
    "mde80",
    "detected",
    "verdict",
    "p_value",
    "typical_change",
    "typical_low",
    "typical_high",
    "shape_changed",
    "seconds_to_decide",
    "units",
    "rounds",
    "seed",
    "reason",
    "stored_baseline",
    "environment_change",
    "environment_low",
    "environment_high",
    "total_change",
    "total_low",
    "total_high",
    "difference",
    "difference_low",
    "difference_high",
];

pub fn table(finding: &CompareFinding) -> Table {
    let axes = contents::axes(finding);
    let heads = axes.iter().map(|axis| axis_column(axis)).chain(COLUMNS.map(str::to_owned));
    let mut table = Table::new(heads.map(Column::text).collect());
    for cell in &finding.cells {
        for metric in Metric::ALL {
            let Some(found) = contents::metric(cell, metric) else { continue };
            let values = axes.iter().map(|axis| Cell::from(cell.cell.get(*axis).cloned().unwrap_or_default()));
            table.row(values.chain(fields(finding, cell, metric, found)).collect());
        }
        for probe in &cell.probes {
            for (value, arms) in probes::values(probe) {
                let Some(arms) = arms else { continue };
                let values = axes.iter().map(|axis| Cell::from(cell.cell.get(*axis).cloned().unwrap_or_default()));
                table.row(values.chain(of_probe(finding, cell, probe, (value, arms))).collect());
            }
        }
        for account in &cell.accounts {
            let values = axes.iter().map(|axis| Cell::from(cell.cell.get(*axis).cloned().unwrap_or_default()));
            table.row(values.chain(of_account(finding, cell, account)).collect());
        }
        for event in &cell.events {
            let values = axes.iter().map(|axis| Cell::from(cell.cell.get(*axis).cloned().unwrap_or_default()));
            table.row(values.chain(of_event(finding, cell, event)).collect());
        }
    }
    table
}

/// The name of an axis, made distinct from the other columns.
fn axis_column(axis: &str) -> String {
    if COLUMNS.contains(&axis) { format!("axis_{axis}") } else { axis.to_owned() }
}

fn fields(finding: &CompareFinding, cell: &CellFinding, metric: Metric, found: &MetricFinding) -> [Cell; 31] {
    let number = Cell::number;
    let verdict = serde_json::to_value(found.verdict).ok();
    let verdict = verdict.as_ref().and_then(|verdict| verdict.as_str()).unwrap_or_default().to_owned();
    let typical = found.typical;
    let stored = found.stored;
    let (environment, total) = (stored.map(|stored| stored.environment), stored.map(|stored| stored.total));
    [
        Cell::from(&cell.arm),
        metric.name().into(),
        metric.unit().into(),
        number(found.baseline),
        number(found.candidate),
        number(found.change),
        number(found.low),
        number(found.high),
        number(found.mde80),
        found.detected.to_string().into(),
        verdict.into(),
        number(found.p_value),
        number(typical.map(|typical| typical.change)),
        number(typical.map(|typical| typical.low)),
        number(typical.map(|typical| typical.high)),
        found.shape_changed.to_string().into(),
        number(found.seconds_to_decide),
        found.units.to_string().into(),
        finding.rounds.to_string().into(),
        finding.seed.to_string().into(),
        found.reason.as_deref().unwrap_or_default().into(),
        number(stored.map(|stored| stored.baseline)),
        number(environment.map(|environment| environment.change)),
        number(environment.and_then(|environment| environment.low)),
        number(environment.and_then(|environment| environment.high)),
        number(total.map(|total| total.change)),
        number(total.and_then(|total| total.low)),
        number(total.and_then(|total| total.high)),
        number(None),
        number(None),
        number(None),
    ]
}

/// A value of a probe. The columns that only metrics have stay empty.
fn of_probe(
    finding: &CompareFinding,
    cell: &CellFinding,
    probe: &ProbeComparison,
    (value, arms): (&str, BothArms),
) -> impl Iterator<Item = Cell> {
    let change = arms.change;
    some_columns([
        ("arm", Cell::from(&cell.arm)),
        ("metric", Cell::from(format!("probe {} {value}", probe.name))),
        ("unit", Cell::from(&probe.unit)),
        ("baseline", Cell::number(Some(arms.baseline.value))),
        ("candidate", Cell::number(Some(arms.candidate.value))),
        ("change", Cell::number(change.map(|change| change.change))),
        ("low", Cell::number(change.map(|change| change.low))),
        ("high", Cell::number(change.map(|change| change.high))),
        ("rounds", Cell::from(finding.rounds.to_string())),
        ("seed", Cell::from(finding.seed.to_string())),
    ])
}

/// An account, whose change is a difference of cycles.
fn of_account(finding: &CompareFinding, cell: &CellFinding, account: &AccountChange) -> impl Iterator<Item = Cell> {
    let change = account.change_cycles_per_io;
    some_columns([
        ("arm", Cell::from(&cell.arm)),
        ("metric", Cell::from(format!("account {}", account.name))),
        ("unit", Cell::from(Metric::CyclesPerIo.unit())),
        ("baseline", Cell::number(Some(account.baseline.value))),
        ("candidate", Cell::number(Some(account.candidate.value))),
        ("detected", Cell::from(account.detected.to_string())),
        ("rounds", Cell::from(cell.explained.map_or_else(String::new, |explained| explained.rounds.to_string()))),
        ("seed", Cell::from(finding.seed.to_string())),
        ("difference", Cell::number(Some(change.value))),
        ("difference_low", Cell::number(change.low)),
        ("difference_high", Cell::number(change.high)),
    ])
}

/// An event, whose change is a difference of counts per I/O.
fn of_event(finding: &CompareFinding, cell: &CellFinding, event: &EventChange) -> impl Iterator<Item = Cell> {
    let change = event.change_per_io;
    some_columns([
        ("arm", Cell::from(&cell.arm)),
        ("metric", Cell::from(format!("event {}", event.name))),
        ("unit", Cell::from("per_io")),
        ("baseline", Cell::number(Some(event.baseline.value))),
        ("candidate", Cell::number(Some(event.candidate.value))),
        ("detected", Cell::from(event.detected.to_string())),
        ("rounds", Cell::from(finding.counted_rounds.to_string())),
        ("seed", Cell::from(finding.seed.to_string())),
        ("difference", Cell::number(Some(change.value))),
        ("difference_low", Cell::number(change.low)),
        ("difference_high", Cell::number(change.high)),
    ])
}

/// A row in which the other columns are empty.
fn some_columns<const N: usize>(known: [(&'static str, Cell); N]) -> impl Iterator<Item = Cell> {
    let of = move |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, cell)| cell.clone());
    COLUMNS.into_iter().map(move |name| of(name).unwrap_or_else(|| Cell::from("")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_does_not_take_the_name_of_a_column() {
        assert_eq!([axis_column("bs"), axis_column("metric")], ["bs", "axis_metric"]);
    }
}
