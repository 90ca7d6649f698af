//! A thread that computes for 10,000 ticks and sleeps 200 µs for each of its "I/Os". The cost of putting it to sleep
//! and waking it is charged to no thread.

use super::argument;
use std::time::Duration;
use sys::clock::ticks;

const WORK_TICKS: u64 = 10_000;
const NAP: Duration = Duration::from_micros(200);

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    for _ in 0..argument::<u64>(arguments, 0)? {
        let begin = ticks();
        while ticks().saturating_sub(begin) < WORK_TICKS {}
        std::thread::sleep(NAP);
    }
    Ok(())
}
