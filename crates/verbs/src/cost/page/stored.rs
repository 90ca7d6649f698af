//! The change of a run since an earlier one.

use crate::pages::stored::block;
use crate::pages::words::{self, Change};
use model::experiment::Metric;
use model::finding::{PhaseFinding, RunFinding};
use report::document::{Block, Fact, tied};
use report::number::{self, COUNT, CYCLES};
use report::phrase::phase_name;

/// `None` without a stored record.
pub fn of_run(finding: &RunFinding) -> Option<Block> {
    let stored = finding.head.stored.as_ref()?;
    let several = finding.phases.len() > 1;
    let facts = finding.phases.iter().flat_map(|phase| {
        let prefix = if several { format!("{} ", phase_name(phase)) } else { String::new() };
        facts(phase).into_iter().map(move |(head, text)| Fact::new(format!("{prefix}{head}"), text))
    });
    let caution = "the two were not measured side by side: the difference includes everything that changed in between, such as the kernel or \
                   other guests, and its interval only the variation within each; use iotoll compare to isolate a change";
    let unknown = finding.phases.iter().filter(|phase| phase.stored.is_none());
    let unknown: Vec<String> = unknown.map(phase_name).filter(|name| !name.is_empty()).collect();
    let remark = (!unknown.is_empty()).then(|| format!("not in the stored record: {}", unknown.join(", ")));
    Some(block(if finding.counted_by.is_some() { "command" } else { "run" }, stored, facts.collect(), caution, remark))
}

fn facts(phase: &PhaseFinding) -> Vec<(&'static str, String)> {
    let cost = if phase.ios.is_some() { Metric::CyclesPerIo } else { Metric::Cycles };
    let told = [(cost, CYCLES), (Metric::Iops, COUNT)].into_iter().filter_map(|(metric, units)| {
        let then = phase.stored.as_ref()?.get(metric.name())?;
        let change = Change::from(then.change?).whole();
        let figures = [Some(then.value), phase.value(metric)].map(|value| number::known(units, value));
        Some((words::of(metric).head, format!("{} {}", tied(&change), tied(&format!("({})", figures.join(" → "))))))
    });
    told.collect()
}
