//! The probes of a phase: the rate and the cost per I/O of counters, the level of gauges, or the reason for a missing
//! value.

use crate::document::{Audience, Axis, Block, Body, Cell, Chart, Column, Point, Section, Series, Table};
use crate::number::{self, MISSING, Units};
use crate::probes;
use model::finding::{PhaseFinding, ProbeFinding};
use model::probe::Kind;

/// Counters, then gauges, then both over time.
pub fn sections(phase: &PhaseFinding, suffix: &str) -> [Section; 2] {
    let charts = Body::Charts(phase.probes.iter().filter_map(chart).collect());
    let over_time = Block::new("", charts).of(Audience::PAGE);
    [Section::new("", tables(phase, suffix)), Section::on_page(format!("Probes over time{suffix}"), vec![over_time])]
}

fn tables(phase: &PhaseFinding, suffix: &str) -> Vec<Block> {
    let (mut counters, mut gauges) = (counters(), gauges());
    for probe in &phase.probes {
        let table = if probe.kind == Kind::Counter { &mut counters } else { &mut gauges };
        if probe.per_second.is_none() && probe.mean.is_none() {
            table.note(label(probe).into(), format!("{MISSING} {}", probe.reason.as_deref().unwrap_or("not read")));
        } else {
            table.row(cells(probe));
        }
    }
    vec![
        Block::new(format!("Probes: counters{suffix}"), Body::Table(counters)),
        Block::new(format!("Probes: gauges{suffix}"), Body::Table(gauges)),
    ]
}

fn counters() -> Table {
    Table::new(vec![
        Column::rows("probe"),
        Column::number("per second"),
        Column::number("95 %").spare(2),
        Column::number("per I/O"),
        Column::number("95 %").spare(3),
        // The rate is gross, the figure per I/O is net of the background.
        Column::number("background").spare(1),
    ])
}

fn gauges() -> Table {
    Table::new(vec![
        Column::rows("probe"),
        Column::number("mean"),
        Column::number("95 %").spare(1),
        Column::number("min"),
        Column::number("max"),
    ])
}

fn cells(probe: &ProbeFinding) -> Vec<Cell> {
    let known = |value| Cell::from(number::known(units(probe), value));
    let within = |value: Option<f64>, low, high| {
        Cell::from(value.map_or_else(|| MISSING.to_owned(), |value| number::plus_minus(value, low, high)))
    };
    match probe.kind {
        Kind::Counter => vec![
            label(probe).into(),
            known(probe.per_second),
            within(probe.per_second, probe.per_second_low, probe.per_second_high),
            known(probe.per_io),
            within(probe.per_io, probe.per_io_low, probe.per_io_high),
            known(probe.background_per_second),
        ],
        Kind::Gauge => vec![
            label(probe).into(),
            known(probe.mean),
            within(probe.mean, probe.mean_low, probe.mean_high),
            known(probe.min),
            known(probe.max),
        ],
    }
}

fn units(probe: &ProbeFinding) -> Units {
    probes::units(&probe.unit)
}

fn label(probe: &ProbeFinding) -> String {
    probes::label(&probe.name, &probe.unit)
}

fn chart(probe: &ProbeFinding) -> Option<Chart> {
    let sound = probe.series.iter().filter(|(seconds, value)| seconds.is_finite() && value.is_finite());
    let points: Vec<Point> = sound.map(|(seconds, value)| Point::new(*seconds, *value)).collect();
    // A single window is the same as the mean.
    (points.len() > 1).then(|| Chart {
        title: label(probe) + if probe.kind == Kind::Counter { ", per second" } else { "" },
        of: String::new(),
        x: Axis::Time,
        y: Axis::Amount { units: units(probe), from_zero: true },
        marks: Vec::new(),
        series: vec![Series { subject: 1, joined: true, dot: 0, points }],
    })
}

#[cfg(test)]
mod tests {
    use crate::cost::fixture;
    use crate::{Format, Ink};

    #[test]
    fn counters_have_rates_and_costs_and_gauges_levels() {
        for format in [Format::Table, Format::Mail] {
            let text = format.render(&fixture::probed(), Ink::Plain, 100);
            let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
            assert!(line("net.eth0.rx_bytes").contains("MiB"), "{text}");
            assert!(line("dirty (pages)").split_whitespace().count() > 4, "{text}");
            assert!(line("softirqs.net_rx").contains("it went backwards"), "{text}");
        }
        assert!(!Format::Table.render(&fixture::psync_4k(), Ink::Plain, 100).contains("Probes"));
        let page = Format::Html.render(&fixture::probed(), Ink::Plain, 100);
        assert!(page.contains("Probes over time") && page.contains("<svg"), "no chart of a probe");
    }
}
