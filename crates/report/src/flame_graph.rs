//! Flame graphs: width is what a chain of calls costs. As a picture, and as text for other programs.

use inferno::flamegraph::{self, Options};
use model::finding::RunFinding;

/// Both count in whole numbers.
const PER: f64 = 1000.0;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlameGraph {
    pub title: String,
    pub subtitle: Option<String>,
    /// What the cost counts: cycles, instructions. It is per I/O.
    pub what: String,
    pub calls: Vec<Calls>,
}

/// A chain of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// The outermost first, separated by semicolons.
    pub calls: String,
    /// Without what further calls from the innermost cost.
    pub cost: f64,
    /// What it cost in the baseline, for the colour.
    pub before: Option<f64>,
}

/// The graph as an SVG file that can be searched and zoomed without a network; `None` if nothing can be drawn.
pub fn svg(graph: &FlameGraph) -> Option<String> {
    let whole = |value: f64| format!("{:.0}", value * PER);
    let lines: Vec<String> = graph
        .calls
        .iter()
        .map(|call| match call.before {
            Some(before) => format!("{} {} {}", call.calls, whole(before), whole(call.cost)),
            None => format!("{} {}", call.calls, whole(call.cost)),
        })
        .collect();
    let mut options = Options::default();
    options.title = graph.title.clone();
    options.subtitle = graph.subtitle.clone();
    options.count_name = format!("{} per {PER:.0} I/Os", graph.what);
    options.deterministic = true;
    options.no_sort = false;
    // As wide as there is room.
    options.image_width = None;
    let mut text = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut text).ok()?;
    String::from_utf8(text).ok()
}

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
