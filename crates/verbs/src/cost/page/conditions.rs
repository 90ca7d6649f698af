//! The conditions of a run in words: regimes, and where reads came from.

use crate::pages::conditions::{DIRECT_FROM_MEMORY, source};
use model::finding::{JobFinding, PhaseFinding, RunFinding};
use model::page_cache::{CacheFinding, CacheState};
use report::document::{Cell, Column, Note, Table, Tone, tied};
use report::number::{self, BYTES, COUNT, CYCLES, MISSING, Scale};

/// Fewer dirty bytes (1 MiB), such as the last pages of a log, are not reported.
const DIRTY: u64 = 1 << 20;

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
