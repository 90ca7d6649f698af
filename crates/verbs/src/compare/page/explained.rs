//! Where the change is: by account, function and event.

use crate::compare::CompareFinding;
use crate::compare::finding::CellFinding;
use crate::pages::explained::{FEW, Pair, Pairs, unexplained};
use model::experiment::Metric;
use report::document::{Audience, Block, Body, Calls, FlameGraph};

/// The blocks of all arms; empty without explaining rounds.
pub fn of_comparison(finding: &CompareFinding) -> Vec<Block> {
    let arms: Vec<Pairs> = super::candidates(finding).into_iter().map(|arm| pairs(finding, arm)).collect();
    let rows = super::rows(finding);
    let mut blocks: Vec<Block> = arms.iter().flat_map(|arm| arm.accounts(rows)).collect();
    for (arm, name) in arms.iter().zip(super::candidates(finding)) {
        blocks.extend(arm.functions(rows));
        let cells = super::cells(finding, name).into_iter().filter(|cell| !cell.cost.symbols.is_empty());
        blocks.extend(cells.take(FEW).map(|cell| graph(finding, cell)));
    }
    blocks.extend(arms.iter().flat_map(Pairs::events).map(Block::in_full));
    blocks.push(unexplained(finding.explanation.unexplained.as_ref()));
    blocks
}

fn pairs<'a>(finding: &'a CompareFinding, arm: &'a str) -> Pairs<'a> {
    let axes = super::axes(finding);
    let pair = |cell: &'a CellFinding| {
        let place = super::place(finding, cell);
        let cost = super::metric(cell, Metric::CyclesPerIo).filter(|cost| cost.detected);
        Pair {
            names: super::names(&axes, &cell.cell),
            place: if place.is_empty() { place } else { format!("{place}: ") },
            explained: cell.cost.explained,
            accounts: &cell.cost.accounts,
            symbols: &cell.cost.symbols,
            events: &cell.cost.events,
            rises: cost.and_then(|cost| cost.change).map(|change| change > 0.0),
        }
    };
    Pairs {
        all: super::cells(finding, arm).into_iter().map(pair).collect(),
        arms: [super::baseline(finding), arm],
        per: "I/O",
        explanation: finding.explanation.clone(),
        axes,
    }
}

/// Width is the arm's cost, colour the change.
fn graph(finding: &CompareFinding, cell: &CellFinding) -> Block {
    let calls = cell.cost.stacks.iter().map(|stack| Calls {
        calls: stack.calls.clone(),
        cost: stack.candidate,
        before: Some(stack.baseline),
    });
    let point = super::point(finding, &cell.cell);
    let point = if point.is_empty() { point } else { format!(", {point}") };
    let graph = FlameGraph {
        title: format!("Cycles per I/O of {} by calls{point}", cell.arm),
        subtitle: Some(format!("red: more than {}, blue: less", super::baseline(finding))),
        what: "cycles".to_owned(),
        calls: calls.collect(),
    };
    Block::new("Calls", Body::FlameGraph(graph)).of(Audience::PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::compare::page::fixture as comparisons;
    use report::Ink;

    fn text(finding: &CompareFinding) -> String {
        Format::Table.render(finding, Ink::Plain, 120).replace('\u{a0}', " ")
    }

    #[test]
    fn what_did_not_change_is_one_line_unless_the_user_named_it() {
        let mut finding = comparisons::named("explained");
        finding.cells[0].cost.events.iter_mut().for_each(|event| event.per_io.detected = false);
        assert!(text(&finding).contains("\n  kmem:kmalloc "), "the user named it");
        finding.cells[0].cost.events.iter_mut().for_each(|event| event.named = false);
        let told = text(&finding);
        assert!(told.contains("No change of what happens for an I/O is detected in 13 rounds"), "{told}");
        assert!(!told.contains("Events per I/O") && !told.contains("together with"), "{told}");
    }

    /// Only where both are detected.
    #[test]
    fn the_cost_goes_along_with_events_that_change_in_its_direction() {
        let mut finding = comparisons::named("explained");
        assert!(
            text(&finding).contains("Cycles per I/O rise together with sched_switch +1.00 [0.98, 1.02], hrtimer_start")
        );
        for event in finding.cells[0].cost.events.iter_mut().take(2) {
            event.per_io.change = event.per_io.change.scaled(-1.0);
        }
        let against = text(&finding);
        assert!(against.contains("Cycles per I/O rise while the other way goes sched_switch -1.00"), "{against}");
        finding.cells[0].metrics.get_mut("cycles_per_io").unwrap().detected = false;
        assert!(!text(&finding).contains("Cycles per I/O rise"));
    }
}
