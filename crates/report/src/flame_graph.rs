//! Flame graphs as text for other programs that draw them.

use model::finding::RunFinding;

/// Flame graphs count in whole numbers, so the cost is that of this many I/Os.
pub const PER: f64 = 1000.0;

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

/// A cost as flame graphs count. A number of a damaged record may be negative, or so large that the sum of all stacks does not fit.
pub(crate) fn whole(cycles_per_io: f64) -> u64 {
    (cycles_per_io * PER).round().clamp(0.0, 1e15) as u64
}
