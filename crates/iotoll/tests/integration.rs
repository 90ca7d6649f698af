//! The built binary from outside: what it prints, how it exits, what it leaves behind.
//!
//! One binary for all of it, so that it is linked once. Each module is about one promise; `iotoll` and `machine`
//! are what they are written in. Bounds on time are wide, because machines are noisy.

// A test fails by panicking, and says why a case is skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

/// The tests, in the order of a measurement: what is asked, what is done, what is said, what goes wrong.
mod integration {
    mod iotoll;
    mod machine;

    mod comparisons;
    mod comparisons_boots;
    mod comparisons_fail;
    mod comparisons_stored;
    mod conditions;
    mod demo_and_doctor;
    mod devices;
    mod durability;
    mod foreign_commands;
    mod foreign_counts;
    mod foreign_servers;
    mod full_disks;
    mod guardian;
    mod injected;
    mod json_contract;
    mod layers;
    mod limits;
    mod memory;
    mod option_errors;
    mod pace;
    mod phases;
    mod placed;
    mod plans;
    mod probes;
    mod refusals;
    mod saving;
    mod serving;
    mod serving_begins_and_ends;
    mod signals;
    mod transfers;
}
