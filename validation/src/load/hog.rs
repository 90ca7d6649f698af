//! Keeps one CPU busy until it is killed or its parent exits.

use super::argument;
use std::hint::black_box;
use std::os::unix::process::parent_id;

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    /// Some milliseconds, so that checking for the parent costs nothing in comparison.
    const TURNS: u64 = 10_000_000;
    sys::schedule::pin_to(&[argument(arguments, 0)?])?;
    let parent = parent_id();
    while parent_id() == parent {
        for turn in 0..TURNS {
            black_box(turn);
        }
    }
    Ok(())
}
