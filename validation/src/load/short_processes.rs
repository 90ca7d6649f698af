//! What a build does: processes that compute for a while and end, one after the other on each of several threads, with pauses in which
//! nothing runs, until it is killed or its parent exits.

use super::argument;
use std::hint::black_box;
use std::os::unix::process::parent_id;
use std::process::Command;
use std::sync::Arc;
use std::sync::Barrier;
use std::time::{Duration, Instant};

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let threads: usize = argument(arguments, 0)?;
    let (busy, pause): (u64, u64) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let (this, parent) = (std::env::current_exe()?, parent_id());
    let together = Arc::new(Barrier::new(threads.max(1)));
    let start = || {
        let (this, together) = (this.clone(), together.clone());
        std::thread::spawn(move || -> anyhow::Result<()> {
            while parent_id() == parent {
                // All of them at once, so that bursts take all CPUs.
                together.wait();
                Command::new(&this).args(["load", "compute", &busy.to_string()]).status()?;
                std::thread::sleep(Duration::from_millis(pause));
            }
            Ok(())
        })
    };
    let running: Vec<_> = (0..threads.max(1)).map(|_| start()).collect();
    running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("a thread panicked")))
}

/// Computes for a number of milliseconds.
pub fn compute(arguments: &[&str]) -> anyhow::Result<()> {
    const TURNS: u64 = 100_000;
    let (begun, length) = (Instant::now(), Duration::from_millis(argument(arguments, 0)?));
    while begun.elapsed() < length {
        (0..TURNS).for_each(|turn| {
            black_box(turn);
        });
    }
    Ok(())
}
