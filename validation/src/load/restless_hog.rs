//! Keeps one CPU busy and then idle, for new random times each, until it is killed or its parent exits.

use super::argument;
use crate::bench::seeded::Seeded;
use std::hint::black_box;
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

/// Shortest and longest period, busy or idle: from a few slices of a comparison to a few rounds.
const MILLIS: (u64, u64) = (100, 3000);

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    const TURNS: u64 = 1_000_000;
    sys::schedule::pin_to(&[argument(arguments, 0)?])?;
    let mut seeded = Seeded::new(u64::from(std::process::id()));
    let parent = parent_id();
    loop {
        for busy in [true, false] {
            let length = Duration::from_millis(MILLIS.0 + seeded.below(MILLIS.1 - MILLIS.0));
            let begun = Instant::now();
            while begun.elapsed() < length {
                if parent_id() != parent {
                    return Ok(());
                }
                if busy {
                    (0..TURNS).for_each(|turn| {
                        black_box(turn);
                    });
                } else {
                    std::thread::sleep(Duration::from_millis(50).min(length));
                }
            }
        }
    }
}
