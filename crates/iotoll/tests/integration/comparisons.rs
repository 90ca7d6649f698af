//! `iotoll compare` of jobs: a known change, also beside a stored one; and failures: one clear line, settings restored, the measured
//! rounds saved. `cases/jobs.json` has its arguments, `endings` what a signal leaves.

use super::iotoll::{Folder, Running, at_once, eventually, number, warns, whole};
use super::machine::{LoopDevice, Mount, needs, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::sync::OnceLock;

/// Engine `spin` burns a given number of cycles, and the thread's own clock shows that however busy other tests keep
/// the machine; IOPS and the cost of the whole machine do not.
const SPIN: &str = "compare --meters thread --quiet --format json --ioengine=spin --size=1m --spin_cycles=20000";
/// The same, without an end.
const ENDLESS: &str = "compare --meters thread --quiet --out kept --ioengine=null --size=1m --rate_iops=1k --candidate inject_ns=99 \
                       --budget 60s --precision 0.01%";
/// What measures little: without meters of the machine there are no explaining rounds.
const SHORT: &str =
    "compare --meters thread --quiet --format json --budget 1s --ioengine=null --size=1m --rate_iops=1k";

/// A comparison of 500 ns more, in `one`, and one of ten times the cycles, beside it, in `two`: measured once for all tests.
fn measured() -> &'static Folder {
    static MEASURED: OnceLock<Folder> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let folder = Folder::new();
        for words in
            ["--out one --candidate inject_ns=500", "--out two --stored one --seed 7 --candidate spin_cycles=200000"]
        {
            folder.iotoll(&format!("{SPIN} --budget 3s {words}")).run().done();
        }
        folder
    })
}

#[test]
fn a_known_change_is_found() {
    let found = measured().reported("two");
    assert_eq!((found["schema"].as_str(), whole(&found["seed"])), (Some("iotoll.compare/1"), 7));
    let metrics = &found["cells"][0]["metrics"];
    let threads = &metrics["thread_cycles_per_io"];
    let change = number(&threads["change"]);
    assert!((4.0..20.0).contains(&change), "{threads}");
    assert!(number(&threads["low"]) <= change && change <= number(&threads["high"]), "{threads}");
    assert_eq!((threads["verdict"].as_str(), threads["detected"].as_bool()), (Some("worse"), Some(true)), "{threads}");
    assert!((15_000.0..60_000.0).contains(&number(&threads["baseline"])), "{threads}");
    // Unknown (with a reason) or a number.
    for metric in ["cycles_per_io", "iops", "bytes_per_second", "latency_mean", "latency_p99"] {
        let found = &metrics[metric];
        assert!(found["change"].is_number() != found["reason"].is_string(), "{metric}: {found}");
    }
    assert!(number(&metrics["iops"]["baseline"]) > 0.0);
    assert_eq!(found["arms"][1]["what"], "spin_cycles=200000");
    let planned = |case: usize| &found["cases"][case]["plan"]["jobs"]["phases"][0]["jobs"][0]["own"]["spin_cycles"];
    assert_eq!((planned(0), planned(1)), (&20_000.into(), &200_000.into()), "{}", found["cases"]);
}

/// (1 + total) = (1 + change) · (1 + environment), and every interval contains its value.
#[track_caller]
fn product_holds(metric: &Value) {
    let (environment, total) = (&metric["stored"]["environment"], &metric["stored"]["total"]);
    let factor = |change: &Value| 1.0 + number(change);
    let product = factor(&metric["change"]) * factor(&environment["value"]);
    assert!((product / factor(&total["value"]) - 1.0).abs() < 1e-9, "{metric}");
    for change in [environment, total] {
        let value = number(&change["value"]);
        assert!(number(&change["low"]) <= value && value <= number(&change["high"]), "{change}");
    }
}

#[test]
fn the_difference_from_the_stored_record_is_split() {
    let folder = measured();
    let found = folder.reported("two --stored one/record.jsonl");
    let metrics = &found["cells"][0]["metrics"];
    let threads = &metrics["thread_cycles_per_io"];
    product_holds(threads);
    // Bounds that hold despite noise: a tenfold change, an environment that other tests disturb.
    assert!((15_000.0..60_000.0).contains(&number(&threads["stored"]["baseline"])), "{threads}");
    assert!((3.0..30.0).contains(&number(&threads["stored"]["total"]["value"])), "{threads}");
    assert!((-0.7..2.0).contains(&number(&threads["stored"]["environment"]["value"])), "{threads}");
    product_holds(&metrics["iops"]);
    assert!(metrics["latency_p99"]["stored"].is_null());
    assert!(found["stored"]["from"].as_str().unwrap().starts_with("one"));
    assert!(found["stored"]["differs"].is_array() && number(&found["stored"]["started_unix_seconds"]) > 1.7e9);
    assert!(!warns(&found, "stored_work_differs", &[]), "{}", found["warnings"]);
    assert!(folder.text("two/report.html").contains("Against the stored baseline of 20"));
    // A record that does not fit is refused before the measurement.
    let (kept, other) = (folder.text("one/record.jsonl"), Folder::new());
    other.write("cut.jsonl", kept.lines().take(2).collect::<Vec<_>>().join("\n"));
    other.iotoll("run --name=r --ioengine=null --size=1m --background 200ms --quiet --out run").run().done();
    let cases: [(&str, &[&str]); 4] = [
        ("nowhere", &["--stored nowhere", "reading the record", "give the folder of a comparison"]),
        ("run", &["--stored run", "of kind 'cost', not of a comparison", "iotoll compare"]),
        ("run/record.jsonl", &["--stored run/record.jsonl", "of kind 'cost'"]),
        ("cut.jsonl", &["--stored cut.jsonl", "no complete round"]),
    ];
    let before = other.listing();
    for (stored, named) in cases {
        other.iotoll(&format!("{SPIN} --out new --candidate inject_ns=900 --stored {stored}")).run().refused(2, named);
        assert_eq!(other.listing(), before);
    }
    let one = folder.name("one");
    let refused = other.iotoll(&format!("report run --stored {one}")).run();
    refused.refused(2, &["--stored ", "of kind 'compare', not of a run"]);
    other
        .iotoll(&format!("report {one} --stored nowhere"))
        .run()
        .refused(2, &["--stored nowhere", "reading the record"]);
}

#[test]
fn a_toggle_is_on_only_for_the_candidate_and_then_restored() {
    let folder = Folder::new();
    // A regular file is not a kernel file: brackets in it have no meaning, and it is restored byte for byte.
    let found = "a\n[section]\n\n";
    folder.write("knob", found);
    let knob = folder.name("knob");
    let around = "--candidate-setup 'cat knob >>log; echo >>log' --candidate-cleanup 'echo left >>log'";
    folder.iotoll(&format!("{SHORT} --out kept --candidate-set file:{knob}=changed {around}")).run().done();
    assert_eq!(folder.text("knob"), found);
    let log = folder.text("log");
    let entered = log.matches("changed").count();
    assert!(entered >= 2 && entered == log.matches("left").count() && !log.contains("section"), "{log}");
    assert!(folder.exists("kept/report.html") && folder.exists("kept/record.jsonl"));
}

/// `vm.dirty_bytes` and `vm.dirty_ratio` are one setting with two names: writing one sets the other to 0. An empty value is restored too.
#[test]
fn related_settings_are_restored_and_ineffective_ones_reported() {
    let names = ["vm/dirty_bytes", "vm/dirty_ratio", "vm/swappiness", "net/ipv4/ip_local_reserved_ports"];
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/{name}"));
    let writable = |name: &str| read(name).is_ok_and(|text| fs::write(format!("/proc/sys/{name}"), text).is_ok());
    if !names[2..].iter().all(|name| writable(name)) {
        return skip("a sysctl cannot be written");
    }
    let before = names.map(|name| read(name).unwrap());
    let folder = Folder::new();
    let with =
        |setting: &str| folder.iotoll(&format!("{SHORT} --no-save --candidate-set sysctl:{setting}")).run().done();
    let other = if before[0].trim() == "0" { "vm.dirty_bytes=104857600" } else { "vm.dirty_ratio=10" };
    let same = format!("vm.swappiness={}", before[2].trim());
    for (setting, told) in
        [(other, "and is restored too"), (&same, "is already in force"), ("net.ipv4.ip_local_reserved_ports=4711", "")]
    {
        let warnings = with(setting).json()["warnings"].to_string();
        assert!(warnings.contains(told), "{warnings}");
        assert_eq!(names.map(|name| read(name).unwrap()), before, "{setting}");
    }
}

/// Cleanup runs even if no temporary file can be made.
#[test]
fn cleanup_needs_no_temporary_folder() {
    let folder = Folder::new();
    let around = "--candidate-setup='touch entered; echo entered >&2' --candidate-cleanup='rm entered; touch left'";
    folder.iotoll(&format!("{SHORT} --no-save {around}")).under(&["env", "TMPDIR=/nowhere"]).run().done();
    assert!(folder.exists("left") && !folder.exists("entered"));
}

#[test]
fn what_the_user_writes_or_puts_there_meanwhile_stays() {
    at_once(["written", "renamed", "linked"], |how| {
        let folder = Folder::new();
        folder.write("knob", "old");
        folder.write("other", "mine");
        let setting = format!("--candidate-set=file:{}=new", folder.name("knob"));
        let running =
            folder.iotoll(&format!("{} --no-save --slice 50ms {setting}", SHORT.replace("1s", "20s"))).start();
        // Once while it is rehearsed, then in slices.
        let running = running.when(|_| folder.read("knob") == b"new");
        std::thread::sleep(std::time::Duration::from_millis(1500));
        let running = running.when(|_| folder.read("knob") == b"new");
        match how {
            "written" => folder.write("knob", "mine"),
            "renamed" => fs::rename(folder.path("other"), folder.path("knob")).unwrap(),
            _ => {
                fs::remove_file(folder.path("knob")).unwrap();
                std::os::unix::fs::symlink("other", folder.path("knob")).unwrap();
            }
        }
        running.wait().failed(1, &["knob", "another process changed it", "left as it is"]);
        assert_eq!(folder.read("knob"), b"mine", "{how}");
    });
}

/// Workers or commands of a comparison.
fn workers(running: &Running) -> Vec<Pid> {
    let children = running.children().into_iter().filter(|(_, name)| name != "undo-guardian");
    children.map(|(id, _)| id).collect()
}

/// A report that cannot be written and an output that is full: both are reported.
#[test]
fn a_lost_report_and_a_lost_output_do_not_hide_each_other() {
    let folder = Folder::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let running = folder.iotoll(&format!("{SHORT} --out kept --aa")).stdout(full).start();
    // What is in the way from the beginning is refused before the measurement.
    let running = running.when(|_| folder.exists("kept/record.jsonl"));
    fs::create_dir(folder.path("kept/report.html")).unwrap();
    let ended = running.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("kept/report.html") && ended.stderr.contains("No space left"), "{ended:?}");
    assert_eq!(ended.stderr.matches("Is a directory").count(), 1, "{ended:?}");
    assert!(!folder.lines("round").is_empty());
}

#[test]
fn an_arm_that_fails_at_once_gives_one_line_and_leaves_nothing() {
    let folder = Folder::with_file("data", 4096);
    let cases: [(&str, i32, &[&str]); 4] = [
        ("false", 1, &["arm 'candidate' (`false`)", "ended with status 1"]),
        ("no-such-program-here", 2, &["no-such-program-here", "cannot be started"]),
        ("sh -c \"kill -9 \\$\\$\"", 1, &["arm 'candidate'", "signal 9"]),
        ("fio --name=a --rw=read --filename=data/below --size=4k", 1, &["arm 'candidate'", "Not a directory"]),
    ];
    for (candidate, code, named) in cases {
        let arms = format!("--baseline-cmd 'sleep 0.1' --candidate-cmd '{candidate}'");
        folder.iotoll(&format!("compare --quiet --out kept --budget 3s {arms}")).run().refused(code, named);
        assert!(!folder.exists("kept"), "{candidate}: {:?}", folder.listing());
    }
    // Processes that a command leaves running are killed: they would disturb the next slice.
    let forks = "--baseline-cmd 'sleep 0.05' --candidate-cmd 'sh -c \"sleep 300 & sleep 300 & exit 0\"'";
    folder.iotoll(&format!("compare --meters thread --quiet --no-save --budget 1s {forks}")).run().done();
    folder.assert_no_processes();
}

#[test]
fn a_killed_worker_ends_the_comparison_and_keeps_the_rounds() {
    let folder = Folder::new();
    let running = folder.iotoll(ENDLESS).start().when(|_| !folder.lines("round").is_empty());
    // It may have just ended; then take the next one.
    let killed = |worker: Pid| kill_process(worker, Signal::KILL).is_ok();
    assert!(eventually(|| workers(&running).into_iter().next().is_some_and(killed)));
    running.wait().failed(1, &["arm '", "worker process"]);
    assert!(whole(&folder.reported("kept")["rounds"]) >= 1);
    folder.assert_no_processes();
}

#[test]
fn a_toggle_that_fails_is_undone_and_named() {
    let folder = Folder::new();
    folder.write("knob", "found");
    let setting = format!("--candidate-set file:{}=changed", folder.name("knob"));
    let around = "--candidate-setup 'test -e once && exit 7; touch once' --candidate-cleanup 'touch left'";
    let ended = folder.iotoll(&format!("{ENDLESS} {setting} {around}")).run();
    ended.failed(1, &["arm 'candidate': setup", "exit status: 7"]);
    assert_eq!(folder.read("knob"), b"found");
    assert!(folder.exists("left"));
    folder.assert_no_processes();
}

#[test]
fn a_full_disk_ends_it_and_keeps_the_measured_rounds() {
    let folder = Folder::new();
    let Some(_mounted) = Mount::in_memory(folder.path("tiny"), "128k") else { return };
    let ended = folder.iotoll(&ENDLESS.replace("--out kept", "--slice 20ms --out tiny/kept --format json")).run();
    ended.failed(1, &["No space left"]);
    let again = folder.reported("tiny/kept");
    assert!(whole(&again["rounds"]) >= 1 && whole(&ended.json()["rounds"]) >= whole(&again["rounds"]));
}

/// The scheduler claims a device; its workers can still use it.
#[test]
fn a_device_can_be_written_with_permission() {
    let folder = Folder::with_file("image", 8 << 20);
    let Some(device) = LoopDevice::attach(&folder.path("image"), &[]) else { return };
    let words = format!("--rw=randwrite --direct=1 --filename={} --candidate bs=8k", device.path);
    let words = format!("compare --meters thread --quiet --no-save --budget 1s {words}");
    folder.iotoll(&words).run().refused(2, &["--allow-device-write"]);
    folder.iotoll(&format!("{words} --allow-device-write")).run().done();
}

#[test]
fn a_truncated_record_is_shown_as_far_as_it_goes() {
    let folder = Folder::new();
    let text = measured().text("one/record.jsonl");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.pop();
    let half = lines.pop().unwrap();
    fs::create_dir(folder.path("kept")).unwrap();
    folder.write("kept/record.jsonl", format!("{}\n{}", lines.join("\n"), &half[..half.len() / 2]));
    let again = folder.reported("kept");
    assert_eq!(
        whole(&again["rounds"]) as usize,
        folder.lines("round").len() - usize::from(half.starts_with("{\"round\""))
    );
    assert!(again["outcome"]["failed"].as_str().unwrap().contains("cut off"));
    folder.write("kept/record.jsonl", "garbage\n");
    folder.iotoll("report kept").run().refused(2, &["record.jsonl", "line 1"]);
}

/// `./check` runs them one at a time.
mod alone {
    use super::*;

    #[test]
    fn commands_are_compared_by_their_reported_io() {
        needs!("fio");
        let folder = Folder::with_file("data", 1 << 20);
        let fio = "fio --name=a --rw=randread --bs=4k --size=1m --filename=data --time_based --runtime=300ms --ioengine=psync";
        let arms = format!("--baseline-cmd '{fio}' --candidate-cmd '{fio} --thinktime=1000'");
        let found = folder.costed(&format!("compare --meters idle --budget 3s --slices off {arms}"));
        let metrics = &found["cells"][0]["metrics"];
        // If the machine can be metered at all, every execution was, by one meter.
        if found["environment"]["meter"].is_string() {
            let cost = &metrics["cycles_per_io"];
            let unseen =
                |reason: &str| reason.contains("below the noise") || reason.contains("busy without the workload");
            assert!(cost["baseline"].is_number() || cost["reason"].as_str().is_some_and(unseen), "{cost}");
        }
        assert!(number(&metrics["iops"]["change"]) < 0.0, "{}", metrics["iops"]);
        assert!(number(&metrics["latency_p50"]["baseline"]) > 0.0, "{}", metrics["latency_p50"]);
        assert!((0.2..30.0).contains(&number(&metrics["seconds"]["baseline"])), "{}", metrics["seconds"]);
    }
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn a_hung_arm_is_ended_with_one_line() {
        let folder = Folder::new();
        let words = "compare --quiet --out kept --budget 1s --hang-timeout 1s";
        let ended = folder.iotoll(&format!("{words} --baseline-cmd 'sleep 0.05' --candidate-cmd 'sleep 1000'")).run();
        ended.refused(1, &["arm 'candidate'", "did not end within 1 s", "was killed"]);
        // A worker that does not answer any more.
        let running = folder.iotoll(&format!("{ENDLESS} --hang-timeout 2s")).start();
        let running = running.when(|running| !folder.lines("round").is_empty() && workers(running).len() == 2);
        while !workers(&running).into_iter().any(|worker| kill_process(worker, Signal::STOP).is_ok()) {}
        running.wait().failed(1, &["arm '", "--hang-timeout"]);
        assert!(!folder.lines("round").is_empty());
        folder.assert_no_processes();
    }
}
