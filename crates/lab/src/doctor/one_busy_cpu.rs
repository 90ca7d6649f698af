//! A load that keeps one CPU busy, watched by the meters: what this machine would resolve.

use crate::meter::{MeterSet, Work};
use model::record::{Done, Mode, Snapshot};
use model::unit::{Bytes, Nanos};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const WATCHED: Duration = Duration::from_millis(300);
const STEPS: u32 = 30;
/// The same where the meters need longer steps.
const FEWEST_STEPS: u32 = 10;

#[derive(Default)]
struct Spinning {
    rounds: AtomicU64,
    ended: AtomicBool,
}

impl Work for Spinning {
    fn done(&self) -> Option<Done> {
        Some(Done { ios: self.rounds.load(Ordering::Relaxed), bytes: Bytes(0) })
    }
    fn thread_nanos(&self) -> Option<Nanos> {
        None
    }
}

impl Spinning {
    fn spin(&self) {
        while !self.ended.load(Ordering::Relaxed) {
            (0..1000).for_each(|_| std::hint::spin_loop());
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Counters at equal steps, in as much time as the meters need.
pub(super) fn watch(meters: &mut MeterSet) -> Vec<Snapshot> {
    let step = (WATCHED / STEPS).max(meters.shortest_slice());
    let steps = (WATCHED.div_duration_f64(step) as u32).max(FEWEST_STEPS);
    let spinning = Spinning::default();
    std::thread::scope(|scope| {
        scope.spawn(|| spinning.spin());
        // Until it has a CPU.
        std::thread::sleep(WATCHED / STEPS);
        let look = |_| {
            std::thread::sleep(step);
            meters.snapshot(Mode::Quiet, &spinning)
        };
        let seen = (0..=steps).map(look).collect();
        spinning.ended.store(true, Ordering::Relaxed);
        seen
    })
}
