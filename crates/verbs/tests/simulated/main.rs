//! Checks the studies on simulated machines with fixed seeds: of comparisons (`calibration`) and of recordings of
//! fixed-time-quantum I/O (`ftq`); and the parser on generated job files (`job_files`).

mod calibration;
mod ftq;
mod job_files;
mod random;

/// Whether all experiments run and all job files are parsed, or a part of them. `./check --long` sets it.
const ALL: bool = cfg!(calibration);
