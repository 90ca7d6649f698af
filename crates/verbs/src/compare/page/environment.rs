//! The machine and the method in a few labelled lines of plain text.

use crate::compare::CompareFinding;
use crate::pages::{placement, provenance, words};
use model::experiment::Metric;
use model::record::Meter;
use report::document::{Audience, Fact, tied, units_tied};
use report::number::{self, MISSING, bare_percent};

/// How the comparison was measured.
pub fn method(finding: &CompareFinding) -> Vec<Fact> {
    let mut facts = Vec::new();
    if !finding.method.is_empty() {
        facts.push(Fact::new("Method", units_tied(&finding.method)));
    }
    facts.extend(finding.work_counter.as_ref().map(|counter| {
        let text = format!("{} ({}): {}", tied(&counter.name), counter.what, counter.reason);
        Fact::new("Counter", text)
    }));
    facts.push(Fact::new("Measured", amount(finding)));
    facts.extend(detectable(finding).map(|text| Fact::new("Detectable", text)));
    facts
}

/// "34 rounds in 58.2 s, seed 7; margin ±3 %, precision ±1 %, at most 60.0 s".
fn amount(finding: &CompareFinding) -> String {
    let rounds = if finding.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", finding.rounds) };
    let rules = &finding.rules;
    format!(
        "{} in {}, {}; margin {}, precision {}, at most {}",
        tied(&rounds),
        tied(&number::seconds(finding.seconds)),
        tied(&format!("seed {}", finding.seed)),
        tied(&format!("±{}", bare_percent(rules.margin))),
        tied(&format!("±{}", bare_percent(rules.precision))),
        tied(&number::seconds(rules.budget_seconds)),
    )
}

/// The change that such an experiment detects with 80 % probability. For a sweep, the largest over all cells.
fn detectable(finding: &CompareFinding) -> Option<String> {
    let parts = finding.targets.iter().copied().filter_map(|metric: Metric| {
        let found = finding.cells.iter().filter_map(|cell| super::metric(cell, metric)?.mde80);
        let largest = found.filter(|mde| mde.is_finite()).reduce(f64::max)?;
        Some(format!("{} in {}", tied(&number::percent(largest)), words::of(metric).noun))
    });
    let parts = parts.collect::<Vec<_>>();
    let cell = if finding.cells.len() > 1 { ", least sensitive cell" } else { "" };
    (!parts.is_empty()).then(|| format!("{} (80 % power{cell})", parts.join(", ")))
}

/// The machine and its state during the measurement.
pub fn environment(finding: &CompareFinding) -> Vec<Fact> {
    let environment = &finding.environment;
    let host = &finding.head.host;
    let mut facts = provenance::of_host(host, Audience::ALL);
    facts.push(Fact::new("Cycles", cycles(finding)));
    facts.push(Fact::new("Background", background(finding)));
    facts.extend(provenance::services(&finding.head.services));
    facts.extend(placement::of_cases(&finding.placement).map(|text| Fact::new("Placement", text)));
    let canaries = provenance::canaries(&environment.canaries);
    let canaries: Vec<String> = canaries.iter().map(|(name, text)| format!("{name} {}", tied(text))).collect();
    facts.extend((!canaries.is_empty()).then(|| Fact::new("Canaries", canaries.join(", "))));
    facts
}

/// What a cycle means on this machine, and the meter that counted it.
fn cycles(finding: &CompareFinding) -> String {
    let environment = &finding.environment;
    let meter = environment.meter.as_deref();
    let cycles = provenance::cycles(&finding.head.host, meter == Some(Meter::Pmu.name()));
    match meter {
        Some(meter) => format!("{cycles}, by the {meter} meter, net of the background"),
        None => format!("{MISSING} no meter of the whole machine read all slices"),
    }
}

/// How busy the machine was without the workload, and the stolen time.
fn background(finding: &CompareFinding) -> String {
    let environment = &finding.environment;
    let share = |fraction: Option<f64>| fraction.map(|fraction| tied(&number::percent(fraction)));
    let busy = share(environment.background_busy_fraction)
        .map_or_else(|| format!("{MISSING} not measured"), |busy| format!("{busy} of the machine"));
    let steal = share(environment.steal_fraction).unwrap_or_else(|| MISSING.to_owned());
    format!("{busy}; steal {steal}")
}
