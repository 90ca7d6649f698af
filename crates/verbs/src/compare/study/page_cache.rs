//! Where the reads of each case came from, and the page cache condition.

use super::View;
use crate::compare::finding::{CacheFound, CaseCache, CompareFinding};
use crate::compare::record::{CacheCondition, Header};
use model::experiment::{Work, arm_at};
use model::page_cache::{self, COLD, CachedPages, ReadBytes, WARM, is_buffered};
use model::plan::JobPlan;
use model::slice::Rounds;
use model::warning::{Code, Warning, add_once};

/// Maximum difference between the arms' fractions of reads from storage for the same condition.
const APART: f64 = 0.05;

/// The page cache condition.
pub(super) fn setup(header: &Header) -> Option<CacheFound> {
    let setup = header.page_cache.as_ref()?;
    Some(CacheFound {
        condition: setup.condition,
        reason: setup.reason.clone(),
        resident_before_fraction: setup.before.taken().and_then(CachedPages::fraction),
    })
}

/// Each case whose reads are known.
pub(super) fn cases(record: View, sums: &Rounds) -> Vec<CaseCache> {
    let experiment = &record.header.experiment;
    let cases = experiment.cases.iter().enumerate().filter_map(|(place, case)| {
        let sum = |of: fn(&model::slice::Measured) -> Option<f64>| {
            sums.rounds.iter().map(|round| of(round.cases.get(place)?)).sum::<Option<f64>>()
        };
        let (read, from_storage) = (sum(|sums| sums.read_bytes), sum(|sums| sums.storage_read));
        let found = match &case.work {
            Work::Command(_) => page_cache::of_command(&ReadBytes { buffered: read, direct: 0.0, from_storage }, None)
                .filter(|found| found.reads_from_storage_fraction.is_some()),
            Work::Jobs(_) => {
                let jobs: Vec<&JobPlan> = case.work.phase()?.jobs.iter().collect();
                // With both buffered and direct jobs, the reads cannot be attributed.
                let one_kind = jobs.iter().all(|job| is_buffered(job));
                let direct = if jobs.iter().any(|job| is_buffered(job)) { 0.0 } else { read.unwrap_or(0.0) };
                page_cache::of_jobs(&jobs, &ReadBytes { buffered: read.filter(|_| one_kind), direct, from_storage })
            }
        }?;
        Some(CaseCache {
            cell: experiment.cells.get(case.cell)?.values.clone(),
            arm: experiment.arms.get(case.arm)?.name.clone(),
            state: found.state,
            reads_from_storage_fraction: found.reads_from_storage_fraction,
        })
    });
    cases.collect()
}

/// Caveats about a change: arms read from different places, or the condition was not kept.
pub(super) fn caveats(finding: &CompareFinding) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let by_arm = finding.cache.as_ref().is_some_and(|cache| cache.condition == CacheCondition::ByArm);
    for found in &finding.page_cache {
        let Some(part) = found.reads_from_storage_fraction else { continue };
        let case = arm_at(&found.arm, &found.cell);
        let other = finding.page_cache.iter().find(|other| other.cell == found.cell);
        let other = other.and_then(|other| Some((other.arm.as_str(), other.reads_from_storage_fraction?)));
        if let Some((arm, others)) = other.filter(|(_, others)| !by_arm && (part - others).abs() > APART) {
            let message = format!(
                "{case}: {} of its reads went to storage, of arm '{arm}' {}: the change includes that difference",
                percent(part),
                percent(others)
            );
            add_once(&mut warnings, Warning::new(Code::CacheDiffers, message));
        }
        let wanted = match finding.cache.as_ref().map(|cache| cache.condition) {
            Some(CacheCondition::Warm) if part > WARM => "warm",
            Some(CacheCondition::Cold) if part < COLD && !found.state.is_direct() => "cold",
            _ => continue,
        };
        let message = format!(
            "{case}: the page cache should be {wanted}, but {} of the reads went to storage: another process drops or reads the files, or \
             the kernel reclaims their pages",
            percent(part)
        );
        add_once(&mut warnings, Warning::new(Code::CacheNotKept, message));
    }
    warnings
}

/// With decimals below 1 %: 0.1 % of the reads from a disk can take half of a cached job's time.
fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent < 1.0 { format!("{percent:.2} %") } else { format!("{percent:.0} %") }
}
