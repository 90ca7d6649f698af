//! `iotoll compare`: its findings, its arguments, its output.

use super::iotoll::{Folder, number, whole};
use serde_json::Value;

/// Engine `spin` burns a given number of cycles, and the thread's own clock shows that however busy other tests keep
/// the machine; IOPS and the cost of the whole machine do not.
const SPIN: &str = "compare --budget 3s --no-save --quiet --format json --ioengine=spin --size=1m --spin_cycles=20000";

/// A change that no noise hides, with enough rounds for an interval: beside other tests a round of a second may be off
/// by half.
fn plain_change() -> String {
    format!("{} --candidate spin_cycles=200000", SPIN.replace("--budget 3s", "--budget 10s"))
}

#[track_caller]
fn compared(folder: &Folder, words: &str) -> Value {
    let ended = folder.iotoll(words).run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words}\n{}", ended.stdout);
    ended.json()
}

#[test]
fn a_known_change_is_found() {
    let folder = Folder::new();
    let found = compared(&folder, &format!("{} --seed 7", plain_change()));
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
}

#[test]
fn limits_decide_the_exit_status() {
    let folder = Folder::new();
    let cases =
        [("thread_cycles_per_io > +10%", Some(3), "exceeded"), ("thread_cycles_per_io < -10%", Some(0), "kept")];
    for (limit, code, state) in cases {
        let ended = folder.iotoll(&plain_change()).word_list("--fail-on").word(limit).run();
        assert_eq!(ended.code, code, "{limit}: {ended:?}");
        assert_eq!(ended.json()["limits"][0]["state"], state, "{limit}");
    }
    // The latency of a command without I/O is unknown.
    let words = "compare --quiet --no-save --format json --budget 1s --baseline-cmd true --candidate-cmd /usr/bin/true --fail-on";
    let ended = folder.iotoll(words).word("latency_mean > +10%").run();
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(ended.json()["limits"][0]["state"], "undecided");
    // A slice has a given length, so its duration can never be a metric.
    let never = folder.iotoll(SPIN).word_list("--candidate spin_cycles=60000 --fail-on").word("seconds > +10%").run();
    never.refused(2, &["--fail-on", "seconds", "for commands"]);
}

#[test]
fn aa_reports_what_the_machine_can_detect() {
    let found = compared(&Folder::new(), &format!("{SPIN} --aa"));
    let noise = &found["noise_floor"]["metrics"]["iops"];
    assert!(number(&noise["half_width"]) > 0.0, "{noise}");
    assert_eq!(noise["seconds_needed"][0]["half_width"], 0.01);
    assert!(number(&noise["seconds_needed"][0]["seconds"]) > 0.0, "{noise}");
}

#[test]
fn a_sweep_has_a_cell_for_each_point_and_arm() {
    let folder = Folder::new();
    let words = format!(
        "{SPIN} --sweep bs=4k,16k,64k --sweep iodepth=1,4 --candidate spin_cycles=30000 --candidate inject_ns=99"
    );
    let found = compared(&folder, &words);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 12);
    assert!(
        cells
            .iter()
            .any(|cell| cell["cell"]["bs"] == "64k" && cell["cell"]["iodepth"] == "4" && cell["arm"] == "candidate2")
    );
    assert_eq!(found["axes"][0]["name"], "bs");
    assert!(!found["crossovers"].as_array().unwrap().is_empty());
}

#[test]
fn commands_are_compared_by_their_reported_io() {
    let folder = Folder::with_file("data", 1 << 20);
    let fio = "fio --name=a --rw=randread --bs=4k --size=1m --filename=data --time_based --runtime=300ms --ioengine";
    let words = "compare --budget 4s --slices off --no-save --quiet --format json --baseline-cmd";
    let found = folder
        .iotoll(words)
        .word(format!("{fio}=psync"))
        .word("--candidate-cmd")
        .word(format!("{fio}=psync --thinktime=1000"))
        .run()
        .done()
        .json();
    let metrics = &found["cells"][0]["metrics"];
    // If the machine can be metered at all, every execution was, by one meter.
    if found["environment"]["meter"].is_string() {
        let cost = &metrics["cycles_per_io"];
        let unseen = |reason: &str| reason.contains("below the noise") || reason.contains("busy without the workload");
        let squeezed = cost["reason"].as_str().is_some_and(unseen);
        assert!(cost["baseline"].is_number() || squeezed, "{cost}");
    }
    assert!(number(&metrics["iops"]["change"]) < 0.0, "{}", metrics["iops"]);
    assert!(number(&metrics["latency_p50"]["baseline"]) > 0.0, "{}", metrics["latency_p50"]);
    let seconds = number(&metrics["seconds"]["baseline"]);
    assert!((0.2..30.0).contains(&seconds), "{seconds}");
}

/// A program that reports no I/O is compared by execution.
#[test]
fn any_program_can_be_compared() {
    let ended = Folder::new()
        .iotoll("compare --budget 2s --no-save --quiet --format json --baseline-cmd")
        .word("sleep 0.05")
        .word("--candidate-cmd")
        .word("sleep 0.4")
        .run()
        .done();
    let metrics = &ended.json()["cells"][0]["metrics"];
    assert!(number(&metrics["seconds"]["change"]) > 1.0, "{}", metrics["seconds"]);
    assert!(metrics["iops"]["change"].is_null() && metrics["iops"]["reason"].is_string(), "{}", metrics["iops"]);
}

/// Whole executions are counted as the user says, or not at all.
#[test]
fn the_work_of_whole_executions_is_what_the_user_says() {
    let folder = Folder::new();
    let compared = |flags: &str| {
        let words = format!("compare --budget 2s --no-save --quiet --format json {flags} --baseline-cmd");
        folder.iotoll(&words).word("sleep 0.05").word("--candidate-cmd").word("sleep 0.1").run()
    };
    let stated = compared("--bytes 1m --ios 16").done();
    let metrics = &stated.json()["cells"][0]["metrics"];
    let rate = number(&metrics["bytes_per_second"]["baseline"]);
    assert!((1e6..2.2e7).contains(&rate), "{rate}");
    assert!((number(&metrics["iops"]["baseline"]) * 65536.0 / rate - 1.0).abs() < 1e-6, "{metrics}");
    let counted = compared("--slices off --count context_switches.none");
    counted.refused(2, &["--count", "context_switches.none"]);
    compared("--slices off --count task:both").refused(2, &["--count 'task:both'", "whole executions", "--bytes"]);
    let machine = compared("--slices off --count vmstat.pgfault").done();
    assert!(number(&machine.json()["cells"][0]["metrics"]["iops"]["baseline"]) > 0.0);
}

#[test]
fn a_toggle_is_on_only_for_the_candidate_and_then_restored() {
    let folder = Folder::new();
    folder.write("knob", "found\n");
    folder.write("log", "");
    let knob = folder.path("knob");
    folder
        .iotoll("compare --budget 3s --quiet --out kept --ioengine=spin --size=1m --spin_cycles=20000 --candidate-set")
        .word(format!("file:{}=changed", knob.display()))
        .word("--candidate-setup")
        .word("cat knob >> log; echo >> log")
        .word("--candidate-cleanup")
        .word("echo left >> log")
        .run()
        .done();
    assert_eq!(folder.read("knob"), b"found\n");
    let log = String::from_utf8(folder.read("log")).unwrap();
    let entered = log.matches("changed").count();
    assert!(entered >= 2 && entered == log.matches("left").count(), "{log}");
    assert!(!log.contains("found"), "{log}");
    assert!(folder.exists("kept/report.html") && folder.exists("kept/record.jsonl"));
}

#[test]
fn buffered_writes_are_measured_with_the_sync_that_they_need() {
    let folder = Folder::new();
    let found = compared(
        &folder,
        "compare --budget 4s --no-save --quiet --format json --rw=write --bs=64k --size=8m --filename=data --candidate bs=4k",
    );
    assert!(found["method"].as_str().unwrap().contains("sync"), "{}", found["method"]);
    assert!(number(&found["cells"][0]["metrics"]["bytes_per_second"]["baseline"]) > 0.0);
}

#[test]
fn an_experiment_file_can_define_everything() {
    let folder = Folder::new();
    folder.write(
        "x.toml",
        "title = 'twice the work'\nbudget = '2s'\njob = '''\n[a]\nioengine=spin\nsize=1m\nspin_cycles=20000\n'''\n\
         [[arm]]\nname = 'plain'\n[[arm]]\nname = 'double'\noptions = ['spin_cycles=40000']\n\
         [[published]]\nmetric = 'iops'\nchange = -0.5\nsource = 'arithmetic'\n",
    );
    let found = compared(&folder, "compare x.toml --no-save --quiet --format json");
    assert_eq!((found["title"].as_str(), found["arms"][1]["name"].as_str()), (Some("twice the work"), Some("double")));
    assert_eq!(found["published"][0]["source"], "arithmetic");
    let parsed = folder.iotoll("compare x.toml --parse-only --format json").run().done();
    assert_eq!(parsed.json()["cases"].as_array().unwrap().len(), 2);
    let shown = folder.iotoll("compare x.toml --parse-only").run().done();
    for part in ["twice the work\n", "spin_cycles=40000", "ioengine=spin", "2 s, but at least two rounds"] {
        assert!(shown.stdout.contains(part), "'{part}' in {}", shown.stdout);
    }
}

/// A value means the same as a flag and in a file, and a flag changes nothing else.
#[test]
fn flags_and_files_take_the_same_values() {
    let folder = Folder::new();
    let file = |rules: &str| {
        folder.write(
            "x.toml",
            format!("job = '[a]\nioengine=null\nsize=1m'\n{rules}\n[[arm]]\nname = 'a'\n[[arm]]\nname = 'b'\noptions = ['bs=8k']\n")
                .replace("'[a]", "\"\"\"[a]")
                .replace("size=1m'", "size=1m\"\"\""),
        );
    };
    let rules = |words: &str| {
        let ended = folder.iotoll(&format!("compare --parse-only --format json {words}")).run().done();
        ended.json()["rules"].clone()
    };
    let job = "--ioengine=null --size=1m --candidate bs=8k";
    for (margin, budget, as_flags) in
        [("6", "2min", "--margin=6% --budget=2m"), ("6%", "120", "--margin=6 --budget=2min")]
    {
        file(&format!("margin = '{margin}'\nbudget = '{budget}'"));
        assert_eq!(rules("x.toml"), rules(&format!("{job} {as_flags}")), "{as_flags}");
        assert_eq!(number(&rules("x.toml")["budget_seconds"]), 120.0);
        assert_eq!(number(&rules("x.toml")["precision"]), 0.02);
    }
    file("margin = '3%'\nprecision = '0.5%'");
    let changed = rules("x.toml --margin 6%");
    assert_eq!((number(&changed["margin"]), number(&changed["precision"])), (0.06, 0.005));
}
