//! `iotoll cost -- CMD`: any command, its exit status, its output, its children.

use super::iotoll::{Ended, Folder, at_once, number, warns, whole};
use super::machine::skip_without_idle_time;
use std::time::{Duration, Instant};

fn shell(folder: &Folder, options: &str, script: &str) -> Ended {
    let options = format!("cost --background 200ms --no-save --quiet --format json {options} -- sh -c");
    folder.iotoll(&options).word(script).run()
}

#[test]
fn the_exit_status_is_the_command_s() {
    let folder = Folder::new();
    let cases = [
        ("true", 0, "status", 0),
        ("exit 3", 3, "status", 3),
        ("nosuchcommand 2>/dev/null", 127, "status", 127),
        ("kill -9 $$", 137, "signal", 9),
        ("kill -TERM $$", 143, "signal", 15),
    ];
    at_once(cases, |(script, code, how, value)| {
        let ended = shell(&folder, "", script);
        assert_eq!(ended.code, Some(code), "{script}: {ended:?}");
        let finding = ended.json();
        assert_eq!(finding["phases"][0]["exits"][0][how], value, "{script}");
        assert_eq!(finding["outcome"] == "completed", code == 0, "{script}: {}", finding["outcome"]);
        assert_eq!(warns(&finding, "command_failed", &[]), code != 0, "{script}: {}", finding["warnings"]);
    });
}

#[test]
fn a_command_that_cannot_be_started_is_refused() {
    let folder = Folder::new();
    folder.write("plain.txt", "text");
    let before = folder.listing();
    for (command, why) in
        [("nosuchcommand", "No such file"), ("./plain.txt", "Permission denied"), ("./nowhere/x", "No such file")]
    {
        let ended = folder.iotoll(&format!("cost --background 200ms -- {command} --flag")).run();
        ended.refused(2, &[command, "cannot be started", why, "after --"]);
        assert_eq!(folder.listing(), before);
    }
}

#[test]
fn costs_are_divided_by_the_stated_work() {
    let folder = Folder::new();
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let finding = shell(&folder, "--ios 1k --bytes 4m", busy).json();
    let phase = &finding["phases"][0];
    assert_eq!((whole(&phase["ios"]), whole(&phase["bytes"])), (1024, 4 << 20));
    assert!(finding["counted_by"].as_str().is_some_and(|words| words.contains("stated")), "{}", finding["counted_by"]);
    if skip_without_idle_time(&finding) {
        return;
    }
    let per_io = number(&phase["cycles_per_io"]) / 4096.0;
    assert!((per_io / number(&phase["cycles_per_byte"]) - 1.0).abs() < 1e-6, "{phase}");
    // A loop of 100,000 steps takes a shell tens of milliseconds of one CPU: millions of cycles.
    let gross = number(&phase["cycles_per_io_gross"]) * 1024.0;
    assert!(gross > 5e6, "{gross}");
    let bytes_only = shell(&folder, "--bytes 4m", busy).json();
    assert!(
        bytes_only["phases"][0]["cycles_per_io"].is_null() && bytes_only["phases"][0]["cycles_per_byte"].is_number()
    );
}

#[test]
fn repeated_executions_give_the_interval() {
    let folder = Folder::new();
    let busy = "echo x >> times; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let finding = shell(&folder, "--ios 100 --repeat 4", busy).json();
    assert_eq!(folder.read("times").len(), 8);
    let phase = &finding["phases"][0];
    assert_eq!((whole(&phase["ios"]), phase["exits"].as_array().unwrap().len()), (400, 4));
    if skip_without_idle_time(&finding) {
        return;
    }
    assert!(
        phase["interval_from"].as_str().is_some_and(|words| words.contains("executions")),
        "{}",
        phase["interval_from"]
    );
    let [low, cost, high] = ["cycles_per_io_low", "cycles_per_io", "cycles_per_io_high"].map(|key| number(&phase[key]));
    assert!(low < cost && cost < high, "{low} {cost} {high}");
}

#[test]
fn repeating_ends_at_the_first_failure() {
    let folder = Folder::new();
    let ended = shell(&folder, "--ios 1 --repeat 5", "echo x >> times; [ $(wc -l < times) -lt 2 ] || exit 4");
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(folder.read("times").len(), 4, "twice, and not again");
    assert_eq!(ended.json()["phases"][0]["exits"].as_array().unwrap().len(), 2);
}

#[test]
fn the_command_s_output_never_mixes_with_the_result() {
    let folder = Folder::new();
    let script = "i=0; while [ $i -lt 5000 ]; do echo line $i of standard output; i=$((i+1)); done; echo oops >&2";
    let ended = shell(&folder, "--ios 1", script).done();
    assert_eq!(ended.json()["schema"], "iotoll.run/1");
    assert_eq!(ended.stderr.lines().count(), 5001, "all of it is shown, on standard error");
    let silent = shell(&folder, "--ios 1 --no-output", script).done();
    assert_eq!(silent.stderr, "oops\n", "--no-output leaves errors alone");
}

#[test]
fn a_daemon_left_running_is_not_waited_for() {
    let folder = Folder::new();
    let begun = Instant::now();
    shell(&folder, "--ios 1", "sleep 5 >/dev/null 2>&1 & echo $! > pid").done();
    assert!(begun.elapsed() < Duration::from_secs(5), "it waited for the daemon");
    let pid: i32 = String::from_utf8(folder.read("pid")).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    folder.assert_no_processes();
}

#[test]
fn the_command_s_arguments_and_folder_are_its_own() {
    let folder = Folder::new();
    folder
        .iotoll("cost --background 200ms --no-save --quiet --ios 1 -- sh -c")
        .word("printf '%s|' \"$@\" > arguments")
        .word("sh")
        .word("--format")
        .word("a b")
        .word("")
        .run()
        .done();
    assert_eq!(folder.read("arguments"), b"--format|a b||");
}
