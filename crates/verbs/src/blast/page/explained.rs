//! Where the cycles of a packet go, by account and event.

use super::{name, short_name};
use crate::blast::BlastFinding;
use crate::pages::explained::{Pair, Pairs, unexplained};
use crate::pages::parts::{self, Kind, Part};
use model::explained::{AccountChange, Explanation};
use report::document::{Block, Body, Cell, Note, Tone};
use report::number::{CYCLES, Scale};

/// Where the cycles of a packet go, and what the kernel does for it: of one point, or of each point beside the first one.
pub fn of_packets(finding: &BlastFinding) -> Vec<Block> {
    let Some((first, others)) = finding.points.split_first() else { return Vec::new() };
    let why = finding.explanation.events_reason.as_ref();
    let why = why.map(|why| Note::remark(format!("events per packet were not counted: {why}")));
    let why = Block::new("", Body::Notes).with(why.into_iter().collect());
    let ends = [unexplained(finding.explanation.unexplained.as_ref()), why];
    if others.is_empty() {
        let whole = first.cost.explained.map_or(f64::NAN, |explained| explained.candidate.value);
        let scale = Scale::of(CYCLES, whole);
        let row = |account: &AccountChange| Part {
            name: account.name.clone(),
            tone: Tone::Notice,
            costs: vec![account.per_io.candidate],
            share: Some(account.per_io.candidate.value / whole),
            ..Part::default()
        };
        let head = format!("{}/packet", scale.unit);
        let kind = Kind { costs: &[&head], ..parts::ACCOUNTS };
        let table = parts::table(Kind { scale: Some(scale), ..kind }, first.cost.accounts.iter().map(row).collect());
        let accounts = Block::new("Where the cycles of a packet go", Body::Table(table));
        let events = first.cost.events.iter().map(|event| (event.name.as_str(), event.per_io.candidate, event.named));
        let events = parts::events("per packet", "Events per packet".to_owned(), events.collect());
        return std::iter::once(accounts).chain(events).chain(ends).collect();
    }
    let first_name = short_name(first);
    let all = others.iter().map(|point| Pair {
        names: vec![Cell::from(short_name(point))],
        place: format!("{}, against {}: ", name(point), name(first)),
        explained: point.cost.explained,
        accounts: &point.cost.accounts,
        symbols: &[],
        events: &point.cost.events,
        rises: None,
    });
    let pairs = Pairs {
        all: all.collect(),
        axes: vec!["packets of"],
        arms: [&first_name, "here"],
        per: "packet",
        explanation: Explanation { account_family: None, event_family: None, ..finding.explanation.clone() },
    };
    [pairs.accounts(0), pairs.events(), ends.to_vec()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::blast::page::fixture as packets;
    use report::Ink;

    #[test]
    fn points_of_a_blast_stand_beside_the_first() {
        let mut finding = packets::named("explained");
        let text = |finding: &BlastFinding| Format::Table.render(finding, Ink::Plain, 120).replace('\u{a0}', " ");
        let several = text(&finding);
        let words: Vec<&str> =
            several.lines().find(|line| line.contains("syscalls:sendto")).unwrap().split_whitespace().collect();
        assert!(words.windows(3).any(|words| words == ["1.00", "0", "-1.00"]), "{several}");
        let words = several.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("From 5 rounds that counted events"), "{several}");
        finding.points.truncate(1);
        let one = text(&finding);
        assert!(one.contains("95 % interval") && one.contains("[0.98, 1.02]"), "{one}");
        finding.points[0].cost.events.clear();
        finding.explanation.events_reason = Some("no right".to_owned());
        assert!(text(&finding).contains("events per packet were not counted: no right"));
    }
}
