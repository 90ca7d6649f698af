//! The clock against itself: both ways of reading it, sleeps that last, planted work.

use super::*;
use crate::skipping::note_skipped;
use std::sync::atomic::{AtomicBool, Ordering};

fn clock() -> Option<IdleClock> {
    let cpus = sys::schedule::online_cpus().unwrap();
    match IdleClock::open(&cpus) {
        Ok(clock) => Some(clock),
        Err(why) => {
            note_skipped("meters: the idle clock", &why);
            None
        }
    }
}

/// Idle CPUs between two readings.
fn idle(before: &Count, after: &Count) -> f64 {
    let (_, idle) = after.since(before).unwrap();
    idle as f64 / after.at_nanos.since(before.at_nanos).as_f64()
}

#[test]
fn a_sleep_that_lasts_is_counted_although_no_cpu_is_woken() {
    let Some(mut clock) = clock() else { return };
    // Of the other CPUs, most sleep over many readings; each must be counted in each of them, wherever this thread runs.
    let cpus = clock.read().unwrap().cpus;
    let (mut steps, mut before) = (Vec::new(), clock.read().unwrap());
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(10));
        let Some(after) = clock.read() else { continue };
        steps.push(idle(&before, &after));
        before = after;
    }
    // Other tests run at the same time: no CPU need be idle, but none is idle more than all the time, nor less than none.
    let most = f64::from(cpus) * 1.02;
    assert!(steps.iter().all(|idle| (-0.02..most).contains(idle)), "{steps:?}");
}

#[test]
fn both_ways_have_the_same_clock() {
    let Some(mut clock) = clock() else { return };
    let Ok(memory) = &clock.memory else {
        return note_skipped(
            "meters: the idle clock in memory",
            clock.memory.as_ref().err().map_or("", String::as_str),
        );
    };
    let slept = |(_, clocks): (u64, Vec<Reading>)| clocks.iter().map(|clock| clock.slept).collect::<Vec<_>>();
    for _ in 0..50 {
        let (before, own) = (slept(clock.list.read().unwrap()), slept(memory.read().unwrap()));
        let after = slept(clock.list.read().unwrap());
        for ((before, own), after) in before.iter().zip(&own).zip(&after) {
            assert!(before <= own && own <= after, "{before} {own} {after}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn planted_sleeps_and_wakes_of_a_cpu_are_counted() {
    let Some(mut clock) = clock() else { return };
    // A thread is on its CPU for a known part of each time, so that the CPU cannot be idle for more than the rest.
    let stop = AtomicBool::new(false);
    let busiest = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let begun = sys::clock::own_thread_nanos();
                while sys::clock::own_thread_nanos() - begun < 3_000_000 {
                    std::hint::spin_loop();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let before = clock.read().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let after = clock.read();
        stop.store(true, Ordering::Relaxed);
        after.map(|after| f64::from(after.cpus) - idle(&before, &after))
    });
    // 3 ms of at most 3 ms and a late wake-up; other tests make it more.
    assert!(busiest.is_none_or(|busy| busy > 0.3), "{busiest:?}");
}
