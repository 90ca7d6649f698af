//! The conditions of a run in words: where reads came from, and its regimes.

use crate::document::{Column, Note, Table, Tone};
use crate::number::{self, BYTES, COUNT, CYCLES, MISSING, Scale};
use crate::phrase::tied;
use model::elided_list::elided_list;
use model::finding::{JobFinding, PhaseFinding, RegimeFinding, RunFinding};
use model::page_cache::{CacheFinding, CacheState};

/// Fewer dirty bytes (1 MiB), such as the last pages of a log, are not reported.
const DIRTY: u64 = 1 << 20;

/// A note on direct reads that storage did not deliver. A file system that does not account its reads looks the same.
pub(crate) const DIRECT_FROM_MEMORY: &str =
    "served from memory: storage delivered nothing, or the file system (FUSE, virtiofs) does not account its reads";

/// Where the reads of jobs came from: "page cache: warm, 100 % of reads came from memory".
pub fn page_cache(cache: &CacheFinding) -> String {
    let mut text = format!("page cache: {}", state(cache));
    if matches!(cache.state, CacheState::Warming | CacheState::Partial)
        && let (Some(before), Some(after)) = (cache.resident_before_fraction, cache.resident_after_fraction)
    {
        text += &format!("; {} of the files cached before, {} after", percent(before), percent(after));
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

/// Where the reads of a command came from: "reads: 31 % of the bytes came from storage".
pub fn storage(cache: &CacheFinding) -> String {
    let bytes = cache.storage_read_bytes.map(|bytes| tied(&number::with_unit(BYTES, bytes)));
    let reads = match (cache.reads_from_storage_fraction, bytes) {
        (Some(_), _) if cache.state == CacheState::Warm => {
            format!("reads: {} of the bytes came from memory", from_memory(cache))
        }
        (Some(part), _) => format!("reads: {} of the bytes came from storage", percent(part)),
        (None, Some(bytes)) => format!("reads: {bytes} came from storage"),
        (None, None) => format!("reads: {MISSING} from storage or memory is unknown"),
    };
    reads + &left_dirty(cache)
}

fn state(cache: &CacheFinding) -> String {
    let from_disk = || match cache.reads_from_storage_fraction {
        Some(part) => format!("{} of reads went to storage", percent(part)),
        None => "the kernel does not report how many reads went to storage".to_owned(),
    };
    match cache.state {
        CacheState::Warm => format!("warm, {} of reads came from memory", from_memory(cache)),
        CacheState::Cold => format!("cold, {}", from_disk()),
        CacheState::Warming => format!("cold and warming: {}", from_disk()),
        CacheState::Partial => format!("partly cached: {}", from_disk()),
        CacheState::Written => "used for writes".to_owned(),
        CacheState::Bypassed => "bypassed (direct=1)".to_owned(),
        CacheState::DirectFromMemory => format!("bypassed (direct=1), {DIRECT_FROM_MEMORY}"),
        CacheState::Unknown => format!("{MISSING} the kernel does not report where reads came from"),
    }
}

fn from_memory(cache: &CacheFinding) -> String {
    match cache.reads_from_storage_fraction {
        Some(part) if part > 0.0 => tied("> 99.9 %"),
        _ => tied("100 %"),
    }
}

fn percent(fraction: f64) -> String {
    tied(&number::percent(fraction))
}

/// "12.6 k IOPS for 0.8 s, then 1.31 M IOPS for 2.2 s".
fn regimes(regimes: &[RegimeFinding]) -> String {
    let one = |regime: &RegimeFinding| {
        let rate = match (regime.iops, regime.storage_bytes_per_second) {
            (Some(iops), _) => format!("{} IOPS", number::with_unit(COUNT, iops)),
            (None, Some(bytes)) => format!("{} from storage", number::bytes_per_second(bytes)),
            (None, None) => MISSING.to_owned(),
        };
        match regime.executions() {
            Some(executions) => format!("{} in {}", tied(&rate), tied(&executions)),
            None => {
                format!("{} for {}", tied(&rate), tied(&number::seconds(regime.end_seconds - regime.begin_seconds)))
            }
        }
    };
    elided_list(&regimes.iter().map(one).collect::<Vec<_>>(), ", then ")
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
    let (how_many, which) = (how_many(phase), regimes(&phase.regimes));
    let text = match (last.iops, phase.cycles_per_io) {
        (Some(_), None) => format!("{how_many}, no single mean: {which}"),
        (Some(_), Some(_)) => format!("{how_many}: {which}"),
        (None, _) => format!("{how_many}: {which}; the figures cover all of it"),
    };
    Some(Note::new(Tone::Notice, text))
}

/// Each regime with its cost, one row each. `None` if the I/Os of a regime are unknown.
pub fn table(phase: &PhaseFinding) -> Option<Table> {
    phase.regimes.iter().find(|regime| regime.iops.is_some())?;
    let mut table = Table::new(vec![
        Column::rows("time"),
        Column::number("cycles/IO"),
        Column::text("95 %"),
        Column::number("own cycles/IO").spare(1),
        Column::number("IOPS"),
        Column::number("from storage").spare(0),
    ]);
    for regime in &phase.regimes {
        let begin = if regime.begin_seconds > 0.0 { number::seconds(regime.begin_seconds) } else { "0 s".to_owned() };
        let span = format!("{begin} to {}", number::seconds(regime.end_seconds));
        let span = regime.executions().unwrap_or(span);
        let interval = regime.cycles_per_io.zip(regime.cycles_per_io_low.zip(regime.cycles_per_io_high));
        table.row(vec![
            span.into(),
            number::net(regime.cycles_per_io, |cycles| number::with_unit(CYCLES, cycles)).into(),
            interval
                .map_or_else(|| MISSING.to_owned(), |(value, (low, high))| Scale::of(CYCLES, value).interval(low, high))
                .into(),
            number::known(CYCLES, regime.thread_cycles_per_io).into(),
            number::known(COUNT, regime.iops).into(),
            regime.from_storage_fraction.map_or_else(|| MISSING.to_owned(), number::percent).into(),
        ]);
    }
    Some(table)
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
        assert_eq!(of(CacheState::Warm, Some(0.0)), "page cache: warm, 100 % of reads came from memory");
        assert_eq!(of(CacheState::Warm, Some(0.0004)), "page cache: warm, > 99.9 % of reads came from memory");
        assert_eq!(
            of(CacheState::Warming, Some(0.31)),
            "page cache: cold and warming: 31 % of reads went to storage; 0 % of the files cached before, 100 % after"
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
        assert_eq!(of(CacheState::Partial, Some(0.31)), "reads: 31 % of the bytes came from storage");
        assert_eq!(of(CacheState::Warm, Some(0.0)), "reads: 100 % of the bytes came from memory");
        let unknown = CacheFinding { storage_read_bytes: Some(1.5e9), ..cache(CacheState::Unknown, None) };
        assert_eq!(plain(&storage(&unknown)), "reads: 1.40 GiB came from storage");
    }

    #[test]
    fn regimes_are_listed_in_order() {
        let regime = |begin, end, iops| RegimeFinding {
            begin_seconds: begin,
            end_seconds: end,
            iops: Some(iops),
            ..RegimeFinding::default()
        };
        let two = [regime(0.0, 0.8, 12.6e3), regime(0.8, 3.0, 1.31e6)];
        assert_eq!(plain(&regimes(&two)), "12.6 k IOPS for 800 ms, then 1.31 M IOPS for 2.20 s");
        let of = |regime: RegimeFinding, first, last| RegimeFinding {
            first_execution: Some(first),
            last_execution: Some(last),
            ..regime
        };
        let executions = [of(two[0], 1, 1), of(two[1], 2, 5)];
        assert_eq!(plain(&regimes(&executions)), "12.6 k IOPS in execution 1, then 1.31 M IOPS in executions 2 to 5");
    }
}
