//! The probes of a phase, and their values over time.

use crate::pages::probes::{label, units};
use model::finding::{PhaseFinding, ProbeFinding};
use model::probe::Kind;
use report::document::{Audience, Block, Body, Cell, Chart, Column, Point, Section, Series, Table};
use report::number::{self, MISSING, Units};

/// The probes of a phase, and their values over time.
pub fn of_phase(phase: &PhaseFinding, suffix: &str) -> [Section; 2] {
    let charts = Body::Charts(phase.probes.iter().filter_map(chart).collect());
    let over_time = Block::new("", charts).of(Audience::PAGE);
    let table = Block::new(format!("Probes{suffix}"), Body::Table(table(phase)));
    [Section::new("", vec![table]), Section::on_page(format!("Probes over time{suffix}"), vec![over_time])]
}

/// A row for each value of each probe. A rate is gross, a figure per I/O is net of the background.
fn table(phase: &PhaseFinding) -> Table {
    let mut columns = vec![Column::rows("probe"), Column::text("value"), Column::number("")];
    columns.extend([Column::number("95 %").spare(2), Column::text("beside").spare(1)]);
    let mut table = Table { keys: 2, ..Table::new(columns) };
    for probe in &phase.probes {
        let shown = |value: f64| number::with_unit(units_of(probe), value);
        let background = probe.background_per_second.map(|rate| format!("background {}", shown(rate)));
        let range = probe.min.zip(probe.max).map(|(min, max)| format!("from {} to {}", shown(min), shown(max)));
        let values = [
            ("per second", probe.per_second, background),
            ("per I/O", probe.per_io, None),
            ("mean", probe.mean, range),
        ];
        let known = values.into_iter().filter_map(|(what, found, beside)| Some((what, found?, beside)));
        let before = table.rows.len();
        for (what, found, beside) in known {
            let within = number::plus_minus(found.value, found.low, found.high);
            let texts = [label_of(probe), what.to_owned(), shown(found.value), within, beside.unwrap_or_default()];
            table.row(texts.map(Cell::from).to_vec());
        }
        if table.rows.len() == before {
            table.note(label_of(probe).into(), format!("{MISSING} {}", probe.reason.as_deref().unwrap_or("not read")));
        }
    }
    table
}

fn units_of(probe: &ProbeFinding) -> Units {
    units(&probe.unit)
}

fn label_of(probe: &ProbeFinding) -> String {
    label(&probe.name, &probe.unit)
}

fn chart(probe: &ProbeFinding) -> Option<Chart> {
    let sound = probe.series.iter().filter(|(seconds, value)| seconds.is_finite() && value.is_finite());
    let points: Vec<Point> = sound.map(|(seconds, value)| Point::new(*seconds, *value)).collect();
    // A single window is the same as the mean.
    let is_series = points.len() > 1;
    let title = label_of(probe) + if probe.kind == Kind::Counter { ", per second" } else { "" };
    let series = vec![Series { subject: 1, joined: true, dot: 0, points }];
    (is_series).then(|| Chart::over_time(title, units_of(probe), true, series))
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::cost::page::fixture as runs;
    use report::Ink;

    #[test]
    fn counters_have_rates_and_costs_and_gauges_levels() {
        for format in [Format::Table, Format::Mail] {
            let text = format.render(&runs::named("probed"), Ink::Plain, 100);
            let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
            assert!(line("net.eth0.rx_bytes").contains("MiB"), "{text}");
            assert!(line("dirty (pages)").split_whitespace().count() > 4, "{text}");
            assert!(line("softirqs.net_rx").contains("it went backwards"), "{text}");
        }
        assert!(!Format::Table.render(&runs::named("psync_4k"), Ink::Plain, 100).contains("Probes"));
        let page = Format::Html.render(&runs::named("probed"), Ink::Plain, 100);
        assert!(page.contains("Probes over time") && page.contains("<svg"), "no chart of a probe");
    }
}
