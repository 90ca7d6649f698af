//! The cost sheet: a [`RunFinding`] on a terminal, to be read from the top down and left at any point.
//!
//! First what an I/O cost, then where that went, then why to believe it: the meters beside each
//! other, the machine's background, the latencies, the caveats. Enters a finding, leaves text; every
//! number in it is in the finding already.

mod headline;
mod jobs;
mod latency;
mod machine;
mod meters;
mod spent;

use crate::ink::Ink;
use crate::page::{Page, Tone};
use crate::probes;
use model::finding::RunFinding;
use model::record::Outcome;
use model::warning::Warning;

/// The cost sheet, no line longer than `columns` (or [`crate::page::LEAST_COLUMNS`]).
pub fn terminal(finding: &RunFinding, ink: Ink, columns: usize) -> String {
    let page = Page::terminal(ink, columns);
    let mut sections = vec![title(page, finding)];
    for (index, phase) in finding.phases.iter().enumerate() {
        sections.push(headline::section(page, finding, index, phase));
        sections.push(spent::section(page, phase));
        sections.push(meters::section(page, finding, index, phase));
        sections.push(probes::section(page, phase));
    }
    sections.push(jobs::section(page, &finding.jobs));
    sections.push(latency::section(page, &finding.jobs));
    sections.push(machine::section(page, finding));
    sections.push(warnings(page, &finding.warnings));
    sections.retain(|section| !section.is_empty());
    sections.join("\n\n") + "\n"
}

fn title(page: Page, finding: &RunFinding) -> String {
    let mut lines = vec![page.wrap_toned(Tone::Strong, "", &finding.title)];
    match &finding.outcome {
        Outcome::Completed => {}
        Outcome::Interrupted => {
            lines.push(page.wrap_toned(Tone::Notice, "", "Interrupted: what follows was measured until then."));
        }
        Outcome::Failed(reason) => lines.push(page.wrap_toned(Tone::Bad, "Failed: ", reason)),
    }
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

/// The caveats, a paragraph each.
pub(crate) fn warnings(page: Page, warnings: &[Warning]) -> String {
    let lines = warnings.iter().map(|warning| page.labelled(Tone::Notice, "!", 3, &warning.message));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
