//! The options of a job's pace and length: queue depth, rate, pauses, time and amount.

use super::{MANY, MANY_64, one_of};
use crate::plan::job::{RateProcess, Rates};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::TimeUnit::{Microseconds, Seconds};
use crate::plan::value::{choice, each_direction, list_words, time, typed, word};
use crate::unit::Nanos;

/// The most that an io_uring completion queue holds (IORING_MAX_CQ_ENTRIES of Linux).
const DEEPEST: u32 = 65_536;

/// The largest rate: no memory moves as many bytes per second.
const FASTEST: u64 = 1 << 50;

const MILLISECOND: u64 = 1_000_000;

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
        name: "iodepth_low",
        help: "Once the queue is full, submit nothing until it has drained to this depth",
        default: Default::Words("iodepth: it is kept full"),
        role: Role::Work,
        example: "4",
        bad_example: "0",
        get: |job| job.depth.low.map(|low| low.to_string()),
        set: Count("I/Os", 1..=DEEPEST, |draft, low| draft.job.depth.low = Some(low)),
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
        get: |job| Some(counts(job.rates)),
        set: PerDirection("I/Os per second", 0..=MANY_64, |draft, rates| draft.job.rates.take(rates)),
        ..PLAIN
    },
    JobOption {
        name: "rate",
        help: "Limit the rate in bytes. 0 means no limit",
        default: Default::Value("0"),
        role: Role::Work,
        example: "10m,5m",
        bad_example: "fast",
        get: |job| Some(bytes(job.pace.bytes)),
        set: PerDirection("bytes per second", 0..=FASTEST, |draft, rates| draft.job.pace.bytes.take(rates)),
        ..PLAIN
    },
    JobOption {
        name: "rate_process",
        help: "The times between the I/Os of a job with a rate: equal, or exponentially distributed",
        default: Default::Value("linear"),
        role: Role::Work,
        example: "poisson",
        bad_example: "normal",
        get: |job| Some(word(job.pace.process).to_owned()),
        set: Choice(list_words::<RateProcess>, |draft, text| choice(text).map(|found| draft.job.pace.process = found)),
        ..PLAIN
    },
    JobOption {
        name: "rate_min",
        aliases: &["ratemin"],
        help: "End the job with an error if it moves fewer bytes in a rate_cycle. 0 means never",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1m",
        bad_example: "slow",
        get: |job| Some(bytes(job.pace.least_bytes)),
        set: PerDirection("bytes per second", 0..=FASTEST, |draft, rates| draft.job.pace.least_bytes.take(rates)),
        ..PLAIN
    },
    JobOption {
        name: "rate_iops_min",
        help: "End the job with an error if it does fewer I/Os in a rate_cycle. 0 means never",
        default: Default::Value("0"),
        role: Role::Work,
        example: "100",
        bad_example: "slow",
        get: |job| Some(counts(job.pace.least_ios)),
        set: PerDirection("I/Os per second", 0..=MANY_64, |draft, rates| draft.job.pace.least_ios.take(rates)),
        ..PLAIN
    },
    JobOption {
        name: "rate_cycle",
        aliases: &["ratecycle"],
        help: "The time over which rate_min and rate_iops_min are judged",
        default: Default::Value("1000"),
        role: Role::Work,
        example: "500",
        bad_example: "0",
        get: |job| Some((job.pace.cycle.0 / MILLISECOND).to_string()),
        set: Count("milliseconds", 1..=86_400_000, |draft, milliseconds| {
            draft.job.pace.cycle = Nanos(u64::from(milliseconds) * MILLISECOND);
        }),
        ..PLAIN
    },
    JobOption {
        name: "rate_ignore_thinktime",
        help: "Do not catch up what a thinktime delayed",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.pace.ignores_thinking)),
        set: Boolean(|draft, on| draft.job.pace.ignores_thinking = on),
        ..PLAIN
    },
    JobOption {
        name: "max_latency",
        help: "End the job with an error when an I/O takes longer. 0 means never",
        default: Default::Value("0"),
        role: Role::Work,
        example: "500ms",
        bad_example: "long",
        get: |job| Some(typed::each(job.latency.most.all().map(|most| typed::time(*most)))),
        set: Text("microseconds, or a time in us, ms, s, m, h or d (READ,WRITE,TRIM)", |draft, text| {
            draft.job.latency.most.update(each_direction(text, |item| time(item, Microseconds))?);
            Ok(())
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
        name: "thinktime_blocks",
        help: "Sleep for thinktime after this many I/Os, once they have completed",
        default: Default::Words("1; with thinktime_iotime, time alone counts"),
        role: Role::Work,
        example: "8",
        bad_example: "0",
        get: |job| job.pace.think_blocks.map(|blocks| blocks.to_string()),
        set: Count("I/Os", 1..=MANY, |draft, blocks| draft.job.pace.think_blocks = Some(blocks)),
        ..PLAIN
    },
    JobOption {
        name: "thinktime_blocks_type",
        help: "Accepted without effect: a pause comes after that many I/Os were submitted and have completed",
        default: Default::Words("complete"),
        role: Role::Nothing,
        example: "issue",
        bad_example: "start",
        get: |_| None,
        set: Choice(|| "complete, issue".to_owned(), |_, text| one_of(text, &["complete", "issue"])),
        ..PLAIN
    },
    JobOption {
        name: "thinktime_iotime",
        help: "Sleep for thinktime also after this time of I/O; without thinktime_blocks only then. 0 means never",
        default: Default::Value("0"),
        role: Role::Work,
        example: "9s",
        bad_example: "9x",
        get: |job| Some(typed::time(job.pace.think_io_time)),
        set: Time(Seconds, |draft, time| draft.job.pace.think_io_time = time),
        ..PLAIN
    },
    JobOption {
        name: "thinktime_spin",
        help: "Keep the CPU busy for the first part of each thinktime",
        default: Default::Value("0"),
        role: Role::Work,
        example: "20",
        bad_example: "20k",
        get: |job| Some(typed::time(job.pace.think_spin)),
        set: Time(Microseconds, |draft, time| draft.job.pace.think_spin = time),
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

fn counts(rates: Rates) -> String {
    typed::each(rates.each().map(|rate| rate.to_string()))
}

fn bytes(rates: Rates) -> String {
    typed::each(rates.each().map(typed::bytes))
}
