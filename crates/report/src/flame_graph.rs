//! Flame graphs as text for other programs that draw them.

use crate::document::PER;
use model::finding::RunFinding;

/// A line for each stack: its calls, separated by semicolons, and its cycles in 1000 I/Os. Nothing without a profile. Of several phases,
/// the stacks of each begin with its jobs.
pub fn folded(finding: &RunFinding) -> Option<String> {
    let several = finding.phases.len() > 1;
    let stacks = finding.phases.iter().flat_map(|phase| {
        let begin = if several { format!("{};", phase.jobs.join("+").replace(';', ":")) } else { String::new() };
        phase.functions.stacks.iter().map(move |stack| {
            let value = (stack.cycles_per_io * PER).round();
            // Neither negative nor beyond what fits, which a number of a damaged record may be.
            let value = if value.is_finite() { value.clamp(0.0, 1e18) } else { 0.0 };
            format!("{begin}{} {value:.0}\n", stack.calls.replace(['\n', '\r'], " "))
        })
    });
    let lines: String = stacks.collect();
    (!lines.is_empty()).then_some(lines)
}
