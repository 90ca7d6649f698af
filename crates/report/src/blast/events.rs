//! What the kernel does for a packet: the most frequent events of each point, and which changed against the first.

use super::{remark, short_name};
use crate::document::{Audience, Block, Body, Cell, Column, Note, Table, Tone};
use crate::explained::{interval, scale_of_count, with_its_unit};
use crate::number::{self, COUNT, Scale};
use model::blast::BlastFinding;
use model::blast::finding::PointFinding;
use model::events::{RARE, meaning};
use model::explained::EventChange;
use model::stats::Estimate;

/// Of more points, only a page has the events.
const FEW: usize = 4;
/// Most rows, unless the user named more.
const SHOWN: usize = 12;
/// Marks a change against the first point.
const CHANGED: char = '*';

/// A row for each event, a column for each point; one line if none could be counted.
pub(super) fn blocks(finding: &BlastFinding) -> Vec<Block> {
    let why = finding.events_reason.as_ref().map(|why| remark(format!("events per packet were not counted: {why}")));
    if let Some(why) = why {
        return vec![Block::new("", Body::Notes).with(vec![why])];
    }
    let points: Vec<&PointFinding> = finding.points.iter().filter(|point| !point.events.is_empty()).collect();
    let (shown, left) = rows(&points);
    if shown.is_empty() {
        return Vec::new();
    }
    let table = match points.as_slice() {
        [point] => of_one(point, &shown),
        points => of_several(points, &shown),
    };
    let block = Block::new("Events per delivered packet", Body::Table(table)).with(notes(finding, &points, left));
    vec![if points.len() <= FEW { block } else { block.of(Audience::PAGE) }]
}

/// The names that are shown, and how many are not: the most frequent at any point first.
fn rows<'a>(points: &[&'a PointFinding]) -> (Vec<&'a str>, usize) {
    let mut events: Vec<(&str, f64, bool)> = Vec::new();
    for event in points.iter().flat_map(|point| &point.events) {
        let count = if is_told(event) { event.candidate.value } else { 0.0 };
        match events.iter_mut().find(|(name, ..)| *name == event.name) {
            Some((_, most, _)) => *most = most.max(count),
            None => events.push((&event.name, count, event.named)),
        }
    }
    let all = events.len();
    events.retain(|(_, most, named)| *named || *most >= RARE);
    events.sort_by(|(_, one, _), (_, other, _)| other.total_cmp(one));
    let mut unnamed = 0;
    events.retain(|(_, _, named)| {
        unnamed += usize::from(!named);
        *named || unnamed <= SHOWN
    });
    let shown: Vec<&str> = events.into_iter().map(|(name, ..)| name).collect();
    let left = all - shown.len();
    (shown, left)
}

/// Whether a count is more than noise of the background.
fn is_told(event: &EventChange) -> bool {
    event.detected || event.candidate.low.is_none_or(|low| low > 0.0)
}

fn of_point<'a>(point: &'a PointFinding, name: &str) -> Option<&'a EventChange> {
    point.events.iter().find(|event| event.name == name)
}

fn of_one(point: &PointFinding, shown: &[&str]) -> Table {
    let mut table = Table::new(vec![
        Column::rows("event"),
        Column::number("per packet"),
        Column::text("95 % interval").spare(1),
        Column::text("").spare(0),
    ]);
    for name in shown {
        let Some(event) = of_point(point, name) else { continue };
        let estimate = event.candidate;
        let within = interval(Scale::of(COUNT, estimate.value), &estimate);
        table.row(vec![Cell::from(*name), count(estimate, ""), within.into(), Cell::new(Tone::Faint, meaning(name))]);
    }
    table
}

fn of_several(points: &[&PointFinding], shown: &[&str]) -> Table {
    let columns = points.iter().map(|point| Column::number(short_name(point)));
    let columns = std::iter::once(Column::rows("event")).chain(columns).chain([Column::text("").spare(0)]);
    let mut table = Table::new(columns.collect());
    for name in shown {
        let mut cells = vec![Cell::from(*name)];
        for point in points {
            cells.push(match of_point(point, name) {
                // More of an event is neither worse nor better: a method may use one in place of another.
                Some(event) if event.detected => {
                    Cell { tone: Tone::Strong, ..count(event.candidate, &format!(" {CHANGED}")) }
                }
                Some(event) => count(event.candidate, ""),
                None => Cell::from("≈ 0"),
            });
        }
        cells.push(Cell::new(Tone::Faint, meaning(name)));
        table.row(cells);
    }
    table
}

fn count(estimate: Estimate, mark: &str) -> Cell {
    let scaled = |value| with_its_unit(scale_of_count(&estimate), |scale| scale.cell(value));
    Cell::from(format!("{}{mark}", number::net(Some(estimate.value), scaled)))
}

fn notes(finding: &BlastFinding, points: &[&PointFinding], left: usize) -> Vec<Note> {
    let left = match left {
        0 => String::new(),
        1 => "Another event is rarer. ".to_owned(),
        left => format!("{left} other events are rarer. "),
    };
    let changed = points.iter().flat_map(|point| &point.events).any(|event| event.detected);
    let changed = if changed {
        format!(" {CHANGED} differs from the first point; the intervals of all changes hold together (95 %).")
    } else {
        String::new()
    };
    vec![remark(format!(
        "{left}Exact counts of the whole machine, net of the background, from {} rounds of their own.{changed}",
        finding.counted_rounds
    ))]
}

#[cfg(test)]
mod tests {
    use crate::blast::fixture;
    use crate::{Format, Ink};

    #[test]
    fn the_most_frequent_are_rows_and_changes_are_marked() {
        let finding = fixture::explained();
        let text = Format::Table.render(&finding, Ink::Plain, 120).replace('\u{a0}', " ");
        let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
        let words = |name: &str| line(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("syscalls:sendto")[1..4], ["1.00", "0", "*"]);
        assert_eq!(words("syscalls:sendmmsg")[1..4], ["0", "0.016", "*"]);
        assert_eq!(words("net:net_dev_xmit")[1..3], ["1.00", "1.00"]);
        assert!(!text.contains("timer:timer_start"), "its interval contains 0");
        assert!(text.contains("Another event is rarer.") && text.contains("from 5 rounds of their own."), "{text}");
        let mut without = finding;
        without.points.iter_mut().for_each(|point| point.events.clear());
        without.events_reason = Some("no right".to_owned());
        let text = Format::Table.render(&without, Ink::Plain, 120);
        assert!(text.contains("events per packet were not counted: no right"), "{text}");
    }

    #[test]
    fn one_point_has_intervals() {
        let mut finding = fixture::explained();
        finding.points.truncate(1);
        let text = Format::Table.render(&finding, Ink::Plain, 120).replace('\u{a0}', " ");
        assert!(text.contains("95 % interval") && text.contains("[0.98, 1.02]"), "{text}");
        assert!(!text.contains("differs from the first"), "{text}");
    }
}
