//! The conditions of runs and comparisons in words: regimes, and where reads came from.

use crate::compare::CompareFinding;
use crate::compare::finding::{CaseCache, RoundsRegime};
use crate::compare::record::CacheCondition;
use model::elided_list::elided_list;
use model::experiment::Work;
use model::finding::{JobFinding, PhaseFinding, RunFinding};
use model::page_cache::{CacheFinding, CacheState};
use report::document::{Cell, Column, Note, Table, Tone};
use report::number::{self, BYTES, COUNT, CYCLES, MISSING, Scale};
use report::phrase::tied;

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

/// Fewer dirty bytes (1 MiB), such as the last pages of a log, are not reported.
const DIRTY: u64 = 1 << 20;

/// A note on direct reads that storage did not deliver. A file system that does not account its reads looks the same.
pub(crate) const DIRECT_FROM_MEMORY: &str =
    "served from memory: storage delivered nothing, or the file system (FUSE, virtiofs) does not account its reads";

/// Where the reads of jobs came from: "page cache: warm, 100 % of reads from memory".
pub fn page_cache(cache: &CacheFinding) -> String {
    let reads = || source(cache.reads_from_storage_fraction, "reads", "from memory");
    let state = match cache.state {
        CacheState::Warm => format!("warm, {}", reads()),
        CacheState::Cold => format!("cold, {}", reads()),
        CacheState::Warming => format!("cold and warming, {}", reads()),
        CacheState::Partial => format!("partly cached, {}", reads()),
        CacheState::Written => "used for writes".to_owned(),
        CacheState::Bypassed => "bypassed (direct=1)".to_owned(),
        CacheState::DirectFromMemory => format!("bypassed (direct=1), {DIRECT_FROM_MEMORY}"),
        CacheState::Unknown => source(None, "reads", ""),
    };
    let mut text = format!("page cache: {state}");
    if matches!(cache.state, CacheState::Warming | CacheState::Partial)
        && let (Some(before), Some(after)) = (cache.resident_before_fraction, cache.resident_after_fraction)
    {
        let [before, after] = [before, after].map(|part| tied(&number::percent(part)));
        text += &format!("; {before} of the files cached before, {after} after");
    }
    text += &left_dirty(cache);
    if cache.dropped && cache.state != CacheState::Warm {
        text += "; dropped before the first I/O (invalidate=1, fio's default; compare keeps files in memory)";
    }
    text
}

fn left_dirty(cache: &CacheFinding) -> String {
    let dirty = cache.dirty_after_bytes.filter(|dirty| *dirty >= DIRTY);
    let bytes = dirty.map(|dirty| tied(&number::with_unit(BYTES, dirty as f64)));
    bytes.map_or_else(String::new, |bytes| {
        format!("; {bytes} still dirty at the end: the cost excludes their writeback")
    })
}

/// Where the reads of a command came from: "reads: 31 % of the bytes from storage".
pub fn storage(cache: &CacheFinding) -> String {
    let bytes = cache.storage_read_bytes.filter(|_| cache.reads_from_storage_fraction.is_none());
    let reads = bytes.map(|bytes| format!("{} came from storage", tied(&number::with_unit(BYTES, bytes))));
    let reads = reads.unwrap_or_else(|| source(cache.reads_from_storage_fraction, "the bytes", "from memory"));
    format!("reads: {reads}{}", left_dirty(cache))
}

/// "31 % of reads from storage": where a part of them came from. `memory` says where the others may come from.
fn source(from_storage: Option<f64>, what: &str, memory: &str) -> String {
    match from_storage {
        None => format!("{MISSING} unknown where {what} came from"),
        Some(0.0) => format!("{} of {what} {memory}", tied("100 %")),
        Some(part) if part < model::page_cache::WARM => format!("{} of {what} {memory}", tied("> 99.9 %")),
        Some(part) => format!("{} of {what} from storage", tied(&number::percent(part))),
    }
}

/// The number of regimes, capitalized.
fn how_many(phase: &PhaseFinding) -> String {
    match phase.regimes.len() {
        2 => "Two regimes".to_owned(),
        3 => "Three regimes".to_owned(),
        many => format!("{many} regimes"),
    }
}

/// Part of a phase that a program may leave out of its time before the two rates are told apart.
const APART: f64 = 0.05;

/// Whether a foreign program reports a shorter time for the job than its phase took, as a server does that waited for its client.
pub fn waited(finding: &RunFinding, job: &JobFinding) -> bool {
    let phase = finding.phases.get(job.phase);
    let longer = |phase: &PhaseFinding| job.wall_seconds > 0.0 && job.wall_seconds < phase.wall_seconds * (1.0 - APART);
    finding.counted_by.is_some() && phase.is_some_and(longer)
}

/// The time that the rates of a phase are over, where its jobs have other rates: " over all 10.0 s".
pub fn over(finding: &RunFinding, phase: &PhaseFinding) -> String {
    let apart = finding.merged_jobs.iter().any(|job| phase.jobs.contains(&job.name) && waited(finding, job));
    if apart { format!(" over all {}", tied(&number::seconds(phase.wall_seconds))) } else { String::new() }
}

/// Whether the rate of a job's phase stepped, so that its rates and mean latency describe no part of it.
pub fn is_mixed(finding: &RunFinding, job: &JobFinding) -> bool {
    let phase = finding.phases.get(job.phase);
    phase.is_some_and(|phase| !phase.has_one_rate())
}

/// A note instead of one mean, if the rate stepped.
pub fn regimes_in_words(phase: &PhaseFinding) -> Option<Note> {
    let last = phase.regimes.last()?;
    let what = match (last.iops, phase.cycles_per_io()) {
        (Some(_), None) => ", no single mean",
        (Some(_), Some(_)) => "",
        (None, _) => "; the figures cover all of it",
    };
    Some(Note::new(Tone::Notice, how_many(phase) + what))
}

/// Each regime with its cost, one row each.
pub fn table(phase: &PhaseFinding) -> Table {
    let mut table = Table::new(vec![
        Column::rows("time"),
        Column::number("cycles/IO"),
        Column::text("95 %"),
        Column::number("own cycles/IO").spare(1),
        Column::number("rate"),
        Column::number("from storage").spare(0),
    ]);
    for regime in &phase.regimes {
        let begin = if regime.begin_seconds > 0.0 { number::seconds(regime.begin_seconds) } else { "0 s".to_owned() };
        let span = format!("{begin} to {}", number::seconds(regime.end_seconds));
        let cycles = regime.cycles_per_io;
        let interval = cycles.and_then(|it| Some(it.value).zip(it.ends()));
        let interval = interval.map(|(value, (low, high))| Scale::of(CYCLES, value).interval(low, high));
        let rate = match (regime.iops, regime.storage_bytes_per_second) {
            (Some(iops), _) => Some(format!("{} IOPS", number::with_unit(COUNT, iops))),
            (None, bytes) => bytes.map(|bytes| format!("{} from storage", number::bytes_per_second(bytes))),
        };
        let cells = [
            Some(regime.executions().unwrap_or(span)),
            Some(number::net(cycles.map(|it| it.value), |cycles| number::with_unit(CYCLES, cycles))),
            interval,
            Some(number::known(CYCLES, regime.thread_cycles_per_io)),
            rate,
            regime.from_storage_fraction.map(number::percent),
        ];
        table.row(cells.map(|cell| Cell::from(cell.unwrap_or_else(|| MISSING.to_owned()))).to_vec());
    }
    table
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

    fn cache(state: CacheState, fraction: Option<f64>) -> CacheFinding {
        CacheFinding {
            state,
            reads_from_storage_fraction: fraction,
            storage_read_bytes: fraction.map(|_| 3e9),
            resident_before_fraction: Some(0.0),
            resident_after_fraction: Some(1.0),
            dirty_after_bytes: None,
            dropped: false,
        }
    }

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn the_source_of_reads_is_one_sentence() {
        let of = |state, fraction| plain(&page_cache(&cache(state, fraction)));
        assert_eq!(of(CacheState::Warm, Some(0.0)), "page cache: warm, 100 % of reads from memory");
        assert_eq!(of(CacheState::Warm, Some(0.0004)), "page cache: warm, > 99.9 % of reads from memory");
        assert_eq!(
            of(CacheState::Warming, Some(0.31)),
            "page cache: cold and warming, 31 % of reads from storage; 0 % of the files cached before, 100 % after"
        );
        assert_eq!(of(CacheState::Bypassed, None), "page cache: bypassed (direct=1)");
        let dropped = CacheFinding { dropped: true, ..cache(CacheState::Cold, Some(1.0)) };
        assert!(
            page_cache(&dropped)
                .ends_with("dropped before the first I/O (invalidate=1, fio's default; compare keeps files in memory)")
        );
        let dirty = CacheFinding { dirty_after_bytes: Some(64 << 20), ..cache(CacheState::Written, None) };
        assert!(plain(&page_cache(&dirty)).starts_with("page cache: used for writes; 64.0 MiB still dirty at the end"));
    }

    #[test]
    fn reads_of_a_command_are_shown_as_fraction_or_bytes() {
        let of = |state, fraction| plain(&storage(&cache(state, fraction)));
        assert_eq!(of(CacheState::Partial, Some(0.31)), "reads: 31 % of the bytes from storage");
        assert_eq!(of(CacheState::Warm, Some(0.0)), "reads: 100 % of the bytes from memory");
        let unknown = CacheFinding { storage_read_bytes: Some(1.5e9), ..cache(CacheState::Unknown, None) };
        assert_eq!(plain(&storage(&unknown)), "reads: 1.40 GiB came from storage");
    }
}
