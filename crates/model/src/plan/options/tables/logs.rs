//! Logs in fio's format, traces that are replayed, and options of fio that change its reports and clocks, and no I/O: these are accepted, and
//! have no effect. iotoll measures latencies always, with one reading of the time-stamp counter for each I/O.

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
    log("write_hist_log", name_or_nothing(parsed!(logs.histogram, log_name)))
        .help("Log histograms of the latency in NAME_clat_hist.N.log, with log_hist_msec"),
    other("write_iolog", text(parsed!(logs.trace, file_name)), Words("no trace"), "trace.log", "traces/")
        .form("a file's name")
        .help("Write the job's requests with their times into this file, which read_iolog of fio replays"),
    other("log_avg_msec", count("milliseconds", 0..=MANY, field!(logs.window)), Is("0"), "1000", "1s")
        .help("Milliseconds of a row of a log, which has means; 0 for a row for each I/O"),
    other("log_hist_msec", count("milliseconds", 0..=MANY, field!(logs.histogram_window)), Is("0"), "1000", "1s")
        .help("Milliseconds of a row of the log of histograms; 0 for none"),
    other("per_job_logs", boolean(field_not!(logs.shared)), Is("1"), "0", "2")
        .help("Each thread writes logs of its own; with 0, jobs with the same NAME share a file"),
    other("gtod_reduce", switch(GTOD_REDUCE), Is("0"), "1", "2")
        .help("write_lat_log writes no files; latencies are measured all the same"),
    other("disable_lat", switch(field!(logs.without.latency)), Is("0"), "1", "2")
        .help("write_lat_log writes no NAME_lat.N.log; latencies are measured all the same"),
    other("disable_clat", switch(field!(logs.without.completion)), Is("0"), "1", "2")
        .help("write_lat_log writes no NAME_clat.N.log; latencies are measured all the same"),
    other("disable_slat", switch(field!(logs.without.submission)), Is("0"), "1", "2")
        .help("write_lat_log writes no NAME_slat.N.log"),
    nothing("log_entries", number("rows", 1024..=1 << 20, nowhere!()), Words("as needed"), "4096", "few")
        .help("Accepted without effect: the memory of logs is taken before the first I/O"),
    nothing("log_compression", number("bytes", 1024..=512 << 20, nowhere!()), Words("none"), "1m", "1")
        .help("Accepted without effect: logs are kept in memory as they are"),
    nothing("log_compression_cpus", text(unshown(|_, text| cpus(text).map(|_| ()))), Words("none"), "0-1", "1-0")
        .form("CPU numbers and ranges")
        .help("Accepted without effect: no thread compresses logs"),
    nothing("log_store_compressed", one_of(&["0"], nowhere!()), Words("0"), "0", "1")
        .help("Accepted as 0 without effect: logs are text. 1 is refused"),
    nothing("bwavgtime", number("milliseconds", 0..=MANY_64, nowhere!()), Words("none"), "500", "half").help(
        "Accepted without effect: rates are those of the whole run and of its windows; log_avg_msec has the \
         windows of logs",
    ),
    nothing("iopsavgtime", number("milliseconds", 0..=MANY_64, nowhere!()), Words("none"), "500", "half")
        .help("Accepted without effect, as bwavgtime"),
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

pub(super) static REPORTS: &[JobOption] = &[
    nothing("disable_bw_measurement", switch(nowhere!()), Is("0"), "1", "2")
        .also(&["disable_bw"])
        .help("Accepted without effect: bytes are always counted"),
    nothing("clat_percentiles", switch(nowhere!()), Is("1"), "0", "2")
        .help("Accepted without effect: percentiles of the latency are always reported"),
    nothing("lat_percentiles", switch(nowhere!()), Is("0"), "1", "2")
        .help("Accepted without effect: percentiles of the latency are always reported"),
    nothing("slat_percentiles", switch(nowhere!()), Is("0"), "1", "2")
        .help("Accepted without effect: no latency of the submission alone is measured"),
    nothing("block_error_percentiles", switch(nowhere!()), Is("0"), "1", "2")
        .help("Accepted without effect: the first error ends the job"),
    nothing("disk_util", switch(nowhere!()), Is("1"), "0", "2")
        .help("Accepted without effect: see --probe for the counters of a device"),
    nothing("error_dump", switch(nowhere!()), Is("0"), "1", "2")
        .help("Accepted without effect: an error is always said"),
    nothing("experimental_verify", switch(nowhere!()), Is("0"), "1", "2")
        .help("Accepted without effect, as in fio 3.33"),
    nothing("clocksource", one_of(&["gettimeofday", "clock_gettime", "cpu"], nowhere!()), Required, "cpu", "sundial")
        .otherwise("the time-stamp counter")
        .help("Accepted without effect: the clock is the time-stamp counter"),
    nothing("gtod_cpu", number("as a CPU", 0..=1023, nowhere!()), Words("none"), "1", "x")
        .help("Accepted without effect: no thread reads the clock for the others"),
    nothing("unit_base", one_of(&["0", "8", "1"], nowhere!()), Words("8"), "8", "2")
        .help("Accepted without effect: reports are in bytes"),
    nothing("kb_base", one_of(&["1024"], nowhere!()), Words("1024"), "1024", "1000")
        .help("The meaning of k, m, g in values: powers of 1024. 1000, which turns that round, is refused"),
    nothing("significant_figures", number("digits", 1..=10, nowhere!()), Words("by the interval"), "6", "0")
        .help("Accepted without effect: the interval of a figure decides"),
];

/// The first part of a file's name, or nothing.
fn log_name(text: &str) -> Result<String, Wrong> {
    match text.ends_with('/') {
        true => Err(Wrong::because(text, "is a folder; add the first part of the file's name")),
        false => Ok(text.to_owned()),
    }
}

// Places that are no fields.
const GTOD_REDUCE: Place<Set<bool>> = place(
    |job| shown(&(job.logs.without == WithoutLogs::ALL)),
    |draft, on| draft.job.logs.without = if on { WithoutLogs::ALL } else { WithoutLogs::default() },
);
