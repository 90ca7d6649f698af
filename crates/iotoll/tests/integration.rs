//! Tests of the built binary from outside: its output, its exit status, what it leaves behind.
//!
//! One test binary, so that it is linked once. Each module covers one promise; `iotoll` and `machine` contain the helpers, and `cases` plays
//! the tables of command lines. Bounds on time are wide, because machines are noisy. `./check` runs modules named `alone` one test at a time,
//! and modules named `long` with `--long` only.

// A test fails by panicking, and prints why a case is skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

/// The tests, in the order of a measurement: arguments, measuring, output, failures.
mod integration {
    mod iotoll;
    mod machine;

    mod alone;
    mod cases;
    mod comparisons;
    mod conditions;
    mod containers;
    mod contents;
    mod devices;
    mod documented_commands;
    mod durability;
    mod endings;
    mod events;
    mod fio_logs;
    mod fio_output;
    mod foreign_counts;
    mod ftq;
    mod ftq_fails;
    mod full_disks;
    mod generated;
    mod guardian;
    mod guests;
    mod guests_ceph;
    mod guests_modules;
    mod history;
    mod injected;
    mod like_fio;
    mod limits;
    mod memory;
    mod packets;
    mod placed;
    mod probes;
    mod refusals;
    mod reproduced;
    mod saving;
    mod servers;
    mod services;
    mod sessions;
    mod sliced;
    mod surroundings;
    mod traces;
    mod transfers;
    mod verify;
    mod what_is_counted;
}
