//! Renders a [`CompareFinding`] as a document.
//!
//! First the answer in words and at a glance, then the tables of changes, the curves of a sweep, derived results, and
//! the evidence. `contents` defines what is shown in which order.

mod answer;
mod charts;
mod conditions;
mod contents;
mod environment;
mod explained;
mod probes;
mod published;
mod section;
mod stored;
mod tables;
mod workload;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use crate::compare::CompareFinding;
use crate::compare::finding::{CellFinding, MetricFinding};
use crate::pages::change::Change;
use crate::pages::explained::FEW;
use crate::pages::{provenance, words};
use model::experiment::Metric;
use model::stats::Estimate;
use report::document::{Audience, Block, Body, Document, Fact, Fold, Note, Section};
use report::number::bare_percent;

crate::format::shown!(CompareFinding, document);

impl From<&MetricFinding> for Change {
    fn from(&MetricFinding { change, low, high, .. }: &MetricFinding) -> Self {
        change.map(|value| Estimate { value, low, high }).into()
    }
}

/// The document of a comparison.
pub fn document(finding: &CompareFinding) -> Document {
    let mut sections = vec![changes(finding)];
    sections.push(Section::on_page("Where the change is", explained::of_comparison(finding)));
    sections.push(along(finding));
    sections.push(Section::new("", probes::of_comparison(finding)).in_full());
    sections.extend(section::sections(finding));
    sections.push(of_cells(finding, "Latency, percentile by percentile", charts::shift));
    sections.push(of_cells(finding, "Every slice over time", |finding, cell| {
        vec![Block::new("", Body::Charts(charts::slices(finding, cell)))]
    }));
    Document {
        kind: "iotoll compare".to_owned(),
        workload: workload::of_comparison(finding),
        headline: answer::answer(finding),
        subjects: finding.arms.iter().map(|arm| Fact::new(&arm.name, &arm.what)).collect(),
        sections,
        provenance: [
            environment::environment(finding),
            environment::method(finding),
            vec![provenance::made_by(&finding.head)],
        ]
        .concat(),
        ..Document::of(&finding.head)
    }
}

/// Whether a metric is read first: what the answer is about, cost, rate and latency.
fn is_first(metric: Metric, targets: &[Metric]) -> bool {
    let usual = [Metric::CyclesPerIo, Metric::Iops, Metric::LatencyP50, Metric::LatencyP99];
    targets.contains(&metric) || usual.contains(&metric)
}

/// The tables of all arms. In a sweep, metrics that are not targets are folded.
fn changes(finding: &CompareFinding) -> Section {
    let targets = &finding.targets;
    let several = contents::candidates(finding).len() > 1;
    let mut blocks = Vec::new();
    let mut said: Vec<Note> = Vec::new();
    for arm in contents::candidates(finding) {
        // What holds for several arms is said once.
        let notes: Vec<Note> =
            tables::notes(finding, arm, targets).into_iter().filter(|note| !said.contains(note)).collect();
        said.extend(notes.iter().cloned());
        let notes = Block::new("", Body::Notes).with(notes);
        if contents::is_sweep(finding) {
            let block = |metric: &Metric| {
                let noun = words::of(*metric).noun;
                let title = if several { format!("{arm}, {noun}") } else { noun.to_owned() };
                Block::new(title, Body::Table(tables::by_cell(finding, arm, *metric)))
            };
            blocks.extend(targets.iter().map(block));
            blocks.push(notes);
            let others: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| !targets.contains(metric)).collect();
            let fold = Fold { summary: "Other metrics".to_owned(), open: false };
            blocks.extend(
                others.iter().map(block).map(|block| Block { fold: Some(fold.clone()), ..block.of(Audience::PAGE) }),
            );
        } else {
            let title = if several { arm } else { "" };
            let block = |table| Block::new(title, Body::Table(table));
            blocks.push(block(tables::by_metric(finding, arm, None)).in_full());
            let first: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| is_first(*metric, targets)).collect();
            blocks.push(block(tables::by_metric(finding, arm, Some(&first))).of(Audience::GLANCE));
            blocks.push(notes);
        }
    }
    if !blocks.iter().all(Block::is_empty) {
        let legend = format!(
            "Lines are intervals of the change; the shaded band is the margin, ±{}.",
            bare_percent(finding.rules.margin)
        );
        let legend = vec![Note::remark(legend)];
        blocks.push(Block::new("", Body::Notes).with(legend).of(Audience::PAGE));
    }
    Section::on_page("Changes", blocks)
}

/// The curves, and a legend for the vertical lines.
fn along(finding: &CompareFinding) -> Section {
    let charts = charts::curves(finding);
    let crossing = !charts.is_empty() && finding.sweep.crossovers.iter().any(|crossover| crossover.value.is_some());
    let text = "A dashed vertical line marks where the arms cross; the shaded range is its interval.";
    let notes = crossing.then(|| Note::remark(text)).into_iter().collect();
    Section::on_page("Along the sweep", vec![Block::new("", Body::Charts(charts)).with(notes).of(Audience::PAGE)])
}

/// A chart for each comparison on a page: expanded if they are few, otherwise folded.
fn of_cells(finding: &CompareFinding, title: &str, blocks: fn(&CompareFinding, &CellFinding) -> Vec<Block>) -> Section {
    let one = finding.cells.len() == 1;
    let of_cell = |cell: &CellFinding| {
        let fold = Fold { summary: contents::place(finding, cell), open: finding.cells.len() <= FEW };
        let fold = (!one).then_some(fold);
        let blocks = blocks(finding, cell).into_iter();
        blocks.map(move |block| Block { fold: fold.clone(), ..block.of(Audience::PAGE) }).collect::<Vec<_>>()
    };
    Section::on_page(title, finding.cells.iter().flat_map(of_cell).collect())
}
