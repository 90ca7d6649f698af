//! Unmodified commands that take turns in slices: what is measured, what is refused, and that nothing is left frozen.

use super::iotoll::{Ended, Folder, Iotoll, Running, at_once, eventually, items, number, warns, whole};
use super::machine::{is_root, needs, skip};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::fs;

const COMPARE: &str = "compare --quiet --no-save --format json --events none --budget 3s";
/// As COMPARE, but measures until it is ended, and saves.
const ENDLESS: &str = "compare --meters thread --quiet --out kept --budget 60s --precision 0.01%";
const DD: &str = "dd if=/dev/zero of=/dev/null bs=64k";
const OTHER_DD: &str = "dd if=/dev/zero of=/dev/null bs=65536";

fn fio(engine: &str) -> String {
    let job = "--name=a --rw=randread --bs=4k --size=1m --filename=data --invalidate=0 --time_based --runtime=600";
    format!("fio {job} --ioengine={engine}")
}

/// Two commands.
fn commands(folder: &Folder, words: &str, [baseline, candidate]: [&str; 2]) -> Iotoll {
    folder.iotoll(&format!("{words} --baseline-cmd '{baseline}' --candidate-cmd '{candidate}'"))
}

/// Waits for the end, after which neither a process nor a control group is left.
#[track_caller]
fn ended(folder: &Folder, running: Running) -> Ended {
    let name = format!("iotoll-{}-*", running.id());
    let ended = running.wait();
    folder.assert_no_processes();
    let groups = || folder.command(&format!("find /sys/fs/cgroup -maxdepth 7 -name '{name}'")).run().stdout;
    assert!(eventually(|| groups().is_empty()), "{}", groups());
    ended
}

/// The JSON of a comparison in slices, counted by `counter`.
#[track_caller]
fn sliced(folder: &Folder, iotoll: Iotoll, counter: &str) -> Value {
    let found = ended(folder, iotoll.start()).found();
    assert_eq!(found["work_counter"]["name"], counter, "{}", found["warnings"]);
    assert!(!warns(&found, "executions_only", &[]), "{}", found["warnings"]);
    assert!(found["method"].as_str().unwrap().contains("take turns"), "{}", found["method"]);
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
    needs!("fio", "iperf3");
    let folder = Folder::with_file("data", 1 << 20);
    let psync = commands(&folder, COMPARE, [&fio("psync"), &fio("psync --gtod_reduce=1")]);
    // sendfile counts as reading and as writing, so only the writes agree with both.
    let client = |server: &str, more: &str| format!("iperf3 -c 127.0.0.1 -p {{{server}.port}} -t 600 {more}");
    let words = format!("{COMPARE} --service 'a=iperf3 -s -p {{port}}' --service 'b=iperf3 -s -p {{port}}'");
    let iperf3 = commands(&folder, &words, [&client("a", ""), &client("b", "-Z")]);
    for (iotoll, counter) in [(psync, "task:both"), (iperf3, "task:write")] {
        let found = sliced(&folder, iotoll, counter);
        assert!(!warns(&found, "counters_disagree", &[]), "{}", found["warnings"]);
        // Where accounts can be kept, rounds of their own divide the cost.
        let accounts = &found["cells"][0]["accounts"];
        let own = items(accounts).find(|account| account["owner"] == "workload");
        let kept = own.is_some_and(|own| number(&own["baseline"]["value"]) > 0.0);
        assert_ne!(kept, found["unexplained"].is_string(), "{accounts}");
    }
}

#[test]
fn io_uring_is_counted_by_its_rings() {
    let folder = Folder::with_file("data", 1 << 20);
    let once = format!("cost --quiet --no-save --background 200ms -- {}", fio("io_uring").replace("=600", "=100ms"));
    if folder.iotoll(&once).run().code != Some(0) {
        return skip("fio cannot use io_uring here");
    }
    let words = COMPARE.replace("--no-save", "--meters thread --out kept --aa");
    let words = format!("{words} -- {}", fio("io_uring"));
    let found = sliced(&folder, folder.iotoll(&words), "io_uring");
    // The kernel hides a ring that a task submits to; such a reading is tried again, and does not repeat the last one.
    let rounds = folder.lines("round");
    let rounds: Vec<Value> = rounds.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let slices = rounds.iter().flat_map(|round| items(&round["round"]["slices"]));
    let commands: Vec<&Value> = slices.filter_map(|slice| slice["reading"].get("command")).collect();
    let moved =
        commands.iter().filter(|slice| slice["last"]["count"].as_u64() > slice["first"]["count"].as_u64()).count();
    assert!(!commands.is_empty() && moved * 4 >= commands.len() * 3, "{moved} of {} slices moved", commands.len());
    // Task accounting sees a log file at most.
    for case in items(&found["page_cache"]) {
        assert!(number(&case["reads_from_storage_fraction"]) < 0.5, "{case}");
    }
}

/// A generator that catches up works off what it missed, so its slices would show that, not what an I/O costs. The third and every later process
/// of another command ends early: the rehearsal of two arms sees only the first two. A process that leaves its control group cannot be frozen with it.
#[test]
fn what_cannot_take_turns_gives_one_line() {
    needs!("python3");
    let open_loop = "import os, time\nout, begun, done = os.open('/dev/null', os.O_WRONLY), time.monotonic(), 0\nwhile True:\n  \
                     due = (time.monotonic() - begun) * 5000\n  while done < due:\n    os.write(out, b'x' * 512)\n    done += 1\n  \
                     time.sleep(0.001)\n";
    let unified = "$(awk '$3 == \"cgroup2\" {print $2; exit}' /proc/self/mounts)";
    let files = [
        ("open_loop.py", open_loop.to_owned()),
        (
            "early.sh",
            format!("echo x >> starts\n[ $(wc -l < starts) -gt 2 ] || exec {DD}\ntimeout -s INT 0.2 {DD}\nexit 0\n"),
        ),
        ("leave.sh", format!("echo $$ > {unified}/cgroup.procs\nexec {DD}\n")),
    ];
    let cases: [(&str, i32, &[&str]); 3] = [
        ("python3 open_loop.py", 2, &["python3 open_loop.py", "catches up", "--slices off"]),
        ("sh early.sh", 1, &["sh early.sh", "ended by itself", "let it run longer", "--slices off"]),
        ("sh leave.sh", 1, &["`sh leave.sh`", "could not be frozen", "has left its control group"]),
    ];
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let freezes = is_root() && mounts.lines().any(|line| line.split(' ').nth(2) == Some("cgroup2"));
    at_once(cases, |(command, code, named)| {
        if command == "sh leave.sh" && !freezes {
            return skip("needs root and cgroup v2");
        }
        let folder = Folder::new();
        files.iter().for_each(|(name, text)| folder.write(name, text));
        ended(&folder, folder.iotoll(&format!("{COMPARE} --meters thread --aa -- {command}")).start())
            .refused(code, named);
    });
}

#[test]
fn a_command_that_dies_while_it_is_frozen_gives_one_line() {
    let folder = Folder::new();
    let running = commands(&folder, ENDLESS, [DD, OTHER_DD]).start().when(|_| !folder.lines("round").is_empty());
    let is_killed = || {
        let dd = folder.processes().into_iter().find(|(_, name)| name == "dd");
        dd.is_some_and(|(id, _)| kill_process(id, Signal::KILL).is_ok())
    };
    assert!(eventually(is_killed));
    ended(&folder, running).failed(1, &["arm '", "signal 9"]);
    assert!(!folder.lines("round").is_empty());
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
        let found = sliced(&folder, commands(&folder, COMPARE, [DD, OTHER_DD]), "task:both");
        let metrics = &found["cells"][0]["metrics"];
        let size = number(&metrics["bytes_per_second"]["baseline"]) / number(&metrics["iops"]["baseline"]);
        assert!((65_000.0..66_000.0).contains(&size), "{size}");
    }

    /// One process runs for both arms, and only the setting changes from slice to slice.
    #[test]
    fn a_setting_flips_while_one_command_keeps_running() {
        let folder = Folder::new();
        folder.write("knob", "before");
        let setting = format!("--candidate-set file:{}", folder.name("knob=after"));
        let words = format!("{} --out kept {setting} -- {DD}", COMPARE.replace("--no-save ", ""));
        let found = sliced(&folder, folder.iotoll(&words), "task:both");
        assert!(whole(&found["rounds"]) >= 2, "{found}");
        assert_eq!(folder.read("knob"), b"before");
        let record = folder.text("kept/record.jsonl");
        assert!(record.contains("\"commands\":[{\"cases\":[0,1]"), "one command for both arms");
    }

    #[test]
    fn what_cannot_be_sliced_is_a_whole_execution_and_says_why() {
        let folder = Folder::new();
        const SLEEPS: [&str; 2] = ["sleep 0.1", "sleep 0.2"];
        let compared = |words: &str, arms| commands(&folder, &format!("{COMPARE} {words}"), arms).run();
        let cases: [(&str, [&str; 2], &[&str]); 3] = [
            ("", SLEEPS, &["`sleep 0.", "ended by itself", "-t 60"]),
            ("", ["sleep 3.2", "sleep 3.1"], &["no counter shows", "--count"]),
            ("--prepare true", SLEEPS, &["prepare"]),
        ];
        at_once(cases, |(more, arms, words)| {
            let found = compared(more, arms).done().json();
            assert!(warns(&found, "executions_only", words), "{arms:?}: {}", found["warnings"]);
            assert!(found["slice_seconds"].is_null());
        });
        assert!(!warns(&compared("--slices off", SLEEPS).json(), "executions_only", &[]));
        let named = ["--slices", "`sleep 0.", "ended by itself", "--slices off"];
        compared("--slices 50ms", SLEEPS).refused(2, &named);
        compared("--count tcp", [DD, OTHER_DD]).refused(2, &["--count tcp", "did not move", "`dd if="]);
        folder.assert_no_processes();
    }

    /// Without a control group, the processes are stopped by signals, also those that have left the process group.
    #[test]
    fn commands_take_turns_by_signals_where_there_is_no_control_group() {
        // In a mount namespace without the unified hierarchy.
        let hide = "for at in $(awk '$3 == \"cgroup2\" {print $2}' /proc/mounts); do mount -t tmpfs none $at || exit 77; done; \
                exec \"$0\" \"$@\"";
        let under = ["unshare", "--mount", "sh", "-c", hide];
        let folder = Folder::with_file("data", 1 << 20);
        if folder.command("true").under(&under).run().code != Some(0) {
            return skip("needs a mount namespace");
        }
        // fio starts its jobs in sessions of their own.
        sliced(&folder, folder.iotoll(&format!("{COMPARE} --aa -- {}", fio("psync"))).under(&under), "task:both");
        let running = commands(&folder, ENDLESS, [DD, OTHER_DD]).under(&under).start();
        running.when(|_| !folder.lines("round").is_empty()).ended_by(Signal::KILL);
        folder.assert_no_processes();
    }
}
