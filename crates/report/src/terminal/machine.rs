//! What the machine is, what it did by itself, and what a cycle is on it.

use crate::page::{Page, Tone};
use crate::provenance;
use model::finding::RunFinding;

/// Width of the labels.
const LABEL: usize = 13;

/// The background and the machine.
pub fn section(page: Page, finding: &RunFinding) -> String {
    let mut lines = vec![
        page.labelled(Tone::Strong, "Background", LABEL, &provenance::background(&finding.background)),
        page.labelled(Tone::Strong, "Machine", LABEL, &provenance::machine(&finding.host)),
        page.labelled(Tone::Strong, "Cycles", LABEL, &provenance::cycles(finding)),
    ];
    lines.extend(provenance::placement(finding).map(|text| page.labelled(Tone::Strong, "Placement", LABEL, &text)));
    lines.join("\n")
}
