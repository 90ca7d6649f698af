//! The clock against the kernel's other account of the same time, and both ways of reading it against each other.

use super::*;
use crate::meter::proc_stat::ProcStatFile;
use crate::skipping::{available, spin};
use std::sync::atomic::{AtomicBool, Ordering};

fn clock() -> Option<IdleClock> {
    available("meters: the idle clock", IdleClock::open(&sys::schedule::online_cpus().unwrap()))
}

#[test]
fn sleeps_that_last_and_wake_ups_are_counted_as_the_kernel_counts_them() {
    /// Two ticks of /proc/stat, and what passes between the two readings.
    const TOLERANCE: f64 = 30e6;
    let Some(mut clock) = clock() else { return };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                spin(Duration::from_millis(1));
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let mut stat = ProcStatFile::open().unwrap();
        let mut read = || (clock.read().unwrap().total as f64, stat.read().unwrap().0.total as f64);
        let first = read();
        let off = (0..50).map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let now = read();
            (now.0 - first.0) - (now.1 - first.1)
        });
        let off: Vec<f64> = off.collect();
        stop.store(true, Ordering::Relaxed);
        assert!(off.iter().all(|off| off.abs() < TOLERANCE), "{off:?}");
    });
}

#[test]
fn both_ways_have_the_same_clock() {
    let Some(mut clock) = clock() else { return };
    let Some(memory) = available("meters: the idle clock in memory", clock.memory.as_ref()) else { return };
    let slept = |(_, clocks): (u64, Vec<CpuClock>)| clocks.iter().map(|clock| clock.slept).collect::<Vec<_>>();
    for _ in 0..50 {
        let (before, own) = (slept(clock.list.read().unwrap()), slept(memory.read().unwrap()));
        let after = slept(clock.list.read().unwrap());
        for ((before, own), after) in before.iter().zip(&own).zip(&after) {
            assert!(before <= own && own <= after, "{before} {own} {after}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn part(cpu: u32, stopped: u8, [entered, woken, left]: [u64; 3]) -> String {
    format!(
        "cpu: {cpu}\n clock 0:\n  .tick_stopped   : {stopped}\n  .idle_entrytime : {entered} nsecs\n  .idle_waketime  : {woken} nsecs\n  \
         .idle_exittime  : {left} nsecs\n  .idle_sleeptime : 100 nsecs\n  .iowait_sleeptime: 5 nsecs\n"
    )
}

#[test]
fn both_idle_clocks_of_each_cpu_are_added_and_a_sleep_that_lasts() {
    let list =
        |parts: String| parse(&format!("Timer List Version: v0.10\nnow at 900 nsecs\n\n{parts}Tick Device: mode: 1\n"));
    let asleep = CpuClock { slept: 105, since: Some(700) };
    let awake = CpuClock { since: None, ..asleep };
    // Asleep; in the interrupt that ends a sleep; awake again; before the tick stops, nobody knows.
    let parts = [
        part(0, 1, [700, 600, 500]),
        part(1, 1, [700, 700, 500]),
        part(2, 1, [700, 600, 700]),
        part(3, 0, [700, 600, 500]),
    ];
    assert_eq!(list(parts.concat()), Some((900, vec![asleep, awake, awake, awake])));
    assert_eq!((asleep.at(900), awake.at(900)), (305, 105));
    assert_eq!(list("cpu: 0\n nothing\n".to_owned()), None);
    assert_eq!(list(String::new()), None);
}
