//! Flame graphs: width is what a chain of calls costs.

use crate::document::FlameGraph;
use inferno::flamegraph::{self, Options};

/// inferno counts in whole numbers.
const PER: f64 = 1000.0;

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
