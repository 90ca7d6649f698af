//! Unmodified commands that take turns in slices: what is measured, what is refused, and that nothing is left frozen.

use super::iotoll::{Ended, Folder, Iotoll, Running, at_once, eventually, number, warns, whole};
use super::machine::{is_root, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const COMPARE: &str = "compare --quiet --no-save --format json --budget 4s";
/// As COMPARE, but measures until it is ended, and saves.
const ENDLESS: &str = "compare --quiet --out kept --budget 60s --precision 0.01%";
const DD: &str = "dd if=/dev/zero of=/dev/null bs=64k";
const OTHER_DD: &str = "dd if=/dev/zero of=/dev/null bs=65536";

fn fio(engine: &str) -> String {
    format!(
        "fio --name=a --rw=randread --bs=4k --size=1m --filename=data --invalidate=0 --time_based --runtime=600 \
         --ioengine={engine}"
    )
}

/// Two commands.
fn commands(iotoll: Iotoll, [baseline, candidate]: [&str; 2]) -> Iotoll {
    iotoll.word("--baseline-cmd").word(baseline).word("--candidate-cmd").word(candidate)
}

/// Control groups of an iotoll with this process id.
fn groups(iotoll: u32) -> Vec<PathBuf> {
    fn below(folder: &Path, name: &str, depth: usize, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
            if entry.file_name().to_string_lossy().starts_with(name) {
                found.push(entry.path());
            } else if depth > 0 {
                below(&entry.path(), name, depth - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup"), &format!("iotoll-{iotoll}-"), 5, &mut found);
    found
}

/// Waits for the end, after which nothing is left.
#[track_caller]
fn ended(folder: &Folder, running: Running) -> Ended {
    let iotoll = running.id();
    let ended = running.wait();
    folder.assert_no_processes();
    assert!(eventually(|| groups(iotoll).is_empty()), "{:?}", groups(iotoll));
    ended
}

/// The processes of a folder with this name.
fn processes(folder: &Folder, name: &str) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let here = |id: &i32| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == folder.path("."));
    let named = |id: &i32| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm.trim() == name);
    numbers.filter(|id| here(id) && named(id)).collect()
}

/// The JSON of a comparison in slices, counted by `counter`.
#[track_caller]
fn sliced(folder: &Folder, iotoll: Iotoll, counter: &str) -> Value {
    let ended = ended(folder, iotoll.start());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
    let found = ended.json();
    assert_eq!(found["work_counter"]["name"], counter, "{}", found["warnings"]);
    assert!(!warns(&found, "executions_only", &[]), "{}", found["warnings"]);
    assert!(found["method"].as_str().unwrap().contains("take turns"), "{}", found["method"]);
    // Where accounts can be kept, rounds of their own divide the cost.
    let accounts = found["cells"][0]["accounts"].as_array().unwrap();
    let own = accounts.iter().find(|account| account["owner"] == "workload");
    let kept = own.is_some_and(|own| number(&own["baseline"]["value"]) > 0.0);
    assert_ne!(kept, found["unexplained"].is_string(), "{accounts:?}");
    let metrics = &found["cells"][0]["metrics"];
    for metric in ["iops", "bytes_per_second", "thread_cycles_per_io"] {
        let found = &metrics[metric];
        assert!(number(&found["baseline"]) > 0.0 && found["change"].is_number(), "{metric}: {found}");
    }
    // fio's clock ran on while it was frozen.
    assert!(metrics["latency_mean"]["change"].is_null(), "{metrics}");
    found
}

#[test]
fn programs_that_report_their_io_take_turns() {
    let iperf3 = |folder: &Folder| {
        let servers = ["a=iperf3 -s -p {port}", "b=iperf3 -s -p {port}"];
        let iotoll = servers.into_iter().fold(folder.iotoll(COMPARE), |iotoll, it| iotoll.word("--service").word(it));
        let client = |server: &str, more: &str| format!("iperf3 -c 127.0.0.1 -p {{{server}.port}} -t 600 {more}");
        // sendfile counts as reading and as writing, so only the writes agree with both.
        commands(iotoll, [&client("a", ""), &client("b", "-Z")])
    };
    let folder = Folder::with_file("data", 1 << 20);
    let psync = commands(folder.iotoll(COMPARE), [&fio("psync"), &fio("psync --gtod_reduce=1")]);
    for (iotoll, counter) in [(psync, "task:both"), (iperf3(&folder), "task:write")] {
        let found = sliced(&folder, iotoll, counter);
        assert!(!warns(&found, "counters_disagree", &[]), "{}", found["warnings"]);
    }
}

#[test]
fn io_uring_is_counted_by_its_rings() {
    let folder = Folder::with_file("data", 1 << 20);
    let once = format!("cost --quiet --no-save --background 200ms -- {}", fio("io_uring").replace("=600", "=100ms"));
    if folder.iotoll(&once).run().code != Some(0) {
        return skip("fio cannot use io_uring here");
    }
    let words = format!("{} --out kept --aa -- {}", COMPARE.replace("--no-save ", ""), fio("io_uring"));
    let found = sliced(&folder, folder.iotoll(&words), "io_uring");
    // The kernel hides a ring that a task submits to; such a reading is tried again, and does not repeat the last one.
    let record = String::from_utf8(folder.read("kept/record.jsonl")).unwrap();
    let lines = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let rounds: Vec<Value> = lines.filter_map(|line| line.get("round").cloned()).collect();
    let slices = rounds.iter().flat_map(|round| round["slices"].as_array().unwrap());
    let commands: Vec<&Value> = slices.filter_map(|slice| slice["reading"].get("command")).collect();
    let moved =
        commands.iter().filter(|slice| slice["last"]["count"].as_u64() > slice["first"]["count"].as_u64()).count();
    assert!(!commands.is_empty() && moved * 10 >= commands.len() * 9, "{moved} of {} slices moved", commands.len());
    // Task accounting sees a log file at most.
    for case in found["page_cache"].as_array().unwrap() {
        assert!(number(&case["reads_from_storage_fraction"]) < 0.5, "{case}");
    }
}

/// It works off what it missed, so its slices would show that, not what an I/O costs.
#[test]
fn a_generator_that_catches_up_is_refused() {
    let folder = Folder::new();
    folder.write(
        "open_loop.py",
        "import os, time\nout, begun, done = os.open('/dev/null', os.O_WRONLY), time.monotonic(), 0\nwhile True:\n  \
         due = (time.monotonic() - begun) * 5000\n  while done < due:\n    os.write(out, b'x' * 512)\n    done += 1\n  \
         time.sleep(0.001)\n",
    );
    if !std::process::Command::new("python3").arg("-V").status().is_ok_and(|status| status.success()) {
        return skip("python3 is not installed");
    }
    let running = folder.iotoll(&format!("{COMPARE} --aa -- python3 open_loop.py")).start();
    ended(&folder, running).refused(2, &["python3 open_loop.py", "catches up", "--slices off"]);
}

/// The third and every later process of it ends early: the rehearsal of two arms sees only the first two.
#[test]
fn a_command_that_ends_within_a_round_gives_one_line() {
    let folder = Folder::new();
    folder.write(
        "early.sh",
        format!(
            "echo x >> starts\nif [ $(wc -l < starts) -le 2 ]; then exec {DD}; fi\ntimeout -s INT 0.2 {DD}\nexit 0\n"
        ),
    );
    let running = folder.iotoll(&format!("{COMPARE} --aa -- sh early.sh")).start();
    let ended = ended(&folder, running);
    ended.refused(1, &["sh early.sh", "ended by itself", "let it run longer", "--slices off"]);
}

#[test]
fn a_command_that_dies_while_it_is_frozen_gives_one_line() {
    let folder = Folder::new();
    let running = commands(folder.iotoll(ENDLESS), [DD, OTHER_DD]).start();
    assert!(eventually(|| !folder.lines("round").is_empty()));
    let killed = |id: i32| kill_process(Pid::from_raw(id).unwrap(), Signal::KILL).is_ok();
    assert!(eventually(|| processes(&folder, "dd").first().is_some_and(|id| killed(*id))));
    let ended = ended(&folder, running);
    assert_eq!((ended.code, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
    assert!(ended.stderr.contains("arm '") && ended.stderr.contains("signal 9"), "{ended:?}");
    assert!(!folder.lines("round").is_empty());
}

/// A process that leaves its control group cannot be frozen with it.
#[test]
fn a_command_that_cannot_be_frozen_gives_one_line() {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let unified = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"));
    let Some(unified) = unified.and_then(|line| line.split(' ').nth(1)).filter(|_| is_root()) else {
        return skip("needs root and cgroup v2");
    };
    let folder = Folder::new();
    folder.write("leave.sh", format!("echo $$ > {unified}/cgroup.procs\nexec {DD}\n"));
    let running = commands(folder.iotoll(COMPARE), ["sh leave.sh", DD]).start();
    ended(&folder, running).refused(1, &["`sh leave.sh`", "could not be frozen", "has left its control group"]);
}

#[test]
fn a_service_that_does_not_come_up_gives_one_line() {
    let folder = Folder::new();
    let iotoll = folder.iotoll(COMPARE).word("--service").word("server=sh -c 'exit 3' {port}");
    let running = commands(iotoll, [DD, OTHER_DD]).start();
    ended(&folder, running).refused(1, &["service 'server'", "exit status 3"]);
}

/// However it ends, nothing is left frozen, running or switched.
#[test]
fn nothing_is_left_when_it_is_ended_in_the_middle() {
    let signals = [(Signal::INT, Some(130)), (Signal::TERM, Some(130)), (Signal::KILL, None)];
    for (signal, code) in signals {
        let folder = Folder::new();
        folder.write("knob", "before");
        let setting = format!("--candidate-set=file:{}", folder.path("knob=after").display());
        let running = folder.iotoll(ENDLESS).word(setting).word_list(&format!("-- {DD}")).start();
        assert!(eventually(|| !folder.lines("round").is_empty() && folder.read("knob") == b"after"), "{signal:?}");
        running.signal(signal);
        let ended = ended(&folder, running);
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(eventually(|| folder.read("knob") == b"before"), "{signal:?}");
    }
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    /// Only its system calls show what it does, and counting them slows it: that is said.
    #[test]
    fn libaio_is_counted_by_its_system_calls() {
        if !is_root() {
            return skip("counting system calls needs root");
        }
        let folder = Folder::with_file("data", 1 << 20);
        let found = sliced(&folder, folder.iotoll(&format!("{COMPARE} --aa -- {}", fio("libaio"))), "syscalls");
        assert!(number(&found["work_counter"]["nanos_per_count"]) > 0.0, "{}", found["work_counter"]);
        assert!(number(&found["counting_fraction"]) > 0.01, "{}", found["counting_fraction"]);
        assert!(warns(&found, "counting_costs", &["--slices off"]), "{}", found["warnings"]);
    }

    /// dd does not report its I/O to iotoll, so a count stands for itself: it reads as much as it writes.
    #[test]
    fn a_program_that_does_not_report_is_counted_by_the_kernel() {
        let folder = Folder::new();
        let found = sliced(&folder, commands(folder.iotoll(COMPARE), [DD, OTHER_DD]), "task:both");
        let metrics = &found["cells"][0]["metrics"];
        let size = number(&metrics["bytes_per_second"]["baseline"]) / number(&metrics["iops"]["baseline"]);
        assert!((65_000.0..66_000.0).contains(&size), "{size}");
    }

    /// One process runs for both arms, and only the setting changes from slice to slice.
    #[test]
    fn a_setting_flips_while_one_command_keeps_running() {
        let folder = Folder::new();
        folder.write("knob", "before");
        let words =
            format!("{COMPARE} --out kept --candidate-set file:{} -- {DD}", folder.path("knob=after").display());
        let found = sliced(&folder, folder.iotoll(&words.replace("--no-save ", "")), "task:both");
        assert!(whole(&found["rounds"]) >= 2, "{found}");
        assert_eq!(folder.read("knob"), b"before");
        let record = String::from_utf8(folder.read("kept/record.jsonl")).unwrap();
        assert!(record.contains("\"commands\":[{\"cases\":[0,1]"), "one command for both arms");
        // A fresh process for each arm.
        let words = format!("{COMPARE} --candidate-fresh --candidate-set file:{}", folder.path("knob=after").display());
        let ended = ended(&folder, folder.iotoll(&words).word_list("-- sleep 0.1").start()).done();
        assert!(warns(&ended.json(), "executions_only", &["fresh"]), "{}", ended.stdout);
    }

    #[test]
    fn what_cannot_be_sliced_is_a_whole_execution_and_says_why() {
        let folder = Folder::new();
        let cases: [(&str, [&str; 2], &[&str]); 3] = [
            ("", ["sleep 0.1", "sleep 0.2"], &["`sleep 0.", "ended by itself", "-t 60"]),
            ("", ["sleep 3.2", "sleep 3.1"], &["no counter shows", "--count"]),
            ("--prepare true", ["sleep 0.1", "sleep 0.2"], &["prepare"]),
        ];
        at_once(cases, |(more, arms, words)| {
            let iotoll = commands(folder.iotoll(COMPARE).word_list(more), arms);
            let ended = iotoll.run().done();
            assert!(warns(&ended.json(), "executions_only", words), "{arms:?}: {}", ended.json()["warnings"]);
            assert!(ended.json()["slice_seconds"].is_null());
        });
        let off = commands(folder.iotoll(COMPARE).word_list("--slices off"), ["sleep 0.1", "sleep 0.2"]).run();
        assert!(!warns(&off.json(), "executions_only", &[]), "{off:?}");
        let asked = commands(folder.iotoll(COMPARE).word_list("--slices 50ms"), ["sleep 0.1", "sleep 0.2"]).run();
        asked.refused(2, &["--slices", "`sleep 0.", "ended by itself", "--slices off"]);
        let still = commands(folder.iotoll(COMPARE).word_list("--count tcp"), [DD, OTHER_DD]).run();
        still.refused(2, &["--count tcp", "did not move", "`dd if="]);
        folder.assert_no_processes();
    }

    /// Without a control group, the processes are stopped by signals, also those that have left the process group.
    #[test]
    fn commands_take_turns_by_signals_where_there_is_no_control_group() {
        // In a mount namespace without the unified hierarchy.
        let hide = "for at in $(awk '$3 == \"cgroup2\" {print $2}' /proc/mounts); do mount -t tmpfs none $at || exit 77; done; \
                exec \"$0\" \"$@\"";
        let under = ["unshare", "--mount", "sh", "-c", hide];
        let possible = std::process::Command::new(under[0]).args(&under[1..]).arg("true").status();
        if !possible.is_ok_and(|status| status.success()) {
            return skip("needs a mount namespace");
        }
        let folder = Folder::with_file("data", 1 << 20);
        // fio starts its jobs in sessions of their own.
        sliced(&folder, folder.iotoll(&format!("{COMPARE} --aa -- {}", fio("psync"))).under(&under), "task:both");
        let running = commands(folder.iotoll(ENDLESS), [DD, OTHER_DD]).under(&under).start();
        assert!(eventually(|| !folder.lines("round").is_empty()));
        running.ended_by(Signal::KILL);
        folder.assert_no_processes();
    }
}
