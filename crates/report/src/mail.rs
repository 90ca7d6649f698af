//! The cost as a mail: plain text in 72 columns, to paste into a patch thread.
//!
//! A reader who has never heard of iotoll finds what was run, on which machine, the numbers as a
//! table, and how they were made, in that order.

use crate::conditions;
use crate::number::{self, COUNT, CYCLES, MISSING, NANOS, Scale};
use crate::page::{Page, Tone, command};
use crate::probes;
use crate::provenance;
use crate::table::{Cell, Column, Table};
use model::finding::{JobFinding, PhaseFinding, RunFinding};
use model::record::Outcome;

/// Lines that survive being quoted a few times in an 80-column mail client.
pub const COLUMNS: usize = 72;
/// Accounts below this share are left out, so that the table stays a table.
const LEAST_SHARE: f64 = 0.01;
/// Mitigations named before the rest is only counted.
const MITIGATIONS: usize = 6;

/// Jobs that have a line; a mail is not a log.
const JOBS: usize = 16;
/// Width of the labels.
const LABEL: usize = 13;

/// The mail.
pub fn mail(finding: &RunFinding) -> String {
    let page = Page::mail(COLUMNS);
    let mut parts = vec![ran(page, finding), outcome(page, finding), host(page, finding)];
    parts.push(costs(page, finding));
    parts.push(totals(page, finding));
    parts.push(conditions(page, finding));
    parts.extend(finding.phases.iter().map(|phase| accounts(page, phase, finding.phases.len())));
    parts.extend(finding.phases.iter().map(|phase| probes::section(page, phase)));
    parts.push(latencies(page, &finding.jobs));
    parts.push(method(page, finding));
    parts.extend(finding.warnings.iter().map(|warning| page.wrap("! ", &warning.message)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn ran(page: Page, finding: &RunFinding) -> String {
    let typed = command(&finding.command_line);
    let text = if typed.is_empty() { &finding.title } else { &typed };
    if text.is_empty() {
        return String::new();
    }
    // Continued as a shell wants it, so that a reader can paste it back.
    let command = page.narrower(2).wrap("    ", text).replace('\n', " \\\n");
    format!("What one I/O cost, in cycles of the whole machine:\n\n{command}")
}

fn outcome(page: Page, finding: &RunFinding) -> String {
    match &finding.outcome {
        Outcome::Completed => String::new(),
        Outcome::Interrupted => page.wrap("", "Interrupted: what follows was measured until then."),
        Outcome::Failed(reason) => page.labelled(Tone::Plain, "Failed:", 8, reason),
    }
}

fn host(page: Page, finding: &RunFinding) -> String {
    let host = &finding.host;
    let settings = format!(
        "governor {}, SMT {}, clocksource {}, idle {}",
        host.governor, host.smt, host.clocksource, host.idle_driver
    );
    let names: Vec<_> = host.mitigations.iter().filter_map(|line| line.split(':').next()).map(str::trim).collect();
    let more = names.len().saturating_sub(MITIGATIONS);
    let mut mitigations = names.iter().take(MITIGATIONS).copied().collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        mitigations = "none".to_owned();
    }
    if more > 0 {
        mitigations += &format!(" and {more} more");
    }
    let mut lines = vec![("Machine", provenance::machine(host)), ("Settings", settings), ("Mitigations", mitigations)];
    lines.extend(provenance::placement(finding).map(|text| ("Placement", text)));
    labelled(page, &lines)
}

fn labelled(page: Page, lines: &[(&str, String)]) -> String {
    let lines = lines.iter().map(|(label, text)| page.labelled(Tone::Plain, label, LABEL, text));
    lines.collect::<Vec<_>>().join("\n")
}

fn costs(page: Page, finding: &RunFinding) -> String {
    let phases = || finding.phases.iter().filter(|phase| phase.ios.is_some());
    let largest = phases().filter_map(|phase| phase.cycles_per_io).reduce(f64::max);
    let scale = largest.map(|largest| Scale::of(CYCLES, largest));
    let unit = scale.map_or("cycles", |scale| scale.unit);
    let mut table = Table::new(vec![
        Column::text("Cost"),
        Column::number(format!("{unit}/IO")),
        Column::number("95 %").spare(2),
        Column::number("cycles/B").spare(4),
        Column::number("csw/IO").spare(3),
        Column::number("IOPS"),
        Column::number("bandwidth").spare(1),
    ]);
    let significant = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), number::significant);
    for phase in phases() {
        let value = |value: f64| scale.map_or_else(|| MISSING.to_owned(), |scale| scale.cell(value));
        let cost = phase.cycles_per_io;
        let error = cost.map(|cost| number::plus_minus(cost, phase.cycles_per_io_low, phase.cycles_per_io_high));
        table.row(vec![
            name(phase).into(),
            cost.map_or_else(|| MISSING.to_owned(), value).into(),
            error.unwrap_or_else(|| MISSING.to_owned()).into(),
            significant(phase.cycles_per_byte).into(),
            significant(phase.context_switches_per_io).into(),
            number::known(COUNT, phase.iops).into(),
            phase.bytes_per_second.map_or_else(|| MISSING.to_owned(), number::bytes_per_second).into(),
        ]);
    }
    table.render(page)
}

/// Phases whose I/Os nobody counted: what they cost as a whole.
fn totals(page: Page, finding: &RunFinding) -> String {
    let mut table = Table::new(vec![
        Column::text("Cost"),
        Column::number("in all"),
        Column::number("CPUs busy"),
        Column::number("wall time"),
        Column::number("per I/O"),
    ]);
    for phase in finding.phases.iter().filter(|phase| phase.ios.is_none()) {
        table.row(vec![
            name(phase).into(),
            number::known(CYCLES, phase.cycles).into(),
            phase.busy_cpus.map_or_else(|| MISSING.to_owned(), number::significant).into(),
            number::seconds(phase.wall_seconds).into(),
            MISSING.into(),
        ]);
    }
    table.render(page)
}

/// What every number above depends on: regimes, and where reads came from.
fn conditions(page: Page, finding: &RunFinding) -> String {
    let mut lines = Vec::new();
    for phase in &finding.phases {
        let of = if finding.phases.len() > 1 { format!("{}: ", name(phase)) } else { String::new() };
        if !phase.regimes.is_empty() {
            let (how_many, which) = (conditions::how_many(phase), conditions::regimes(&phase.regimes));
            lines.push(page.wrap("", &format!("{of}{how_many}: {which}")));
            lines.extend(conditions::table(phase).map(|table| table.render(page)));
        }
        let sentence = if finding.counted_by.is_some() { conditions::storage } else { conditions::page_cache };
        lines.extend(phase.page_cache.as_ref().map(|cache| page.wrap("", &format!("{of}{}", sentence(cache)))));
    }
    lines.join("\n")
}

fn name(phase: &PhaseFinding) -> String {
    match phase.jobs.as_slice() {
        [first, rest @ ..] if !rest.is_empty() => format!("{first} and {} more", rest.len()),
        names => names.join(""),
    }
}

fn accounts(page: Page, phase: &PhaseFinding, phases: usize) -> String {
    let Some(total) = phase.cycles_per_io else { return String::new() };
    let scale = Scale::of(CYCLES, total);
    let title = if phases > 1 { format!("Charged to ({})", name(phase)) } else { "Charged to".to_owned() };
    let heads = [Column::number(format!("{}/IO", scale.unit)), Column::number("share")];
    let mut table = Table::new([vec![Column::text(title)], heads.to_vec()].concat());
    for account in phase.accounts.iter().filter(|account| account.share >= LEAST_SHARE) {
        let cost = Cell::from(scale.cell(account.cycles_per_io));
        table.row(vec![account.name.as_str().into(), cost, number::percent(account.share).into()]);
    }
    table.render(page)
}

fn latencies(page: Page, jobs: &[JobFinding]) -> String {
    let mut table = Table::new(vec![
        Column::text("Latency"),
        Column::number("I/Os").spare(0),
        Column::number("mean"),
        Column::number("p50"),
        Column::number("p99"),
        Column::number("p99.9").spare(1),
        Column::number("max"),
    ]);
    let done = || jobs.iter().filter(|job| job.ios > 0);
    for job in done().take(JOBS) {
        let latency = &job.latency_ns;
        let cells = [latency.mean, latency.p50, latency.p99, latency.p999, latency.max];
        let mut row = vec![Cell::from(job.name.as_str()), Cell::from(number::count(job.ios))];
        row.extend(cells.map(|value| Cell::from(number::known(NANOS, value))));
        table.row(row);
    }
    let more = done().count().saturating_sub(JOBS);
    let more = if more > 0 { format!("\nand {more} jobs more") } else { String::new() };
    table.render(page) + &more
}

/// How the numbers were made, in a few lines.
fn method(page: Page, finding: &RunFinding) -> String {
    let meters = distinct(finding.phases.iter().filter_map(|phase| phase.headline_meter.as_deref()));
    let meter = if meters.is_empty() { String::new() } else { format!(", by the {} meter", meters.join(" or ")) };
    let cycles = format!("{}{meter}, less the background", provenance::cycles(finding));
    let mut lines = vec![("Cycles", cycles), ("Background", provenance::background(&finding.background))];
    let intervals = distinct(finding.phases.iter().map(|phase| phase.interval_from.as_str()));
    if !intervals.is_empty() {
        lines.push(("Interval", format!("95 %, from {}", intervals.join("; "))));
    }
    lines.extend(finding.counted_by.iter().map(|counted_by| ("I/O count", counted_by.clone())));
    lines.push(("Method", format!("iotoll, method version {}", finding.method_version)));
    labelled(page, &lines)
}

fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::page::fits;
    use proptest::prelude::*;

    #[test]
    fn every_mail_fits_and_is_ascii_of_our_own() {
        for (name, finding) in fixture::all() {
            let text = mail(&finding);
            assert_eq!(fits(&text, COLUMNS), Ok(()), "{name}");
            assert!(name == "hostile" || text.is_ascii(), "{name}: {text}");
            assert!(!text.contains('\u{1b}'), "{name}");
        }
    }

    #[test]
    fn a_mail_as_it_is_sent() {
        insta::assert_snapshot!(mail(&fixture::udp_like()));
    }

    #[test]
    fn a_long_command_can_be_pasted_back() {
        let text = mail(&fixture::psync_4k());
        let command = text.split("\n\n").nth(1).unwrap().replace(" \\\n", " ");
        assert_eq!(command.split_whitespace().collect::<Vec<_>>(), fixture::psync_4k().command_line);
    }

    #[test]
    fn a_missing_number_is_a_dash() {
        let text = mail(&fixture::meters_unavailable());
        let row = text.lines().find(|line| line.starts_with("randread-4k")).unwrap();
        assert_eq!(
            row.split_whitespace().collect::<Vec<_>>(),
            ["randread-4k", "-", "-", "-", "-", "284", "k", "1.08", "GiB/s"]
        );
    }

    proptest! {
        #[test]
        fn no_finding_overflows_a_mail(number in any::<f64>(), text in any::<String>()) {
            prop_assert_eq!(fits(&mail(&fixture::hostile(number, &text)), COLUMNS), Ok(()));
        }
    }
}
