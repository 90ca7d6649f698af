//! Recordings that end early keep their series up to there, with one line; bad input is refused in one line.

use super::iotoll::{Folder, Running, eventually, warns, whole};
use super::machine::Mount;
use serde_json::Value;
use std::fs;

/// A recording that runs, and has saved readings in `kept`.
#[track_caller]
fn running(folder: &Folder, words: &str) -> Running {
    let running = folder.iotoll(&format!("ftq --format json --quiet --out kept {words}")).start();
    // The envelope, the header, and the first readings.
    let saved =
        || fs::read_to_string(folder.path("kept/record.jsonl")).is_ok_and(|text| text.matches('\n').count() > 2);
    assert!(eventually(saved), "no readings are saved");
    running
}

/// It failed for this reason, in one line, and its readings are there.
#[track_caller]
fn failed(running: Running, named: &str) -> Value {
    let ended = running.wait();
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
    assert!(ended.stderr.contains(named) && ended.stderr.contains("kept up to there"), "{ended:?}");
    let finding = ended.json();
    assert!(whole(&finding["readings"]) > 100, "{finding}");
    assert!(finding["outcome"]["failed"].as_str().unwrap().contains(named), "{finding}");
    finding
}

#[test]
fn a_target_that_vanishes_ends_the_recording() {
    let folder = Folder::with_file("data", 64 << 20);
    let running = running(&folder, "--target data --rw=read");
    folder.write("data", "");
    failed(running, "was it truncated");
}

#[test]
fn a_command_that_fails_ends_the_recording() {
    let folder = Folder::new();
    let running = folder.iotoll("ftq --format json --quiet --out kept -- sh -c").word("sleep 1; exit 7").start();
    failed(running, "ended with status 7");
}

#[test]
fn a_full_disk_ends_the_recording() {
    let folder = Folder::new();
    let Some(_mounted) = Mount::in_memory(folder.path("tiny"), "256k") else { return };
    failed(folder.iotoll("ftq --format json --quiet --out tiny/kept --cpu --duration 60s").start(), "No space left");
    assert!(whole(&folder.reported("tiny/kept")["readings"]) > 100);
}

#[test]
fn a_probe_that_goes_is_noted_and_the_recording_goes_on() {
    let folder = Folder::new();
    folder.write("level", "5\n");
    let probe = format!("--probe q=gauge:file:{}:([0-9]+)", folder.path("level").display());
    let running = running(&folder, &format!("--cpu --duration 3s {probe}"));
    folder.write("level", "");
    let ended = running.wait().done();
    assert!(warns(&ended.json(), "probe_lost", &["probe q could not be read"]), "{ended:?}");
}
