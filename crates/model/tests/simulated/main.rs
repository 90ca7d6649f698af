//! Checks the studies on simulated machines with fixed seeds: of comparisons (`calibration`) and of recordings of
//! fixed-time-quantum I/O (`ftq`).

mod calibration;
mod ftq;
mod random;

/// Whether all experiments run, or a part of them. `./check --long` sets it.
const ALL: bool = cfg!(calibration);
