//! The options of a job's pace and length: queue depth, rate, pauses, time and amount.

use super::{MANY, MANY_64};
use crate::plan::job::Rates;
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::TimeUnit::{Microseconds, Seconds};
use crate::plan::value::typed;

/// The most that an io_uring completion queue holds (IORING_MAX_CQ_ENTRIES of Linux).
const DEEPEST: u32 = 65_536;

/// More than three years of I/O at ten million I/Os per second.
const MOST_IOS: u64 = 1 << 50;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "iodepth",
        help: "Keep this many I/Os in flight",
        default: Default::Value("1"),
        role: Role::Work,
        example: "32",
        bad_example: "0",
        get: |job| Some(job.depth.in_flight.to_string()),
        set: Count("I/Os", 1..=DEEPEST, |draft, ios| draft.job.depth.in_flight = ios),
        ..PLAIN
    },
    JobOption {
        name: "iodepth_batch_submit",
        aliases: &["iodepth_batch"],
        help: "Submit this many I/Os at once. 0 means iodepth",
        default: Default::Value("1"),
        role: Role::Work,
        example: "8",
        bad_example: "-1",
        get: |job| Some(job.depth.submit.to_string()),
        set: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.submit = ios),
        ..PLAIN
    },
    JobOption {
        name: "iodepth_batch_complete_min",
        aliases: &["iodepth_batch_complete"],
        help: "Wait for at least this many completions. 0 polls without waiting",
        default: Default::Value("1"),
        role: Role::Work,
        example: "4",
        bad_example: "4.5",
        get: |job| Some(job.depth.complete_min.to_string()),
        set: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.complete_min = ios),
        ..PLAIN
    },
    JobOption {
        name: "iodepth_batch_complete_max",
        help: "Retrieve at most this many completions at once. Raised to iodepth_batch_complete_min if lower",
        default: Default::Value("1"),
        role: Role::Work,
        example: "16",
        bad_example: "1g",
        get: |job| Some(job.depth.complete_max.to_string()),
        set: Count("I/Os", 0..=DEEPEST, |draft, ios| draft.job.depth.complete_max = ios),
        ..PLAIN
    },
    JobOption {
        name: "rate_iops",
        help: "Limit the rate. 0 means no limit",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1000,500",
        bad_example: "fast",
        get: |job| {
            let Rates { read, write, trim } = job.rates;
            Some(typed::each([read, write, trim].map(|rate| rate.to_string())))
        },
        set: PerDirection("I/Os per second", 0..=MANY_64, |draft, rates| {
            let now = &mut draft.job.rates;
            now.read = rates.read.unwrap_or(now.read);
            now.write = rates.write.unwrap_or(now.write);
            now.trim = rates.trim.unwrap_or(now.trim);
        }),
        ..PLAIN
    },
    JobOption {
        name: "thinktime",
        help: "Sleep this long between I/Os",
        default: Default::Value("0"),
        role: Role::Work,
        example: "50",
        bad_example: "50k",
        get: |job| Some(typed::time(job.think_time)),
        set: Time(Microseconds, |draft, time| draft.job.think_time = time),
        ..PLAIN
    },
    JobOption {
        name: "runtime",
        aliases: &["timeout"],
        help: "Stop the job after this time. 0 means when its I/O is done",
        default: Default::Value("0"),
        role: Role::Extent,
        example: "10s",
        bad_example: "10x",
        get: |job| Some(typed::time(job.duration.runtime)),
        set: Time(Seconds, |draft, time| draft.job.duration.runtime = time),
        ..PLAIN
    },
    JobOption {
        name: "time_based",
        help: "Repeat the I/O until runtime has passed",
        default: Default::Value("0"),
        role: Role::Extent,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.duration.time_based)),
        set: Switch(|draft, on| draft.job.duration.time_based = on),
        ..PLAIN
    },
    JobOption {
        name: "ramp_time",
        help: "Run this long before recording results",
        default: Default::Value("0"),
        role: Role::Other,
        example: "2s",
        bad_example: "-2",
        get: |job| Some(typed::time(job.duration.ramp)),
        set: Time(Seconds, |draft, time| draft.job.duration.ramp = time),
        ..PLAIN
    },
    JobOption {
        name: "number_ios",
        help: "Stop the job after this many I/Os. 0 means no limit",
        default: Default::Words("no limit"),
        role: Role::Extent,
        example: "1000",
        bad_example: "many",
        get: |job| job.duration.number_ios.map(|ios| ios.to_string()),
        set: Number("I/Os", 0..=MOST_IOS, |draft, ios| draft.job.duration.number_ios = (ios > 0).then_some(ios)),
        ..PLAIN
    },
    JobOption {
        name: "loops",
        help: "Run over the region this many times",
        default: Default::Value("1"),
        role: Role::Extent,
        example: "3",
        bad_example: "0",
        get: |job| Some(job.duration.loops.to_string()),
        set: Count("times", 1..=MANY, |draft, times| draft.job.duration.loops = times),
        ..PLAIN
    },
];
