//! Logs in fio's format.

use super::*;

/// The clocks of clock_gettime(2) that count time, not CPU time.
const CLOCKS: [u32; 7] = [0, 1, 4, 5, 6, 7, 11];

/// A log.
const fn log(name: &'static str, kind: Kind) -> JobOption {
    other(name, kind, Words("no log; without a value, NAME is that of the job"), "logs", "logs/")
        .form("the first part of a file's name, or nothing")
}

pub(super) static OPTIONS: &[JobOption] = &[
    log("write_bw_log", name_or_nothing(parsed!(logs.bandwidth, LogName::parse)))
        .help("Log the bandwidth, in KiB/s, in NAME_bw.N.log; N is the number of the thread"),
    log("write_iops_log", name_or_nothing(parsed!(logs.iops, LogName::parse)))
        .help("Log the I/Os per second in NAME_iops.N.log"),
    log("write_lat_log", name_or_nothing(parsed!(logs.latency, LogName::parse)))
        .help("Log the latencies, in nanoseconds, in NAME_lat.N.log, NAME_slat.N.log and NAME_clat.N.log"),
    log("write_hist_log", name_or_nothing(parsed!(logs.histogram, LogName::parse)))
        .help("Log histograms of the latency in NAME_clat_hist.N.log, with log_hist_msec"),
    other("write_iolog", text(parsed!(logs.trace, file_name)), Words("no trace"), "trace.log", "traces/")
        .form("a file's name")
        .help("Write the job's requests with their times into this file, which read_iolog of fio replays"),
    other("log_avg_msec", count("milliseconds", 0..=MANY, field!(logs.window)), Is("0"), "1000", "1s")
        .help("Milliseconds of a row of a log, which has means; 0 for a row for each I/O"),
    other("log_max_value", boolean(field!(logs.largest)), Is("0"), "1", "2")
        .help("With log_avg_msec, the largest latency of each window instead of the mean"),
    other("log_hist_msec", count("milliseconds", 0..=MANY, field!(logs.histogram_window)), Is("0"), "1000", "1s")
        .help("Milliseconds of a row of the log of histograms; 0 for none"),
    other("log_hist_coarseness", number("times", 0..=6, field!(logs.coarseness)), Is("0"), "3", "7")
        .help("How often two bins of a log of histograms become one: 0 for 1856 bins, 6 for 29"),
    other("log_offset", boolean(field!(logs.offset)), Is("0"), "1", "2")
        .help("Rows of logs have the offset of their I/O"),
    other("log_prio", boolean(field!(logs.priority)), Is("0"), "1", "2")
        .help("Rows of logs have the class and level of the I/O priority, as one number"),
    other("log_unix_epoch", boolean(field!(logs.unix_epoch)), Is("0"), "1", "2")
        .help("Times in logs are milliseconds since 1970, not since the job's start"),
    other("log_alternate_epoch", boolean(field!(logs.alternate_epoch)), Is("0"), "1", "2")
        .help("Times in logs are those of the clock of log_alternate_epoch_clock_id"),
    other("log_alternate_epoch_clock_id", text(parsed!(logs.clock, clock)), Is("0"), "1", "2")
        .form("0, 1, 4, 5, 6, 7 or 11")
        .help("That clock, and the one of log_unix_epoch, as clock_gettime(2) numbers it"),
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

// Places that are no fields.
const GTOD_REDUCE: Place<Set<bool>> = place(
    |job| shown(&(job.logs.without == WithoutLogs::ALL)),
    |draft, on| draft.job.logs.without = if on { WithoutLogs::ALL } else { WithoutLogs::default() },
);

fn clock(text: &str) -> Result<u32, Wrong> {
    let clock = text.parse().ok().filter(|clock| CLOCKS.contains(clock));
    clock.ok_or_else(|| Wrong::because(text, "is no clock that counts time"))
}
