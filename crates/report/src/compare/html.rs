//! A comparison as one HTML file that needs nothing else: no network, no script, no font.
//!
//! From the top down and to be left at any point: the answer, the numbers, the curves, the machine. Light, dark and
//! printed pages come from one style sheet; every interval is drawn and written.

mod axis;
mod chart;
mod curves;
mod markup;
mod shift;
mod svg;
mod table;
mod tiles;
mod time;

use super::answer::{Sentence, answer, outcome};
use super::changes::tables;
use super::section::{Body, sections};
use super::{contents, environment, notes, words};
use crate::page::command;
use markup::{element, escape, facts, folded, part};
use model::comparison::CompareFinding;
use model::comparison::finding::CellFinding;
use model::experiment::Metric;
use svg::Paint;
use table::tone_class;

/// Comparisons that are shown without being asked for.
const FEW: usize = 3;

const STYLE: &str = include_str!("html/style.css");

/// The file.
pub fn html(finding: &CompareFinding) -> String {
    let parts = [
        head(finding),
        warnings(finding),
        tiles::tiles(finding),
        part("Changes", &comparisons(finding)),
        part("Along the sweep", &with_legend(finding, &along(finding))),
        below(finding),
        part("Latency, percentile by percentile", &of_cells(finding, shift::shift)),
        part("Every slice over time", &with_legend(finding, &of_cells(finding, time::slices))),
        part("How it was measured", &provenance(finding)),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
        escape(&title(finding)),
        parts.concat(),
    )
}

fn title(finding: &CompareFinding) -> String {
    if finding.title.is_empty() { "iotoll compare".to_owned() } else { format!("{} - iotoll compare", finding.title) }
}

fn head(finding: &CompareFinding) -> String {
    let mut about = vec!["iotoll compare".to_owned(), finding.title.clone()];
    about.extend(environment::began(finding));
    about.retain(|part| !part.is_empty());
    let outcome = outcome(&finding.outcome);
    let outcome = outcome.map(|(tone, text)| element("p", &format!("outcome {}", tone_class(tone)), &escape(&text)));
    let mut lines = answer(finding).into_iter();
    let detail = |sentence: &Sentence| sentence.detail.as_ref().map(|detail| element("p", "answer", &escape(detail)));
    let first = lines.next();
    let first = first.map(|first| element("h1", "", &sentence(&first)) + &detail(&first).unwrap_or_default());
    let first = first.unwrap_or_default();
    let others = lines.map(|line| {
        let detail = line.detail.as_ref().map(|detail| format!("; {}", escape(detail))).unwrap_or_default();
        element("p", "answer", &(sentence(&line) + &detail)) + "\n"
    });
    let others: String = others.collect();
    let swatch = |index: usize| format!("<i class=\"swatch {}\"></i>", Paint::arm_class(index));
    let arms = finding.arms.iter().enumerate();
    let arms = arms.map(|(index, arm)| {
        format!("<li>{}<b>{}</b> <code>{}</code></li>\n", swatch(index), escape(&arm.name), escape(&arm.what))
    });
    let arms: String = arms.collect();
    let arms = if arms.is_empty() { arms } else { element("ul", "arms", &arms) };
    let (about, outcome) = (escape(&about.join(" · ")), outcome.unwrap_or_default());
    format!("<header>\n<p class=\"about\">{about}</p>\n{outcome}{first}\n{others}{arms}</header>\n")
}

/// The text, and its verdict on a coloured ground.
fn sentence(sentence: &Sentence) -> String {
    let text = escape(&sentence.text);
    match &sentence.verdict {
        Some((tone, word)) => format!("{text} {}", table::pill(tone_class(*tone), word)),
        None => text,
    }
}

fn warnings(finding: &CompareFinding) -> String {
    let lines: String =
        finding.warnings.iter().map(|warning| format!("<li>{}</li>\n", escape(&warning.message))).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("<aside>\n<h2>To be careful with</h2>\n<ul>\n{lines}</ul>\n</aside>\n")
    }
}

/// The tables of all arms. Of a sweep, the metrics that it was not made for are folded away.
fn comparisons(finding: &CompareFinding) -> String {
    let margin = finding.rules.margin;
    let targets = contents::targets(finding);
    let several = contents::candidates(finding).len() > 1;
    let mut parts = String::new();
    for arm in contents::candidates(finding) {
        let tables_of = |metrics: &[Metric]| {
            let tables = tables(finding, arm, metrics);
            let titled = tables.iter().map(|table| {
                let noun = table.metric.map(|metric| words::of(metric).noun);
                let title = [several.then_some(arm), noun].into_iter().flatten().collect::<Vec<_>>().join(": ");
                table::changes(&escape(&title), table, margin)
            });
            titled.collect::<String>()
        };
        parts += &tables_of(&targets);
        let lines = notes::notes(finding, arm, &targets).into_iter();
        let lines = lines.map(|note| format!("<li class=\"{}\">{}</li>\n", tone_class(note.tone), escape(&note.text)));
        let lines: String = lines.collect();
        if !lines.is_empty() {
            parts += &element("ul", "notes", &lines);
        }
        let others: Vec<Metric> = Metric::ALL.into_iter().filter(|metric| !targets.contains(metric)).collect();
        if contents::is_sweep(finding) {
            parts += &folded("The other metrics", &tables_of(&others), false);
        }
    }
    if !parts.is_empty() {
        let margin = super::change::bare(margin);
        parts += &format!(
            "<p class=\"legend\">A line is the 95 % interval of the change; the shaded band is ±{}, within which a change \
             is of no interest.</p>\n",
            escape(&margin)
        );
    }
    parts
}

/// The curves, and what the upright lines in them are.
fn along(finding: &CompareFinding) -> String {
    let curves = curves::curves(finding);
    if curves.is_empty() || finding.crossovers.iter().all(|crossover| crossover.value.is_none()) {
        return curves;
    }
    curves
        + "<p class=\"note\">A dashed upright line is where the arms cross, in the shaded stretch of its interval.</p>\n"
}

/// Charts under the names of the arms in their colours.
fn with_legend(finding: &CompareFinding, charts: &str) -> String {
    if charts.is_empty() {
        return String::new();
    }
    let arms = finding.arms.iter().enumerate().map(|(index, arm)| {
        format!("<span><i class=\"swatch {}\"></i>{}</span>", Paint::arm_class(index), escape(&arm.name))
    });
    format!("<p class=\"legend\">{}</p>\n{charts}", arms.collect::<String>())
}

/// Limits, noise, crossovers, cost by size, published numbers.
fn below(finding: &CompareFinding) -> String {
    let sections = sections(finding).into_iter().map(|section| {
        let body = match &section.body {
            Body::Grid(grid) => table::grid(grid),
            Body::Facts(lines) => facts(lines.iter().map(|fact| (fact.label.as_str(), fact.text.as_str()))),
        };
        let notes: String = section.notes.iter().map(|note| element("p", "note", &escape(note))).collect();
        part(&section.title, &(body + &notes))
    });
    sections.collect()
}

/// Something for each comparison: shown, where there are few, and folded away, where they are many.
fn of_cells(finding: &CompareFinding, show: fn(&CompareFinding, &CellFinding) -> String) -> String {
    let one = finding.cells.len() == 1;
    let several = contents::candidates(finding).len() > 1;
    let shown = finding.cells.iter().map(|cell| {
        let shown = show(finding, cell);
        if one {
            return shown;
        }
        let point = contents::point(finding, &cell.cell);
        let name = [several.then_some(cell.arm.as_str()), Some(point.as_str())];
        let name: Vec<&str> = name.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        folded(&name.join(", "), &shown, finding.cells.len() <= FEW)
    });
    shown.collect()
}

fn provenance(finding: &CompareFinding) -> String {
    let lines = [environment::environment(finding), environment::method(finding)].concat();
    let mut text = facts(lines.iter().map(|fact| (fact.label.as_str(), fact.text.as_str())));
    if !finding.command_line.is_empty() {
        text += &element("pre", "", &escape(&command(&finding.command_line)));
    }
    text
}

#[cfg(test)]
pub(super) mod tests;
