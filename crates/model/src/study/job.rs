//! The results of each job: rates, latencies, I/Os per system call.

use crate::LatencyBins;
use crate::ThreadUsage;
use crate::finding::{CopiesApart, DirectionFinding, JobFinding, LatencyFinding, StagesFinding};
use crate::histogram::{BUCKET_ERROR, Histogram};
use crate::injected::Injected;
use crate::plan::JobPlan;
use crate::record::{Direction, JobRecord, Latency, Lost, PhaseRecord, StageLatencies, StampError, Verified};
use crate::unit::{Hertz, Nanos, Ticks};
use std::collections::HashMap;

/// Number of I/Os beyond a percentile p that it needs (docs/method/latency.md: 10/(1 − p) in total).
const SAMPLES_BEYOND: f64 = 10.0;
/// The percentiles of every job, in percent.
const STANDARD: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Part by which the fastest copy of a job must be faster than the slowest for both to be named.
const APART: f64 = 0.2;

/// The jobs of a phase. Executions are combined always, the copies of a job if `merges` says so. `planned` are the jobs of the plan, if
/// known.
pub(super) fn study(
    phase: &PhaseRecord,
    planned: Option<&[JobPlan]>,
    clock: Hertz,
    merges: fn(&JobRecord) -> bool,
) -> Vec<JobFinding> {
    let mut jobs: Vec<(usize, Vec<&JobRecord>)> = Vec::new();
    let mut places = HashMap::new();
    for execution in &phase.executions {
        // Different jobs may have the same name: the nth of a name in one execution corresponds to the nth in the others.
        let mut namesakes: HashMap<_, (usize, u32)> = HashMap::new();
        for job in &execution.jobs {
            // fio's copies have no numbers, and those of a group are already combined.
            let fio = job.engine.starts_with("fio");
            let of_name = (&job.name, &job.engine, job.group);
            let turn = match namesakes.get(&of_name) {
                Some((turn, _)) if fio => *turn,
                // Copies of a job follow each other.
                Some((turn, copy)) => turn + usize::from(job.copy <= *copy),
                None => 0,
            };
            namesakes.insert(of_name, (turn, job.copy));
            let copy = Some(job.copy).filter(|_| fio || !merges(job));
            let place = *places.entry((of_name, turn, copy)).or_insert(jobs.len());
            match jobs.get_mut(place) {
                Some((_, records)) => records.push(job),
                None => jobs.push((turn, vec![job])),
            }
        }
    }
    let executions = phase.executions.len().max(1);
    let found = jobs.iter().map(|(turn, records)| {
        let finding = finding(records, executions, clock);
        let mut namesakes = planned.unwrap_or_default().iter().filter(|plan| plan.name == finding.name);
        JobFinding { plan: namesakes.nth(*turn).cloned().map(Box::new), ..finding }
    });
    found.collect()
}

/// The slowest and the fastest copy, if they are apart. One that failed had its own time.
fn copies_apart(jobs: &[&JobRecord]) -> Option<CopiesApart> {
    let rate = |job: &JobRecord| match job.wall_nanos.seconds() {
        seconds if seconds > 0.0 => job.reported_ios() as f64 / seconds,
        _ => 0.0,
    };
    let rates = || jobs.iter().filter(|job| job.error.is_none()).map(|job| (job.copy, rate(job)));
    let (slowest, slowest_iops) = rates().min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let (fastest, fastest_iops) = rates().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    let apart = slowest != fastest && fastest_iops > slowest_iops * (1.0 + APART);
    apart.then_some(CopiesApart { slowest, slowest_iops, fastest, fastest_iops })
}

fn finding(jobs: &[&JobRecord], executions: usize, clock: Hertz) -> JobFinding {
    let Some(first) = jobs.first() else { return JobFinding::default() };
    // Copies run at the same time, executions one after the other.
    let copies = jobs.len().div_ceil(executions).max(1);
    let longest = jobs.iter().map(|job| job.wall_nanos).max().unwrap_or_default();
    let all: Nanos = jobs.iter().map(|job| job.wall_nanos).sum();
    let seconds = if executions > 1 { all.seconds() / copies as f64 } else { longest.seconds() };
    let sum = |of: fn(&JobRecord) -> u64| jobs.iter().map(|job| of(job)).fold(0, u64::saturating_add);
    let lost = |of: fn(Lost) -> Option<u64>| {
        jobs.iter().try_fold(0_u64, |sum, job| Some(sum.saturating_add(of(job.lost.unwrap_or(Lost::NONE))?)))
    };
    let per_second = |work: u64| if seconds > 0.0 { work as f64 / seconds } else { 0.0 };
    let thread: Option<Nanos> = jobs.iter().map(|job| job.thread_nanos).sum();
    let usages = jobs.iter().map(|job| job.usage);
    let usage = usages.reduce(|sum, usage| Some(ThreadUsage::plus(sum?, usage?)));
    let syscalls = jobs.iter().try_fold(0_u64, |sum, job| Some(sum.saturating_add(job.syscalls?)));
    let of_parts = |parts: Vec<&Direction>| {
        let sum = |of: fn(&Direction) -> u64| parts.iter().map(|part| of(part)).fold(0, u64::saturating_add);
        let (ios, bytes) = (sum(|part| part.ios), sum(|part| part.bytes.0));
        DirectionFinding {
            ios,
            bytes,
            iops: per_second(ios),
            bytes_per_second: per_second(bytes),
            short: sum(|part| part.short),
            lost: Some(0),
            latency_ns: latency(&parts, &first.percentiles, None, clock),
        }
    };
    let direction = |of: fn(&JobRecord) -> &Direction| of_parts(jobs.iter().map(|job| of(job)).collect());
    let mixed: Vec<&Direction> = jobs.iter().filter_map(|job| job.mixed.as_deref()).collect();
    let everything: Vec<&Direction> = jobs.iter().flat_map(|job| job.directions()).collect();
    let read = DirectionFinding { lost: lost(|lost| lost.read), ..direction(|job| &job.read) };
    let write = DirectionFinding { lost: lost(|lost| lost.write), ..direction(|job| &job.write) };
    let all = DirectionFinding {
        lost: read.lost.zip(write.lost).map(|(read, write)| read.saturating_add(write)),
        latency_ns: latency(&everything, &first.percentiles, worst_stamp(jobs), clock),
        ..of_parts(everything)
    };
    let ios = all.ios;
    JobFinding {
        name: first.name.clone(),
        engine: first.engine.clone(),
        copies: u32::try_from(copies).unwrap_or(u32::MAX),
        copies_apart: copies_apart(jobs),
        all,
        errors: sum(|job| job.errors),
        error: jobs.iter().find_map(|job| {
            let error = job.error.as_ref()?;
            Some(if copies > 1 { format!("copy {}: {error}", job.copy) } else { error.clone() })
        }),
        wall_seconds: seconds,
        read,
        write,
        trim: direction(|job| &job.trim),
        mixed: (!mixed.is_empty()).then(|| of_parts(mixed)),
        syncs: sum(|job| job.syncs),
        verified: jobs.iter().filter_map(|job| job.verified).reduce(Verified::and),
        thread_cycles_per_io: thread.filter(|_| ios > 0).map(|nanos| nanos.seconds() * clock.0 / ios as f64),
        ios_per_crossing: syscalls.filter(|count| *count > 0).map(|count| ios as f64 / count as f64),
        stages_ns: stages(jobs, clock),
        injected_ns: Injected::mean(jobs.iter().filter_map(|job| job.injected_ns)),
        cycles_per_io: None,
        phase: 0,
        usage: usage.flatten(),
        plan: None,
    }
}

fn worst_stamp(jobs: &[&JobRecord]) -> Option<StampError> {
    let stamps = jobs.iter().filter_map(|job| job.stamp_error);
    stamps.reduce(|a, b| StampError {
        mean_nanos: a.mean_nanos.max(b.mean_nanos),
        max_nanos: a.max_nanos.max(b.max_nanos),
    })
}

fn latency(parts: &[&Direction], asked: &[f64], stamp: Option<StampError>, clock: Hertz) -> LatencyFinding {
    let mut merged: Option<Histogram> = None;
    for part in parts {
        match &part.latency {
            Latency::Ticks(histogram) => match &mut merged {
                Some(merged) => merged.merge(histogram),
                None => merged = Some(histogram.clone()),
            },
            // Percentiles of different sources cannot be merged, so only a single source is used.
            Latency::Reported { mean_nanos, max_nanos, percentiles } => {
                let mut measured = parts.iter().filter(|part| part.ios > 0);
                let alone = measured.next().is_some() && measured.next().is_none();
                return if alone { reported(*mean_nanos, *max_nanos, percentiles) } else { LatencyFinding::default() };
            }
            Latency::None => {}
        }
    }
    let Some(histogram) = merged else { return LatencyFinding::default() };
    of_ticks(&histogram, asked, stamp, clock)
}

/// The stages of all jobs together; `None` unless every job has them.
fn stages(jobs: &[&JobRecord], clock: Hertz) -> Option<StagesFinding> {
    let known: Option<Vec<&StageLatencies>> = jobs.iter().map(|job| job.stages.as_deref()).collect();
    let known = known.filter(|known| !known.is_empty())?;
    let together = |parts: &mut dyn Iterator<Item = &Histogram>| {
        let mut sum = Histogram::new();
        parts.for_each(|part| sum.merge(part));
        of_ticks(&sum, &[], None, clock)
    };
    let merged = |of: fn(&StageLatencies) -> &Histogram| together(&mut known.iter().map(|stages| of(stages)));
    let sending: Option<Vec<&Histogram>> = known.iter().map(|stages| stages.sending.as_ref()).collect();
    Some(StagesFinding {
        backlog_wait: merged(|stages| &stages.backlog_wait),
        sending: sending.map(|parts| together(&mut parts.into_iter())),
        round_trip: merged(|stages| &stages.round_trip),
        delivery: merged(|stages| &stages.delivery),
    })
}

fn of_ticks(histogram: &Histogram, asked: &[f64], stamp: Option<StampError>, clock: Hertz) -> LatencyFinding {
    let nanos = |ticks: u64| ticks as f64 * 1e9 / clock.0;
    let told = |percent: f64| {
        let beyond = histogram.total() as f64 * (1.0 - percent / 100.0);
        let enough = beyond >= SAMPLES_BEYOND * 0.999_999 || percent >= 100.0;
        histogram.percentile(percent).filter(|_| enough).map(nanos)
    };
    let [p50, p90, p99, p999, p9999] = STANDARD.map(told);
    LatencyFinding {
        mean: histogram.mean().map(|ticks| ticks * 1e9 / clock.0),
        p50,
        p90,
        p99,
        p999,
        p9999,
        max: Some(clock.nanos(Ticks(histogram.max())).as_f64()),
        percentiles: asked.iter().map(|&percent| (percent, told(percent))).collect(),
        bucket_error_fraction: Some(BUCKET_ERROR),
        stamp_error_mean: stamp.map(|stamp| stamp.mean_nanos),
        stamp_error_max: stamp.map(|stamp| stamp.max_nanos.as_f64()),
        bins: LatencyBins::of(histogram, clock),
    }
}

fn reported(mean_nanos: f64, max_nanos: Nanos, percentiles: &[(f64, Nanos)]) -> LatencyFinding {
    let told =
        |percent: f64| percentiles.iter().find(|(p, _)| (p - percent).abs() < 1e-6).map(|(_, value)| value.as_f64());
    let [p50, p90, p99, p999, p9999] = STANDARD.map(told);
    LatencyFinding {
        mean: Some(mean_nanos),
        p50,
        p90,
        p99,
        p999,
        p9999,
        max: Some(max_nanos.as_f64()),
        ..LatencyFinding::default()
    }
}
