//! The conditions of a comparison in words: regimes, and where reads came from.

use crate::compare::CompareFinding;
use crate::compare::finding::{CaseCache, RoundsRegime};
use crate::compare::record::CacheCondition;
use crate::pages::conditions::{DIRECT_FROM_MEMORY, source};
use model::elided_list::elided_list;
use model::experiment::Work;
use model::page_cache::CacheState;
use report::document::tied;
use report::number::{self, COUNT, CYCLES};

/// Texts for reasons that scripts know by a word.
const REASONS: [(&str, &str); 1] = [(
    crate::compare::TWO_REGIMES,
    "the rate stepped during the measurement, and too few rounds followed for a comparison",
)];

/// The text of a reason.
pub fn reason(reason: &str) -> &str {
    REASONS.iter().find(|(word, _)| *word == reason).map_or(reason, |(_, words)| words)
}

/// The conditions of the answer, one sentence each.
pub fn sentences(finding: &CompareFinding) -> Vec<String> {
    regimes_of_rounds(&finding.regimes)
        .into_iter()
        .chain(page_cache_of_arms(finding))
        .chain(direct_from_memory(finding))
        .collect()
}

/// A note that direct reads did not reach storage either.
fn direct_from_memory(finding: &CompareFinding) -> Option<String> {
    let so = |case: &&CaseCache| case.state == CacheState::DirectFromMemory;
    let mut arms: Vec<String> = finding.page_cache.iter().filter(so).map(|case| case.arm.clone()).collect();
    arms.dedup();
    (!arms.is_empty()).then(|| format!("Direct reads: {DIRECT_FROM_MEMORY} ({})", elided_list(&arms, ", ")))
}

/// "Two regimes: 12.6 k IOPS in rounds 1 to 8, then 1.31 M IOPS in rounds 9 to 23; the answer uses only the last".
fn regimes_of_rounds(regimes: &[RoundsRegime]) -> Option<String> {
    let last = regimes.last()?;
    let one = |regime: &RoundsRegime| {
        let rate = tied(&format!("{} IOPS", number::known(COUNT, regime.iops)));
        let cost = regime.cycles_per_io.map(|cost| {
            let cost =
                if number::is_about_0(cost) { "≈ 0 cycles".to_owned() } else { number::with_unit(CYCLES, cost) };
            format!(" at {}", tied(&format!("{cost}/IO")))
        });
        let rounds = match (regime.first_round, regime.last_round) {
            (first, last) if first == last => format!("round {first}"),
            (first, last) => format!("rounds {first} to {last}"),
        };
        let disk = regime.from_storage_fraction.filter(|part| *part >= model::page_cache::WARM);
        let disk = disk.map(|part| format!(", {} of reads from storage", tied(&number::percent(part))));
        format!("{rate}{} in {}{}", cost.unwrap_or_default(), tied(&rounds), disk.unwrap_or_default())
    };
    let told = regimes.iter().map(one).collect::<Vec<_>>().join("; then ");
    let end = if last.counted { "the answer uses only the last" } else { "the last is too short for an answer" };
    Some(format!("Two regimes: {told}; {end}"))
}

/// "Page cache: warm, 100 % of reads came from memory (the files fit into memory; …)".
fn page_cache_of_arms(finding: &CompareFinding) -> Option<String> {
    let buffered: Vec<&CaseCache> = finding.page_cache.iter().filter(|case| !case.state.is_direct()).collect();
    let state = reads(finding, &buffered);
    let Some(cache) = &finding.cache else { return (!buffered.is_empty()).then(|| format!("Page cache: {state}")) };
    let mixed = buffered.iter().any(|case| !matches!(case.state, CacheState::Warm | CacheState::Written));
    let condition = match cache.condition {
        CacheCondition::Warm if mixed => "requested warm",
        CacheCondition::Warm => "warm",
        CacheCondition::Cold => "cold, dropped before each slice",
        CacheCondition::AsIs => "not controlled",
        CacheCondition::DroppedOnce => "dropped once before the first round",
        CacheCondition::ByArm => "differs by arm, dropped or read in before each slice",
    };
    let past = bypassing(finding).map(|arms| format!("; {arms} bypasses it (direct=1)")).unwrap_or_default();
    Some(format!("Page cache: {condition} ({}); {state}{past}", cache.reason))
}

/// Arms that bypass the page cache in every cell, if other arms do not.
fn bypassing(finding: &CompareFinding) -> Option<String> {
    let bypasses = |arm: &str| {
        let mut cells = finding.page_cache.iter().filter(|case| case.arm == arm).peekable();
        cells.peek().is_some() && cells.all(|case| case.state.is_direct())
    };
    let names = || finding.arms.iter().map(|arm| arm.name.as_str());
    let arms: Vec<&str> = names().filter(|arm| bypasses(arm)).collect();
    (!arms.is_empty() && arms.len() < names().count()).then(|| arms.join(", "))
}

/// Where the reads came from: one figure if the arms agree, otherwise one for each arm.
fn reads(finding: &CompareFinding, cases: &[&CaseCache]) -> String {
    // A command may read pipes and sockets, too.
    let is_command = finding.cases.iter().any(|case| matches!(case.plan, Work::Command(_)));
    let memory = if is_command { "not from storage" } else { "from memory" };
    let from = |part: f64| source(Some(part), "reads", memory);
    let known: Vec<(&CaseCache, f64)> =
        cases.iter().filter_map(|case| Some((*case, case.reads_from_storage_fraction?))).collect();
    let least = known.iter().map(|(_, part)| *part).fold(f64::INFINITY, f64::min);
    let most = known.iter().map(|(_, part)| *part).fold(0.0, f64::max);
    if cases.iter().all(|case| case.state == CacheState::Written) && !cases.is_empty() {
        return "no reads".to_owned();
    }
    if known.is_empty() {
        return source(None, "reads", memory);
    }
    if known.len() < cases.len() || most - least < 0.01 {
        return if most - least < 0.01 { from(most) } else { format!("up to {}", from(most)) };
    }
    if finding.axes.is_empty() {
        return known
            .iter()
            .map(|(case, part)| format!("{}: {}", case.arm, from(*part)))
            .collect::<Vec<_>>()
            .join(", ");
    }
    format!("{} to {} of reads from storage, by cell and arm", number::percent(least), number::percent(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::finding::CacheFound;
    use crate::compare::page::fixture as comparisons;
    use std::collections::BTreeMap;

    fn case(arm: &str, state: CacheState, part: Option<f64>) -> CaseCache {
        CaseCache { cell: BTreeMap::new(), arm: arm.to_owned(), state, reads_from_storage_fraction: part }
    }

    fn text(condition: CacheCondition, cases: Vec<CaseCache>) -> String {
        let cache = CacheFound { condition, reason: "why".to_owned(), resident_before_fraction: Some(1.0) };
        let finding = CompareFinding { cache: Some(cache), page_cache: cases, ..comparisons::named("options") };
        sentences(&finding).join("\n").replace('\u{a0}', " ")
    }

    #[test]
    fn arms_with_equal_reads_are_reported_together() {
        let (warm, cold) =
            (case("baseline", CacheState::Warm, Some(0.0)), case("candidate", CacheState::Cold, Some(1.0)));
        let alike =
            text(CacheCondition::Warm, vec![warm.clone(), CaseCache { arm: "candidate".into(), ..warm.clone() }]);
        assert_eq!(alike, "Page cache: warm (why); 100 % of reads from memory");
        let mut commands = CompareFinding { page_cache: vec![warm.clone()], ..comparisons::named("options") };
        commands.cases.iter_mut().for_each(|case| case.plan = Work::Command(vec!["cat".to_owned()]));
        let piped = sentences(&commands).join("\n").replace('\u{a0}', " ");
        assert!(piped.contains("100 % of reads not from storage"), "{piped}");
        let apart = text(CacheCondition::ByArm, vec![warm.clone(), cold]);
        assert!(
            apart.ends_with("baseline: 100 % of reads from memory, candidate: 100 % of reads from storage"),
            "{apart}"
        );
        let direct = case("candidate", CacheState::Bypassed, None);
        let past = text(CacheCondition::Warm, vec![warm, direct]);
        assert!(past.ends_with("; 100 % of reads from memory; candidate bypasses it (direct=1)"), "{past}");
        let memory = CompareFinding {
            page_cache: vec![case("candidate", CacheState::DirectFromMemory, None)],
            ..comparisons::named("options")
        };
        assert!(sentences(&memory)[0].starts_with("Direct reads: served from memory"), "{:?}", sentences(&memory));
        let writes = case("baseline", CacheState::Written, None);
        assert!(text(CacheCondition::Warm, vec![writes]).ends_with("no reads"));
    }

    #[test]
    fn the_regime_of_the_answer_is_named() {
        let regime = |first, last, iops, counted| RoundsRegime {
            first_round: first,
            last_round: last,
            counted,
            iops: Some(iops),
            cycles_per_io: None,
            from_storage_fraction: Some(if iops < 1e5 { 1.0 } else { 0.0 }),
        };
        let regimes = vec![regime(1, 8, 12.6e3, false), regime(9, 23, 1.31e6, true)];
        let finding = CompareFinding { regimes, ..comparisons::named("options") };
        let text = sentences(&finding).join("\n").replace('\u{a0}', " ");
        assert_eq!(
            text,
            "Two regimes: 12.6 k IOPS in rounds 1 to 8, 100 % of reads from storage; then 1.31 M IOPS in rounds 9 to 23; the \
             answer uses only the last"
        );
        assert_eq!(reason("two_regimes"), REASONS[0].1);
        assert_eq!(reason("another"), "another");
    }
}
