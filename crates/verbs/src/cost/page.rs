//! Renders a [`RunFinding`] as a document.
//!
//! First the caveats and the cost of an I/O, then where it went, then the evidence: all meters, the series over time, the
//! machine's background, the latencies.

mod conditions;
mod jobs;
mod meters;
mod phase;
mod probes;
mod series;
mod spent;
mod stored;
pub(crate) mod symbols;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use crate::pages::workload::{listed, options};
use crate::pages::{limits, placement, provenance};
use model::elided_list::{distinct, elided_list};
use model::experiment::Metric;
use model::finding::{PhaseFinding, RunFinding};
use report::document::{Audience, Block, Document, Fact, Section};
use report::phrase;

crate::format::shown!(
    RunFinding,
    document,
    fn own_run(&self) -> Option<&RunFinding> {
        Some(self).filter(|run| run.counted_by.is_none())
    }
);

/// Maximum number of jobs to show, so that the costs stay on the screen.
const SHOWN: usize = 16;

/// Rows of accounts on the one screen that is read first: of a single phase, and of each of two. More phases have none there.
const ROWS: [usize; 2] = [6, 3];

/// The document of a run or a command.
pub fn document(finding: &RunFinding) -> Document {
    let mut sections = Vec::new();
    for (index, phase) in finding.phases.iter().enumerate() {
        let one = |block| Section::new("", vec![block]);
        sections.push(phase::section(finding, index, phase));
        sections.push(series::section(phase));
        sections.push(Section::new("", spent::blocks(phase, &suffix(finding, phase), rows(finding, phase))));
        sections.extend(symbols::section(finding, phase, &suffix(finding, phase)));
        sections.extend(spent::events(finding, phase, &suffix(finding, phase)).map(Block::in_full).map(one));
        sections.push(one(meters::block(finding, index, phase)));
        sections.extend(probes::of_phase(phase, &suffix(finding, phase)).map(Section::in_full));
    }
    sections.extend(stored::of_run(finding).map(|block| Section::new("", vec![block])));
    sections.extend(limits::section(&finding.head.limits, "place"));
    sections.push(Section::new("", vec![jobs::block(finding)]));
    sections.push(Section::new("", vec![jobs::latencies(finding)]).in_full());
    Document {
        kind: if finding.counted_by.is_some() { "iotoll cost" } else { "iotoll run" }.to_owned(),
        lead: "What one I/O cost, in cycles of the whole machine".to_owned(),
        workload: of_run(finding),
        sections,
        provenance: provenance(finding),
        ..Document::of(&finding.head)
    }
}

/// Rows of accounts on one screen. Functions and a comparison, which the user asked for, take the room of some.
fn rows(finding: &RunFinding, phase: &PhaseFinding) -> usize {
    let [one, two] = ROWS;
    match finding.phases.len() {
        1 if phase.functions.profile.is_none() && finding.head.stored.is_none() && finding.head.limits.is_empty() => {
            one
        }
        1 | 2 => two,
        _ => 0,
    }
}

/// The suffix that distinguishes the tables of a phase.
fn suffix(finding: &RunFinding, phase: &PhaseFinding) -> String {
    if finding.phases.len() > 1 { format!(" ({})", phrase::phase_name(phase)) } else { String::new() }
}

fn provenance(finding: &RunFinding) -> Vec<Fact> {
    const AWAY: Audience = Audience::POST.or(Audience::PAGE);
    let mut facts = provenance::of_host(&finding.head.host, Audience::ALL);
    facts.push(Fact::new("Background", provenance::background(&finding.background)));
    facts.push(Fact::new("Cycles", cycles(finding)));
    facts.extend(provenance::services(&finding.head.services));
    facts.extend(placement_of(finding).map(|text| Fact::new("Placement", text)));
    let known = finding.phases.iter().filter(|phase| has_interval(phase));
    let intervals = distinct(known.map(|phase| phase.spread.interval_from.as_str()).filter(|text| !text.is_empty()));
    if !intervals.is_empty() {
        facts.push(Fact::of(AWAY, "Interval", format!("95 %, from {}", intervals.join("; "))));
    }
    facts.extend(finding.counted_by.iter().map(|counted_by| Fact::of(AWAY, "I/O count", counted_by)));
    facts.push(provenance::made_by(&finding.head));
    facts
}

/// Whether the cost of a phase has one.
fn has_interval(phase: &PhaseFinding) -> bool {
    [Metric::CyclesPerIo, Metric::Cycles].iter().any(|cost| phase.told(*cost).is_some_and(|cost| cost.low.is_some()))
}

/// What a cycle means on this machine, and the meter that counted it.
fn cycles(finding: &RunFinding) -> String {
    let meters = distinct(finding.phases.iter().filter_map(|phase| phase.headline_meter.as_deref()));
    let by_pmu = meters.contains(&model::record::Meter::Pmu.name());
    if finding.phases.iter().any(|phase| phase.others.known_by_name) {
        let which =
            if finding.phases.iter().all(|phase| phase.others.known_by_name) { "" } else { " where others are busy" };
        return format!("{}, of the load by its name{which}", provenance::cycles(&finding.head.host, false));
    }
    let meter = if meters.is_empty() { String::new() } else { format!(", by the {} meter", meters.join(" or ")) };
    format!("{}{meter}, net of the background", provenance::cycles(&finding.head.host, by_pmu))
}

/// Where threads ran in each phase.
fn placement_of(finding: &RunFinding) -> Option<String> {
    let several = finding.phases.len() > 1;
    let parts = finding.phases.iter().filter_map(|phase| {
        let text = placement::of_phase(finding, phase)?;
        Some(if several { format!("{}: {text}", phase.jobs.join(", ")) } else { text })
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| elided_list(&parts, "; "))
}

/// The jobs of a run. A foreign command says itself what it does.
fn of_run(finding: &RunFinding) -> Vec<Fact> {
    let jobs = finding.merged_jobs.iter().filter_map(|job| Some((job.name.as_str(), options(job.plan.as_ref()?))));
    listed("Job", jobs.map(|(name, options)| (name.to_owned(), options)).collect())
}
