//! The options of a job's pace and length: queue depth, rate, pauses, time and amount.

use super::*;

/// The most that an io_uring completion queue holds (IORING_MAX_CQ_ENTRIES of Linux).
const DEEPEST: u32 = 65_536;

/// The largest rate: no memory moves as many bytes per second.
const FASTEST: u64 = 1 << 50;

/// More than three years of I/O at ten million I/Os per second.
const MOST_IOS: u64 = 1 << 50;

/// A rate that is shown in bytes.
macro_rules! in_bytes {
    ($($field:ident).+) => {
        place(
            |job| Some(typed::each(job.$($field).+.each().map(typed::bytes))),
            |draft, rates| draft.job.$($field).+.update(rates),
        )
    };
}

const fn bytes_per_second(place: Place<Set<[Option<u64>; 3]>>) -> Kind {
    per_direction("bytes per second", 0..=FASTEST, place)
}

const fn ios_per_second(place: Place<Set<[Option<u64>; 3]>>) -> Kind {
    per_direction("I/Os per second", 0..=MANY_64, place)
}

pub(super) static OPTIONS: &[JobOption] = &[
    work("iodepth", count("I/Os", 1..=DEEPEST, field!(depth.in_flight)), Is("1"), "32", "0")
        .help("Keep this many I/Os in flight"),
    work("iodepth_low", count("I/Os", 1..=DEEPEST, field!(depth.low)), Words("iodepth: it is kept full"), "4", "0")
        .help("Once the queue is full, submit nothing until it has drained to this depth"),
    work("iodepth_batch_submit", count("I/Os", 0..=DEEPEST, field!(depth.submit)), Is("1"), "8", "-1")
        .also(&["iodepth_batch"])
        .help("Submit this many I/Os at once. 0 means iodepth"),
    work("iodepth_batch_complete_min", count("I/Os", 0..=DEEPEST, field!(depth.complete_min)), Is("1"), "4", "4.5")
        .also(&["iodepth_batch_complete"])
        .help("Wait for at least this many completions. 0 polls without waiting"),
    work("iodepth_batch_complete_max", count("I/Os", 0..=DEEPEST, field!(depth.complete_max)), Is("1"), "16", "1g")
        .help("Retrieve at most this many completions at once. Raised to iodepth_batch_complete_min if lower"),
    work("rate_iops", ios_per_second(field!(rates)), Is("0"), "1000,500", "fast")
        .help("Limit the rate. 0 means no limit"),
    work("rate", bytes_per_second(in_bytes!(pace.bytes)), Is("0"), "10m,5m", "fast")
        .help("Limit the rate in bytes. 0 means no limit"),
    work("rate_process", word_of!(pace.process), Is("linear"), "poisson", "normal")
        .help("The times between the I/Os of a job with a rate: equal, or exponentially distributed"),
    work("rate_min", bytes_per_second(in_bytes!(pace.least_bytes)), Is("0"), "1m", "slow")
        .also(&["ratemin"])
        .help("End the job with an error if it moves fewer bytes in a rate_cycle. 0 means never"),
    work("rate_iops_min", ios_per_second(field!(pace.least_ios)), Is("0"), "100", "slow")
        .help("End the job with an error if it does fewer I/Os in a rate_cycle. 0 means never"),
    work("rate_cycle", count("milliseconds", 1..=86_400_000, RATE_CYCLE), Is("1000"), "500", "0")
        .also(&["ratecycle"])
        .help("The time over which rate_min and rate_iops_min are judged"),
    work("rate_ignore_thinktime", boolean(field!(pace.ignores_thinking)), Is("0"), "1", "2")
        .help("Do not catch up what a thinktime delayed"),
    work("max_latency", text(parsed!(latency.most, latencies)), Is("0"), "500ms", "long")
        .form("microseconds, or a time in us, ms, s, m, h or d (READ,WRITE,TRIM)")
        .help("End the job with an error when an I/O takes longer. 0 means never"),
    work("thinktime", time(Microseconds, field!(think_time)), Is("0"), "50", "50k")
        .help("Sleep this long between I/Os"),
    work("thinktime_blocks", count("I/Os", 1..=MANY, field!(pace.think_blocks)), Required, "8", "0")
        .otherwise("1; with thinktime_iotime, time alone counts")
        .help("Sleep for thinktime after this many I/Os, once they have completed"),
    nothing("thinktime_blocks_type", one_of(&["complete", "issue"], nowhere!()), Words("complete"), "issue", "start")
        .help("Accepted without effect: a pause comes after that many I/Os were submitted and have completed"),
    work("thinktime_iotime", time(Seconds, field!(pace.think_io_time)), Is("0"), "9s", "9x")
        .help("Sleep for thinktime also after this time of I/O; without thinktime_blocks only then. 0 means never"),
    work("thinktime_spin", time(Microseconds, field!(pace.think_spin)), Is("0"), "20", "20k")
        .help("Keep the CPU busy for the first part of each thinktime"),
    extent("runtime", time(Seconds, field!(duration.runtime)), Is("0"), "10s", "10x")
        .also(&["timeout"])
        .help("Stop the job after this time. 0 means when its I/O is done"),
    extent("time_based", switch(field!(duration.time_based)), Is("0"), "1", "2")
        .help("Repeat the I/O until runtime has passed"),
    other("ramp_time", time(Seconds, field!(duration.ramp)), Is("0"), "2s", "-2")
        .help("Run this long before recording results"),
    extent("number_ios", number("I/Os", 0..=MOST_IOS, NUMBER_IOS), Words("no limit"), "1000", "many")
        .help("Stop the job after this many I/Os. 0 means no limit"),
    extent("loops", count("times", 1..=MANY, field!(duration.loops)), Is("1"), "3", "0")
        .help("Run over the region this many times"),
];

// Places that are no fields.
const RATE_CYCLE: Place<Set<u32>> = place(
    |job| shown(&(job.pace.cycle.0 / 1_000_000)),
    |draft, millis| draft.job.pace.cycle = Nanos::from_millis(millis.into()),
);
const NUMBER_IOS: Place<Set<u64>> =
    place(|job| shown(&job.duration.number_ios), |draft, ios| draft.job.duration.number_ios = (ios > 0).then_some(ios));

fn latencies(text: &str) -> Result<[Option<Nanos>; 3], Wrong> {
    each_direction(text, |item| value::time(item, Microseconds))
}
