//! Chains of calls as flame graphs: width is instructions per I/O, colour the change against the baseline.

use super::words;
use inferno::flamegraph::{self, Options};
use model::guest::GuestFinding;
use model::guest::finding::PointFinding;
use std::collections::BTreeMap;

/// inferno counts in whole numbers.
const PER: f64 = 1000.0;

/// A flame graph as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameGraph {
    /// `flame-2-debian_6.12.svg`.
    pub name: String,
    pub text: String,
}

/// A flame graph of each point whose calls were followed.
pub fn flame_graphs(finding: &GuestFinding) -> Vec<FlameGraph> {
    let with_chains = finding.points.iter().enumerate().filter(|(_, point)| !point.chains.is_empty());
    with_chains.filter_map(|(number, point)| flame_graph(finding, number, point)).collect()
}

fn flame_graph(finding: &GuestFinding, number: usize, point: &PointFinding) -> Option<FlameGraph> {
    let baseline = point.change.as_ref().and_then(|_| {
        let same = |other: &&PointFinding| {
            Some(&other.arm) == finding.arms.first()
                && words::row(finding, other) == words::row(finding, point)
                && !other.chains.is_empty()
        };
        finding.points.iter().find(same)
    });
    let mut lines: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for chain in baseline.iter().flat_map(|baseline| &baseline.chains) {
        lines.entry(&chain.calls).or_default().0 += chain.instructions_per_io;
    }
    for chain in &point.chains {
        lines.entry(&chain.calls).or_default().1 += chain.instructions_per_io;
    }
    let whole = |value: f64| format!("{:.0}", value * PER);
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(calls, (before, after))| match baseline {
            Some(_) => format!("{calls} {} {}", whole(before), whole(after)),
            None => format!("{calls} {}", whole(after)),
        })
        .collect();
    let mut options = Options::default();
    options.title = words::point(finding, point);
    options.subtitle = baseline.map(|baseline| format!("red: more instructions than {}, blue: fewer", baseline.arm));
    options.count_name = format!("instructions per {PER:.0} I/Os");
    options.deterministic = true;
    options.no_sort = false;
    let mut text = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut text).ok()?;
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '_' };
    let arm: String = point.arm.chars().map(plain).collect();
    Some(FlameGraph { name: format!("flame-{}-{arm}.svg", number + 1), text: String::from_utf8(text).ok()? })
}
