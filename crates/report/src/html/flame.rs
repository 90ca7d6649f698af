//! A flame graph as a picture of its own inside the page: its script and its names of elements are not the page's.

use super::markup::{element, escape};
use crate::document::FlameGraph;
use crate::flame_graph::svg;

/// An addition to the content security policy, which such a picture inherits. Everything in it is of iotoll or inferno, or escaped.
pub const POLICY: &str = "; frame-src data:; script-src 'unsafe-inline'";

pub fn figure(graph: &FlameGraph) -> String {
    let Some(svg) = svg(graph) else { return String::new() };
    // inferno leaves out calls that are too narrow to be seen, so only it knows the height.
    let height = svg.split_once("height=\"").and_then(|(_, rest)| rest.split('"').next()?.parse::<f64>().ok());
    let frame = format!(
        "<iframe class=\"flame\" title=\"{}\" style=\"height:{}px\" src=\"data:image/svg+xml,{}\"></iframe>",
        escape(&graph.title),
        height.unwrap_or(600.0),
        in_address(&svg)
    );
    element("div", "flame", &frame) + "\n"
}

/// Text as a part of an address: what ends an attribute or begins a fragment is written in hexadecimal digits.
fn in_address(text: &str) -> String {
    let mut address = String::with_capacity(text.len() * 5 / 4);
    for byte in text.bytes() {
        match byte {
            b'%' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'&' | b'\\' | 0..=b' ' | 127.. => {
                address += &format!("%{byte:02X}");
            }
            _ => address.push(char::from(byte)),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Calls;

    fn graph(calls: &str) -> FlameGraph {
        let calls = vec![Calls { calls: calls.to_owned(), cost: 5.0, before: None }];
        FlameGraph { title: "<b>".to_owned(), subtitle: None, what: "cycles".to_owned(), calls }
    }

    #[test]
    fn names_cannot_leave_the_picture() {
        let drawn = figure(&graph("a;\"><script>x</script>"));
        assert!(drawn.contains("title=\"&lt;b&gt;\""), "{drawn}");
        assert!(!drawn.contains("<script") && !drawn.contains("\"><script"), "{drawn}");
        assert_eq!(drawn.matches('"').count(), 10, "{drawn}");
        assert_eq!(in_address("a b<'\u{e9}#"), "a%20b%3C%27%C3%A9%23");
    }

    #[test]
    fn without_calls_nothing_is_drawn() {
        assert_eq!(figure(&FlameGraph::default()), "");
    }
}
