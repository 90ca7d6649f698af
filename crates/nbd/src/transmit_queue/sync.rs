//! Atomics and threads of the queues: those of the system, or loom's, which explores every interleaving (feature `loom`, for
//! tests only).

#[cfg(feature = "loom")]
pub(super) use loom::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{Thread, current, park, yield_now},
};
#[cfg(not(feature = "loom"))]
pub(super) use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::{Thread, current, park, yield_now},
};

/// Spins before yielding the CPU to an earlier producer that has not published yet: it may have lost its CPU.
#[cfg(not(feature = "loom"))]
const SPINS: u32 = 100;

/// Waits a little for another thread, which was looked for this many times.
pub(super) fn relax(looks: u32) {
    #[cfg(not(feature = "loom"))]
    if looks < SPINS {
        return std::hint::spin_loop();
    }
    let _ = looks;
    yield_now();
}
