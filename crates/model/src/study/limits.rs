//! What a run or a command says of each metric that `--fail-on` can limit.
//!
//! Costs and rates are estimates, with the interval over windows or executions. Latencies and the duration of one execution are
//! facts about this measurement: every I/O of it was counted. A fact decides a limit on its value, but not on a change, because
//! one of a kind shows no spread.

use super::caveats::below_own_threads;
use super::phase::STEPPED;
use crate::experiment::Metric;
use crate::finding::{JobFinding, PhaseFinding, RunFinding};
use crate::limit::AtPlace;
use crate::stats::Estimate;

/// What is known of a metric in each phase, or of each job.
pub(crate) fn at_places(finding: &RunFinding, metric: &str) -> Vec<AtPlace> {
    match Metric::parse(metric) {
        Some(metric) if metric.is_latency() => {
            finding.merged_jobs.iter().map(|job| of_job(finding, job, metric)).collect()
        }
        Some(metric) => finding.phases.iter().map(|phase| of_phase(finding, phase, metric)).collect(),
        None => Vec::new(),
    }
}

fn of_job(finding: &RunFinding, job: &JobFinding, metric: Metric) -> AtPlace {
    let latency = &job.all.latency_ns;
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

fn of_phase(finding: &RunFinding, phase: &PhaseFinding, metric: Metric) -> AtPlace {
    let wrong = below_own_threads(&finding.head.host, phase).filter(|_| metric.is_of_whole_machine());
    let figure = phase.figures.of(metric);
    let unknown = || figure.why_not.unwrap_or_else(|| "it is unknown; a caveat or the meters say why".to_owned());
    let change = || {
        let then = phase.stored.as_ref().ok_or("the stored record has no such phase")?;
        let then = then.get(metric.name()).and_then(|then| then.change);
        Ok(then.ok_or("it is unknown of one of the two, or another meter gave it")?)
    };
    AtPlace {
        cell: if finding.phases.len() > 1 { phase.jobs.join(", ") } else { String::new() },
        arm: String::new(),
        // What is not told from the background is within its interval all the same.
        value: wrong.map_or_else(|| figure.estimate.ok_or_else(unknown), Err),
        change: finding.head.stored.is_some().then(change),
    }
}
