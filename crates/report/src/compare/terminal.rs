//! A comparison on a terminal: the answer in words, the tables of changes, then why to believe them.

mod strip;

use super::answer::{Sentence, answer, outcome};
use super::changes::{Changes, Mark, tables};
use super::section::{Fact, sections};
use super::{contents, environment, layout, notes, words};
use crate::ink::Ink;
use crate::page::{Page, Tone};
use crate::table::{Cell, Column, Table};
use model::comparison::CompareFinding;
use strip::Scale;

/// Width of the labels of environment and method.
const LABEL: usize = 13;
/// An arm's name at the head of a column.
const WIDEST_ARM: usize = 14;
/// Narrower pages have no room for drawn intervals.
const DRAWN_FROM: usize = 100;

/// The comparison, no line longer than `columns` (or [`crate::page::LEAST_COLUMNS`]).
pub fn terminal(finding: &CompareFinding, ink: Ink, columns: usize) -> String {
    let page = Page::terminal(ink, columns);
    let mut parts = vec![head(page, finding), arms(page, finding)];
    parts.extend(comparisons(page, finding));
    parts.extend(sections(finding).iter().map(|section| layout::section(page, "  ", section)));
    parts.push(facts(page, &environment::environment(finding)));
    parts.push(facts(page, &environment::method(finding)));
    parts.push(crate::terminal::warnings(page, &finding.warnings));
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn head(page: Page, finding: &CompareFinding) -> String {
    let outcome = outcome(&finding.outcome).map(|(tone, text)| page.wrap_toned(tone, "", &text));
    let answer = answer(finding);
    let answer = answer.iter().map(|sentence| self::sentence(page, sentence));
    outcome.into_iter().chain(answer).collect::<Vec<_>>().join("\n")
}

/// The sentence stands out, and its verdict has a colour.
fn sentence(page: Page, sentence: &Sentence) -> String {
    let (lines, word) = (page.wrap("", &sentence.whole()), sentence.verdict.as_ref());
    let strong =
        |text: &str| text.split('\n').map(|line| page.paint(Tone::Strong, line)).collect::<Vec<_>>().join("\n");
    // A word that a line break has parted stays without its colour.
    let judged = word.and_then(|(tone, word)| {
        let word = page.spell(&word.replace('\u{a0}', " "));
        Some((lines.strip_suffix(word.as_str())?, page.paint(*tone, &word)))
    });
    match judged {
        Some((text, word)) => strong(text) + &word,
        None => strong(&lines),
    }
}

/// What the arms are. Nothing where the answer has said it already.
fn arms(page: Page, finding: &CompareFinding) -> String {
    let rows: Vec<Fact> =
        finding.arms.iter().map(|arm| Fact { label: arm.name.clone(), text: arm.what.clone() }).collect();
    let mut lines = vec![page.wrap_toned(Tone::Faint, "", &finding.title), layout::labelled(page, "", &rows)];
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

fn comparisons(page: Page, finding: &CompareFinding) -> Vec<String> {
    let (candidates, metrics) = (contents::candidates(finding), contents::targets(finding));
    let mut parts = Vec::new();
    for arm in &candidates {
        let mut block: Vec<String> =
            tables(finding, arm, &metrics).iter().map(|table| changes(page, finding, table)).collect();
        let notes = notes::notes(finding, arm, &metrics);
        let notes: Vec<String> = notes.iter().map(|note| page.wrap_toned(note.tone, "  ", &note.text)).collect();
        block.push(notes.join("\n"));
        block.retain(|part| !part.is_empty());
        parts.extend(block);
    }
    parts
}

/// One table of changes.
fn changes(page: Page, finding: &CompareFinding, table: &Changes) -> String {
    let range = (page.columns() >= DRAWN_FROM).then(|| table.range(finding.rules.margin)).flatten();
    let scale = range.map(|range| Scale::new(range, finding.rules.margin));
    let mut columns: Vec<Column> = table.heads.iter().map(Column::text).collect();
    columns.extend(table.arms.iter().map(|arm| Column::number(page.cut(&page.spell(arm), WIDEST_ARM)).spare(1)));
    columns.extend([Column::number("change"), Column::text("95 %"), Column::text("verdict")]);
    columns.extend(scale.as_ref().map(|scale| Column::text(scale.head()).spare(0)));
    let mut rows = Table::new(columns);
    for line in &table.lines {
        if line.opens_group {
            rows.gap();
        }
        let (word, tone) = match line.mark {
            Mark::Verdict(verdict) => (words::verdict(verdict), words::tone(verdict)),
            Mark::Typical => ("shape changed", Tone::Notice),
        };
        let mut cells: Vec<Cell> = line.labels.iter().map(Cell::from).collect();
        cells.extend([Cell::from(&line.baseline), Cell::from(&line.candidate)]);
        cells.extend([Cell::new(tone, line.change.percent()), Cell::from(line.change.interval())]);
        cells.push(Cell::new(tone, word));
        cells.extend(scale.as_ref().map(|scale| Cell::new(tone, scale.draw(line.change))));
        rows.row(cells);
    }
    let several = contents::candidates(finding).len() > 1;
    let arm = table.arms.last().filter(|_| several).map(|arm| format!("{arm}, "));
    let title = match table.metric {
        Some(metric) => arm.unwrap_or_default() + words::of(metric).noun,
        None => arm.map(|arm| arm.trim_end_matches(", ").to_owned()).unwrap_or_default(),
    };
    let mut lines = vec![page.wrap_toned(Tone::Strong, "", &title), rows.render(page)];
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

fn facts(page: Page, facts: &[Fact]) -> String {
    let lines = facts.iter().map(|fact| page.labelled(Tone::Strong, &fact.label, LABEL, &fact.text));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
