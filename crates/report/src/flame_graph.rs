//! Flame graphs as text for other programs that draw them.

use crate::document::whole;
use model::finding::RunFinding;

/// A line for each stack: its calls, separated by semicolons, and its cycles in 1000 I/Os. Nothing without a profile. Of several phases,
/// the stacks of each begin with its jobs.
pub fn folded(finding: &RunFinding) -> Option<String> {
    let several = finding.phases.len() > 1;
    let stacks = finding.phases.iter().flat_map(|phase| {
        let begin = if several { format!("{};", phase.jobs.join("+").replace(';', ":")) } else { String::new() };
        phase.functions.stacks.iter().map(move |stack| {
            format!("{begin}{} {}\n", stack.calls.replace(['\n', '\r'], " "), whole(stack.cycles_per_io))
        })
    });
    let lines: String = stacks.collect();
    (!lines.is_empty()).then_some(lines)
}
