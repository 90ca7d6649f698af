//! Chains of calls as flame graphs: width is instructions per I/O, colour the change against the baseline.

use super::words;
use crate::document::{self, Calls};
use crate::flame_graph::svg;
use model::guest::GuestFinding;
use model::guest::finding::PointFinding;
use std::collections::BTreeMap;

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
    let calls = lines.into_iter().map(|(calls, (before, after))| Calls {
        calls: calls.to_owned(),
        cost: after,
        before: baseline.map(|_| before),
    });
    let graph = document::FlameGraph {
        title: words::point(finding, point),
        subtitle: baseline.map(|baseline| format!("red: more instructions than {}, blue: fewer", baseline.arm)),
        what: "instructions".to_owned(),
        calls: calls.collect(),
    };
    let text = svg(&graph)?;
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '_' };
    let arm: String = point.arm.chars().map(plain).collect();
    Some(FlameGraph { name: format!("flame-{}-{arm}.svg", number + 1), text })
}
