//! Logs in fio's format.

use super::{MANY, MANY_64, without_effect};
use crate::plan::draft::Draft;
use crate::plan::job::{JobPlan, LogName, LogPlan};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{Wrong, cpus, typed};

/// Most milliseconds of a window: a year.
const LONGEST_WINDOW: u32 = MANY;
/// The clocks of clock_gettime(2) that count time, not CPU time.
const CLOCKS: [u32; 7] = [0, 1, 4, 5, 6, 7, 11];

/// A row for a log: its name, its help, the field.
macro_rules! log {
    ($name:literal, $help:literal, $field:ident) => {
        JobOption {
            name: $name,
            help: $help,
            default: Default::Words("no log; without a value, NAME is that of the job"),
            role: Role::Other,
            example: "logs",
            bad_example: "logs/",
            get: |job| job.logs.$field.as_ref().map(text),
            set: Name("the first part of a file's name, or nothing", |draft, text| {
                name(text).map(|name| draft.job.logs.$field = Some(name))
            }),
            ..PLAIN
        }
    };
}

/// A boolean of a log that is off by default: its names, its help, the field.
macro_rules! boolean {
    ($name:literal, $help:literal, $($field:ident).+) => {
        JobOption {
            name: $name,
            help: $help,
            default: Default::Value("0"),
            role: Role::Other,
            example: "1",
            bad_example: "2",
            get: |job| Some(typed::switch(job.logs.$($field).+)),
            set: Boolean(|draft, on| draft.job.logs.$($field).+ = on),
            ..PLAIN
        }
    };
}

pub(super) static OPTIONS: &[JobOption] = &[
    log!("write_bw_log", "Log the bandwidth, in KiB/s, in NAME_bw.N.log; N is the number of the thread", bandwidth),
    log!("write_iops_log", "Log the I/Os per second in NAME_iops.N.log", iops),
    log!(
        "write_lat_log",
        "Log the latencies, in nanoseconds, in NAME_lat.N.log, NAME_slat.N.log and NAME_clat.N.log",
        latency
    ),
    log!("write_hist_log", "Log histograms of the latency in NAME_clat_hist.N.log, with log_hist_msec", histogram),
    JobOption {
        name: "write_iolog",
        help: "Write the job's requests with their times into this file, which read_iolog of fio replays",
        default: Default::Words("no trace"),
        role: Role::Other,
        example: "trace.log",
        bad_example: "traces/",
        get: |job| job.logs.trace.clone(),
        set: Text("a file's name", |draft, text| {
            if text.ends_with('/') {
                return Err(Wrong::because(text, "is a folder"));
            }
            draft.job.logs.trace = Some(text.to_owned());
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "log_avg_msec",
        help: "Milliseconds of a row of a log, which has means; 0 for a row for each I/O",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1000",
        bad_example: "1s",
        get: |job| Some(job.logs.window.to_string()),
        set: Count("milliseconds", 0..=LONGEST_WINDOW, |draft, window| draft.job.logs.window = window),
        ..PLAIN
    },
    boolean!("log_max_value", "With log_avg_msec, the largest latency of each window instead of the mean", largest),
    JobOption {
        name: "log_hist_msec",
        help: "Milliseconds of a row of the log of histograms; 0 for none",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1000",
        bad_example: "1s",
        get: |job| Some(job.logs.histogram_window.to_string()),
        set: Count("milliseconds", 0..=LONGEST_WINDOW, |draft, window| draft.job.logs.histogram_window = window),
        ..PLAIN
    },
    JobOption {
        name: "log_hist_coarseness",
        help: "How often two bins of a log of histograms become one: 0 for 1856 bins, 6 for 29",
        default: Default::Value("0"),
        role: Role::Other,
        example: "3",
        bad_example: "7",
        get: |job| Some(job.logs.coarseness.to_string()),
        set: Number("times", 0..=6, |draft, times| draft.job.logs.coarseness = u8::try_from(times).unwrap_or(0)),
        ..PLAIN
    },
    boolean!("log_offset", "Rows of logs have the offset of their I/O", offset),
    boolean!("log_prio", "Rows of logs have the class and level of the I/O priority, as one number", priority),
    boolean!("log_unix_epoch", "Times in logs are milliseconds since 1970, not since the job's start", unix_epoch),
    boolean!(
        "log_alternate_epoch",
        "Times in logs are those of the clock of log_alternate_epoch_clock_id",
        alternate_epoch
    ),
    JobOption {
        name: "log_alternate_epoch_clock_id",
        help: "That clock, and the one of log_unix_epoch, as clock_gettime(2) numbers it",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |job| Some(job.logs.clock.to_string()),
        set: Text("0, 1, 4, 5, 6, 7 or 11", |draft, text| {
            let clock = text.parse().ok().filter(|clock| CLOCKS.contains(clock));
            draft.job.logs.clock = clock.ok_or_else(|| Wrong::because(text, "is no clock that counts time"))?;
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "per_job_logs",
        help: "Each thread writes logs of its own; with 0, jobs with the same NAME share a file",
        default: Default::Value("1"),
        role: Role::Other,
        example: "0",
        bad_example: "2",
        get: |job| Some(typed::switch(!job.logs.shared)),
        set: Boolean(|draft, on| draft.job.logs.shared = !on),
        ..PLAIN
    },
    leaves_out(
        "gtod_reduce",
        "write_lat_log writes no files; latencies are measured all the same",
        |job| {
            let without = job.logs.without;
            Some(typed::switch(without.latency && without.submission && without.completion))
        },
        |draft, on| each(&mut draft.job.logs, [true; 3], on),
    ),
    leaves_out(
        "disable_lat",
        "write_lat_log writes no NAME_lat.N.log; latencies are measured all the same",
        |job| Some(typed::switch(job.logs.without.latency)),
        |draft, on| each(&mut draft.job.logs, [true, false, false], on),
    ),
    leaves_out(
        "disable_clat",
        "write_lat_log writes no NAME_clat.N.log; latencies are measured all the same",
        |job| Some(typed::switch(job.logs.without.completion)),
        |draft, on| each(&mut draft.job.logs, [false, false, true], on),
    ),
    leaves_out(
        "disable_slat",
        "write_lat_log writes no NAME_slat.N.log",
        |job| Some(typed::switch(job.logs.without.submission)),
        |draft, on| each(&mut draft.job.logs, [false, true, false], on),
    ),
    without_effect(
        "log_entries",
        "Accepted without effect: the memory of logs is taken before the first I/O",
        ("as needed", "4096", "few"),
        Number("rows", 1024..=1 << 20, |_, _| {}),
    ),
    without_effect(
        "log_compression",
        "Accepted without effect: logs are kept in memory as they are",
        ("none", "1m", "1"),
        Number("bytes", 1024..=512 << 20, |_, _| {}),
    ),
    without_effect(
        "log_compression_cpus",
        "Accepted without effect: no thread compresses logs",
        ("none", "0-1", "1-0"),
        Text("CPU numbers and ranges", |_, text| cpus(text).map(|_| ())),
    ),
    without_effect(
        "log_store_compressed",
        "Accepted as 0 without effect: logs are text. 1 is refused",
        ("0", "0", "1"),
        Choice(|| "0".to_owned(), |_, text| super::one_of(text, &["0"])),
    ),
    without_effect(
        "bwavgtime",
        "Accepted without effect: rates are those of the whole run and of its windows; log_avg_msec has the windows of logs",
        ("none", "500", "half"),
        Number("milliseconds", 0..=MANY_64, |_, _| {}),
    ),
    without_effect(
        "iopsavgtime",
        "Accepted without effect, as bwavgtime",
        ("none", "500", "half"),
        Number("milliseconds", 0..=MANY_64, |_, _| {}),
    ),
];

/// A switch that leaves logs out.
const fn leaves_out(
    name: &'static str,
    help: &'static str,
    get: fn(&JobPlan) -> Option<String>,
    set: fn(&mut Draft, bool),
) -> JobOption {
    let default = Default::Value("0");
    JobOption { name, help, default, role: Role::Other, example: "1", bad_example: "2", get, set: Switch(set), ..PLAIN }
}

/// Leaves these of the three logs of latency out, or no longer.
fn each(logs: &mut LogPlan, [latency, submission, completion]: [bool; 3], out: bool) {
    let without = &mut logs.without;
    let fields =
        [(&mut without.latency, latency), (&mut without.submission, submission), (&mut without.completion, completion)];
    fields.into_iter().filter(|(_, meant)| *meant).for_each(|(field, _)| *field = out);
}

fn name(text: &str) -> Result<LogName, Wrong> {
    match text {
        "" => Ok(LogName::Job),
        _ if text.ends_with('/') => Err(Wrong::because(text, "is a folder; add the first part of the file's name")),
        _ => Ok(LogName::Is(text.to_owned())),
    }
}

fn text(name: &LogName) -> String {
    match name {
        LogName::Job => String::new(),
        LogName::Is(name) => name.clone(),
    }
}
