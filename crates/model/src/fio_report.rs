//! The numbers of a run in the structure of fio's JSON (fio 3.33), for programs that read that.
//!
//! Names and units are fio's. Where its readers expect a number that iotoll does not measure, the number is 0 with 0 samples; what
//! they do not need is left out. docs/guide/fio-output.md lists both.

mod job;
mod samples;

use crate::finding::{Figures, PhaseFinding, RunFinding};
pub use job::{Directions, FioDirection, FioJob, FioSync, Ordered, Spread};
use serde::Serialize;
use std::collections::BTreeMap;

/// The version whose structure this is. fio's readers choose by it how to read.
const FIO_VERSION: &str = "fio-3.33";

/// Whether latencies are shown with the number of I/Os of each (fio's `json+`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bins {
    /// They are not.
    Without,
    /// They are.
    With,
}

/// A run as fio would report it.
#[derive(Clone, Debug, Serialize)]
pub struct FioReport {
    /// The version whose structure this is.
    #[serde(rename = "fio version")]
    pub fio_version: &'static str,
    /// Version of the program that measured.
    #[serde(rename = "iotoll version")]
    pub iotoll_version: Option<String>,
    /// Start of the measurement, in seconds since 1970.
    pub timestamp: u64,
    /// The same in milliseconds.
    pub timestamp_ms: u64,
    /// The same as text, in UTC.
    pub time: String,
    /// Empty: every job has all its options.
    #[serde(rename = "global options")]
    pub global_options: BTreeMap<String, String>,
    /// The jobs.
    pub jobs: Vec<FioJob>,
    /// Empty: iotoll does not read the counters of devices.
    pub disk_util: [(); 0],
}

impl FioReport {
    /// The report of `finding`, which is that of a run of iotoll's own engines. `time` makes the text of seconds since 1970.
    pub fn of(finding: &RunFinding, bins: Bins, time: fn(f64) -> String) -> Self {
        let started = finding.head.started_unix_seconds;
        let phase = |number: usize| finding.phases.get(number);
        let until =
            |number: usize| finding.phases.iter().take(number.saturating_add(1)).map(|phase| phase.wall_seconds).sum();
        let only = |number: usize| finding.jobs.iter().filter(|job| job.phase == number).count() == 1;
        let jobs = finding.jobs.iter().map(|job| {
            let elapsed: f64 = until(job.phase);
            FioJob::of(job, phase(job.phase), only(job.phase), elapsed, bins)
        });
        Self {
            fio_version: FIO_VERSION,
            iotoll_version: finding.head.origin.iotoll_version.clone(),
            timestamp: whole(started.floor()),
            timestamp_ms: whole((started * 1e3).floor()),
            time: time(started),
            global_options: BTreeMap::new(),
            jobs: jobs.collect(),
            disk_util: [],
        }
    }
}

/// What the I/Os of a job cost the machine, with all jobs that ran at the same time. `null` is unknown.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The jobs that share it.
    pub jobs: Vec<String>,
    /// Name of the meter.
    pub meter: Option<String>,
    /// Its figures: cycles per I/O and context switches per I/O are those of the whole machine, net of the background.
    #[serde(flatten)]
    pub figures: Figures,
    /// Basis of the interval, or why there is none.
    pub interval_from: String,
}

impl Cost {
    fn of(phase: &PhaseFinding) -> Self {
        Self {
            jobs: phase.jobs.clone(),
            meter: phase.headline_meter.clone(),
            figures: phase.figures.clone(),
            interval_from: phase.spread.interval_from.clone(),
        }
    }
}

/// A number that fio shows as a whole one. Numbers of a record may be arbitrary; what is no count becomes 0.
fn whole(value: f64) -> u64 {
    // The conversion saturates.
    value.round() as u64
}
