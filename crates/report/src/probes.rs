//! Probes: what numbers of the kernel did beside a phase, and which there are.
//!
//! Counters have a rate and what an I/O added, gauges a level. Of one that shows nothing stands why.

use crate::ink::Ink;
use crate::number::{self, BYTES, COUNT, MISSING, NANOS, Units};
use crate::page::{Page, Tone};
use crate::table::{Column, Table};
use model::finding::{PhaseFinding, ProbeFinding};
use model::probe::{Kind, Listed};

/// Columns of a page that has room for the background beside the rest.
const ROOMY: usize = 80;

/// The probes of a phase: counters, then gauges. Nothing where none were asked for.
pub fn section(page: Page, phase: &PhaseFinding) -> String {
    // A mail has no room for all columns beside the names.
    let background = page.columns() >= ROOMY;
    let (mut counters, mut gauges) = (counters(background), gauges());
    for probe in &phase.probes {
        let known = |value| number::known(units(probe), value);
        let within = |value: Option<f64>, low, high| {
            value.map_or_else(|| MISSING.to_owned(), |value| number::plus_minus(value, low, high)).into()
        };
        let table = if probe.kind == Kind::Counter { &mut counters } else { &mut gauges };
        if probe.per_second.is_none() && probe.mean.is_none() {
            table.note(label(probe).into(), format!("{MISSING} {}", probe.reason.as_deref().unwrap_or("not read")));
            continue;
        }
        table.row(match probe.kind {
            Kind::Counter => {
                let mut cells = vec![
                    label(probe).into(),
                    known(probe.per_second).into(),
                    within(probe.per_second, probe.per_second_low, probe.per_second_high),
                    known(probe.per_io).into(),
                    within(probe.per_io, probe.per_io_low, probe.per_io_high),
                ];
                cells.extend(background.then(|| known(probe.background_per_second).into()));
                cells
            }
            Kind::Gauge => vec![
                label(probe).into(),
                known(probe.mean).into(),
                within(probe.mean, probe.mean_low, probe.mean_high),
                known(probe.min).into(),
                known(probe.max).into(),
            ],
        });
    }
    let tables = [counters.render(page), gauges.render(page)];
    tables.into_iter().filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn counters(background: bool) -> Table {
    let mut columns = vec![
        Column::text("Probes: counters"),
        Column::number("per second"),
        Column::number("95 %").spare(1),
        Column::number("per I/O"),
        Column::number("95 %").spare(2),
    ];
    // The rate is gross, an I/O's part is net of this.
    columns.extend(background.then(|| Column::number("background")));
    Table::new(columns)
}

fn gauges() -> Table {
    Table::new(vec![
        Column::text("Probes: gauges"),
        Column::number("mean"),
        Column::number("95 %").spare(1),
        Column::number("least"),
        Column::number("most"),
    ])
}

/// Bytes and times have units that fit their size; what is only counted has its unit beside its name, where that does not say it.
fn units(probe: &ProbeFinding) -> Units {
    match probe.unit.as_str() {
        "bytes" => BYTES,
        "ns" => NANOS,
        _ => COUNT,
    }
}

fn label(probe: &ProbeFinding) -> String {
    match probe.unit.as_str() {
        unit if ["", "bytes", "ns", "events"].contains(&unit) || probe.name.contains(unit) => {
            format!("  {}", probe.name)
        }
        unit => format!("  {} ({unit})", probe.name),
    }
}

/// The probes of a machine, a paragraph each.
pub fn list(listed: &[Listed], columns: usize) -> String {
    /// Columns of the names.
    const NAMES: usize = 28;
    let page = Page::terminal(Ink::Plain, columns);
    let line = |probe: &Listed| {
        let text = match (probe.meaning.taken(), probe.meaning.reason()) {
            (Some(meaning), _) => meaning.clone(),
            (None, reason) => format!("{MISSING} {}", reason.unwrap_or_default()),
        };
        page.labelled(Tone::Plain, &probe.name, NAMES, &text)
    };
    listed.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::page::fits;
    use model::reading::Reading;

    #[test]
    fn counters_have_rates_and_costs_and_gauges_levels() {
        let text = section(Page::mail(72), &fixture::probed().phases[0]);
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
        assert!(line("net.eth0.rx_bytes").contains("MiB"), "{text}");
        assert!(line("dirty (pages)").split_whitespace().count() > 4, "{text}");
        assert!(line("softirqs.net_rx").contains("it went backwards"), "{text}");
        assert_eq!(section(Page::mail(72), &fixture::psync_4k().phases[0]), "");
    }

    #[test]
    fn the_list_fits_any_terminal_and_says_why_one_is_missing() {
        let listed = [
            Listed { name: "dirty".to_owned(), meaning: Reading::Taken("pages that wait".repeat(20)) },
            Listed { name: "  pressure.".to_owned(), meaning: Reading::unavailable("not there") },
        ];
        for columns in [60, 100] {
            let text = list(&listed, columns);
            assert_eq!(fits(&text, columns), Ok(()));
            assert!(text.contains("— not there"), "{text}");
        }
    }
}
