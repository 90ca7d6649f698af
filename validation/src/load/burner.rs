//! Uses a given percentage of one CPU's time, wherever the scheduler places it, until it is killed; or computes for a while.

use super::argument;
use anyhow::ensure;
use std::hint::black_box;
use std::time::{Duration, Instant};
use sys::clock::own_thread_nanos;

/// Long enough that waking up twenty times a second costs little in comparison; short compared with an execution.
const PERIOD: Duration = Duration::from_millis(50);

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let percent: f64 = argument(arguments, 0)?;
    ensure!((0.0..=100.0).contains(&percent), "PERCENT must be between 0 and 100");
    // Do not subtract the start-up time from the first period.
    let (begun, own) = (Instant::now(), Duration::from_nanos(own_thread_nanos()));
    for period in 1_u32.. {
        // On the thread's own clock, so that waking up is included.
        let until = own + (PERIOD * period).mul_f64(percent / 100.0);
        while Duration::from_nanos(own_thread_nanos()) < until {
            turns();
        }
        std::thread::sleep((PERIOD * period).saturating_sub(begun.elapsed()));
    }
    Ok(())
}

/// `MILLIS`: computes for a number of milliseconds.
pub fn compute(arguments: &[&str]) -> anyhow::Result<()> {
    let (begun, length) = (Instant::now(), Duration::from_millis(argument(arguments, 0)?));
    while begun.elapsed() < length {
        turns();
    }
    Ok(())
}

/// Some microseconds, so that looking at a clock costs little in comparison.
fn turns() {
    (0..10_000_u64).for_each(|turn| {
        black_box(turn);
    });
}
