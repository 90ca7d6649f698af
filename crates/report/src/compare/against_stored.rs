//! A comparison next to an earlier one, in words: the total change, how much of it is due to the change and how much to
//! everything else, and the known differences between the sessions.

use super::{contents, words};
use crate::change::Change;
use crate::document::{Block, Fact};
use crate::phrase::tied;
use crate::stored;
use model::comparison::CompareFinding;
use model::comparison::finding::{AgainstStored, CellFinding, MetricFinding};
use model::elided_list::elided_list;
use model::experiment::Metric;
use model::stored::UnpairedChange;

/// `None` without a stored record.
pub fn block(finding: &CompareFinding) -> Option<Block> {
    let stored = finding.stored.as_ref()?;
    let metrics = contents::targets(finding);
    let (matched, others): (Vec<&CellFinding>, Vec<&CellFinding>) =
        finding.cells.iter().partition(|cell| is_known(cell));
    let lines = matched.iter().flat_map(|cell| metrics.iter().map(move |metric| line(finding, cell, *metric)));
    let facts: Vec<Fact> = lines.flatten().collect();
    let caution = "environment includes everything that changed between the two sessions, such as the kernel or other guests; its interval and \
                   that of the total only cover the variation within each session";
    let remarks = missing(&matched, &metrics).into_iter().chain(unmatched(finding, &others));
    Some(stored::block("baseline", stored, facts, caution, remarks))
}

/// Whether the stored record has this cell.
fn is_known(cell: &CellFinding) -> bool {
    cell.metrics.values().any(|metric| metric.stored.is_some())
}

/// "+75.8 % [70.8, 80.8] = +4.0 % [3.0, 5.0] change × +69.0 % [64.0, 74.0] environment".
fn line(finding: &CompareFinding, cell: &CellFinding, metric: Metric) -> Option<Fact> {
    let found = contents::metric(cell, metric)?;
    let split = split(found, found.stored.as_ref()?);
    let several = contents::candidates(finding).len() > 1;
    let place = [contents::point(finding, &cell.cell), if several { cell.arm.clone() } else { String::new() }];
    let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let head = words::of(metric).head;
    // With one cell and one arm, the metric is the label. With a cell name as the label, the metric moves into the
    // text.
    Some(if place.is_empty() { Fact::new(head, split) } else { Fact::new(place, format!("{head} {split}")) })
}

fn split(found: &MetricFinding, stored: &AgainstStored) -> String {
    let whole = |change: UnpairedChange| Change::from(change).whole();
    format!(
        "{} = {} {}",
        tied(&whole(stored.total)),
        tied(&format!("{} change", Change::from(found).whole())),
        tied(&format!("× {} environment", whole(stored.environment))),
    )
}

/// Metrics that have a value now, but not in the stored record.
fn missing(cells: &[&CellFinding], metrics: &[Metric]) -> Option<String> {
    let lacks = |metric: &&Metric| {
        let mut found = cells.iter().filter_map(|cell| contents::metric(cell, **metric));
        found.any(|found| contents::has_value(found) && found.stored.is_none())
    };
    let heads: Vec<&str> = metrics.iter().filter(lacks).map(|metric| words::of(*metric).head).collect();
    (!heads.is_empty()).then(|| format!("not in the stored record, or measured by another meter: {}", heads.join(", ")))
}

/// Cells that the stored record does not contain.
fn unmatched(finding: &CompareFinding, cells: &[&CellFinding]) -> Option<String> {
    let mut points: Vec<String> = Vec::new();
    for cell in cells {
        let point = tied(&contents::point(finding, &cell.cell));
        if !point.is_empty() && !points.contains(&point) {
            points.push(point);
        }
    }
    (!points.is_empty()).then(|| format!("not in the stored record: {}", elided_list(&points, ", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture;
    use crate::document::Body;

    fn texts(section: &Block) -> Vec<(String, String)> {
        let Body::Facts(facts) = &section.body else { panic!("no facts") };
        facts.iter().map(|fact| (fact.label.clone(), fact.text.replace('\u{a0}', " "))).collect()
    }

    #[test]
    fn a_line_for_each_target() {
        let section = block(&fixture::stored()).unwrap();
        assert_eq!(section.title, "Against the stored baseline of 2025-05-03");
        let expected = "+75.8 % [70.8, 80.8] = +4.0 % [3.0, 5.0] change × +69.0 % [64.0, 74.0] environment";
        assert_eq!(texts(&section)[0], ("cycles/IO".to_owned(), expected.to_owned()));
        assert!(section.notes[0].text.contains("kernel 6.9.1 → 6.18.44; "), "{:?}", section.notes);
    }

    #[test]
    fn rows_of_a_sweep_name_their_cell_and_missing_cells_are_listed() {
        let section = block(&fixture::stored_sweep()).unwrap();
        let texts = texts(&section);
        assert_eq!(texts[0].0, "rw=randread bs=4k");
        assert!(texts[0].1.starts_with("cycles/IO ") && texts[1].1.starts_with("IOPS "), "{texts:?}");
        assert!(section.notes.iter().any(|note| note.text.starts_with("not in the stored record: rw=randwrite")));
        assert!(section.notes[0].text.starts_with("no known difference"), "{:?}", section.notes);
    }

    #[test]
    fn without_a_stored_record_there_is_nothing() {
        assert!(block(&fixture::options()).is_none());
    }
}
