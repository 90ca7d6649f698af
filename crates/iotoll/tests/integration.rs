//! Tests of the built binary from outside: its output, its exit status, what it leaves behind.
//!
//! One test binary, so that it is linked once. Each module covers one promise; `browser`, `iotoll` and `machine`
//! contain the helpers. Bounds on time are wide, because machines are noisy.

// A test fails by panicking, and prints why a case is skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

/// The tests, in the order of a measurement: arguments, measuring, output, failures.
mod integration {
    mod browser;
    mod iotoll;
    mod machine;

    mod accounts;
    mod comparisons;
    mod comparisons_boots;
    mod comparisons_fail;
    mod comparisons_stored;
    mod conditions;
    mod containers;
    mod contents;
    mod demo_and_doctor;
    mod devices;
    mod documented_commands;
    mod durability;
    mod events;
    mod fio_logs;
    mod fio_output;
    mod foreign_commands;
    mod foreign_counts;
    mod foreign_servers;
    mod ftq;
    mod ftq_fails;
    mod ftq_page;
    mod full_disks;
    mod gates;
    mod generated;
    mod guardian;
    mod guests;
    mod guests_ceph;
    mod guests_modules;
    mod history;
    mod injected;
    mod json_contract;
    mod layers;
    mod like_fio;
    mod limits;
    mod memory;
    mod option_errors;
    mod pace;
    mod packets;
    mod phases;
    mod placed;
    mod plans;
    mod probes;
    mod profiles;
    mod refusals;
    mod reproduced;
    mod saving;
    mod services;
    mod serving;
    mod serving_begins_and_ends;
    mod sessions;
    mod signals;
    mod sliced;
    mod surroundings;
    mod toggles;
    mod traces;
    mod transfers;
    mod unread;
    mod verify;
    mod what_is_counted;
}
