//! Options of fio that change its reports and clocks, and no I/O. They are accepted, and have no effect: iotoll measures latencies always, with
//! one reading of the time-stamp counter for each I/O, and its reports have their own form.

use super::{one_of, without_effect};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};

/// The words that one of these options accepts.
macro_rules! words {
    ($($word:literal),+) => {
        Choice(|| [$($word),+].join(", "), |_, text| one_of(text, &[$($word),+]))
    };
}

pub(super) static OPTIONS: &[JobOption] = &[
    switch("disable_bw_measurement", &["disable_bw"], "Accepted without effect: bytes are always counted"),
    on("clat_percentiles", "Accepted without effect: percentiles of the latency are always reported"),
    switch("lat_percentiles", &[], "Accepted without effect: percentiles of the latency are always reported"),
    switch("slat_percentiles", &[], "Accepted without effect: no latency of the submission alone is measured"),
    switch("block_error_percentiles", &[], "Accepted without effect: the first error ends the job"),
    on("disk_util", "Accepted without effect: see --probe for the counters of a device"),
    switch("error_dump", &[], "Accepted without effect: an error is always said"),
    switch("experimental_verify", &[], "Accepted without effect, as in fio 3.33"),
    without_effect(
        "clocksource",
        "Accepted without effect: the clock is the time-stamp counter",
        ("the time-stamp counter", "cpu", "sundial"),
        words!("gettimeofday", "clock_gettime", "cpu"),
    ),
    without_effect(
        "gtod_cpu",
        "Accepted without effect: no thread reads the clock for the others",
        ("none", "1", "x"),
        Number("as a CPU", 0..=1023, |_, _| {}),
    ),
    without_effect(
        "unit_base",
        "Accepted without effect: reports are in bytes",
        ("8", "8", "2"),
        words!("0", "8", "1"),
    ),
    without_effect(
        "kb_base",
        "The meaning of k, m, g in values: powers of 1024. 1000, which turns that round, is refused",
        ("1024", "1024", "1000"),
        words!("1024"),
    ),
    without_effect(
        "significant_figures",
        "Accepted without effect: the interval of a figure decides",
        ("by the interval", "6", "0"),
        Number("digits", 1..=10, |_, _| {}),
    ),
];

/// A switch that is off by default.
const fn switch(name: &'static str, aliases: &'static [&'static str], help: &'static str) -> JobOption {
    let default = Default::Value("0");
    JobOption {
        name,
        aliases,
        help,
        default,
        role: Role::Nothing,
        example: "1",
        bad_example: "2",
        set: Switch(|_, _| {}),
        ..PLAIN
    }
}

/// A boolean that is on by default.
const fn on(name: &'static str, help: &'static str) -> JobOption {
    let default = Default::Value("1");
    JobOption {
        name,
        help,
        default,
        role: Role::Nothing,
        example: "0",
        bad_example: "2",
        set: Switch(|_, _| {}),
        ..PLAIN
    }
}
