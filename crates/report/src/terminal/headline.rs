//! What a phase cost, in one line, and what it did, in the next.

use crate::conditions;
use crate::number::{self, COUNT, CYCLES, MISSING, NANOS, Scale};
use crate::page::{Page, Tone};
use model::finding::{PhaseFinding, RunFinding};
use model::page_cache::CacheState;
use model::record::Exit;

/// Columns between two figures of one line.
const GAP: usize = 3;

/// The headline of the phase at `index`.
pub fn section(page: Page, finding: &RunFinding, index: usize, phase: &PhaseFinding) -> String {
    let mut lines = Vec::new();
    if finding.phases.len() > 1 {
        let name = format!("Phase {} of {}: {}", index + 1, finding.phases.len(), phase.jobs.join(", "));
        lines.push(page.wrap_toned(Tone::Strong, "", &name));
    }
    lines.extend(regimes(page, phase));
    if phase.regimes.is_empty() || phase.cycles_per_io.is_some() {
        lines.push(page.flow(2, GAP, &cost(phase)));
    }
    lines.push(page.flow(2, GAP, &work(finding, phase)));
    lines.extend(phase.page_cache.as_ref().map(|cache| {
        let sentence = if finding.counted_by.is_some() { conditions::storage } else { conditions::page_cache };
        page.wrap_toned(cache_tone(cache.state), "  ", &sentence(cache))
    }));
    if phase.jobs.len() > 1 {
        let shared =
            format!("The cost is shared by {} jobs that ran together; it is not divided among them.", phase.jobs.len());
        lines.push(page.wrap_toned(Tone::Faint, "  ", &shared));
    }
    if let Some(counted_by) = &finding.counted_by {
        lines.push(page.wrap_toned(Tone::Faint, "  ", &format!("I/O count: {counted_by}")));
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

/// What stands in place of one mean, where the rate stepped.
fn regimes(page: Page, phase: &PhaseFinding) -> Option<String> {
    let (last, table) = (phase.regimes.last()?, conditions::table(phase));
    let (how_many, which) = (conditions::how_many(phase), conditions::regimes(&phase.regimes));
    let text = match (last.iops, phase.cycles_per_io) {
        (Some(_), None) => format!("{how_many}, no single mean: {which}"),
        (Some(_), Some(_)) => format!("{how_many}: {which}"),
        (None, _) => format!("{how_many}: {which}; the figures are of both together"),
    };
    let line = page.wrap_toned(Tone::Notice, "  ", &text);
    Some(table.map_or_else(|| line.clone(), |table| format!("{line}\n{}", table.render(page))))
}

/// A mixture must not be overlooked.
fn cache_tone(state: CacheState) -> Tone {
    match state {
        CacheState::Warming | CacheState::Partial | CacheState::Unknown => Tone::Notice,
        CacheState::Warm | CacheState::Cold | CacheState::Written | CacheState::Bypassed => Tone::Plain,
    }
}

fn cost(phase: &PhaseFinding) -> Vec<(Tone, String)> {
    let mut chips = Vec::new();
    match (phase.cycles_per_io, phase.ios) {
        (Some(value), _) => {
            chips.push((Tone::Strong, cycles(Some(value), "/IO")));
            if let (Some(low), Some(high)) = (phase.cycles_per_io_low, phase.cycles_per_io_high) {
                chips.push((Tone::Plain, Scale::of(CYCLES, value).interval(low, high)));
            }
        }
        (None, Some(_)) => chips.push((Tone::Strong, cycles(None, "/IO"))),
        (None, None) => {
            chips.push((Tone::Strong, cycles(phase.cycles, "")));
            if let (Some(value), Some(low), Some(high)) = (phase.cycles, phase.cycles_low, phase.cycles_high) {
                chips.push((Tone::Plain, Scale::of(CYCLES, value).interval(low, high)));
            }
            chips.push((Tone::Plain, cycles(None, "/IO")));
        }
    }
    if phase.ios.is_some() || phase.bytes.is_some() {
        chips.push((Tone::Strong, cycles(phase.cycles_per_byte, "/byte")));
        // Where the I/Os are known, the interval of their cost is that of the bytes' too, in other units.
        if let (None, Some(value)) = (phase.cycles_per_io, phase.cycles_per_byte) {
            let error = number::plus_minus(value, phase.cycles_per_byte_low, phase.cycles_per_byte_high);
            chips.push((Tone::Plain, error));
        }
        let switches = phase.context_switches_per_io.map_or_else(|| MISSING.to_owned(), number::significant);
        chips.push((Tone::Strong, format!("{switches} context switches/IO")));
    }
    chips
}

/// A number of cycles; the unit stays when the number is missing.
fn cycles(value: Option<f64>, per: &str) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => number::with_unit(CYCLES, value) + per,
        None => format!("{MISSING} cycles{per}"),
    }
}

fn work(finding: &RunFinding, phase: &PhaseFinding) -> Vec<(Tone, String)> {
    let mut chips = Vec::new();
    // Rates and latencies of two regimes together describe neither.
    let steady = phase.regimes.iter().all(|regime| regime.iops.is_none());
    if let Some(iops) = phase.iops.filter(|_| steady) {
        chips.push(number::with_unit(COUNT, iops) + " IOPS");
    }
    if let Some(rate) = phase.bytes_per_second.filter(|_| steady) {
        chips.push(number::bytes_per_second(rate));
    }
    if let [name] = phase.jobs.as_slice()
        && steady
        && let Some(job) = finding.jobs.iter().find(|job| job.name == *name)
    {
        let known = |name: &str, value: Option<f64>| Some(format!("{name} {}", number::with_unit(NANOS, value?)));
        chips.extend(known("p50", job.latency_ns.p50));
        chips.extend(known("p99", job.latency_ns.p99));
    }
    if let Some(busy) = phase.busy_cpus {
        chips.push(format!("{} CPUs busy", number::significant(busy)));
    }
    chips.push(number::seconds(phase.wall_seconds));
    let mut chips: Vec<_> = chips.into_iter().map(|text| (Tone::Plain, text)).collect();
    chips.extend(exits(&phase.exits));
    if let Some(outside) = phase.cycles_outside_io {
        chips.push((Tone::Plain, format!("{} before and after the I/O", number::with_unit(CYCLES, outside))));
    }
    chips
}

/// Equal ends of executions together, in the order in which they first occurred.
fn exits(exits: &[Exit]) -> Vec<(Tone, String)> {
    let mut counted: Vec<(Exit, usize)> = Vec::new();
    for exit in exits {
        match counted.iter_mut().find(|(known, _)| known == exit) {
            Some((_, times)) => *times += 1,
            None => counted.push((*exit, 1)),
        }
    }
    let chip = |(exit, times): (Exit, usize)| {
        let times = if times > 1 { format!(" ×{times}") } else { String::new() };
        match exit {
            Exit::Status(0) => (Tone::Plain, format!("exit status 0{times}")),
            Exit::Status(status) => (Tone::Bad, format!("exit status {status}{times}")),
            Exit::Signal(signal) => (Tone::Bad, format!("killed by signal {signal}{times}")),
        }
    };
    counted.into_iter().map(chip).collect()
}
