//! The cost of each phase, one row each, for formats without figures.

use super::{conditions, name};
use crate::document::{Audience, Block, Body, Column, Note, Table, Tone};
use crate::number::{self, COUNT, CYCLES, MISSING, Scale};
use model::finding::{PhaseFinding, RunFinding};

/// Phases with counted I/Os, and phases with only a total cost.
pub fn blocks(finding: &RunFinding) -> Vec<Block> {
    let (counted, others): (Vec<_>, Vec<_>) = finding.phases.iter().partition(|phase| phase.ios.is_some());
    let block = |table| Block::new("Cost", Body::Table(table)).of(Audience::POST);
    let over = counted.iter().map(|phase| conditions::over(finding, phase)).find(|over| !over.is_empty());
    let note = over.map(|over| Note::new(Tone::Faint, format!("IOPS and bandwidth are{over}")));
    vec![block(costs(&counted)).with(note.into_iter().collect()), block(wholes(&others))]
}

fn costs(phases: &[&PhaseFinding]) -> Table {
    let largest = phases.iter().filter_map(|phase| phase.cycles_per_io).reduce(f64::max);
    let scale = largest.map(|largest| Scale::of(CYCLES, largest));
    let mut table = Table::new(vec![
        Column::rows("phase"),
        Column::number(format!("{}/IO", scale.map_or("cycles", |scale| scale.unit))),
        Column::number("95 %").spare(2),
        Column::number("cycles/B").spare(4),
        Column::number("csw/IO").spare(3),
        Column::number("IOPS"),
        Column::number("bandwidth").spare(1),
    ]);
    for phase in phases {
        let value = |value: f64| scale.map_or_else(|| MISSING.to_owned(), |scale| scale.cell(value));
        let cost = phase.cycles_per_io;
        let one_rate = phase.has_one_rate();
        let error = cost.map(|cost| number::plus_minus(cost, phase.cycles_per_io_low, phase.cycles_per_io_high));
        table.row(vec![
            name(phase).into(),
            number::net(cost, value).into(),
            error.unwrap_or_else(|| MISSING.to_owned()).into(),
            number::net(phase.cycles_per_byte, number::significant).into(),
            number::known(COUNT, phase.context_switches_per_io).into(),
            number::known(COUNT, phase.iops.filter(|_| one_rate)).into(),
            phase
                .bytes_per_second
                .filter(|_| one_rate)
                .map_or_else(|| MISSING.to_owned(), number::bytes_per_second)
                .into(),
        ]);
    }
    table
}

/// Phases without counted I/Os: their total cost.
fn wholes(phases: &[&PhaseFinding]) -> Table {
    let heads = ["total", "CPUs busy", "wall time", "per I/O"].map(Column::number);
    let mut table = Table::new([vec![Column::rows("phase")], heads.to_vec()].concat());
    for phase in phases {
        table.row(vec![
            name(phase).into(),
            number::net(phase.cycles, |cycles| number::with_unit(CYCLES, cycles)).into(),
            number::net(phase.busy_cpus, number::significant).into(),
            number::seconds(phase.wall_seconds).into(),
            MISSING.into(),
        ]);
    }
    table
}
