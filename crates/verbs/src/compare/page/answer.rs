//! The answer in words, before any table.

use super::{conditions, contents};
use crate::compare::CompareFinding;
use crate::compare::finding::{CellFinding, MetricFinding, NoiseFloor};
use crate::pages::change::Change;
use crate::pages::words;
use model::experiment::Metric;
use model::stats::Verdict;
use report::document::{Sentence, Tone};
use report::number::{self, bare_percent};
use report::phrase::tied;

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
    for arm in contents::candidates(finding) {
        let cells = contents::cells(finding, arm);
        let subject = subject(finding, arm);
        match cells.as_slice() {
            [] => lines.push(Sentence::plain(format!("{subject} was not measured"))),
            [cell] if !contents::is_sweep(finding) => lines.extend(of_cell(finding, &subject, cell)),
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
    match contents::what(finding, arm).filter(|what| what.chars().count() <= SHORT) {
        Some(what) => format!("{arm} ({what})"),
        None => arm.to_owned(),
    }
}

fn of_cell(finding: &CompareFinding, subject: &str, cell: &CellFinding) -> Vec<Sentence> {
    let mut lines = Vec::new();
    for (index, metric) in finding.targets.iter().copied().enumerate() {
        // The first sentence describes the arm; later ones only name it.
        let subject = if index == 0 { subject } else { cell.arm.as_str() };
        let mut line = match contents::metric(cell, metric) {
            Some(found) if contents::has_value(found) => of_metric(finding, subject, metric, found),
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
        let found = || cells.iter().filter_map(|cell| Some((*cell, contents::metric(cell, metric)?)));
        let known = || found().filter(|(_, found)| contents::has_value(found));
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
    let point = contents::point(finding, &cell.cell);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::page::fixture;
    use report::html::html;

    #[test]
    fn every_metric_that_was_measured_is_on_the_page() {
        for (name, mut finding) in [("options", fixture::named("options")), ("sweep", fixture::named("sweep"))] {
            for metric in finding.cells.iter_mut().flat_map(|cell| cell.metrics.values_mut()) {
                metric.verdict = Verdict::NoDifference;
                metric.detected = false;
            }
            let page = html(&crate::compare::page::document(&finding));
            for metric in finding.cells.iter().flat_map(contents::measured).map(|(metric, _)| metric) {
                assert!(page.contains(words::of(metric).noun), "{name}: {}", metric.name());
            }
        }
    }
}
