//! Failures of `iotoll compare`: one clear line, toggles restored, nothing left running, and the measured rounds saved.

use super::guardian;
use super::iotoll::{Ended, Folder, Running, eventually};
use super::machine::{LoopDevice, Mount, skip};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

const SPIN: &str =
    "compare --quiet --out kept --ioengine=spin --size=1m --spin_cycles=20000 --budget 60s --precision 0.01%";

/// Process ids of the workers or commands of a comparison.
fn workers(running: &Running) -> Vec<i32> {
    running.children().into_iter().filter(|id| guardian::comm(*id) != "undo-guardian").collect()
}

/// The refusal of a file names it, and suggests nothing that a file cannot contain.
#[test]
fn errors_in_an_experiment_file_name_the_file() {
    let job = "job = \"[a]\\nioengine=null\\nsize=1m\"\n";
    let two = "[[arm]]\nname = 'a'\n[[arm]]\nname = 'b'\noptions = ['bs=8k']\n";
    let cases: [(&str, String, &[&str]); 6] = [
        (
            "one",
            format!("{job}[[arm]]\nname = 'a'\n"),
            &["one.toml: a comparison needs two arms", "[[arm]]", "aa = true"],
        ),
        ("none", two.to_owned(), &["none.toml: ", "no workload", "job = "]),
        ("target", format!("target = ['latency_p99']\n{job}{two}"), &["target.toml: target: ", "fail_on"]),
        ("bad", format!("{job}{two}").replace("bs=8k", "bz=8k"), &["bad.toml: option 'bz'"]),
        (
            "cell",
            format!(
                "{job}{two}[[published]]\ncell = {{ bs = '4k' }}\nmetric = 'iops'\nchange = 0.1\nsource = 'a mail'\n"
            ),
            &["cell.toml: published from 'a mail'", "bs=4k is not a point of the sweep"],
        ),
        (
            "sauce",
            format!("{job}{two}[[published]]\nmetric = 'iops'\nchange = 0.1\nsauce = 'a mail'\nsource = ''\n"),
            &["sauce.toml:", "unknown field `sauce`"],
        ),
    ];
    let folder = Folder::new();
    for (name, text, named) in cases {
        folder.write(&format!("{name}.toml"), text);
        let ended = folder.iotoll(&format!("compare {name}.toml")).run();
        ended.refused(2, named);
        assert!(!ended.stderr.contains("--"), "{ended:?}");
    }
    folder
        .iotoll("compare absent.toml")
        .run()
        .refused(2, &["absent.toml: there is no such file; check the name of the experiment file"]);
    // Beside a file nothing else may be given.
    let both = folder.iotoll("compare one.toml --baseline-cmd").word("as it is").run();
    both.refused(2, &["one.toml: arms, sweeps and options belong in the experiment file"]);
}

/// A report that cannot be written and an output that is full: both are reported.
#[test]
fn a_lost_report_and_a_lost_output_do_not_hide_each_other() {
    let folder = Folder::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let words = "compare --quiet --out kept --budget 1s --ioengine=null --size=1m --aa";
    let (record, page) = (folder.path("kept/record.jsonl"), folder.path("kept/report.html"));
    // What is in the way from the beginning is refused before the measurement.
    let in_the_way = std::thread::spawn(move || {
        let begun = (0..2000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            record.exists()
        });
        assert!(begun);
        fs::create_dir(page).unwrap();
    });
    let ended = folder.iotoll(words).stdout(full).run();
    in_the_way.join().unwrap();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("kept/report.html") && ended.stderr.contains("No space left"), "{ended:?}");
    assert_eq!(ended.stderr.matches("Is a directory").count(), 1, "{ended:?}");
    assert!(!folder.lines("round").is_empty());
}

#[test]
fn an_arm_that_fails_at_once_gives_one_line_and_leaves_nothing() {
    let folder = Folder::with_file("data", 4096);
    let cases: [(&str, &str, i32, &[&str]); 4] = [
        ("sleep 0.1", "false", 1, &["arm 'candidate' (`false`)", "ended with status 1"]),
        ("sleep 0.1", "no-such-program-here", 2, &["no-such-program-here", "cannot be started"]),
        ("sleep 0.1", "sh -c 'kill -9 $$'", 1, &["arm 'candidate'", "signal 9"]),
        (
            "sleep 0.1",
            "fio --name=a --rw=read --filename=data/below --size=4k",
            1,
            &["arm 'candidate'", "Not a directory"],
        ),
    ];
    for (baseline, candidate, code, named) in cases {
        let words = "compare --quiet --out kept --budget 3s --baseline-cmd";
        let ended = folder.iotoll(words).word(baseline).word("--candidate-cmd").word(candidate).run();
        ended.refused(code, named);
        assert!(!folder.exists("kept"), "{candidate}: {:?}", folder.listing());
    }
    folder.assert_no_processes();
}

/// Processes that a command leaves running are killed: they would disturb the next slice.
#[test]
fn an_arm_that_forks_leaves_nothing_running() {
    let folder = Folder::new();
    folder
        .iotoll("compare --quiet --no-save --budget 1s --baseline-cmd")
        .word("sleep 0.05")
        .word("--candidate-cmd")
        .word("sh -c 'sleep 300 & sleep 300 & exit 0'")
        .run()
        .done();
    folder.assert_no_processes();
}

#[test]
fn a_killed_worker_ends_the_comparison_and_keeps_the_rounds() {
    let folder = Folder::new();
    let running = folder.iotoll(SPIN).word_list("--candidate spin_cycles=30000").start();
    assert!(eventually(|| folder.lines("round").len() >= 2 && !workers(&running).is_empty()));
    let victim = workers(&running).into_iter().next().and_then(Pid::from_raw);
    // It may have just ended; then take the next one.
    let mut killed = victim.is_some_and(|worker| kill_process(worker, Signal::KILL).is_ok());
    while !killed {
        let worker = workers(&running).into_iter().next().and_then(Pid::from_raw);
        killed = worker.is_some_and(|worker| kill_process(worker, Signal::KILL).is_ok());
    }
    let ended = running.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("arm '") && ended.stderr.contains("worker process"), "{ended:?}");
    let again = folder.iotoll("report kept --format json").run().done();
    assert!(again.json()["rounds"].as_u64().unwrap() >= 2);
    folder.assert_no_processes();
}

#[test]
fn an_interruption_keeps_the_rounds_and_restores_the_toggle() {
    let folder = Folder::new();
    folder.write("knob", "found");
    let setting = format!("file:{}=changed", folder.path("knob").display());
    for signal in [Signal::INT, Signal::TERM, Signal::QUIT] {
        let running = folder.iotoll(SPIN).word_list("--candidate-set").word(setting.as_str()).start();
        assert!(eventually(|| !folder.lines("round").is_empty() && folder.read("knob") == b"changed"));
        let ended = running.ended_by(signal);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert_eq!(folder.read("knob"), b"found");
        assert!(ended.stdout.contains("Interrupted: the figures cover only"), "{ended:?}");
        assert!(!folder.lines("round").is_empty());
        fs::remove_dir_all(folder.path("kept")).unwrap();
    }
    folder.assert_no_processes();
}

#[test]
fn an_interruption_before_the_first_round_leaves_nothing() {
    let folder = Folder::new();
    let words = "compare --quiet --out kept --budget 60s --baseline-cmd";
    let running = folder.iotoll(words).word("sleep 300").word("--candidate-cmd").word("sleep 301").start();
    assert!(eventually(|| !workers(&running).is_empty()));
    let ended = running.ended_by(Signal::INT);
    ended.refused(130, &["interrupted"]);
    assert!(!folder.exists("kept"));
    folder.assert_no_processes();
}

#[test]
fn a_toggle_that_fails_is_undone_and_named() {
    let folder = Folder::new();
    folder.write("knob", "found");
    let setting = format!("file:{}=changed", folder.path("knob").display());
    let ended = folder
        .iotoll(SPIN)
        .word_list("--candidate-set")
        .word(setting)
        .word("--candidate-setup")
        .word("test -e once && exit 7; touch once")
        .word("--candidate-cleanup")
        .word("touch left")
        .run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("arm 'candidate': setup") && ended.stderr.contains("exit status: 7"), "{ended:?}");
    assert_eq!(folder.read("knob"), b"found");
    assert!(folder.exists("left"));
    folder.assert_no_processes();
}

/// A regular file is not a kernel file: brackets in it have no meaning, and it is restored byte for byte.
#[test]
fn a_regular_file_is_restored_byte_for_byte() {
    let folder = Folder::new();
    let text = "a\n[section]\n\n";
    folder.write("app.conf", text);
    let setting = format!("file:{}=changed", folder.path("app.conf").display());
    let words = "compare --quiet --no-save --budget 1s --ioengine=null --size=1m --candidate-set";
    folder.iotoll(words).word(setting).run().done();
    assert_eq!(folder.read("app.conf"), text.as_bytes());
}

/// An empty value is restored too, and a write that the kernel ignores is reported.
#[test]
fn a_sysctl_is_restored_even_if_it_was_empty() {
    let path = "/proc/sys/net/ipv4/ip_local_reserved_ports";
    let Ok(before) = fs::read_to_string(path) else {
        return skip("no such sysctl");
    };
    if fs::write(path, &before).is_err() {
        return skip("it cannot be written");
    }
    let folder = Folder::new();
    let words = "compare --quiet --no-save --budget 1s --ioengine=null --size=1m --candidate-set";
    folder.iotoll(words).word("sysctl:net.ipv4.ip_local_reserved_ports=4711").run().done();
    assert_eq!(fs::read_to_string(path).unwrap(), before);
}

/// `vm.dirty_bytes` and `vm.dirty_ratio` are one setting with two names: writing one sets the other to 0.
#[test]
fn related_settings_are_restored_and_ineffective_ones_reported() {
    let path = |name: &str| format!("/proc/sys/vm/{name}");
    let holds = |name: &str| fs::read_to_string(path(name)).map(|text| text.trim().to_owned());
    let both = || holds("dirty_bytes").and_then(|bytes| Ok((bytes, holds("dirty_ratio")?)));
    let Ok((bytes, ratio)) = both() else { return skip("no such sysctl") };
    if fs::write(path("swappiness"), holds("swappiness").unwrap()).is_err() {
        return skip("it cannot be written");
    }
    let folder = Folder::new();
    let words = "compare --quiet --no-save --format json --budget 1s --ioengine=null --size=1m --candidate-set";
    let told = |ended: &Ended, what: &str| {
        let warnings = ended.json()["warnings"].to_string();
        assert!(warnings.contains(what), "{warnings}");
    };
    let other = if bytes == "0" { "sysctl:vm.dirty_bytes=104857600" } else { "sysctl:vm.dirty_ratio=10" };
    let ended = folder.iotoll(words).word(other).run().done();
    assert_eq!(both().unwrap(), (bytes, ratio));
    told(&ended, "and is restored too");

    let swappiness = holds("swappiness").unwrap();
    let ended = folder.iotoll(words).word(format!("sysctl:vm.swappiness={swappiness}")).run().done();
    told(&ended, "is already in force");
    let twice = folder.iotoll(words).word("sysctl:vm.swappiness=1");
    let twice = twice.word("--candidate-set").word("file:/proc/sys/vm/../vm/swappiness=2").run();
    twice.refused(2, &["sysctl:vm.swappiness=1", "the same file", "set it once"]);
    folder.iotoll(words).word("file:/dev/null=1").run().refused(2, &["/dev/null", "not a regular file"]);
    assert_eq!(holds("swappiness").unwrap(), swappiness);
}

/// Cleanup runs even if no temporary file can be made.
#[test]
fn cleanup_needs_no_temporary_folder() {
    let folder = Folder::new();
    let words = "compare --quiet --no-save --budget 1s --ioengine=null --size=1m";
    let ended = folder
        .iotoll(words)
        .under(&["env", "TMPDIR=/nowhere"])
        .word("--candidate-setup=touch entered; echo entered >&2")
        .word("--candidate-cleanup=rm entered; touch left")
        .run()
        .done();
    assert!(folder.exists("left") && !folder.exists("entered"), "{ended:?}");
    let empty = folder.iotoll(words).word("--candidate-setup=").word("--candidate-cleanup=true").run();
    empty.refused(2, &["setup or cleanup is empty"]);
}

/// Two processes that continue one experiment would each lose the rounds of the other.
#[test]
fn one_process_at_a_time_writes_a_record() {
    let folder = Folder::new();
    let arm = |name: &str, cycles: u32| {
        format!("[[arm]]\nname = \"{name}\"\nwhen = \"cat which = {name}\"\noptions = [\"spin_cycles={cycles}\"]\n")
    };
    let job = "job = \"[j]\\nioengine=spin\\nsize=1m\\nspin_cycles=20000\"\nbudget = \"1s\"\nboots = 2\n";
    folder.write("boots.toml", format!("{job}{}{}", arm("one", 20_000), arm("other", 40_000)));
    folder.write("which", "one");
    folder.iotoll("compare boots.toml --quiet --out kept").run().done();
    let held = fs::File::open(folder.path("kept/record.jsonl")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let before = folder.read("kept/record.jsonl");
    let ended = folder.iotoll("compare --resume kept --quiet --same-boot").run();
    ended.refused(2, &["kept", "another iotoll is measuring", "wait until it has ended"]);
    assert_eq!(folder.read("kept/record.jsonl"), before);
    drop(held);
    // The next arm may be the other one.
    assert!(!folder.iotoll("compare --resume kept --quiet --same-boot").run().stderr.contains("another iotoll"));
}

#[test]
fn a_full_disk_ends_it_and_keeps_the_measured_rounds() {
    let folder = Folder::new();
    let mounted = Mount::new(folder.path("tiny"), &["-t", "tmpfs", "-o", "size=512k", "iotoll-test"]);
    let _mounted = match mounted {
        Ok(mounted) => mounted,
        Err(reason) => return skip(&reason),
    };
    let words = SPIN.replace("--out kept", "--out tiny/kept --format json --candidate spin_cycles=30000");
    let ended = folder.iotoll(&words).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("No space left"), "{}", ended.stderr);
    let again = folder.iotoll("report tiny/kept --format json").run().done();
    assert!(again.json()["rounds"].as_u64().unwrap() >= 1);
    assert!(ended.json()["rounds"].as_u64().unwrap() >= again.json()["rounds"].as_u64().unwrap());
}

/// The scheduler claims a device; its workers can still use it.
#[test]
fn a_device_can_be_written_with_permission() {
    let folder = Folder::new();
    folder.write("image", vec![0; 8 << 20]);
    let device = match LoopDevice::attach(&folder.path("image"), &[]) {
        Ok(device) => device,
        Err(reason) => return skip(&reason),
    };
    let words = format!(
        "compare --quiet --no-save --budget 1s --rw=randwrite --direct=1 --filename={} --candidate bs=8k",
        device.path
    );
    folder.iotoll(&words).run().refused(2, &["--allow-device-write"]);
    folder.iotoll(&words).word("--allow-device-write").run().done();
}

#[test]
fn a_truncated_record_is_shown_as_far_as_it_goes() {
    let folder = Folder::new();
    let words = "compare --quiet --out kept --budget 3s --ioengine=null --size=1m --aa --format json";
    folder.iotoll(words).run().done();
    let text = String::from_utf8(folder.read("kept/record.jsonl")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.pop();
    let half = lines.pop().unwrap();
    let cut = format!("{}\n{}", lines.join("\n"), &half[..half.len() / 2]);
    folder.write("kept/record.jsonl", cut);
    let again = folder.iotoll("report kept --format json").run().done();
    let rounds = lines.iter().filter(|line| line.starts_with("{\"round\"")).count();
    assert_eq!(again.json()["rounds"].as_u64().unwrap() as usize, rounds);
    assert!(again.json()["outcome"]["failed"].as_str().unwrap().contains("cut off"));
    folder.write("kept/record.jsonl", "garbage\n");
    folder.iotoll("report kept").run().refused(2, &["record.jsonl", "line 1"]);
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn a_hung_arm_is_ended_with_one_line() {
        let folder = Folder::new();
        let words = "compare --quiet --out kept --budget 1s --hang-timeout 1s";
        let commands = ["--baseline-cmd", "sleep 0.05", "--candidate-cmd", "sleep 1000"];
        let ended = commands.into_iter().fold(folder.iotoll(words), |iotoll, word| iotoll.word(word)).run();
        ended.refused(1, &["arm 'candidate'", "did not end within 1 s", "was killed"]);
        // A worker that does not answer any more.
        let running = folder.iotoll(SPIN).word_list("--hang-timeout 2s --candidate spin_cycles=30000").start();
        assert!(eventually(|| !folder.lines("round").is_empty() && workers(&running).len() == 2));
        let stopped =
            |worker: i32| Pid::from_raw(worker).is_some_and(|worker| kill_process(worker, Signal::STOP).is_ok());
        while !workers(&running).into_iter().any(stopped) {}
        let ended = running.wait();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains("arm '") && ended.stderr.contains("--hang-timeout"), "{ended:?}");
        assert!(!folder.lines("round").is_empty());
        folder.assert_no_processes();
    }
}
