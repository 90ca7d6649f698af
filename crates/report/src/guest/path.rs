//! Which path the I/O took: kernel counters, in as few lines as they allow.

use super::tables::{self, Row, rows};
use super::words;
use crate::document::{Audience, Block, Body, Cell, Column, Fact, Fold, Note, Table, Tone};
use crate::number::MISSING;
use model::guest::GuestFinding;
use model::guest::finding::PointFinding;
use std::collections::BTreeSet;

/// How the names of counters end that are the kernel's own times.
const TIME: &str = "_ms";
/// More rows of times are shown on a page only.
const FEW_TIMES: usize = 4;
/// With more arms, counters that vary are shown as matrices.
const FEW_ARMS: usize = 2;

/// A fact for each path. Of a sweep a matrix for each counter that varies.
pub(super) fn paths(finding: &GuestFinding) -> Vec<Block> {
    let rows = rows(finding);
    let facts = || Block::new("Path, by kernel counters", Body::Facts(facts(finding, &rows)));
    let points: Vec<&PointFinding> = finding.points.iter().filter(|point| !point.path_proof.is_empty()).collect();
    let Some(first) = points.first().filter(|_| finding.arms.len() > FEW_ARMS && one_stack(finding)) else {
        return vec![facts()];
    };
    let names = points.iter().flat_map(|point| point.path_proof.keys()).filter(|name| !name.ends_with(TIME));
    let names: BTreeSet<&String> = names.collect();
    let varies = |name: &str| points.iter().any(|point| value(point, name) != value(first, name));
    let (varying, same): (Vec<&String>, Vec<&String>) = names.into_iter().partition(|name| varies(name));
    let matrix = |name: &&String| {
        let cell = |point: Option<&PointFinding>| match point.and_then(|point| value(point, name)) {
            Some(0) => Cell::new(Tone::Faint, "0"),
            Some(value) => Cell::from(words::whole(value)),
            None => Cell::new(Tone::Faint, MISSING),
        };
        (format!("Path: {name} in {}", ios(first)), tables::matrix(finding, &rows, &cell))
    };
    let mut blocks = match varying.is_empty() {
        true => Vec::new(),
        false => tables::matrices(finding, varying.iter().map(matrix).collect(), facts),
    };
    if !same.is_empty() {
        let text = counters(first, |name| same.iter().any(|same| *same == name));
        blocks.push(Block::new("Path at each point", Body::Facts(vec![Fact::new(&first.stack, text)])));
    }
    blocks
}

fn one_stack(finding: &GuestFinding) -> bool {
    finding.points.iter().all(|point| finding.points.first().is_some_and(|first| first.stack == point.stack))
}

fn value(point: &PointFinding, name: &str) -> Option<i64> {
    point.path_proof.get(name).copied()
}

/// One for each stack if all its points have the same counters, otherwise one for each row. Arms with different counters
/// share a fact.
fn facts(finding: &GuestFinding, rows: &[Row]) -> Vec<Fact> {
    let all = |rows: &[&Row]| -> Vec<String> {
        let points =
            rows.iter().flat_map(|row| row.points.iter().flatten()).filter(|point| !point.path_proof.is_empty());
        distinct(points.map(|point| counters(point, |_| true)))
    };
    let stack_of = |row: &Row| row.points.iter().flatten().next().map_or("", |point| &point.stack).to_owned();
    let mut facts = Vec::new();
    for stack in distinct(rows.iter().map(stack_of)) {
        let own: Vec<&Row> = rows.iter().filter(|row| stack_of(row) == stack).collect();
        match all(&own).as_slice() {
            [] => {}
            [text] => facts.push(Fact::new(&stack, text)),
            _ => facts.extend(own.into_iter().filter_map(|row| {
                let text = match all(&[row]).as_slice() {
                    [] => return None,
                    [text] => text.clone(),
                    _ => each_arm(finding, row),
                };
                Some(Fact::new(&row.name, text))
            })),
        }
    }
    facts
}

/// Each text once, in the order in which they come.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.fold(Vec::new(), |mut all, text| {
        if !all.contains(&text) {
            all.push(text);
        }
        all
    })
}

fn each_arm(finding: &GuestFinding, row: &Row) -> String {
    let points = row.points.iter().flatten().filter(|point| !point.path_proof.is_empty());
    let text = |point: &&PointFinding| format!("{}: {}", words::arm(finding, &point.arm), counters(point, |_| true));
    points.map(text).collect::<Vec<_>>().join("; ")
}

fn counters(point: &PointFinding, shown: impl Fn(&str) -> bool) -> String {
    let counters = point.path_proof.iter().filter(|(name, _)| !name.ends_with(TIME) && shown(name));
    let counters = counters.map(|(name, value)| format!("{name} {}", words::whole(*value))).collect::<Vec<_>>();
    format!("{}: {}", ios(point), counters.join(", "))
}

/// What mountstats says of the I/Os, for each point.
pub(super) fn times(finding: &GuestFinding) -> Option<Block> {
    const CLOCK: &str =
        "The guest's clock counts an instruction as 1 ns: these are instructions and idle time, not time of a machine.";
    let moved = |name: &&String| {
        let value = |point: &PointFinding| value(point, name).unwrap_or(0);
        name.ends_with(TIME) && finding.points.iter().any(|point| value(point) != 0)
    };
    let names: BTreeSet<&String> =
        finding.points.iter().flat_map(|point| point.path_proof.keys()).filter(moved).collect();
    let heads = names.iter().map(|name| Column::number(name.trim_end_matches(TIME).replace('_', " ")));
    let mut table = Table::new(std::iter::once(Column::text("")).chain(heads).collect());
    for point in finding.points.iter().filter(|point| names.iter().any(|name| point.path_proof.contains_key(*name))) {
        let cell = |name: &&String| match value(point, name) {
            Some(value) if point.ios > 0 => Cell::from(format!("{:.4}", value as f64 / point.ios as f64)),
            _ => Cell::new(Tone::Faint, MISSING),
        };
        table.row(std::iter::once(Cell::from(words::point(finding, point))).chain(names.iter().map(cell)).collect());
    }
    let title = "Times of mountstats, in ms of the guest's clock per I/O";
    // More rows than fit beside the answer are for a page.
    let many = table.rows.len() > FEW_TIMES;
    let block = Block::new(title, Body::Table(table)).with(vec![Note::new(Tone::Faint, CLOCK)]);
    let fold = many.then(|| Fold { summary: title.to_owned(), open: false });
    let audience = if many { Audience::PAGE } else { Audience::ALL };
    (!names.is_empty()).then(|| Block { fold, ..block.of(audience) })
}

fn ios(point: &PointFinding) -> String {
    format!("{} I/Os", words::whole(i64::try_from(point.ios).unwrap_or(i64::MAX)))
}
