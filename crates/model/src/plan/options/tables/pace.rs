//! The options of a job's pace and length: queue depth, rate, pauses, time and amount.

use super::*;

/// The most that an io_uring completion queue holds (IORING_MAX_CQ_ENTRIES of Linux).
const DEEPEST: u32 = 65_536;

/// The largest rate: no memory moves as many bytes per second.
const FASTEST: u64 = 1 << 50;

/// More than three years of I/O at ten million I/Os per second.
const MOST_IOS: u64 = 1 << 50;

pub(super) static OPTIONS: &[JobOption] = &[
    work("iodepth", Is("1"), "32", "0").help("Keep this many I/Os in flight").count(
        "I/Os",
        1..=DEEPEST,
        field!(depth.in_flight),
    ),
    work("iodepth_low", Words("iodepth: it is kept full"), "4", "0")
        .help("Once the queue is full, submit nothing until it has drained to this depth")
        .count("I/Os", 1..=DEEPEST, field!(depth.low)),
    work("iodepth_batch_submit", Is("1"), "8", "-1")
        .help("Submit this many I/Os at once. 0 means iodepth")
        .also(&["iodepth_batch"])
        .count("I/Os", 0..=DEEPEST, field!(depth.submit)),
    work("iodepth_batch_complete_min", Is("1"), "4", "4.5")
        .help("Wait for at least this many completions. 0 polls without waiting")
        .also(&["iodepth_batch_complete"])
        .count("I/Os", 0..=DEEPEST, field!(depth.complete_min)),
    work("iodepth_batch_complete_max", Is("1"), "16", "1g")
        .help("Retrieve at most this many completions at once. Raised to iodepth_batch_complete_min if lower")
        .count("I/Os", 0..=DEEPEST, field!(depth.complete_max)),
    work("rate_iops", Is("0"), "1000,500", "fast").help("Limit the rate. 0 means no limit").per_direction(
        "I/Os per second",
        0..=MANY_64,
        field!(rates),
    ),
    work("rate", Is("0"), "10m,5m", "fast").help("Limit the rate in bytes. 0 means no limit").per_direction(
        "bytes per second",
        0..=FASTEST,
        place(|job| bytes(job.pace.bytes), |draft, rates| draft.job.pace.bytes.update(rates)),
    ),
    work("rate_process", Is("linear"), "poisson", "normal")
        .help("The times between the I/Os of a job with a rate: equal, or exponentially distributed")
        .choice(word_of!(pace.process)),
    work("rate_min", Is("0"), "1m", "slow")
        .help("End the job with an error if it moves fewer bytes in a rate_cycle. 0 means never")
        .also(&["ratemin"])
        .per_direction(
            "bytes per second",
            0..=FASTEST,
            place(|job| bytes(job.pace.least_bytes), |draft, rates| draft.job.pace.least_bytes.update(rates)),
        ),
    work("rate_iops_min", Is("0"), "100", "slow")
        .help("End the job with an error if it does fewer I/Os in a rate_cycle. 0 means never")
        .per_direction("I/Os per second", 0..=MANY_64, field!(pace.least_ios)),
    work("rate_cycle", Is("1000"), "500", "0")
        .help("The time over which rate_min and rate_iops_min are judged")
        .also(&["ratecycle"])
        .count(
            "milliseconds",
            1..=86_400_000,
            place(
                |job| shown(&(job.pace.cycle.0 / 1_000_000)),
                |draft, millis| draft.job.pace.cycle = Nanos::from_millis(millis.into()),
            ),
        ),
    work("rate_ignore_thinktime", Is("0"), "1", "2")
        .help("Do not catch up what a thinktime delayed")
        .boolean(field!(pace.ignores_thinking)),
    work("max_latency", Is("0"), "500ms", "long")
        .help("End the job with an error when an I/O takes longer. 0 means never")
        .text("microseconds, or a time in us, ms, s, m, h or d (READ,WRITE,TRIM)", parsed!(latency.most, latencies)),
    work("thinktime", Is("0"), "50", "50k").help("Sleep this long between I/Os").time(Microseconds, field!(think_time)),
    work("thinktime_blocks", Words("1; with thinktime_iotime, time alone counts"), "8", "0")
        .help("Sleep for thinktime after this many I/Os, once they have completed")
        .count("I/Os", 1..=MANY, field!(pace.think_blocks)),
    nothing("thinktime_blocks_type", Words("complete"), "issue", "start")
        .help("Accepted without effect: a pause comes after that many I/Os were submitted and have completed")
        .one_of(&["complete", "issue"], nowhere!()),
    work("thinktime_iotime", Is("0"), "9s", "9x")
        .help("Sleep for thinktime also after this time of I/O; without thinktime_blocks only then. 0 means never")
        .time(Seconds, field!(pace.think_io_time)),
    work("thinktime_spin", Is("0"), "20", "20k")
        .help("Keep the CPU busy for the first part of each thinktime")
        .time(Microseconds, field!(pace.think_spin)),
    extent("runtime", Is("0"), "10s", "10x")
        .help("Stop the job after this time. 0 means when its I/O is done")
        .also(&["timeout"])
        .time(Seconds, field!(duration.runtime)),
    extent("time_based", Is("0"), "1", "2")
        .help("Repeat the I/O until runtime has passed")
        .switch(field!(duration.time_based)),
    other("ramp_time", Is("0"), "2s", "-2")
        .help("Run this long before recording results")
        .time(Seconds, field!(duration.ramp)),
    extent("number_ios", Words("no limit"), "1000", "many")
        .help("Stop the job after this many I/Os. 0 means no limit")
        .number(
            "I/Os",
            0..=MOST_IOS,
            place(
                |job| shown(&job.duration.number_ios),
                |draft, ios| draft.job.duration.number_ios = (ios > 0).then_some(ios),
            ),
        ),
    extent("loops", Is("1"), "3", "0").help("Run over the region this many times").count(
        "times",
        1..=MANY,
        field!(duration.loops),
    ),
];

fn bytes(rates: Rates) -> Option<String> {
    Some(typed::each(rates.each().map(typed::bytes)))
}

fn latencies(text: &str) -> Result<[Option<Nanos>; 3], Wrong> {
    each_direction(text, |item| value::time(item, Microseconds))
}
