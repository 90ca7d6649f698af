//! Recordings that end early keep their series up to there, with one line; bad input is refused in one line.

use super::iotoll::{Folder, Running, eventually, warns, whole};
use super::machine::{Mount, skip};
use rustix::process::Signal;
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
fn interrupted_recordings_are_kept() {
    for (signal, words) in
        [(Signal::INT, "--cpu"), (Signal::TERM, "--target data --rw=read"), (Signal::INT, "-- cat /dev/zero")]
    {
        let folder = Folder::with_file("data", 1 << 20);
        let running = running(&folder, words);
        let ended = running.ended_by(signal);
        assert_eq!(ended.code, Some(130), "{words} {ended:?}");
        assert_eq!(ended.json()["outcome"], "interrupted");
        let again = folder.iotoll("report kept --format json").run();
        assert_eq!((again.code, &again.stdout), (Some(0), &ended.stdout), "{words}");
        folder.assert_no_processes();
    }
}

#[test]
fn a_killed_recording_leaves_its_readings_and_no_process() {
    let folder = Folder::new();
    let running = running(&folder, "-- cat /dev/zero");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().signal, Some(9));
    folder.assert_no_processes();
    let again = folder.iotoll("report kept --format json").run();
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(whole(&again.json()["readings"]) > 100);
    assert_eq!(again.json()["outcome"], "interrupted");
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
    match Mount::new(folder.path("tiny"), &["-t", "tmpfs", "-o", "size=256k", "iotoll-test"]) {
        Ok(_mounted) => {
            let words = "ftq --format json --quiet --out tiny/kept --cpu --duration 60s";
            failed(folder.iotoll(words).start(), "No space left");
            let again = folder.iotoll("report tiny/kept --format json").run();
            assert_eq!(again.code, Some(0), "{again:?}");
            assert!(whole(&again.json()["readings"]) > 100, "{again:?}");
        }
        Err(reason) => skip(&reason),
    }
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

#[test]
fn only_a_recording_has_a_series() {
    let folder = Folder::with_file("data", 1 << 20);
    let run = "run --quiet --background 200ms --name=a --filename=data --out run";
    folder.iotoll(run).run().done();
    folder.iotoll("report run --series here").run().refused(2, &["a run", "only a recording"]);
}
