//! The soaker: on each CPU a SCHED_IDLE thread that takes all the time that nobody else wants.
//!
//! It adds up the gaps between its readings of the time-stamp counter that are too short for anything to
//! have run in between; what is left of a window was busy, interrupts included. It depends on no
//! accounting of the kernel's, so it checks the idle clocks; but it keeps CPUs from idling, which
//! disturbs loads that sleep (METHOD.md), so it runs in windows of its own.

use model::unit::{Nanos, Ticks};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use sys::clock::{Instant, ticks};

pub(super) const SEES: &str = "what a SCHED_IDLE thread per CPU does not get; ±2 % on loads that do not sleep, disturbs others: windows of its own";

/// A longer gap means that something else ran. An iteration takes some 30 ticks; the shortest interrupt
/// takes over 1,000, and a switch to another thread more.
const LONGEST_OWN_GAP_TICKS: u64 = 500;

/// The soaker threads of all CPUs.
pub(super) struct Soakers {
    shared: Vec<Arc<Shared>>,
    threads: Vec<JoinHandle<()>>,
    started: Instant,
}

#[derive(Default)]
struct Shared {
    cpu: u32,
    running: AtomicBool,
    ending: AtomicBool,
    soaked_ticks: AtomicU64,
}

impl Soakers {
    pub(super) fn start(cpus: &[u32]) -> io::Result<Self> {
        let mut soakers = Self { shared: Vec::new(), threads: Vec::new(), started: Instant::now() };
        for &cpu in cpus {
            let shared = Arc::new(Shared { cpu, ..Shared::default() });
            let (tell, told) = std::sync::mpsc::sync_channel(1);
            let own = shared.clone();
            let thread = std::thread::Builder::new().name(format!("iotoll-soak{cpu}")).stack_size(128 << 10);
            soakers.threads.push(thread.spawn(move || {
                // Outside its CPU or its class it would disturb everything: then it must not run.
                let ready = sys::schedule::pin_to(&[own.cpu])
                    .and_then(|()| sys::schedule::set_class(sys::schedule::Class::Idle));
                let failed = ready.is_err();
                let _ = tell.send(ready);
                if !failed {
                    own.soak_when_told();
                }
            })?);
            soakers.shared.push(shared);
            told.recv().unwrap_or_else(|_| Err(io::Error::other("the soaker ended")))?;
        }
        Ok(soakers)
    }

    /// Starts or stops soaking on every CPU.
    pub(super) fn run(&self, running: bool) {
        for (shared, thread) in self.shared.iter().zip(&self.threads) {
            let was = shared.running.swap(running, Ordering::Relaxed);
            if running && !was {
                thread.thread().unpark();
            }
        }
    }

    /// Time that the soaker got on this CPU so far.
    pub(super) fn soaked(&self, cpu: u32) -> Option<Nanos> {
        let shared = self.shared.iter().find(|shared| shared.cpu == cpu)?;
        let hertz = Instant::now().hertz_since(self.started)?;
        let ticks = Ticks(shared.soaked_ticks.load(Ordering::Relaxed));
        Some(model::unit::Hertz(hertz).nanos(ticks))
    }
}

impl Drop for Soakers {
    fn drop(&mut self) {
        for (shared, thread) in self.shared.iter().zip(self.threads.drain(..)) {
            shared.ending.store(true, Ordering::Relaxed);
            shared.running.store(false, Ordering::Relaxed);
            thread.thread().unpark();
            // A soaker that panicked has printed why; there is nothing to add while dropping.
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
