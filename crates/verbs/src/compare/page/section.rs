//! The sections below the tables of changes: limits, the noise floor, crossovers, cost by size.

use super::{published, stored};
use crate::compare::CompareFinding;
use crate::compare::finding::{CrossoverFinding, TimeNeeded};
use crate::pages::{limits, words};
use model::elided_list::{elided_list, grouped};
use model::experiment::Metric;
use model::stats::Estimate;
use report::document::{Block, Body, Cell, Column, Fact, Section, Table, Tone, tied};
use report::number::{self, COUNT, bare_percent};
use std::collections::BTreeMap;

/// Every section that has contents.
pub fn sections(finding: &CompareFinding) -> Vec<Section> {
    let all = [
        stored::of_comparison(finding),
        limits::block(&finding.head.limits, "cell"),
        noise_floor(finding).map(Block::in_full),
        crossovers(finding),
        lines(finding),
        scalability(finding),
        published::of_comparison(finding).map(Block::in_full),
    ];
    all.into_iter().flatten().map(|block| Section::new("", vec![block])).collect()
}

/// A table with its title in the header of its first column.
fn grid(title: &str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Option<Block> {
    let mut table = Table::new(columns);
    rows.into_iter().for_each(|row| table.row(row));
    (!table.rows.is_empty()).then(|| Block::new(title, Body::Table(table)))
}

fn facts(title: &str, facts: Vec<Fact>) -> Option<Block> {
    (!facts.is_empty()).then(|| Block::new(title, Body::Facts(facts)))
}

/// The resolution of this machine.
fn noise_floor(finding: &CompareFinding) -> Option<Block> {
    let floor = finding.noise_floor.as_ref()?;
    let known: Vec<_> =
        Metric::ALL.into_iter().filter_map(|metric| Some((metric, floor.metrics.get(metric.name())?))).collect();
    let (_, first) = known.first()?;
    let mut heads = vec![Column::rows("metric"), Column::number("resolution")];
    let head = |needed: &TimeNeeded| Column::number(format!("±{} in", bare_percent(needed.half_width)));
    heads.extend(first.seconds_needed.iter().map(head));
    heads.push(Column::verdict("false difference"));
    let rows = known.iter().map(|(metric, noise)| {
        let mut row = vec![Cell::from(words::of(*metric).head)];
        row.push(Cell::from(format!("±{}", number::percent(noise.half_width))));
        row.extend(noise.seconds_needed.iter().map(|needed| Cell::from(number::lasting(needed.seconds))));
        let (text, tone) = if noise.false_difference { ("yes", Tone::Bad) } else { ("no", Tone::Own) };
        row.push(Cell::new(tone, text));
        row
    });
    grid("Noise floor", heads, rows.collect())
}

/// Where the candidate becomes better than the baseline.
fn crossovers(finding: &CompareFinding) -> Option<Block> {
    let several = super::candidates(finding).len() > 1;
    let metric = |crossover: &CrossoverFinding| {
        Metric::parse(&crossover.metric).map_or(crossover.metric.clone(), |metric| words::of(metric).head.to_owned())
    };
    let found = finding.sweep.crossovers.iter().map(|crossover| {
        let arm = if several { format!("{}: ", crossover.arm) } else { String::new() };
        let label = metric(crossover) + &at(finding, &crossover.at);
        // Without a crossover, what is the same at several places is said once.
        let key = if crossover.value.is_some() { label.clone() } else { metric(crossover) };
        let text = format!("{arm}{}{}", crossing(finding, crossover), crossover.words);
        ((key, text), (label, super::point(finding, &crossover.at)))
    });
    let found = grouped(found).into_iter().map(|((metric, text), places)| match places.as_slice() {
        [(label, _)] => Fact::new(label, text),
        several => {
            let places: Vec<String> = several.iter().map(|(_, point)| point.clone()).collect();
            Fact::new(metric, format!("{text} (for {})", elided_list(&places, ", ")))
        }
    });
    let found = found.collect();
    facts("Crossover points", found)
}

fn at(finding: &CompareFinding, at: &BTreeMap<String, String>) -> String {
    let point = super::point(finding, at);
    if point.is_empty() { point } else { format!(" at {point}") }
}

/// The axis value of the crossover with its interval, which may extend beyond the sweep.
fn crossing(finding: &CompareFinding, crossover: &CrossoverFinding) -> String {
    let Some(value) = crossover.value else { return String::new() };
    let text = |value: f64| super::axis_value(finding, &crossover.axis, value);
    let low = crossover.low.map_or_else(|| "below the sweep".to_owned(), text);
    let high = crossover.high.map_or_else(|| "above the sweep".to_owned(), text);
    format!("at {} = {}; ", crossover.axis, tied(&format!("{} [{low}, {high}]", text(value))))
}

/// A value with its interval.
fn estimate(estimate: &Estimate) -> String {
    let scale = number::Scale::of(COUNT, estimate.value);
    let ends = estimate.ends().map(|(low, high)| format!(" {}", scale.interval(low, high)));
    let gap = if scale.unit.is_empty() { "" } else { " " };
    tied(&format!("{}{gap}{}{}", scale.cell(estimate.value), scale.unit, ends.unwrap_or_default()))
}

/// rate(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)), in words and by its coefficients.
fn scalability(finding: &CompareFinding) -> Option<Block> {
    let found = finding.sweep.scalability.iter().map(|found| {
        let mut text = found.words.clone();
        if let (Some(alone), Some(contention), Some(coherency)) = (&found.alone, &found.contention, &found.coherency) {
            text += &format!(
                "; {} IOPS of one, contention {}, coherency {}; largest deviation {}",
                estimate(alone),
                estimate(contention),
                estimate(coherency),
                tied(&number::percent(found.misfit.unwrap_or(0.0))),
            );
        }
        if !found.oversubscribed.is_empty() {
            let numbers: Vec<String> = found.oversubscribed.iter().map(ToString::to_string).collect();
            text += &format!("; oversubscribed, not in a fit: {}", elided_list(&numbers, ", "));
        }
        Fact::new(format!("{}{}", found.arm, at(finding, &found.at)), text)
    });
    facts("Scalability", found.collect())
}

/// cost(b) = c0 + c1 × b.
fn lines(finding: &CompareFinding) -> Option<Block> {
    let found = finding.sweep.lines.iter().map(|line| {
        let text = format!(
            "{} cycles per I/O + {} cycles per byte; largest deviation {}",
            estimate(&line.per_io),
            estimate(&line.per_byte),
            tied(&number::percent(line.misfit)),
        );
        Fact::new(format!("{}{}", line.arm, at(finding, &line.at)), text)
    });
    facts("Cost by size", found.collect())
}
