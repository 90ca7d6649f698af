//! The soaker: on each CPU a SCHED_IDLE thread that uses all the time that no other thread needs.
//!
//! It adds up the gaps between its readings of the time-stamp counter that are too short for anything to have run in
//! between; the rest of a window was busy, interrupts included. It does not depend on the kernel's accounting, so it
//! checks the idle clocks; but it keeps CPUs from idling, which disturbs loads that sleep (docs/method/meters.md), so it runs in
//! windows of its own.

use super::{CpuMeter, Cpus, Opened};
use model::meter::Meter;
use model::record::Mode;
use model::unit::{Hertz, Ticks};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use sys::clock::{Instant, ticks};

/// Starts one per CPU.
pub(super) fn open(cpus: &Cpus) -> Result<Opened, String> {
    cpus.each(|cpu| Soaker::start(cpu).map_err(|error| format!("a SCHED_IDLE thread per CPU: {error}")))
}

/// A longer gap means that something else ran. An iteration takes some 30 ticks; the shortest interrupt takes over
/// 1,000, and a switch to another thread more.
const LONGEST_OWN_GAP_TICKS: u64 = 500;

/// The soaker of one CPU.
struct Soaker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    started: Instant,
}

#[derive(Default)]
struct Shared {
    running: AtomicBool,
    ending: AtomicBool,
    soaked_ticks: AtomicU64,
}

impl Soaker {
    fn start(cpu: u32) -> io::Result<Self> {
        let started = Instant::now();
        let shared = Arc::new(Shared::default());
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let own = shared.clone();
        let thread = std::thread::Builder::new().name(format!("iotoll-soak{cpu}")).stack_size(128 << 10);
        let thread = thread.spawn(move || {
            // On another CPU or with another priority it would disturb everything, so it must not run then.
            let ready =
                sys::schedule::pin_to(&[cpu]).and_then(|()| sys::schedule::set_class(sys::schedule::Class::Idle));
            let failed = ready.is_err();
            let _ = tell.send(ready);
            if !failed {
                own.soak_when_told();
            }
        })?;
        told.recv().unwrap_or_else(|_| Err(io::Error::other("the soaker ended")))?;
        Ok(Self { shared, thread: Some(thread), started })
    }

    /// Starts or stops soaking.
    fn run(&self, running: bool) {
        let was = self.shared.running.swap(running, Ordering::Relaxed);
        if let Some(thread) = self.thread.as_ref().filter(|_| running && !was) {
            thread.thread().unpark();
        }
    }
}

impl CpuMeter for Soaker {
    fn read(&mut self, next: Mode) -> Option<u64> {
        let hertz = Instant::now().hertz_since(self.started);
        let soaked = Ticks(self.shared.soaked_ticks.load(Ordering::Relaxed));
        self.run(next == Mode::Alone(Meter::Soaker));
        Some(Hertz(hertz?).nanos(soaked).0)
    }
}

impl Drop for Soaker {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        self.run(false);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A soaker that panicked has already printed the reason.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn soak_when_told(&self) {
        let mut soaked = 0;
        while !self.ending.load(Ordering::Relaxed) {
            let mut last = ticks();
            while self.running.load(Ordering::Relaxed) {
                let now = ticks();
                let gap = now.saturating_sub(last);
                if gap < LONGEST_OWN_GAP_TICKS {
                    soaked += gap;
                    self.soaked_ticks.store(soaked, Ordering::Relaxed);
                }
                last = now;
            }
            std::thread::park();
        }
    }
}
