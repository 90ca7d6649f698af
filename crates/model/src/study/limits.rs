//! What a run or a command says of each metric that `--fail-on` can limit.
//!
//! Costs and rates are estimates, with the interval over windows or executions. Latencies and the duration of one execution are
//! facts about this measurement: every I/O of it was counted. A fact decides a limit on its value, but not on a change, because
//! one of a kind shows no spread.

use super::against_stored::pairs;
use super::caveats::below_own_threads;
use super::per_work::total;
use super::study;
use super::windows::io_seconds;
use crate::experiment::Metric;
use crate::finding::{JobFinding, PhaseFinding, RunFinding};
use crate::limit::{self, AtPlace, LimitFinding};
use crate::record::{Execution, IoInterval, JobRecord, Mode, Record, Snapshot};
use crate::stats::unpaired::grouped;
use crate::stats::{Estimate, Neighbours, Pair, ratio_of_sums};
use crate::stored::{self, Stored};

/// Why a phase with two regimes has no rate and no mean latency.
const STEPPED: &str = "the rate stepped, so no one mean describes it";

/// Every limit of the record.
pub(crate) fn judge(record: &Record, finding: &RunFinding, stored: Option<&Stored<Record>>) -> Vec<LimitFinding> {
    let limits = &record.envelope.limits;
    if limits.is_empty() {
        return Vec::new();
    }
    let earlier = stored.map(|stored| (&stored.record, study(&stored.record)));
    let earlier = earlier.as_ref().map(|(record, finding)| (&**record, finding));
    limit::judge(limits, |name| match Metric::parse(name) {
        Some(metric) if is_latency(metric) => {
            finding.merged_jobs.iter().map(|job| of_job(finding, job, metric)).collect()
        }
        Some(metric) => of_phases((record, finding), earlier, metric),
        None => Vec::new(),
    })
}

fn is_latency(metric: Metric) -> bool {
    metric == Metric::LatencyMean || metric.percent().is_some()
}

fn of_job(finding: &RunFinding, job: &JobFinding, metric: Metric) -> AtPlace {
    let latency = &job.latency_ns;
    let stepped =
        metric == Metric::LatencyMean && !finding.phases.get(job.phase).is_some_and(PhaseFinding::has_one_rate);
    let (value, error) = match metric {
        Metric::LatencyP50 => (latency.p50, latency.bucket_error_fraction),
        Metric::LatencyP99 => (latency.p99, latency.bucket_error_fraction),
        Metric::LatencyP999 => (latency.p999, latency.bucket_error_fraction),
        _ => (latency.mean, None),
    };
    // A value of the histogram is the middle of its bucket.
    let half = error.unwrap_or(0.0) / 2.0;
    let known = |value: f64| Estimate { value, low: Some(value * (1.0 - half)), high: Some(value * (1.0 + half)) };
    AtPlace {
        cell: if finding.merged_jobs.len() > 1 { job.name.clone() } else { String::new() },
        arm: String::new(),
        value: match value {
            _ if stepped => Err(STEPPED.to_owned()),
            Some(value) => Ok(known(value)),
            None => Err("there were too few I/Os, or their latencies are unknown".to_owned()),
        },
        change: Some(Err("latencies of one run show no spread; compare the two with iotoll compare".to_owned())),
    }
}

fn of_phases(
    (record, finding): (&Record, &RunFinding),
    earlier: Option<(&Record, &RunFinding)>,
    metric: Metric,
) -> Vec<AtPlace> {
    let places = earlier.map(|(then, _)| pairs(then, record)).unwrap_or_default();
    let several = finding.phases.len() > 1;
    let at = |(number, phase): (usize, &PhaseFinding)| {
        let value = value(record, finding, number, metric);
        let then = places.get(number).copied().flatten();
        AtPlace {
            cell: if several { phase.jobs.join(", ") } else { String::new() },
            arm: String::new(),
            change: earlier.map(|earlier| {
                let then = then.ok_or("the stored record has no such phase")?;
                change((phase, value.as_ref()), earlier, then, metric)
            }),
            value,
        }
    };
    finding.phases.iter().enumerate().map(at).collect()
}

fn change(
    (phase, now): (&PhaseFinding, Result<&Estimate, &String>),
    (record, finding): (&Record, &RunFinding),
    then: usize,
    metric: Metric,
) -> Result<Estimate, String> {
    let of_meter = phase.stored.as_ref();
    let found = match metric {
        // By the meter of now in both.
        Metric::CyclesPerIo => of_meter.and_then(|stored| stored.cycles_per_io_change),
        Metric::Cycles => of_meter.and_then(|stored| stored.cycles_change),
        Metric::CyclesPerByte
            if finding.phases.get(then).is_none_or(|then| {
                (&then.headline_meter, then.known_by_name) != (&phase.headline_meter, phase.known_by_name)
            }) =>
        {
            return Err("another meter gave the costs of the stored record".to_owned());
        }
        _ => stored::since(*now.map_err(Clone::clone)?, value(record, finding, then, metric)?),
    };
    Ok(found.ok_or("it is unknown of one of the two")?)
}

/// The value in a phase.
fn value(record: &Record, finding: &RunFinding, number: usize, metric: Metric) -> Result<Estimate, String> {
    let unknown = || "it is unknown; a caveat or the meters say why".to_owned();
    let phase = finding.phases.get(number).ok_or_else(unknown)?;
    let executions = record.phases.get(number).map_or(&[][..], |phase| phase.executions.as_slice());
    if matches!(metric, Metric::CyclesPerIo | Metric::CyclesPerByte | Metric::Cycles)
        && let Some(why) = below_own_threads(&record.host, phase)
    {
        return Err(why);
    }
    let estimate = |value: Option<f64>, low, high| value.map(|value| Estimate { value, low, high });
    let found = match metric {
        Metric::Iops | Metric::BytesPerSecond if !phase.has_one_rate() => return Err(STEPPED.to_owned()),
        Metric::CyclesPerIo => estimate(phase.cycles_per_io, phase.cycles_per_io_low, phase.cycles_per_io_high),
        Metric::CyclesPerByte => estimate(phase.cycles_per_byte, phase.cycles_per_byte_low, phase.cycles_per_byte_high),
        Metric::Cycles => {
            let all = estimate(phase.cycles, phase.cycles_low, phase.cycles_high);
            all.map(|cycles| cycles.scaled(1.0 / executions.len().max(1) as f64))
        }
        Metric::Iops => phase.iops.map(|value| {
            let ios = |execution: &Execution| total(execution.jobs.iter(), JobRecord::ios);
            rate(value, executions, |snapshot| Some(snapshot.done?.ios as f64), ios)
        }),
        Metric::BytesPerSecond => phase.bytes_per_second.map(|value| {
            let bytes = |execution: &Execution| total(execution.jobs.iter(), |job| job.bytes().0);
            rate(value, executions, |snapshot| Some(snapshot.done?.bytes.as_f64()), bytes)
        }),
        Metric::ContextSwitchesPerIo => {
            // What is not told from the background is within its interval all the same.
            let (low, high) = (phase.context_switches_per_io_low, phase.context_switches_per_io_high);
            let value = phase.context_switches_per_io.or(low.zip(high).map(|(low, high)| (low + high) / 2.0));
            estimate(value, low, high)
        }
        Metric::ThreadCyclesPerIo => {
            let by_thread = phase.by_meter_detail.iter().find(|reading| reading.name == "thread");
            let known = by_thread.and_then(|reading| reading.cycles_per_io);
            phase.thread_cycles_per_io.map(|value| known.unwrap_or_else(|| Estimate::bare(value)))
        }
        Metric::Seconds => seconds(executions),
        Metric::LatencyMean | Metric::LatencyP50 | Metric::LatencyP99 | Metric::LatencyP999 => None,
    };
    found.ok_or_else(unknown)
}

/// Work per second with its interval: over executions, or over groups of windows of one. `whole` is the work of an execution whose
/// snapshots do not have it.
fn rate(
    value: f64,
    executions: &[Execution],
    work: impl Fn(&Snapshot) -> Option<f64>,
    whole: impl Fn(&Execution) -> Option<u64>,
) -> Estimate {
    let counted =
        |snapshot: &Snapshot| Some(Pair { numerator: work(snapshot)?, denominator: snapshot.at_nanos.seconds() });
    let uncounted =
        |execution: &Execution| Some(Pair { numerator: whole(execution)? as f64, denominator: io_seconds(execution) });
    let grown = |before: Pair, after: Pair| Pair {
        numerator: after.numerator - before.numerator,
        denominator: after.denominator - before.denominator,
    };
    let readings = |execution: &Execution| -> Vec<Pair> {
        let within = |at: &&Snapshot| {
            at.mode == Mode::Quiet && IoInterval::covers(execution.io_interval, at.at_nanos, at.at_nanos)
        };
        execution.stretch.snapshots.iter().filter(within).filter_map(&counted).collect()
    };
    let (units, neighbours) = match executions {
        [one] => {
            let readings = readings(one);
            let windows: Vec<Pair> =
                readings.windows(2).filter_map(|pair| Some(grown(*pair.first()?, *pair.last()?))).collect();
            (grouped(&windows), Neighbours::Alike)
        }
        several => {
            let of = |execution: &Execution| {
                let readings = readings(execution);
                let ends = readings.first().zip(readings.get(1..).and_then(<[Pair]>::last));
                ends.map(|(first, last)| grown(*first, *last)).or_else(|| uncounted(execution))
            };
            (several.iter().filter_map(of).collect(), Neighbours::Independent)
        }
    };
    let Some(ratio) = ratio_of_sums(&units, neighbours) else { return Estimate::bare(value) };
    // Windows and whole phases differ by what lies between.
    let (found, off) = (ratio.estimate(), value - ratio.value);
    Estimate { value, low: found.low.map(|low| low + off), high: found.high.map(|high| high + off) }
}

/// Duration of an execution: of one exact, of several the mean.
fn seconds(executions: &[Execution]) -> Option<Estimate> {
    let units: Vec<Pair> =
        executions.iter().map(|execution| Pair { numerator: io_seconds(execution), denominator: 1.0 }).collect();
    match units.as_slice() {
        [one] => Some(Estimate::exact(one.numerator)),
        several => Some(ratio_of_sums(several, Neighbours::Independent)?.estimate()),
    }
}
