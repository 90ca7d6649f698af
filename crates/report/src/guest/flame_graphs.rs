//! Chains of calls as flame graphs: width is instructions per I/O, colour the change against the baseline.

use super::words;
use crate::document::{Calls, FlameGraph};
use model::guest::GuestFinding;
use model::guest::finding::PointFinding;
use std::collections::BTreeMap;

/// A flame graph of a point whose calls were followed.
pub(super) fn of(finding: &GuestFinding, point: &PointFinding) -> Option<FlameGraph> {
    if point.chains.is_empty() {
        return None;
    }
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
    Some(FlameGraph {
        title: words::point(finding, point),
        subtitle: baseline.map(|baseline| format!("red: more instructions than {}, blue: fewer", baseline.arm)),
        what: "instructions".to_owned(),
        calls: calls.collect(),
    })
}
