//! Renders a [`CompareFinding`] as a document.
//!
//! First the answer in words and at a glance, then the tables of changes, the curves of a sweep, derived results, and
//! the evidence.

mod charts;
mod conditions;
mod environment;
mod explained;
#[cfg(test)]
pub(crate) mod fixture;
mod probes;
mod published;
mod section;
mod stored;
mod tables;
#[cfg(test)]
mod tests;
mod workload;

use crate::compare::CompareFinding;
use crate::compare::finding::{CellFinding, MetricFinding, NoiseFloor};
use crate::pages::explained::FEW;
use crate::pages::provenance;
use crate::pages::words::{self, Change};
use model::elided_list::{distinct, grouped};
use model::experiment::{Axis, Metric};
use model::stats::{Estimate, Verdict};
use report::document::{Audience, Block, Body, Cell, Document, Fact, Fold, Note, Section, Sentence, Tone, tied};
use report::number::{self, BYTES, bare_percent, with_unit};
use std::collections::BTreeMap;

impl From<&MetricFinding> for Change {
    fn from(&MetricFinding { change, low, high, .. }: &MetricFinding) -> Self {
        change.map(|value| Estimate { value, low, high }).into()
    }
}

impl crate::Finding for CompareFinding {
    fn document(&self) -> Document {
        let mut sections = vec![changes(self)];
        sections.push(Section::on_page("Where the change is", explained::of_comparison(self)));
        sections.push(along(self));
        sections.push(Section::new("", probes::of_comparison(self)).in_full());
        sections.extend(section::sections(self));
        sections.push(of_cells(self, "Latency, percentile by percentile", charts::shift));
        sections.push(of_cells(self, "Every slice over time", |finding, cell| {
            vec![Block::new("", Body::Charts(charts::slices(finding, cell)))]
        }));
        Document {
            kind: "iotoll compare".to_owned(),
            workload: workload::of_comparison(self),
            headline: answer(self),
            subjects: self.arms.iter().map(|arm| Fact::new(&arm.name, &arm.what)).collect(),
            sections,
            provenance: [
                environment::environment(self),
                environment::method(self),
                vec![provenance::made_by(&self.head)],
            ]
            .concat(),
            ..Document::of(&self.head)
        }
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
    let several = candidates(finding).len() > 1;
    let mut blocks = Vec::new();
    let mut said: Vec<Note> = Vec::new();
    for arm in candidates(finding) {
        // What holds for several arms is said once.
        let notes: Vec<Note> =
            tables::notes(finding, arm, targets).into_iter().filter(|note| !said.contains(note)).collect();
        said.extend(notes.iter().cloned());
        let notes = Block::new("", Body::Notes).with(notes);
        if is_sweep(finding) {
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
        let fold = Fold { summary: place(finding, cell), open: finding.cells.len() <= FEW };
        let fold = (!one).then_some(fold);
        let blocks = blocks(finding, cell).into_iter();
        blocks.map(move |block| Block { fold: fold.clone(), ..block.of(Audience::PAGE) }).collect::<Vec<_>>()
    };
    Section::on_page(title, finding.cells.iter().flat_map(of_cell).collect())
}

/// Accounts or functions with a row on the one screen that is read first. Limits, which the user asked for, take the room of some.
pub(crate) fn rows(finding: &CompareFinding) -> usize {
    if finding.head.limits.is_empty() { 4 } else { 2 }
}

pub fn baseline(finding: &CompareFinding) -> &str {
    finding.arms.first().map_or("baseline", |arm| arm.name.as_str())
}

/// The other arms, in the order in which they were given.
pub fn candidates(finding: &CompareFinding) -> Vec<&str> {
    let declared = finding.arms.iter().skip(1).map(|arm| arm.name.as_str());
    distinct(declared.chain(finding.cells.iter().map(|cell| cell.arm.as_str())))
}

/// What distinguishes an arm.
pub fn what<'a>(finding: &'a CompareFinding, arm: &str) -> Option<&'a str> {
    finding.arms.iter().find(|other| other.name == arm).map(|arm| arm.what.as_str()).filter(|what| !what.is_empty())
}

pub fn cells<'a>(finding: &'a CompareFinding, arm: &str) -> Vec<&'a CellFinding> {
    finding.cells.iter().filter(|cell| cell.arm == arm).collect()
}

/// Whether there is a sweep.
pub fn is_sweep(finding: &CompareFinding) -> bool {
    !axes(finding).is_empty()
}

/// The names of the axes, in the order in which they were given.
pub fn axes(finding: &CompareFinding) -> Vec<&str> {
    let declared = finding.axes.iter().map(|axis| axis.name.as_str());
    distinct(declared.chain(finding.cells.iter().flat_map(|cell| cell.cell.keys().map(String::as_str))))
}

/// A point of the sweep: "rw=randread bs=4k".
pub fn point(finding: &CompareFinding, cell: &BTreeMap<String, String>) -> String {
    let values = axes(finding).into_iter().filter_map(|axis| Some(format!("{axis}={}", cell.get(axis)?)));
    values.collect::<Vec<_>>().join(" ")
}

/// The arm if there are several, and the point of the sweep: "candidate, bs=4k".
pub fn place(finding: &CompareFinding, cell: &CellFinding) -> String {
    let arm = if candidates(finding).len() > 1 { cell.arm.clone() } else { String::new() };
    let parts = [arm, point(finding, &cell.cell)].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// The values of the axes in a cell, as the names of a row.
pub fn names(axes: &[&str], cell: &BTreeMap<String, String>) -> Vec<Cell> {
    axes.iter().map(|axis| Cell::from(cell.get(*axis).cloned().unwrap_or_default())).collect()
}

/// Metrics of a cell that have a value, in the order of [`Metric::ALL`].
pub fn measured(cell: &CellFinding) -> Vec<(Metric, &MetricFinding)> {
    let found = Metric::ALL.into_iter().filter_map(|metric| Some((metric, cell.metrics.get(metric.name())?)));
    found.filter(|(_, found)| has_value(found)).collect()
}

pub fn metric(cell: &CellFinding, metric: Metric) -> Option<&MetricFinding> {
    cell.metrics.get(metric.name())
}

/// Whether it has a value to show.
pub fn has_value(metric: &MetricFinding) -> bool {
    metric.baseline.is_some() || metric.candidate.is_some() || metric.change.is_some()
}

/// Why metrics have no value, grouped by reason: "p99 latency, p99.9 latency: too few I/Os".
pub fn reasons(cells: &[&CellFinding]) -> Vec<String> {
    let lacking = Metric::ALL.into_iter().filter_map(|metric| {
        let of_metric = || cells.iter().filter_map(|cell| self::metric(cell, metric));
        let reason = of_metric().find_map(|metric| metric.reason.as_deref()).filter(|_| !of_metric().any(has_value));
        Some((reason?, words::of(metric).head))
    });
    let told = |(reason, heads): (_, Vec<_>)| format!("{}: {}", heads.join(", "), conditions::reason(reason));
    grouped(lacking).into_iter().map(told).collect()
}

/// Options whose values are bytes, even without a suffix.
const SIZES: [&str; 4] = ["bs", "blocksize", "size", "path_max_payload"];

/// Whether the values of an axis are sizes, where `4k` is 4 KiB.
fn is_size(axis: &Axis) -> bool {
    let suffixed = |value: &String| value.ends_with(|letter: char| letter.is_ascii_alphabetic());
    SIZES.contains(&axis.name.as_str()) || axis.values.iter().any(suffixed)
}

/// A value of the numeric axis `name`, with its unit.
pub fn axis_value(finding: &CompareFinding, name: &str, value: f64) -> String {
    match finding.axes.iter().find(|axis| axis.name == name) {
        Some(axis) if is_size(axis) => with_unit(BYTES, value),
        _ if value.fract() == 0.0 && value.abs() < 1e6 => format!("{value:.0}"),
        _ => report::number::significant(value),
    }
}

/// The axis of the curves: the first with ascending numeric values.
pub fn curve_axis(finding: &CompareFinding) -> Option<(&Axis, Vec<f64>)> {
    let numeric = finding.axes.iter().filter_map(|axis| Some((axis, axis.numbers()?)));
    numeric.into_iter().find(|(_, numbers)| numbers.len() > 1)
}

/// The index of an arm. An unknown arm gets the index after the baseline.
pub fn arm_index(finding: &CompareFinding, arm: &str) -> usize {
    finding.arms.iter().position(|other| other.name == arm).unwrap_or(1)
}

/// Maximum length of an arm's description in the answer.
const SHORT: usize = 48;

/// The answer for each arm.
pub fn answer(finding: &CompareFinding) -> Vec<Sentence> {
    if let Some(floor) = &finding.noise_floor {
        let mut lines = noise_floor(finding, floor);
        lines.extend(conditions::sentences(finding).into_iter().map(Sentence::plain));
        return lines;
    }
    let mut lines = Vec::new();
    for arm in candidates(finding) {
        let cells = cells(finding, arm);
        let subject = subject(finding, arm);
        match cells.as_slice() {
            [] => lines.push(Sentence::plain(format!("{subject} was not measured"))),
            [cell] if !is_sweep(finding) => lines.extend(of_cell(finding, &subject, cell)),
            cells => lines.extend(of_sweep(finding, &subject, cells)),
        }
    }
    if lines.is_empty() {
        lines.push(Sentence::plain("Nothing was compared"));
    }
    lines.extend(conditions::sentences(finding).into_iter().map(Sentence::plain));
    lines
}

/// The name of an arm, with its description if that is short.
fn subject(finding: &CompareFinding, arm: &str) -> String {
    match what(finding, arm).filter(|what| what.chars().count() <= SHORT) {
        Some(what) => format!("{arm} ({what})"),
        None => arm.to_owned(),
    }
}

fn of_cell(finding: &CompareFinding, subject: &str, cell: &CellFinding) -> Vec<Sentence> {
    let mut lines = Vec::new();
    for (index, metric) in finding.targets.iter().copied().enumerate() {
        // The first sentence describes the arm; later ones only name it.
        let subject = if index == 0 { subject } else { cell.arm.as_str() };
        let mut line = match self::metric(cell, metric) {
            Some(found) if has_value(found) => of_metric(finding, subject, metric, found),
            other => unmeasured(subject, metric, other),
        };
        // What holds for several is said once.
        let is_said = line.detail.is_some() && lines.iter().any(|earlier: &Sentence| earlier.detail == line.detail);
        line.detail = line.detail.filter(|_| !is_said);
        lines.push(line);
    }
    lines
}

fn unmeasured(subject: &str, metric: Metric, found: Option<&MetricFinding>) -> Sentence {
    let reason = found.and_then(|found| found.reason.as_deref()).unwrap_or("it was not measured");
    let text = format!("{subject}: {}", words::of(metric).noun);
    Sentence { detail: Some(conditions::reason(reason).to_owned()), ..Sentence::judged(text, Tone::Notice, "unknown") }
}

fn of_metric(finding: &CompareFinding, subject: &str, metric: Metric, found: &MetricFinding) -> Sentence {
    let (words, change) = (words::of(metric), Change::from(found));
    let margin = finding.rules.margin;
    let text = match found.verdict {
        Verdict::Better | Verdict::Worse | Verdict::BetterMaybeSmall | Verdict::WorseMaybeSmall => {
            decided(subject, metric, change)
        }
        Verdict::NoDifference => {
            format!("{subject}: {} {}, within ±{}", tied(&change.whole()), words.noun, tied(&bare_percent(margin)))
        }
        Verdict::Inconclusive => {
            let text = format!("{subject}: {} {}", tied(&change.whole()), words.noun);
            let time = found
                .seconds_to_decide
                .map(|seconds| format!("; {} of measuring in total would decide", tied(&number::lasting(seconds))));
            text + &time.unwrap_or_default()
        }
    };
    let unseen = finding.unseen.unseen_fraction.zip(finding.unseen.unseen_in_spells_fraction);
    let unseen = unseen.filter(|_| found.verdict == Verdict::NoDifference);
    // A state that no round was in is not in the interval.
    let detail = unseen.map(|(part, in_spells)| {
        format!(
            "{} rounds do not show a state that occurs in fewer than {} of them, or {} if it lasts for five at a time",
            finding.rounds,
            tied(&bare_percent(part)),
            tied(&bare_percent(in_spells))
        )
    });
    let verdict = tied(&words::verdict_in_full(found.verdict, margin));
    Sentence { detail, ..Sentence::judged(text, words::tone(found.verdict), verdict) }
}

/// "candidate costs 3.1 % [2.6, 3.7] more cycles per I/O". An interval on both sides of 0 has no direction.
fn decided(subject: &str, metric: Metric, change: Change) -> String {
    let words = words::of(metric);
    if change.ends().is_some_and(|(low, high)| low < 0.0 && high > 0.0) {
        return format!("{subject}: {} {}", tied(&change.whole()), words.noun);
    }
    let direction = words.direction(!change.0.is_some_and(|it| it.value < 0.0));
    format!("{subject} {} {} {direction}", words.verb, tied(&change.size()))
}

fn of_sweep(finding: &CompareFinding, subject: &str, cells: &[&CellFinding]) -> Vec<Sentence> {
    let mut lines = Vec::new();
    for (index, metric) in finding.targets.iter().copied().enumerate() {
        let subject = if index == 0 { subject } else { cells.first().map_or(subject, |cell| cell.arm.as_str()) };
        let found = || cells.iter().filter_map(|cell| Some((*cell, self::metric(cell, metric)?)));
        let known = || found().filter(|(_, found)| has_value(found));
        if known().next().is_none() {
            lines.push(unmeasured(subject, metric, found().map(|(_, found)| found).next()));
            continue;
        }
        let counts = words::VERDICTS.iter().filter_map(|verdict| {
            let count = known().filter(|(_, found)| found.verdict == *verdict).count();
            (count > 0).then(|| tied(&format!("{count} {}", words::verdict_in_full(*verdict, finding.rules.margin))))
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        let cells = if cells.len() == 1 { "1 cell".to_owned() } else { format!("{} cells", cells.len()) };
        let text = format!("{subject}, {} in {cells}: {counts}", words::of(metric).noun);
        lines.push(Sentence { detail: extreme(finding, known()), ..Sentence::plain(text) });
    }
    lines
}

/// The cell with the largest detected change.
fn extreme<'a>(
    finding: &CompareFinding,
    cells: impl Iterator<Item = (&'a CellFinding, &'a MetricFinding)>,
) -> Option<String> {
    let size = |metric: &MetricFinding| metric.change.map_or(0.0, f64::abs);
    let detected = cells.filter(|(_, metric)| metric.detected && metric.change.is_some());
    let (cell, metric) = detected.max_by(|(_, one), (_, other)| size(one).total_cmp(&size(other)))?;
    let point = point(finding, &cell.cell);
    Some(format!("largest at {}: {}", tied(&point), tied(&Change::from(metric).whole())))
}

/// What a comparison of the baseline with itself shows about the machine.
fn noise_floor(finding: &CompareFinding, floor: &NoiseFloor) -> Vec<Sentence> {
    let known = |metric: &Metric| floor.metrics.contains_key(metric.name());
    let mut shown: Vec<Metric> = finding.targets.iter().copied().filter(known).collect();
    if shown.is_empty() {
        shown = Metric::ALL.into_iter().filter(known).collect();
    }
    let told = shown.iter().filter_map(|metric| {
        let noise = floor.metrics.get(metric.name())?;
        Some(format!("{} in {}", tied(&format!("±{}", number::percent(noise.half_width))), words::of(*metric).noun))
    });
    let told = told.collect::<Vec<_>>();
    if told.is_empty() {
        return vec![Sentence::plain("The resolution of this machine is unknown")];
    }
    let seconds = tied(&number::seconds(finding.seconds));
    let different = Metric::ALL
        .into_iter()
        .filter(|metric| floor.metrics.get(metric.name()).is_some_and(|noise| noise.false_difference));
    let different = different.map(|metric| words::of(metric).head).collect::<Vec<_>>();
    let identical = if different.is_empty() {
        Sentence::plain("Identical arms were not reported as different")
    } else {
        let text = format!("Identical arms were reported as different in {}", different.join(", "));
        Sentence::judged(text, Tone::Bad, "false difference")
    };
    vec![Sentence::plain(format!("This machine resolves {} in {seconds}", told.join(" and "))), identical]
}
