//! Logs in fio's format.

use super::*;

/// Most milliseconds of a window: a year.
const LONGEST_WINDOW: u32 = MANY;
/// The clocks of clock_gettime(2) that count time, not CPU time.
const CLOCKS: [u32; 7] = [0, 1, 4, 5, 6, 7, 11];

/// What the option of a log takes.
const LOG_NAME: &str = "the first part of a file's name, or nothing";

/// A log.
const fn log(name: &'static str) -> JobOption {
    other(name, Words("no log; without a value, NAME is that of the job"), "logs", "logs/")
}

pub(super) static OPTIONS: &[JobOption] = &[
    log("write_bw_log")
        .help("Log the bandwidth, in KiB/s, in NAME_bw.N.log; N is the number of the thread")
        .name_or_nothing(LOG_NAME, parsed!(logs.bandwidth, LogName::parse)),
    log("write_iops_log")
        .help("Log the I/Os per second in NAME_iops.N.log")
        .name_or_nothing(LOG_NAME, parsed!(logs.iops, LogName::parse)),
    log("write_lat_log")
        .help("Log the latencies, in nanoseconds, in NAME_lat.N.log, NAME_slat.N.log and NAME_clat.N.log")
        .name_or_nothing(LOG_NAME, parsed!(logs.latency, LogName::parse)),
    log("write_hist_log")
        .help("Log histograms of the latency in NAME_clat_hist.N.log, with log_hist_msec")
        .name_or_nothing(LOG_NAME, parsed!(logs.histogram, LogName::parse)),
    other("write_iolog", Words("no trace"), "trace.log", "traces/")
        .help("Write the job's requests with their times into this file, which read_iolog of fio replays")
        .text("a file's name", parsed!(logs.trace, file_name)),
    other("log_avg_msec", Is("0"), "1000", "1s")
        .help("Milliseconds of a row of a log, which has means; 0 for a row for each I/O")
        .count("milliseconds", 0..=LONGEST_WINDOW, field!(logs.window)),
    other("log_max_value", Is("0"), "1", "2")
        .help("With log_avg_msec, the largest latency of each window instead of the mean")
        .boolean(field!(logs.largest)),
    other("log_hist_msec", Is("0"), "1000", "1s")
        .help("Milliseconds of a row of the log of histograms; 0 for none")
        .count("milliseconds", 0..=LONGEST_WINDOW, field!(logs.histogram_window)),
    other("log_hist_coarseness", Is("0"), "3", "7")
        .help("How often two bins of a log of histograms become one: 0 for 1856 bins, 6 for 29")
        .number("times", 0..=6, field!(logs.coarseness)),
    other("log_offset", Is("0"), "1", "2")
        .help("Rows of logs have the offset of their I/O")
        .boolean(field!(logs.offset)),
    other("log_prio", Is("0"), "1", "2")
        .help("Rows of logs have the class and level of the I/O priority, as one number")
        .boolean(field!(logs.priority)),
    other("log_unix_epoch", Is("0"), "1", "2")
        .help("Times in logs are milliseconds since 1970, not since the job's start")
        .boolean(field!(logs.unix_epoch)),
    other("log_alternate_epoch", Is("0"), "1", "2")
        .help("Times in logs are those of the clock of log_alternate_epoch_clock_id")
        .boolean(field!(logs.alternate_epoch)),
    other("log_alternate_epoch_clock_id", Is("0"), "1", "2")
        .help("That clock, and the one of log_unix_epoch, as clock_gettime(2) numbers it")
        .text("0, 1, 4, 5, 6, 7 or 11", parsed!(logs.clock, clock)),
    other("per_job_logs", Is("1"), "0", "2")
        .help("Each thread writes logs of its own; with 0, jobs with the same NAME share a file")
        .boolean(field_not!(logs.shared)),
    other("gtod_reduce", Is("0"), "1", "2")
        .help("write_lat_log writes no files; latencies are measured all the same")
        .switch(place(
            |job| shown(&(job.logs.without == WithoutLogs::ALL)),
            |draft, on| draft.job.logs.without = if on { WithoutLogs::ALL } else { WithoutLogs::default() },
        )),
    other("disable_lat", Is("0"), "1", "2")
        .help("write_lat_log writes no NAME_lat.N.log; latencies are measured all the same")
        .switch(field!(logs.without.latency)),
    other("disable_clat", Is("0"), "1", "2")
        .help("write_lat_log writes no NAME_clat.N.log; latencies are measured all the same")
        .switch(field!(logs.without.completion)),
    other("disable_slat", Is("0"), "1", "2")
        .help("write_lat_log writes no NAME_slat.N.log")
        .switch(field!(logs.without.submission)),
    nothing("log_entries", Words("as needed"), "4096", "few")
        .help("Accepted without effect: the memory of logs is taken before the first I/O")
        .number("rows", 1024..=1 << 20, nowhere!()),
    nothing("log_compression", Words("none"), "1m", "1")
        .help("Accepted without effect: logs are kept in memory as they are")
        .number("bytes", 1024..=512 << 20, nowhere!()),
    nothing("log_compression_cpus", Words("none"), "0-1", "1-0")
        .help("Accepted without effect: no thread compresses logs")
        .text("CPU numbers and ranges", unshown(|_, text| cpus(text).map(|_| ()))),
    nothing("log_store_compressed", Words("0"), "0", "1")
        .help("Accepted as 0 without effect: logs are text. 1 is refused")
        .one_of(&["0"], nowhere!()),
    nothing("bwavgtime", Words("none"), "500", "half")
        .help(
            "Accepted without effect: rates are those of the whole run and of its windows; log_avg_msec has the \
             windows of logs",
        )
        .number("milliseconds", 0..=MANY_64, nowhere!()),
    nothing("iopsavgtime", Words("none"), "500", "half").help("Accepted without effect, as bwavgtime").number(
        "milliseconds",
        0..=MANY_64,
        nowhere!(),
    ),
];

fn clock(text: &str) -> Result<u32, Wrong> {
    let clock = text.parse().ok().filter(|clock| CLOCKS.contains(clock));
    clock.ok_or_else(|| Wrong::because(text, "is no clock that counts time"))
}
