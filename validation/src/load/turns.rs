//! Planted contention: threads sleep outside a lock and inside it, so that the fit must say which part was inside.
//!
//! They sleep instead of computing, so that eight of them run at a time on any machine. In each turn all N threads sleep outside at the
//! same time, and then one after the other inside. So N turns take (1 − σ) + Nσ times as long as the turn of one thread alone, which is
//! the law with κ = 0.

use super::argument;
use anyhow::Context;
use model::stats::Pair;
use model::stats::curves::{Place, scalability};
use serde_json::json;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

/// Numbers of threads.
const THREADS: [u32; 6] = [1, 2, 3, 4, 6, 8];
/// Sleep of a thread in a turn. A sleep is about 0.1 ms longer than asked, in both places.
const TURN: Duration = Duration::from_millis(4);

/// `PERCENT SECONDS ROUNDS`: prints the part that was inside, and the fit.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let (percent, seconds, rounds): (f64, f64, u32) =
        (argument(arguments, 0)?, argument(arguments, 1)?, argument(arguments, 2)?);
    let (mut inside, mut all) = (0.0, 0.0);
    let mut rates = THREADS.map(|_| Vec::new());
    for _ in 0..rounds {
        for (threads, rates) in THREADS.into_iter().zip(&mut rates) {
            let (rate, slept) = turns(TURN.mul_f64(percent / 100.0), threads, seconds);
            rates.push(rate);
            (inside, all) = (inside + slept.1, all + slept.0 + slept.1);
        }
    }
    let points: Vec<Place> = THREADS.into_iter().map(f64::from).zip(rates).collect();
    let law = scalability(&points).context("the rates have no fit")?;
    println!(
        "{}",
        json!({ "planted": inside / all, "contention": law.contention, "coherency": law.coherency, "misfit": law.misfit })
    );
    Ok(())
}

/// Turns in a time, and the seconds that all threads slept outside and inside.
fn turns(inside: Duration, threads: u32, seconds: f64) -> (Pair, (f64, f64)) {
    let outside = TURN - inside;
    let (barrier, lock) = (Barrier::new(threads as usize), Mutex::new(()));
    // The same number for all, or one would wait for ever.
    let each = (seconds / (outside + inside * threads).as_secs_f64()).ceil() as u32;
    let turn = |slept: (f64, f64)| {
        let without = sleep(outside);
        barrier.wait();
        let held = lock.lock();
        let with = if inside.is_zero() { 0.0 } else { sleep(inside) };
        drop(held);
        barrier.wait();
        (slept.0 + without, slept.1 + with)
    };
    let submitter = || (0..each).fold((0.0, 0.0), |slept, _| turn(slept));
    let begun = Instant::now();
    let slept = std::thread::scope(|scope| {
        let submitters: Vec<_> = (0..threads).map(|_| scope.spawn(submitter)).collect();
        let slept = submitters.into_iter().filter_map(|submitter| submitter.join().ok());
        slept.fold((0.0, 0.0), |sum, slept| (sum.0 + slept.0, sum.1 + slept.1))
    });
    (Pair { numerator: f64::from(each * threads), denominator: begun.elapsed().as_secs_f64() }, slept)
}

/// Sleeps, and says how long it was.
fn sleep(length: Duration) -> f64 {
    let begun = Instant::now();
    std::thread::sleep(length);
    begun.elapsed().as_secs_f64()
}
