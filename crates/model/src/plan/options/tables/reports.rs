//! Options of fio that change its reports and clocks, and no I/O. They are accepted, and have no effect: iotoll measures latencies always, with
//! one reading of the time-stamp counter for each I/O, and its reports have their own form.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    nothing("disable_bw_measurement", Is("0"), "1", "2")
        .help("Accepted without effect: bytes are always counted")
        .also(&["disable_bw"])
        .switch(nowhere!()),
    nothing("clat_percentiles", Is("1"), "0", "2")
        .help("Accepted without effect: percentiles of the latency are always reported")
        .switch(nowhere!()),
    nothing("lat_percentiles", Is("0"), "1", "2")
        .help("Accepted without effect: percentiles of the latency are always reported")
        .switch(nowhere!()),
    nothing("slat_percentiles", Is("0"), "1", "2")
        .help("Accepted without effect: no latency of the submission alone is measured")
        .switch(nowhere!()),
    nothing("block_error_percentiles", Is("0"), "1", "2")
        .help("Accepted without effect: the first error ends the job")
        .switch(nowhere!()),
    nothing("disk_util", Is("1"), "0", "2")
        .help("Accepted without effect: see --probe for the counters of a device")
        .switch(nowhere!()),
    nothing("error_dump", Is("0"), "1", "2")
        .help("Accepted without effect: an error is always said")
        .switch(nowhere!()),
    nothing("experimental_verify", Is("0"), "1", "2")
        .help("Accepted without effect, as in fio 3.33")
        .switch(nowhere!()),
    nothing("clocksource", Words("the time-stamp counter"), "cpu", "sundial")
        .help("Accepted without effect: the clock is the time-stamp counter")
        .one_of(&["gettimeofday", "clock_gettime", "cpu"], nowhere!()),
    nothing("gtod_cpu", Words("none"), "1", "x")
        .help("Accepted without effect: no thread reads the clock for the others")
        .number("as a CPU", 0..=1023, nowhere!()),
    nothing("unit_base", Words("8"), "8", "2")
        .help("Accepted without effect: reports are in bytes")
        .one_of(&["0", "8", "1"], nowhere!()),
    nothing("kb_base", Words("1024"), "1024", "1000")
        .help("The meaning of k, m, g in values: powers of 1024. 1000, which turns that round, is refused")
        .one_of(&["1024"], nowhere!()),
    nothing("significant_figures", Words("by the interval"), "6", "0")
        .help("Accepted without effect: the interval of a figure decides")
        .number("digits", 1..=10, nowhere!()),
];
