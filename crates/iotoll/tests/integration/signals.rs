//! Ctrl-C: results are saved and printed, files that iotoll made are removed, and a second signal does not wait.

use super::foreign_servers::Foreign;
use super::iotoll::{Ended, Folder, Running, at_once, eventually, whole};
use rustix::process::Signal;
use std::fs;
use std::time::Duration;

const RUN: &str = "run --format json --out kept --name=s --rw=randread --background";

/// Whether the program handles signals already, or would still die of them.
fn catches_signals(running: &Running) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Signals are numbered from 1: SIGINT is 2, SIGTERM is 15.
    caught & (1 << 1) != 0 && caught & (1 << 14) != 0
}

/// Sends `signal` when `ready`, and waits for the end.
#[track_caller]
fn interrupted(folder: &Folder, running: Running, signal: Signal, ready: impl Fn(&Running) -> bool) -> Ended {
    assert!(eventually(|| catches_signals(&running) && ready(&running)), "never ready for the signal");
    let ended = running.ended_by(signal);
    assert_eq!((ended.code, ended.signal), (Some(130), None), "{ended:?}");
    folder.assert_no_processes();
    ended
}

#[test]
fn while_a_file_is_laid_out() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = Folder::with_file("mine", 1 << 20);
        let before = folder.listing();
        for name in ["new", "mine"] {
            let running = folder.iotoll(&format!("{RUN} 200ms --filename={name} --size=20g --fallocate=none")).start();
            let begun = |_: &Running| fs::metadata(folder.path(name)).is_ok_and(|file| file.len() > 2 << 20);
            let ended = interrupted(&folder, running, signal, begun);
            ended.refused(130, &["interrupted", name, "nothing was measured"]);
            assert_eq!(folder.listing(), before, "{signal:?} {name}");
        }
    }
}

#[test]
fn while_the_background_is_measured() {
    let folder = Folder::with_file("mine", 1 << 20);
    let before = folder.listing();
    let running = folder.iotoll(&format!("{RUN} 30s --filename=mine")).start();
    let ended = interrupted(&folder, running, Signal::INT, |running| {
        // The clock readers run, the job does not.
        fs::read_dir(format!("/proc/{}/task", running.id())).is_ok_and(|tasks| tasks.count() > 1)
    });
    ended.refused(130, &["interrupted", "nothing was measured"]);
    assert_eq!(folder.listing(), before);
}

/// What an interrupted run must leave behind.
#[track_caller]
fn kept(folder: &Folder, ended: &Ended) {
    let finding = ended.json();
    assert_eq!(finding["outcome"], "interrupted");
    assert!(super::iotoll::warns(&finding, "interrupted", &["before the interruption"]), "{}", finding["warnings"]);
    assert!(whole(&finding["jobs"][0]["ios"]) > 100, "{}", finding["jobs"]);
    let again = folder.iotoll("report kept --format json").run();
    assert_eq!((again.code, &again.stdout), (Some(0), &ended.stdout));
}

#[test]
fn while_it_measures() {
    let ways = ["--ioengine=psync", "--ioengine=libaio --iodepth=8", "--ioengine=io_uring --iodepth=8"];
    at_once(ways.into_iter().zip([Signal::INT, Signal::TERM, Signal::INT]), |(options, signal)| {
        for name in ["made", "mine"] {
            let folder = Folder::with_file("mine", 1 << 20);
            let run = format!("{RUN} 200ms --filename={name} --size=1m --runtime=50 --time_based {options}");
            let ended = interrupted(&folder, folder.iotoll(&run).start(), signal, |running| {
                let measuring = running.has_threads("job s", 1);
                std::thread::sleep(Duration::from_millis(if measuring { 300 } else { 0 }));
                measuring
            });
            kept(&folder, &ended);
            assert!(!folder.exists("made"), "{options}: what it made is removed");
            assert_eq!(folder.listing()["mine"], Some(1 << 20), "{options}: what was there stays");
        }
    });
}

#[test]
fn while_a_job_sleeps() {
    at_once(["--startdelay=50", "--thinktime=50s", "--rate_iops=1"], |options| {
        let folder = Folder::with_file("mine", 1 << 20);
        let run = format!("{RUN} 200ms --filename=mine --runtime=50 --time_based {options}");
        let ready = |running: &Running| running.has_threads("job s", 1);
        let ended = interrupted(&folder, folder.iotoll(&run).start(), Signal::INT, ready);
        assert_eq!(ended.json()["outcome"], "interrupted", "{options}");
    });
}

#[test]
fn while_the_background_is_measured_again() {
    let folder = Folder::new();
    // The job ends at once; the background after it takes longer.
    let run = format!("{RUN} 2s --filename=made --size=1m --number_ios=200");
    let seen = std::cell::Cell::new(false);
    let ended = interrupted(&folder, folder.iotoll(&run).start(), Signal::INT, |running| {
        let working = running.has_threads("job s", 1);
        seen.set(seen.get() || working);
        seen.get() && !working
    });
    kept(&folder, &ended);
    assert!(!folder.exists("made"));
}

/// Sends two signals, some time apart: simultaneous signals count as one.
#[track_caller]
fn insisted(folder: &Folder, running: Running, signal: Signal, code: i32) -> Ended {
    running.signal(signal);
    std::thread::sleep(Duration::from_millis(600));
    let ended = running.ended_by(signal);
    assert_eq!((ended.code, ended.signal), (Some(code), None), "{ended:?}");
    folder.assert_no_processes();
    ended
}

#[test]
fn a_second_signal_ends_a_command_that_ignores_the_first() {
    at_once([Signal::INT, Signal::TERM], |signal| {
        let folder = Folder::new();
        let script = "trap '' INT TERM; touch ready; sleep 50";
        let cost = "cost --background 200ms --format json --quiet --out kept --ios 5 -- sh -c";
        let running = folder.iotoll(cost).word(script).start();
        assert!(eventually(|| folder.exists("ready")));
        let ended = insisted(&folder, running, signal, 128 + 9);
        assert_eq!(ended.json()["phases"][0]["exits"][0]["signal"], 9, "{}", ended.stdout);
        assert!(folder.exists("kept/record.jsonl"), "the results are saved");
    });
}

#[test]
fn a_second_signal_ends_a_run_that_does_not_end() {
    let silent = Foreign::start("nbdkit", &["-f", "-U", "SOCKET", "--filter=delay", "memory", "8m", "rdelay=3600"]);
    let folder = Folder::with_file("mine", 1 << 20);
    let before = folder.listing();
    let job = format!(
        "[global]\nruntime=600\ntime_based\n[a]\nfilename=made\nsize=1m\nrw=randread\n[b]\nfilename=mine\nsize=2m\nrw=randread\n\
         [c]\nioengine=nbd\nuri={}\nrw=randread\n",
        silent.uri()
    );
    folder.write("j.fio", job);
    let running = folder.iotoll("run --background 200ms --out kept j.fio").start();
    assert!(eventually(|| running.has_threads("job c", 1) && folder.exists("kept")));
    std::thread::sleep(Duration::from_millis(300));
    assert!(folder.exists("made"));
    insisted(&folder, running, Signal::INT, 130);
    std::fs::remove_file(folder.path("j.fio")).unwrap();
    assert_eq!(folder.listing(), before, "its files are removed");
}

#[test]
fn while_the_demo_runs() {
    let folder = Folder::new();
    let ended = interrupted(&folder, folder.iotoll("demo --quiet --format json").start(), Signal::INT, |running| {
        running.has_threads("job cached read", 1)
    });
    assert_eq!(ended.json()["outcome"], "interrupted");
    assert!(folder.listing().is_empty(), "{:?}", folder.listing());
}

#[test]
fn while_a_command_runs() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = Folder::new();
        let cost = "cost --background 200ms --format json --quiet --out kept --ios 5 -- sleep 50";
        let ended = interrupted(&folder, folder.iotoll(cost).start(), signal, |running| !running.children().is_empty());
        assert_eq!(ended.json()["phases"][0]["exits"][0]["signal"], 2, "{}", ended.stdout);
        assert!(folder.exists("kept/record.jsonl"));
    }
}
