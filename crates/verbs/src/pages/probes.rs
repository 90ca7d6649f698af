//! Probes: how their values are shown, and the list of those that a machine has.

use crate::compare::CompareFinding;
use crate::compare::finding::{BothArms, ProbeComparison};
use crate::pages::change::Change;
use crate::pages::contents;
use model::finding::{PhaseFinding, ProbeFinding};
use model::probe::{Kind, Listed};
use report::Ink;
use report::document::{Audience, Block, Body, Cell, Chart, Column, Document, Fact, Point, Section, Series, Table};
use report::number::{self, BYTES, COUNT, MISSING, NANOS, Units};
use report::text::terminal;

/// The units of bytes and times fit the size. Other units follow the name.
pub(crate) fn units(unit: &str) -> Units {
    match unit {
        "bytes" => BYTES,
        "ns" => NANOS,
        _ => COUNT,
    }
}

/// The name, followed by its unit, unless the name contains it or the values show it.
pub(crate) fn label(name: &str, unit: &str) -> String {
    match unit {
        unit if ["", "bytes", "ns", "events"].contains(&unit) || name.contains(unit) => name.to_owned(),
        unit => format!("{name} ({unit})"),
    }
}

/// The list, for a terminal of this width.
pub fn list(listed: &[Listed], columns: usize) -> String {
    let fact = |probe: &Listed| {
        let text = match (probe.meaning.taken(), probe.meaning.reason()) {
            (Some(meaning), _) => meaning.clone(),
            (None, reason) => format!("{} {}", report::number::MISSING, reason.unwrap_or_default()),
        };
        Fact::new(probe.name.clone(), text)
    };
    let facts = Body::Facts(listed.iter().map(fact).collect());
    let document = Document {
        title: "Probes of this machine, for --probe".to_owned(),
        sections: vec![Section::new("", vec![Block::new("", facts)])],
        ..Document::default()
    };
    terminal(&document, Ink::Plain, columns)
}

/// The values of a probe, with what each is: "per I/O".
pub fn values(probe: &ProbeComparison) -> [(&'static str, Option<BothArms>); 3] {
    [("per I/O", probe.per_io), ("per second", probe.per_second), ("mean", probe.mean)]
}

/// A table for each arm; a row for each value of each probe.
pub fn of_comparison(finding: &CompareFinding) -> Vec<Block> {
    let arms = contents::candidates(finding);
    let several = arms.len() > 1;
    let block = |arm: &&str| {
        let title = if several { format!("Probes, {arm}") } else { "Probes".to_owned() };
        Block::new(title, Body::Table(comparison_table(finding, arm)))
    };
    arms.iter().map(block).filter(|block| !block.is_empty()).collect()
}

fn comparison_table(finding: &CompareFinding, arm: &str) -> Table {
    let axes = contents::axes(finding);
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::text(*axis)).collect();
    columns.extend([Column::text("probe"), Column::text("value")]);
    columns.extend([contents::baseline(finding), arm].map(Column::number));
    columns.extend([Column::number("change"), Column::text("interval").spare(1)]);
    let mut table = Table { keys: axes.len() + 1, ..Table::new(columns) };
    for (cell, probe) in
        contents::cells(finding, arm).into_iter().flat_map(|cell| cell.probes.iter().map(move |probe| (cell, probe)))
    {
        let label = label(&probe.name, &probe.unit);
        let shown = |value: f64| number::with_unit(units(&probe.unit), value);
        let known = values(probe).into_iter().filter_map(|(value, arms)| Some((value, arms?)));
        let rows: Vec<Vec<Cell>> = known
            .map(|(value, arms)| {
                let change = Change::from(arms.change);
                let arms = [arms.baseline, arms.candidate].map(|arm| shown(arm.value));
                let texts = [label.clone(), value.to_owned()].into_iter().chain(arms);
                let texts = texts.chain([change.percent(), change.interval()]).map(Cell::from);
                contents::names(&axes, &cell.cell).into_iter().chain(texts).collect()
            })
            .collect();
        if rows.is_empty() {
            let point = contents::point(finding, &cell.cell);
            let label = if point.is_empty() { label } else { format!("{point} {label}") };
            table.note(Cell::from(label), format!("{MISSING} {}", probe.reason.as_deref().unwrap_or("not read")));
        }
        rows.into_iter().for_each(|row| table.row(row));
    }
    table
}

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
    use super::*;
    use crate::Format;
    use crate::cost::page::fixture as runs;
    use crate::pages::tests::fits;
    use model::reading::Reading;
    use report::Ink;

    #[test]
    fn the_list_fits_any_terminal_and_says_why_one_is_missing() {
        let listed = [
            Listed { name: "dirty".to_owned(), meaning: Reading::Taken("pages that wait".repeat(20)) },
            Listed { name: "pressure.".to_owned(), meaning: Reading::unavailable("not there") },
        ];
        for columns in [60, 100] {
            let text = list(&listed, columns);
            assert_eq!(fits(&text, columns), Ok(()));
            assert!(text.contains("— not there"), "{text}");
        }
    }

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
