//! Options of fio that change its reports and clocks, and no I/O. They are accepted, and have no effect: iotoll measures latencies always, with
//! one reading of the time-stamp counter for each I/O, and its reports have their own form.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
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
