//! Logs in fio's format, and traces that are replayed.

use super::*;

/// A log.
const fn log(name: &'static str, kind: Kind) -> JobOption {
    other(name, kind, Words("no log; without a value, NAME is that of the job"), "logs", "logs/")
        .form("the first part of a file's name, or nothing")
}

pub(super) static OPTIONS: &[JobOption] = &[
    log("write_bw_log", name_or_nothing(parsed!(logs.bandwidth, log_name)))
        .help("Log the bandwidth, in KiB/s, in NAME_bw.N.log; N is the number of the thread"),
    log("write_iops_log", name_or_nothing(parsed!(logs.iops, log_name)))
        .help("Log the I/Os per second in NAME_iops.N.log"),
    log("write_lat_log", name_or_nothing(parsed!(logs.latency, log_name)))
        .help("Log the latencies, in nanoseconds, in NAME_lat.N.log, NAME_slat.N.log and NAME_clat.N.log"),
    other("write_iolog", text(parsed!(logs.trace, file_name)), Words("no trace"), "trace.log", "traces/")
        .form("a file's name")
        .help("Write the job's requests with their times into this file, which read_iolog of fio replays"),
    other("log_avg_msec", count("milliseconds", 0..=MANY, field!(logs.window)), Is("0"), "1000", "1s")
        .help("Milliseconds of a row of a log, which has means; 0 for a row for each I/O"),
    other("per_job_logs", boolean(field_not!(logs.shared)), Is("1"), "0", "2")
        .help("Each thread writes logs of its own; with 0, jobs with the same NAME share a file"),
];

pub(super) static REPLAY: &[JobOption] = &[
    work("read_iolog", text(parsed!(replay.traces, file_names)), Words("no trace"), "trace.log", "a::b")
        .form("file names separated by ':', a ':' within a name as '\\:'")
        .help(
            "Replay this trace of fio, version 2 or 3: its files, requests, syncs and times take the place of rw, \
             bs, size and the like. Of several, copies of the job take turns among them",
        ),
    work("replay_no_stall", boolean(field!(replay.no_stall)), Is("0"), "1", "2")
        .help("Replay the requests of a trace one after the other, without its times"),
    work("replay_redirect", text(parsed!(replay.redirect, file_name)), Required, "/tmp/a", "/tmp/")
        .otherwise("the files of the trace")
        .form("a file's name")
        .help("All requests of a trace go to this file or device"),
];

const LOGGED: &str = "latencies are always measured, and write_lat_log has all of them";

/// What changes reports and clocks of fio, and no I/O.
pub(super) static REPORTS: &[JobOption] = &[
    said("write_hist_log", "no log of histograms is written; --format fio-json+ has the one of the whole job").bare(),
    nothing("log_hist_msec", "no log of histograms is written"),
    nothing("gtod_reduce", LOGGED).bare(),
    nothing("disable_lat", LOGGED).bare(),
    nothing("disable_clat", LOGGED).bare(),
    nothing("disable_slat", LOGGED).bare(),
    nothing("disable_bw_measurement", "bytes are always counted").also(&["disable_bw"]).bare(),
    nothing("clat_percentiles", "percentiles of the latency are always reported").bare(),
    nothing("lat_percentiles", "percentiles of the latency are always reported").bare(),
    nothing("disk_util", "see --probe for the counters of a device").bare(),
    nothing("clocksource", "the clock is the time-stamp counter, which is read once for each I/O"),
];

/// The first part of a file's name, or nothing.
fn log_name(text: &str) -> Result<String, Wrong> {
    match text.ends_with('/') {
        true => Err(Wrong::because(text, "is a folder; add the first part of the file's name")),
        false => Ok(text.to_owned()),
    }
}

fn file_name(text: &str) -> Result<String, Wrong> {
    if text.ends_with('/') { Err(Wrong::because(text, "is a folder")) } else { Ok(text.to_owned()) }
}
