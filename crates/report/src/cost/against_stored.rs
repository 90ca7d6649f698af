//! A run or a command next to an earlier one, in words: the change of each phase.

use super::name;
use crate::change::Change;
use crate::document::{Block, Fact};
use crate::number::{self, COUNT, CYCLES, Units};
use crate::phrase::tied;
use crate::stored;
use model::finding::{PhaseFinding, RunFinding, StoredPhase};

/// `None` without a stored record.
pub fn block(finding: &RunFinding) -> Option<Block> {
    let stored = finding.stored.as_ref()?;
    let several = finding.phases.len() > 1;
    let facts = finding.phases.iter().flat_map(|phase| {
        let prefix = if several { format!("{} ", name(phase)) } else { String::new() };
        facts(phase).into_iter().map(move |(head, text)| Fact::new(format!("{prefix}{head}"), text))
    });
    let caution = "the two were not measured side by side: the difference includes everything that changed in between, such as the kernel or \
                   other guests, and its interval only the variation within each; use iotoll compare to isolate a change";
    let unknown = finding.phases.iter().filter(|phase| facts_of(phase).is_none());
    let unknown: Vec<String> = unknown.map(name).filter(|name| !name.is_empty()).collect();
    let remark = (!unknown.is_empty()).then(|| format!("not in the stored record: {}", unknown.join(", ")));
    Some(stored::block(
        if finding.counted_by.is_some() { "command" } else { "run" },
        stored,
        facts.collect(),
        caution,
        remark,
    ))
}

fn facts_of(phase: &PhaseFinding) -> Option<&StoredPhase> {
    phase.stored.as_ref()
}

fn facts(phase: &PhaseFinding) -> Vec<(&'static str, String)> {
    let Some(then) = facts_of(phase) else { return Vec::new() };
    let of = |change: Change, units: Units, then: Option<f64>, now: Option<f64>| {
        let figures = format!("({} → {})", number::known(units, then), number::known(units, now));
        Some(format!("{} {}", tied(&change.whole()), tied(&figures))).filter(|_| change.value.is_some())
    };
    let rate = Change { value: then.iops_change, low: None, high: None };
    let lines = [
        ("cycles/IO", of(change(then.cycles_per_io_change), CYCLES, then.cycles_per_io, phase.cycles_per_io)),
        ("cycles", of(change(then.cycles_change), CYCLES, then.cycles, phase.cycles)),
        ("IOPS", of(rate, COUNT, then.iops, phase.iops)),
    ];
    lines.into_iter().filter_map(|(head, text)| Some((head, text?))).collect()
}

fn change(found: Option<model::stored::UnpairedChange>) -> Change {
    found.map(Change::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::fixture;
    use crate::document::Body;

    #[test]
    fn each_phase_shows_its_change() {
        let block = block(&fixture::stored()).unwrap();
        assert_eq!(block.title, "Against the stored run of 2025-05-03");
        let Body::Facts(facts) = &block.body else { panic!("no facts") };
        let texts: Vec<(&str, String)> =
            facts.iter().map(|fact| (fact.label.as_str(), fact.text.replace('\u{a0}', " "))).collect();
        assert_eq!(texts[0], ("cycles/IO", "+10.5 % [8.3, 12.7] (6.25 kcycles → 6.91 kcycles)".to_owned()));
        assert_eq!(texts[1].0, "IOPS");
        assert!(texts[1].1.starts_with("-5.0 % (no interval)"), "{texts:?}");
        assert!(block.notes[0].text.contains("kernel 6.9.1 → 6.18.44"), "{:?}", block.notes);
    }

    #[test]
    fn without_a_stored_record_there_is_nothing() {
        assert!(block(&fixture::psync_4k()).is_none());
    }
}
