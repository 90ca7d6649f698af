//! A job in the structure of fio's JSON.

use super::samples::Samples;
use super::{Bins, Cost, whole};
use crate::ThreadUsage;
use crate::finding::{DirectionFinding, JobFinding, LatencyFinding, PhaseFinding};
use crate::plan::options;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Options that a reader may look for, also where they have their default.
const OPTIONS: [&str; 5] = ["ioengine", "rw", "bs", "iodepth", "numjobs"];

/// The upper ends of the ranges of latency that fio counts, in a unit of nanoseconds each.
const NANOS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
const MILLIS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

/// EIO, for an error that has no number.
const IO_ERROR: u32 = 5;

/// Keys in their order.
#[derive(Clone, Debug)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A job.
#[derive(Clone, Debug, Serialize)]
pub struct FioJob {
    pub jobname: String,
    /// The phase, from 0.
    pub groupid: usize,
    /// Number of the operating system's error that ended it; 0 for none.
    pub error: u32,
    /// The error in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    pub eta: u64,
    /// Seconds of all phases until it ended.
    pub elapsed: u64,
    #[serde(rename = "job options")]
    pub job_options: Ordered<String>,
    pub cost: Option<Cost>,
    #[serde(flatten)]
    pub directions: Directions,
    pub sync: FioSync,
    /// Milliseconds of all copies.
    pub job_runtime: u64,
    /// Percent of the copies' time in user mode, as the next in the kernel.
    pub usr_cpu: f64,
    pub sys_cpu: f64,
    pub ctx: u64,
    pub majf: u64,
    pub minf: u64,
    /// Percent of all I/Os whose latency is in a range.
    pub latency_ns: Ordered<f64>,
    pub latency_us: Ordered<f64>,
    pub latency_ms: Ordered<f64>,
    pub latency_depth: u32,
    /// Nanoseconds.
    pub latency_target: u64,
    pub latency_percentile: f64,
    /// Microseconds.
    pub latency_window: u64,
}

/// The I/Os of a job. fio shows either three directions or their sum, too.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Directions {
    /// By direction.
    Each { read: Box<FioDirection>, write: Box<FioDirection>, trim: Box<FioDirection> },
    /// In the record of a run that was cut off, which only has their sum.
    Sum { mixed: Box<FioDirection> },
}

/// Reads, writes or trims of a job.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FioDirection {
    pub io_bytes: u64,
    pub io_kbytes: u64,
    pub bw_bytes: u64,
    pub bw: u64,
    pub iops: f64,
    /// Milliseconds.
    pub runtime: u64,
    pub total_ios: u64,
    pub short_ios: u64,
    pub drop_ios: u64,
    pub slat_ns: Spread,
    pub clat_ns: Spread,
    pub lat_ns: Spread,
    /// KiB per second, over samples.
    pub bw_min: u64,
    pub bw_max: u64,
    /// Percent of the group's bandwidth.
    pub bw_agg: f64,
    pub bw_mean: f64,
    pub bw_dev: f64,
    pub bw_samples: u64,
    pub iops_min: u64,
    pub iops_max: u64,
    pub iops_mean: f64,
    pub iops_stddev: f64,
    pub iops_samples: u64,
}

/// fsync and fdatasync calls.
#[derive(Clone, Debug, Serialize)]
pub struct FioSync {
    pub total_ios: u64,
    pub lat_ns: Spread,
}

/// A distribution of latencies, in nanoseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Spread {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub stddev: f64,
    #[serde(rename = "N")]
    pub samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Ordered<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bins: Option<Ordered<u64>>,
}

impl FioJob {
    pub(super) fn of(job: &JobFinding, phase: Option<&PhaseFinding>, only: bool, elapsed: f64, bins: Bins) -> Self {
        let millis = whole(job.wall_seconds * 1e3);
        let all_millis = millis.saturating_mul(job.copies.into());
        let usage = job.usage.unwrap_or_default();
        let share = |nanos: f64| if all_millis > 0 { nanos / 1e4 / all_millis as f64 } else { 0.0 };
        let ThreadUsage { user_nanos, system_nanos, context_switches, major_faults, minor_faults } = usage;
        // The counters over time do not tell jobs and directions apart.
        let directions = [&job.read, &job.write, &job.trim].into_iter().chain(&job.mixed);
        let used = directions.filter(|direction| direction.ios > 0).count();
        let series = phase.filter(|_| only && used == 1).map(|phase| phase.progress.as_slice()).unwrap_or_default();
        let direction = |found: &DirectionFinding| {
            let sampled = |work| if found.ios > 0 { Samples::of(series, work) } else { Samples::default() };
            let (bytes, ios) = (sampled(|point| point.bytes), sampled(|point| point.ios));
            Box::new(FioDirection::of(found, job, bins, if found.ios > 0 { millis } else { 0 }, bytes, ios))
        };
        let percent = |ends: &[u64], unit: u64, begin: u64| {
            let begins = std::iter::once(begin).chain(ends.iter().map(|end| end * unit));
            let shares = begins
                .zip(ends)
                .map(|(begin, end)| (end.to_string(), job.all.latency_ns.bins.share(begin, end * unit)));
            shares.collect::<Vec<_>>()
        };
        let mut in_millis = percent(&MILLIS, 1_000_000, 1_000_000);
        in_millis.push((">=2000".to_owned(), job.all.latency_ns.bins.share(2_000_000_000, u64::MAX)));
        Self {
            jobname: job.name.clone(),
            groupid: job.phase,
            error: job.error.as_deref().map_or(0, number_of_error),
            error_text: job.error.clone(),
            eta: 0,
            elapsed: whole(elapsed.ceil()),
            job_options: options(job),
            cost: phase.map(Cost::of),
            directions: match &job.mixed {
                Some(mixed) => Directions::Sum { mixed: direction(mixed) },
                None => Directions::Each {
                    read: direction(&job.read),
                    write: direction(&job.write),
                    trim: direction(&job.trim),
                },
            },
            sync: FioSync { total_ios: job.syncs, lat_ns: Spread::default() },
            job_runtime: all_millis,
            usr_cpu: share(user_nanos.as_f64()),
            sys_cpu: share(system_nanos.as_f64()),
            ctx: context_switches,
            majf: major_faults,
            minf: minor_faults,
            latency_ns: Ordered(percent(&NANOS, 1, 0)),
            latency_us: Ordered(percent(&NANOS, 1000, 1000)),
            latency_ms: Ordered(in_millis),
            latency_depth: job.plan.as_ref().map_or(0, |plan| plan.depth.in_flight),
            latency_target: 0,
            latency_percentile: 100.0,
            latency_window: 0,
        }
    }
}

/// The job's options, as its plan has them.
fn options(job: &JobFinding) -> Ordered<String> {
    let mut given = vec![("name".to_owned(), job.name.clone())];
    if let Some(plan) = &job.plan {
        given.extend(options::shown(plan, &OPTIONS).into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    Ordered(given)
}

/// The number in "No space left on device (os error 28)".
fn number_of_error(words: &str) -> u32 {
    let number = words.rsplit_once("(os error ").and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
    number.unwrap_or(IO_ERROR)
}

impl FioDirection {
    fn of(found: &DirectionFinding, job: &JobFinding, bins: Bins, millis: u64, bytes: Samples, ios: Samples) -> Self {
        let asked: Vec<f64> = job.all.latency_ns.percentiles.iter().map(|(percent, _)| *percent).collect();
        // As in fio, only one of the two has percentiles and bins, and only where there are I/Os: its readers expect no empty ones.
        let latency = Spread::of(&found.latency_ns, &[], Bins::Without);
        let completion = Spread::of(&found.latency_ns, &asked, bins);
        Self {
            io_bytes: found.bytes,
            io_kbytes: found.bytes / 1024,
            bw_bytes: whole(found.bytes_per_second),
            bw: whole((found.bytes_per_second / 1024.0).floor()),
            iops: found.iops,
            runtime: millis,
            total_ios: found.ios,
            short_ios: found.short,
            drop_ios: 0,
            slat_ns: Spread::default(),
            clat_ns: completion,
            lat_ns: latency,
            bw_min: whole(bytes.min / 1024.0),
            bw_max: whole(bytes.max / 1024.0),
            bw_agg: if bytes.count > 0 { 100.0 } else { 0.0 },
            bw_mean: bytes.mean / 1024.0,
            bw_dev: bytes.deviation / 1024.0,
            bw_samples: bytes.count,
            iops_min: whole(ios.min),
            iops_max: whole(ios.max),
            iops_mean: ios.mean,
            iops_stddev: ios.deviation,
            iops_samples: ios.count,
        }
    }
}

impl Spread {
    fn of(latency: &LatencyFinding, percents: &[f64], bins: Bins) -> Self {
        let found = &latency.bins;
        let of_percent = |percent: &f64| Some((format!("{percent:.6}"), found.percentile(*percent)?));
        let percentile: Vec<(String, u64)> = percents.iter().filter_map(of_percent).collect();
        let pairs = found.pairs().iter().map(|(value, count)| (value.to_string(), *count));
        Self {
            min: found.min().unwrap_or(0),
            max: whole(latency.max.unwrap_or(0.0)),
            mean: latency.mean.unwrap_or(0.0),
            stddev: found.deviation(),
            samples: found.total(),
            percentile: (!percentile.is_empty()).then_some(Ordered(percentile)),
            bins: (bins == Bins::With && found.total() > 0).then(|| Ordered(pairs.collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_number() {
        assert_eq!(number_of_error("job 'a': writing f: No space left on device (os error 28)"), 28);
        assert_eq!(number_of_error("job 'a': the server answered nothing"), IO_ERROR);
    }
}
