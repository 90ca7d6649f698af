//! Planted contention: threads sleep outside a lock and inside it, and the fit must say which part was inside.
//!
//! They sleep instead of computing, so that eight of them run at a time on any machine. In each turn all N threads sleep outside at the
//! same time, and then one after the other inside. So N turns take (1 − σ) + Nσ times as long as the turn of one thread alone, which is
//! the law with κ = 0.

use crate::bench::Bench;
use crate::bench::evidence::{self, Evidence};
use anyhow::Context;
use model::stats::Estimate;
use model::stats::ratio::Pair;
use model::stats::scalability::{LoadPoint, scalability};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

/// Numbers of threads.
const THREADS: [usize; 6] = [1, 2, 3, 4, 6, 8];
/// Sleep of a thread in a turn. A sleep is about 0.1 ms longer than asked, in both places.
const TURN: Duration = Duration::from_millis(4);
/// Parts of it inside the lock.
const PLANTED: [f64; 3] = [0.0, 0.1, 0.3];
/// Most that the fit may be off: what sleeps that are too long shift.
const OFF: f64 = 0.02;

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let cells: Vec<(f64, usize)> = PLANTED.iter().flat_map(|part| THREADS.map(|threads| (*part, threads))).collect();
    let seconds = bench.options.seconds;
    let rounds = bench.options.rounds;
    let found = bench.in_rounds(
        rounds,
        &cells,
        |_| 0,
        |(part, threads)| format!("{:.0} % inside, {threads} threads", part * 100.0),
        |_, (part, threads), _| Ok(turns(*part, *threads, seconds)),
    )?;
    let mut evidence = Evidence::default();
    evidence.note(format!(
        "Threads sleep {} ms in each turn, a part of it inside a lock, at {} numbers of threads. The part is that of the sleeps as \
         they were. Contention: the fitted σ with its interval.",
        TURN.as_millis(),
        THREADS.len()
    ));
    let mut rows = Vec::new();
    for part in PLANTED {
        let runs: Vec<(usize, &Vec<Turns>)> = cells
            .iter()
            .zip(&found)
            .filter(|((of, _), _)| *of == part)
            .map(|((_, threads), runs)| (*threads, runs))
            .collect();
        let pairs: Vec<Vec<Pair>> = runs
            .iter()
            .map(|(_, runs)| runs.iter().map(|run| Pair { numerator: run.turns, denominator: run.seconds }).collect())
            .collect();
        let points: Vec<LoadPoint> = runs
            .iter()
            .zip(&pairs)
            .map(|((threads, _), rounds)| LoadPoint { submitters: *threads as f64, rounds })
            .collect();
        let law = scalability(&points).context("the rates have no fit")?;
        let (inside, all) = runs.iter().flat_map(|(_, runs)| runs.iter()).fold((0.0, 0.0), |(inside, all), run| {
            (inside + run.inside_seconds, all + run.inside_seconds + run.outside_seconds)
        });
        let planted = inside / all;
        let Estimate { value, .. } = law.contention;
        let text = format!(
            "{:.0} % inside the lock: contention {} for {planted:.3} planted, coherency {}",
            part * 100.0,
            evidence::interval(&law.contention, 3),
            evidence::interval(&law.coherency, 4)
        );
        evidence.criterion((value - planted).abs() <= OFF, text);
        rows.push(vec![
            format!("{:.0} %", part * 100.0),
            format!("{planted:.3}"),
            evidence::interval(&law.contention, 3),
            evidence::interval(&law.coherency, 4),
            format!("{:.1} %", law.misfit * 100.0),
        ]);
    }
    evidence.table(&["asked inside", "planted", "contention (σ)", "coherency (κ)", "largest misfit"], &rows);
    Ok(evidence)
}

/// Turns of all threads, and how long they slept.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    turns: f64,
    seconds: f64,
    inside_seconds: f64,
    outside_seconds: f64,
}

fn turns(part: f64, threads: usize, seconds: f64) -> Turns {
    let inside = TURN.mul_f64(part);
    let outside = TURN - inside;
    let (barrier, lock) = (Barrier::new(threads), Mutex::new(()));
    // The same number for all, or one would wait for ever.
    let each = (seconds / (outside + inside * u32::try_from(threads).unwrap_or(1)).as_secs_f64()).ceil() as u32;
    let begun = Instant::now();
    let slept = std::thread::scope(|scope| {
        let submitters: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut slept = (Duration::ZERO, Duration::ZERO);
                    for _ in 0..each {
                        slept.0 += sleep(outside);
                        barrier.wait();
                        if !inside.is_zero() {
                            let held = lock.lock();
                            slept.1 += sleep(inside);
                            drop(held);
                        }
                        barrier.wait();
                    }
                    slept
                })
            })
            .collect();
        submitters.into_iter().filter_map(|submitter| submitter.join().ok()).collect::<Vec<_>>()
    });
    let sum = |of: fn(&(Duration, Duration)) -> Duration| slept.iter().map(of).sum::<Duration>().as_secs_f64();
    Turns {
        turns: f64::from(each) * threads as f64,
        seconds: begun.elapsed().as_secs_f64(),
        outside_seconds: sum(|slept| slept.0),
        inside_seconds: sum(|slept| slept.1),
    }
}

/// Sleeps, and says how long it was.
fn sleep(length: Duration) -> Duration {
    let begun = Instant::now();
    std::thread::sleep(length);
    begun.elapsed()
}
