//! Where records are saved, and that printing one again gives the same.

use super::iotoll::{Ended, Folder, PROGRAM, at_once, eventually, number, warns};
use super::machine::{has, skip};
use rustix::process::Signal;
use std::process::{Command, Stdio};

const NULL: &str = "run --background 200ms --name=n --ioengine=null --size=1g --runtime=200ms --time_based";

#[test]
fn a_record_is_saved_in_the_requested_folder() {
    // Options, and the folder of the record.
    let cases = [("--no-save", ""), ("--out here", "here/"), ("--out deep/er", "deep/er/"), ("", "iotoll-runs/")];
    at_once(cases, |(options, place)| {
        let folder = Folder::new();
        let ended = folder.iotoll(NULL).word_list(options).run().done();
        let records: Vec<String> = folder.listing().into_keys().filter(|path| path.ends_with("record.jsonl")).collect();
        match place {
            "" => assert!(folder.listing().is_empty(), "{:?}", folder.listing()),
            place => {
                assert!(matches!(records.as_slice(), [one] if one.starts_with(place)), "{options}: {records:?}");
                let rest = format!("iotoll report --full {}, ", records[0].trim_end_matches("/record.jsonl"));
                assert!(ended.stdout.contains(&rest), "{ended:?}");
            }
        }
        assert!(!folder.listing().keys().any(|path| path.ends_with(".partial")));
    });
}

/// Also in the same second.
#[test]
fn concurrent_runs_save_separate_records() {
    let folder = Folder::new();
    at_once(0..6, |_| drop(folder.iotoll(NULL).run().done()));
    let records = folder.listing().into_keys().filter(|path| path.ends_with("record.jsonl")).count();
    assert_eq!(records, 6, "{:?}", folder.listing());
}

#[test]
fn a_record_whose_folder_was_removed_is_saved_elsewhere() {
    let folder = Folder::new();
    let words = "run --background 200ms --name=n --ioengine=null --size=1g --runtime=2 --time_based --out gone";
    let running = folder.iotoll(words).start();
    assert!(eventually(|| folder.exists("gone")));
    // Until it has tried to write there.
    std::thread::sleep(std::time::Duration::from_millis(500));
    std::fs::remove_dir_all(folder.path("gone")).unwrap();
    let ended = running.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("gone/record.jsonl") && ended.stderr.contains("saved elsewhere"), "{ended:?}");
    let kept = ended.stderr.trim().rsplit(' ').next().unwrap().to_owned();
    folder.iotoll(&format!("report {kept}")).run().done();
    std::fs::remove_dir_all(kept).unwrap();
}

#[test]
fn report_renders_what_each_verb_printed() {
    let run = "--name=r --filename=data --rw=randrw --runtime=300ms --time_based";
    let cases = [
        ("run --background 200ms", run, "json"),
        ("run --background 200ms", run, "mail"),
        ("run --background 200ms", run, "table"),
        ("cost --background 200ms", "--ios 10 -- sleep 0.1", "json"),
        ("compare --budget 1s", "--ioengine=null --size=1m --aa", "json"),
        ("compare --budget 1s", "--ioengine=null --size=1m --aa", "mail"),
        ("compare --budget 1s", "--ioengine=null --size=1m --aa", "table"),
        ("compare --budget 1s", "--ioengine=null --size=1m --aa", "markdown"),
        ("compare --budget 1s", "--ioengine=null --size=1m --aa", "csv"),
    ];
    at_once(cases, |(verb, rest, format)| {
        let folder = Folder::with_file("data", 1 << 20);
        let ended = folder.iotoll(&format!("{verb} --quiet --format {format} --out kept {rest}")).run().done();
        assert_eq!(ended.stderr, "", "--quiet");
        for record in ["kept", "kept/record.jsonl"] {
            let again = folder.iotoll(&format!("report {record} --format {format}")).run();
            assert_eq!((again.code, &again.stdout), (Some(0), &ended.stdout), "{verb} {format} {record}");
        }
    });
}

/// A run and a command are compared with earlier ones, while measuring and again from the saved record.
#[test]
fn a_run_is_compared_with_an_earlier_one() {
    let folder = Folder::new();
    let spin = "--background 200ms --quiet --format json --ioengine=spin --size=1g --runtime=500ms --time_based";
    let run = |words: &str| folder.iotoll("run").word_list(words).word_list(spin).word("--name=a").run();
    run("--out then --spin_cycles=100").done();
    let now = run("--stored then --spin_cycles=20000 --out now").done();
    let found = now.json();
    assert_eq!(found["stored"]["from"], "then");
    assert!(found["stored"]["differs"].is_array() && warns(&found, "stored_work_differs", &["spin_cycles"]), "{found}");
    // A bound that holds despite noise: twenty thousand cycles more than next to none.
    let stored = &found["phases"][0]["stored"];
    assert!(number(&stored["iops"]) > 0.0 && number(&stored["iops_change"]) < -0.5, "{stored}");
    assert_eq!(found["jobs"][0]["plan"]["spin_cycles"], 20_000);
    for (record, stored) in [("now", "then"), ("now/record.jsonl", "then/record.jsonl")] {
        let again = folder.iotoll(&format!("report {record} --stored {stored} --format json")).run();
        assert_eq!(again.json()["phases"], found["phases"]);
    }
    let cost = "cost --background 200ms --quiet --ios 10 --out command -- sleep 0.1";
    folder.iotoll(cost).run().done();
    let shown = folder.iotoll("report command --stored command").run();
    assert!(shown.stdout.contains("Against the stored command of 20"), "{shown:?}");
    for (stored, named) in [("nowhere", "reading the record"), ("file", "is not a record")] {
        folder.write("file", "garbage");
        let refused = run(&format!("--no-save --spin_cycles=100 --stored {stored}"));
        refused.refused(2, &[&format!("--stored {stored}"), named, "iotoll run"]);
    }
}

#[test]
fn each_format_is_valid() {
    let folder = Folder::new();
    let ended = |format: &str| folder.iotoll(NULL).word_list(&format!("--quiet --no-save --format {format}")).run();
    assert_eq!(ended("json").json()["schema"], "iotoll.run/1");
    let mail = ended("mail").stdout;
    assert!(mail.lines().all(|line| line.chars().count() <= 72), "{mail}");
    let table = ended("table").stdout;
    for text in [&mail, &table] {
        assert!(text.contains("cycles") && !text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn files_that_are_not_records_are_refused() {
    let folder = Folder::new();
    folder.iotoll(NULL).word_list("--quiet --out good").run().done();
    let good = String::from_utf8(folder.read("good/record.jsonl")).unwrap();
    let (before, after) = good.split_once("\"method_version\":").unwrap();
    let older = format!("{before}\"method_version\":1,{}", after.split_once(',').unwrap().1);
    assert_ne!(older, good);
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.write("garbage", "garbage");
    folder.write("other", "{\"schema\":\"iotoll.compare/1\"}");
    folder.write("older", older);
    folder.write("cut", &good[..good.len() / 2]);
    folder.write("bytes", [0xff, 0xfe, 0]);
    let cases = [
        ("nowhere", "reading the record"),
        ("empty", "record.jsonl"),
        ("garbage", "is not a record"),
        ("other", "is not the envelope of a record"),
        ("older", "was measured by method 1"),
        ("cut", "ends early, in line 2"),
        ("bytes", "is not a record"),
    ];
    for (path, why) in cases {
        folder.iotoll(&format!("report {path}")).run().refused(2, &[path, why]);
    }
}

#[test]
fn an_unusable_folder_is_refused_before_the_measurement() {
    let folder = Folder::new();
    folder.write("file", "");
    folder.iotoll(NULL).word_list("--quiet --out taken").run().done();
    let before = folder.listing();
    for (out, why) in
        [("file", "file"), ("file/x", "file/x"), ("taken", "already contains a record"), ("/proc/x", "/proc/x")]
    {
        folder.iotoll(NULL).word_list(&format!("--out {out}")).run().refused(2, &[why, "choose another --out"]);
        assert_eq!(folder.listing(), before, "{out}");
    }
}

#[test]
fn a_refused_run_removes_only_the_folders_that_it_made() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("mine")).unwrap();
    let before = folder.listing();
    for out in ["mine", "mine/new", "new/new"] {
        let ended = folder.iotoll(&format!("run --name=a --rw=read --filename=absent --out {out}")).run();
        ended.refused(2, &["absent", "size="]);
        assert_eq!(folder.listing(), before, "{out}");
    }
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let folder = Folder::new();
    for words in [&format!("{NULL} --no-save --quiet --format json"), "doctor --format json", "run --help"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = folder.iotoll(words).stdout(writer).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = folder.iotoll("run --nonsense").stderr(writer).run();
    assert_eq!(ended.code, Some(2), "a closed standard error must not cause a panic");
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = Folder::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    folder.iotoll(NULL).word_list("--no-save --quiet").stdout(full).run().refused(1, &["No space left"]);
    for words in ["--help", "-h", "--version", "help run", "run --help", "completions bash"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        folder.iotoll(words).stdout(full).run().refused(1, &["No space left"]);
    }
}

#[test]
fn notes_go_only_to_standard_error() {
    let folder = Folder::new();
    let output = Command::new(PROGRAM)
        .args(NULL.split(' '))
        .args(["--format", "json", "--out", "o"])
        .current_dir(folder.path("."))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("iotoll: record and report.html in o;"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn a_closed_pipe_does_not_change_the_exit_status() {
    let folder = Folder::new();
    for (script, code) in [("exit 3", 3), ("true", 0)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let cost = "cost --background 200ms --no-save --quiet --ios 1 -- sh -c";
        let ended = folder.iotoll(cost).word(script).stdout(writer).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), ""), "{ended:?}");
    }
}

/// Kills iotoll once `file` exists, and returns what `report` then says of the record in `kept`.
fn killed_after(folder: &Folder, words: &str, more: &[&str], file: &str) -> Ended {
    let running = more.iter().fold(folder.iotoll(words), |iotoll, word| iotoll.word(*word)).start();
    assert!(eventually(|| folder.exists(file)), "{words}");
    running.ended_by(Signal::KILL);
    folder.iotoll("report kept --format json").run()
}

#[test]
fn a_kill_keeps_what_was_measured() {
    let folder = Folder::new();
    let job = "ioengine=null\nsize=1g\ntime_based\n";
    folder.write("jobs.fio", format!("[a]\n{job}runtime=300ms\n[b]\nstonewall\n{job}runtime=60\n"));
    let run = folder.iotoll("run jobs.fio --background 200ms --quiet --out kept").start();
    assert!(eventually(|| run.has_threads("job b", 1)));
    run.ended_by(Signal::KILL);
    let finding = folder.iotoll("report kept --format json").run().done().json();
    assert_eq!(finding["outcome"], "interrupted");
    assert!(warns(&finding, "interrupted", &[]));
    assert!(
        matches!(finding["phases"].as_array().unwrap().as_slice(), [one] if number(&one["iops"]) > 0.0),
        "{finding}"
    );
    assert!(number(&finding["host"]["tsc_hertz"]) > 1e6);
    assert!(finding["background"].is_object(), "{finding}");
}

#[test]
fn a_kill_keeps_the_executions_of_a_command() {
    let folder = Folder::new();
    let cost = "cost --background 200ms --quiet --no-output --out kept --repeat 9 --ios 10 -- sh -c";
    let script = "echo >> log; test $(wc -l < log) -lt 3 || { touch third; exec sleep 2; }";
    let finding = killed_after(&folder, cost, &[script], "third").done().json();
    let exits = finding["phases"][0]["exits"].as_array().unwrap().len();
    assert_eq!((finding["outcome"].as_str(), exits), (Some("interrupted"), 2));
    folder.assert_no_processes();
}

/// The windows of the only execution, of a job and of commands with and without a live count.
#[test]
fn a_kill_in_the_only_phase_keeps_its_windows() {
    let job = "run --name=j --ioengine=null --size=1g --time_based --runtime=60 --ramp_time=300ms";
    // A packet each 10 ms. Commands outlive iotoll, so they end by themselves.
    let counted = "cost --count net:lo -- python3 send.py";
    at_once([job, counted, "cost --ios 10 -- sleep 8"], |measurement| {
        if measurement == counted && !has("python3") {
            return skip("no python3 here");
        }
        let folder = Folder::new();
        folder.write(
            "send.py",
            "import socket, time\nout = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             for _ in range(800):\n out.sendto(b'x', ('127.0.0.1', 9))\n time.sleep(0.01)\n",
        );
        let (verb, rest) = measurement.split_once(' ').unwrap();
        let running = folder.iotoll(&format!("{verb} --background 200ms --quiet --out kept {rest}")).start();
        assert!(eventually(|| folder.lines("windows").len() > 1), "{measurement}");
        running.ended_by(Signal::KILL);
        let finding = folder.iotoll("report kept --format json").run().done().json();
        assert_eq!(finding["outcome"], "interrupted");
        assert!(warns(&finding, "interrupted", &["killed while the workload ran"]), "{finding}");
        let phase = &finding["phases"][0];
        assert!(number(&phase["wall_seconds"]) > 0.5, "{phase}");
        assert_eq!(measurement.contains("--ios"), phase["iops"].is_null(), "{phase}");
        assert!(phase["iops"].is_null() || number(&phase["iops"]) > 0.0, "{phase}");
        let sheet = folder.iotoll("report kept").run().done();
        assert!(sheet.stdout.contains("Interrupted: the figures cover only the time before"), "{sheet:?}");
    });
}

#[test]
fn a_kill_before_anything_was_measured_is_said() {
    let folder = Folder::new();
    let cost = "cost --background 200ms --quiet --out kept --ios 10 -- sh -c";
    let ended = killed_after(&folder, cost, &["touch first; exec sleep 2"], "first");
    ended.refused(2, &["kept/record.jsonl", "killed before the first window had ended"]);
    folder.assert_no_processes();
}

/// Neither one that lies there before, nor one that is made while iotoll measures.
#[test]
fn a_symbolic_link_is_not_written_through() {
    let folder = Folder::new();
    for name in ["report.html", "record.jsonl"] {
        let out = format!("before-{name}");
        std::fs::create_dir(folder.path(&out)).unwrap();
        std::os::unix::fs::symlink(folder.path("victim"), folder.path(&format!("{out}/{name}"))).unwrap();
        folder.iotoll(NULL).word_list(&format!("--out {out}")).run().refused(2, &[&out, "already"]);
        assert!(!folder.exists("victim"), "{name}");
    }
    let running = folder.iotoll(NULL).word_list("--quiet --out during").start();
    assert!(eventually(|| folder.exists("during/record.jsonl")));
    std::os::unix::fs::symlink(folder.path("victim"), folder.path("during/report.html")).unwrap();
    running.wait().done();
    assert!(!folder.exists("victim"));
    assert!(std::fs::symlink_metadata(folder.path("during/report.html")).unwrap().is_file());
}
