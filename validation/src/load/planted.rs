//! Functions whose parts of the time are known: of each "I/O", 70 % in one, 30 % in another; and a counter that another thread
//! increments too.

use super::argument;
use anyhow::Context;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Steps of an I/O: some 4 ns each.
const STEPS: u64 = 400;

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let mut value = 1;
    for _ in 0..argument::<u64>(arguments, 0)? {
        value = planted_seventy(value, STEPS * 7 / 10);
        value = planted_thirty(value, STEPS * 3 / 10);
    }
    black_box(value);
    Ok(())
}

/// One step depends on the one before it, so that no processor does two at once.
macro_rules! steps {
    ($value:expr, $steps:expr) => {{
        let mut value = $value;
        for _ in 0..$steps {
            value = black_box(value).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        value
    }};
}

#[inline(never)]
fn planted_seventy(value: u64, steps: u64) -> u64 {
    steps!(value, steps)
}

#[inline(never)]
fn planted_thirty(value: u64, steps: u64) -> u64 {
    steps!(value, steps).rotate_left(1)
}

/// "I/Os" that increment a counter beside another thread that does the same.
pub fn contend(arguments: &[&str]) -> anyhow::Result<()> {
    let increments = argument::<u64>(arguments, 0)?;
    let (counter, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let other = std::thread::spawn({
        let (counter, ended) = (counter.clone(), ended.clone());
        move || {
            while !ended.load(Ordering::Relaxed) {
                planted_count(&counter, 100);
            }
        }
    });
    planted_count(&counter, increments);
    ended.store(true, Ordering::Relaxed);
    other.join().ok().context("the other thread ended early")
}

#[inline(never)]
fn planted_count(counter: &AtomicU64, times: u64) {
    for _ in 0..times {
        counter.fetch_add(1, Ordering::SeqCst);
    }
}
