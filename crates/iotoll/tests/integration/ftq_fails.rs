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
        running.signal(signal);
        let ended = running.wait();
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
        Err(reason) => skip("a_full_disk_ends_the_recording", &reason),
    }
}

#[test]
fn a_probe_that_goes_is_noted_and_the_recording_goes_on() {
    let folder = Folder::new();
    folder.write("level", "5\n");
    let probe = format!("--probe q=gauge:file:{}:([0-9]+)", folder.path("level").display());
    let running = running(&folder, &format!("--cpu --duration 3s {probe}"));
    folder.write("level", "");
    let ended = running.wait();
    ended.done();
    assert!(warns(&ended.json(), "probe_lost", &["probe q could not be read"]), "{ended:?}");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let folder = Folder::with_file("data", 1 << 20);
    fs::create_dir(folder.path("kept")).unwrap();
    folder.write("kept/record.jsonl", "");
    for (words, named) in [
        ("", "no worker; give --target"),
        ("data", "takes no job file; give --target data"),
        ("--target data --cpu", "cannot be used with"),
        ("--target missing", "give size="),
        ("--target data --numjobs=2", "one worker"),
        ("--target data --quantum 5us", "10us to 1s"),
        ("--target data --duration 1ms", "10ms to 24h"),
        ("--target data --duration 24h --quantum 10us", "use a longer --quantum"),
        ("--target data --probe worker.naps", "sleeps, preemptions"),
        ("--target data --probe x=worker.sleeps,x=worker.run_delay", "two probes have this name"),
        ("--target data --count dirty", "is a gauge"),
        ("--target data --probe pressure.io.some", "use --quantum 20ms"),
        ("--target data --inject_every=1s", "without inject_ns"),
        ("--target data --recorder-cpu 4000", "may not use it; it may use CPUs "),
        ("--target data --out kept", "already contains a record"),
        ("--cpu --bs=4k", "is an option of a job"),
        ("--pid 4000000000", "there is no process"),
        ("--pid 1 --worker-cpu 0", "taskset"),
        ("--rw=trim -- true", "counted by read, write or rw"),
        ("-- /no/such/program", "check the command after --"),
    ] {
        let quiet = if words.contains("--out") { "" } else { "--no-save " };
        folder.iotoll(&format!("ftq {quiet}{words}")).run().refused(2, &[named]);
    }
    folder
        .iotoll("run --name=a --filename=data --probe worker.sleeps --no-save")
        .run()
        .refused(2, &["only a recording"]);
}

#[test]
fn only_a_recording_has_a_series() {
    let folder = Folder::with_file("data", 1 << 20);
    let run = "run --quiet --background 200ms --name=a --filename=data --out run";
    folder.iotoll(run).run().done();
    folder.iotoll("report run --series here").run().refused(2, &["a run", "only a recording"]);
}
