//! The machine and the method in a few labelled lines, in bare text.

use super::change::bare;
use super::contents;
use super::section::Fact;
use super::words;
use crate::number::{self, MISSING, NANOS};
use crate::page::{tied, units_tied};
use crate::{placement, provenance};
use model::comparison::CompareFinding;
use model::experiment::Metric;
use model::reading::Reading;
use model::record::{Canaries, Meter};
use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

/// The first second of the year 10000, which no date of four digits can say.
const LAST_SECOND: f64 = 253_402_300_800.0;

fn fact(label: &str, text: String) -> Fact {
    Fact { label: label.to_owned(), text }
}

/// How it was measured.
pub fn method(finding: &CompareFinding) -> Vec<Fact> {
    let mut facts = Vec::new();
    if !finding.method.is_empty() {
        facts.push(fact("Method", units_tied(&finding.method)));
    }
    facts.push(fact("Measured", amount(finding)));
    facts.extend(detectable(finding).map(|text| fact("Detectable", text)));
    facts
}

/// "34 rounds in 58.2 s, seed 7; margin ±3 %, precision ±1 %, at most 60.0 s".
pub fn amount(finding: &CompareFinding) -> String {
    let rounds = if finding.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", finding.rounds) };
    let rules = &finding.rules;
    format!(
        "{} in {}, {}; margin {}, precision {}, at most {}",
        tied(&rounds),
        tied(&number::seconds(finding.seconds)),
        tied(&format!("seed {}", finding.seed)),
        tied(&format!("±{}", bare(rules.margin))),
        tied(&format!("±{}", bare(rules.precision))),
        tied(&number::seconds(rules.budget_seconds)),
    )
}

/// The change that would be found in 8 of 10 such experiments; of a sweep the largest over its cells.
pub fn detectable(finding: &CompareFinding) -> Option<String> {
    let parts = contents::targets(finding).into_iter().filter_map(|metric: Metric| {
        let found = finding.cells.iter().filter_map(|cell| contents::metric(cell, metric)?.mde80);
        let largest = found.filter(|mde| mde.is_finite()).reduce(f64::max)?;
        Some(format!("{} in {}", tied(&number::percent(largest)), words::of(metric).noun))
    });
    let parts = parts.collect::<Vec<_>>();
    let cell = if finding.cells.len() > 1 { ", in the cell where it is hardest" } else { "" };
    (!parts.is_empty()).then(|| format!("{}, in 8 of 10 such experiments{cell}", parts.join(", ")))
}

/// What it was measured on and what that did meanwhile.
pub fn environment(finding: &CompareFinding) -> Vec<Fact> {
    let environment = &finding.environment;
    let host = &environment.host;
    let mut facts = vec![fact("Machine", provenance::machine(host))];
    facts.extend(boots(finding).map(|text| fact("Boots", text)));
    facts.push(fact("Cycles", cycles(finding)));
    facts.push(fact("Background", background(finding)));
    facts.extend(placement::of_cases(&finding.placement).map(|text| fact("Placement", text)));
    facts.extend(canaries(&environment.canaries).map(|text| fact("Canaries", text)));
    facts.extend(environment.step.map(|step| {
        let (round, size) = (step.after_round, tied(&signed(step.change)));
        fact("Step", format!("all arms changed together by {size} after round {round}"))
    }));
    facts
}

/// "stock 5, Linux 6.9.0; patched 5, Linux 6.9.0-patched".
fn boots(finding: &CompareFinding) -> Option<String> {
    let parts = finding.arms.iter().filter_map(|arm| {
        let boots = || finding.boots.iter().filter(|boot| boot.arm == arm.name);
        let kernels: BTreeSet<&str> = boots().map(|boot| boot.host.kernel.as_str()).collect();
        let kernels: Vec<&str> = kernels.into_iter().collect();
        let count = tied(&format!("{} {}", arm.name, boots().count()));
        (!kernels.is_empty()).then(|| format!("{count}, Linux {}", kernels.join(" and ")))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What a cycle is here and which meter counted it.
pub fn cycles(finding: &CompareFinding) -> String {
    let environment = &finding.environment;
    let meter = environment.meter.as_deref();
    let cycles = provenance::cycles_of(&environment.host, meter == Some(Meter::Pmu.name()));
    match meter {
        Some(meter) => format!("{cycles}, by the {meter} meter, less the background"),
        None => format!("{MISSING} no meter of the whole machine could be read"),
    }
}

/// What the machine did without the workload, and what the hypervisor took.
pub fn background(finding: &CompareFinding) -> String {
    let environment = &finding.environment;
    let share = |fraction: Option<f64>| fraction.map(|fraction| tied(&number::percent(fraction)));
    let busy = share(environment.background_busy_fraction)
        .map_or_else(|| format!("{MISSING} not measured"), |busy| format!("{busy} of the machine"));
    let steal = share(environment.steal_fraction).unwrap_or_else(|| MISSING.to_owned());
    format!("{busy}; steal {steal}")
}

/// The speeds before and after, side by side.
fn canaries(canaries: &[Canaries]) -> Option<String> {
    let (first, last) = (canaries.first()?, canaries.last()?);
    let taken = |reading: &Reading<f64>| match reading {
        Reading::Taken(value) => Some(*value),
        Reading::Unavailable(_) => None,
    };
    let moved = |name: &str, before: Option<f64>, after: Option<f64>| {
        let time = |value| number::known(NANOS, value);
        let text = if canaries.len() > 1 { format!("{} → {}", time(before), time(after)) } else { time(before) };
        before.map(|_| format!("{name} {}", tied(&text)))
    };
    let parts = [
        moved("system call", Some(first.null_system_call_nanos), Some(last.null_system_call_nanos)),
        moved("context switch", taken(&first.context_switch_nanos), taken(&last.context_switch_nanos)),
        moved("wake-up", taken(&first.wake_up_nanos), taken(&last.wake_up_nanos)),
        moved("clock", Some(first.clock_read_nanos), Some(last.clock_read_nanos)),
    ];
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    let copied = |canaries: &Canaries| number::significant(canaries.memcpy_gigabytes_per_second);
    let memcpy = if canaries.len() > 1 { format!("{} → {}", copied(first), copied(last)) } else { copied(first) };
    parts.push(format!("memory copy {}", tied(&format!("{memcpy} GB/s"))));
    Some(parts.join(", "))
}

fn signed(fraction: f64) -> String {
    super::change::Change { value: Some(fraction), low: None, high: None }.percent()
}

/// When the measurement began: "2025-10-09 08:53:20 UTC".
pub fn began(finding: &CompareFinding) -> Option<String> {
    time(finding.started_unix_seconds)
}

/// A moment of the calendar, from the seconds since 1970; `None` where four digits of a year cannot say it.
pub fn time(seconds: f64) -> Option<String> {
    let known = (0.0..LAST_SECOND).contains(&seconds);
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|_| known)?;
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + time).to_string();
    Some(text.replace('T', " ").replace('Z', " UTC"))
}
