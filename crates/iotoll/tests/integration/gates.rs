//! `--fail-on`: the exit status of every verb and of `report`, and the one line that says why. Those of blasts and guests are with
//! their other tests.

use super::iotoll::{Ended, Folder, at_once};
use serde_json::Value;

/// What a limit came to: the exit status, and the states in the JSON.
type Verdict<'a> = (i32, &'a [&'a str]);

/// Runs `words` with these limits, and checks what they come to. Standard error has a line for each
/// that is not kept.
#[track_caller]
pub fn judged(run: impl Fn(&[&str]) -> Ended, limits: &[&str], (code, states): Verdict) {
    let words: Vec<&str> = limits.iter().flat_map(|limit| ["--fail-on", limit]).collect();
    let ended = run(&words);
    assert_eq!(ended.code, Some(code), "{limits:?}: {ended:?}");
    let finding = ended.json();
    let found = finding["limits"].as_array().unwrap();
    let of = |limit: &Value, key: &str| limit[key].as_str().unwrap().to_owned();
    assert_eq!(found.iter().map(|limit| of(limit, "state")).collect::<Vec<_>>(), states, "{limits:?}: {finding}");
    // The worst place of each limit is the first.
    let told: Vec<&str> = ended.stderr.lines().collect();
    let is_first = |place: &usize| *place == 0 || found[*place]["limit"] != found[*place - 1]["limit"];
    let failed: Vec<String> = (0..found.len())
        .filter(|place| is_first(place) && found[*place]["state"] != "kept")
        .map(|place| format!("iotoll: {} is {}: ", of(&found[place], "limit"), of(&found[place], "state")))
        .collect();
    assert!(
        told.len() == failed.len() && told.iter().zip(&failed).all(|(line, begin)| line.starts_with(begin)),
        "{ended:?}"
    );
}

fn run(folder: &Folder, words: &str, more: &[&str]) -> Ended {
    more.iter().fold(folder.iotoll(words), |iotoll, word| iotoll.word(*word)).run()
}

/// Its own threads burn 20,000 cycles for each I/O however busy the machine is.
const SPIN: &str = "run --background 200ms --quiet --format json --ioengine=spin --size=1m --spin_cycles=20000 --time_based=1 --runtime=1";

#[test]
fn values_of_a_run_decide_its_exit_status() {
    let folder = Folder::new();
    let words = format!("{SPIN} --out kept");
    let (kept, exceeded) = ("thread_cycles_per_io > 10M", "thread_cycles_per_io > 1k");
    judged(|more| run(&folder, &words, more), &[kept, exceeded], (3, &["kept", "exceeded"]));
    // The record has its limits, but only a limit that is given to report decides how that ends.
    let report = |words: &str, more: &[&str]| run(&folder, &format!("report kept --format json {words}"), more);
    let shown = report("", &[]).done();
    assert_eq!(shown.json()["limits"][1]["state"], "exceeded");
    judged(|more| report("", more), &[kept], (0, &["kept"]));
    judged(|more| report("", more), &["latency_p50 > 1ns"], (3, &["exceeded"]));
    judged(|more| report("", more), &["seconds < 100ms"], (0, &["kept"]));
    judged(|more| report("", more), &[exceeded], (3, &["exceeded"]));
    // Against itself nothing changes.
    judged(|more| report("--stored kept", more), &["thread_cycles_per_io > +50%"], (0, &["kept"]));
    judged(|more| report("--stored kept", more), &["thread_cycles_per_io < +50%"], (3, &["exceeded"]));
    judged(|more| report("--stored kept", more), &["latency_p99 > +50%"], (4, &["undecided"]));
    // Every format has a line of it.
    for format in ["table", "mail", "markdown", "html"] {
        let text = run(&folder, &format!("report kept --format {format}"), &[]).stdout.replace('\u{a0}', " ");
        assert!(text.contains("exceeded") && text.contains("thread_cycles_per_io"), "{format}: {text}");
    }
}

#[test]
fn too_few_ios_decide_nothing() {
    let folder = Folder::new();
    let words = "run --background 200ms --quiet --no-save --format json --ioengine=null --size=1m --number_ios=5";
    judged(|more| run(&folder, words, more), &["latency_p99 > 1s"], (4, &["undecided"]));
    judged(
        |more| run(&folder, words, more),
        &["latency_p99 > 1s", "latency_mean > 1ns"],
        (3, &["undecided", "exceeded"]),
    );
}

#[test]
fn the_status_of_a_command_precedes_its_limits() {
    let folder = Folder::new();
    let cost = |command: &'static str| {
        let folder = &folder;
        move |more: &[&str]| {
            let words = "cost --background 200ms --quiet --no-save --no-output --format json";
            let started = more.iter().fold(folder.iotoll(words), |iotoll, word| iotoll.word(*word));
            started.word_list("-- sh -c").word(command).run()
        }
    };
    judged(cost("sleep 0.3"), &["seconds > 100s"], (0, &["kept"]));
    judged(cost("sleep 0.3"), &["seconds > 10ms"], (3, &["exceeded"]));
    judged(cost("sleep 0.3"), &["iops < 1k"], (4, &["undecided"]));
    let failed = cost("exit 7")(&["--fail-on", "seconds > 1ns"]);
    assert_eq!(failed.code, Some(7), "{failed:?}");
}

#[test]
fn facts_of_a_recording_decide_its_exit_status() {
    let folder = Folder::new();
    let ftq = |more: &[&str]| {
        run(&folder, "ftq --cpu --quantum 1ms --duration 500ms --probe none --quiet --no-save --format json", more)
    };
    judged(ftq, &["longest_stall_seconds > 100s", "late_share > 99%"], (0, &["kept", "kept"]));
    judged(ftq, &["amount_per_second > 1"], (3, &["exceeded"]));
    judged(ftq, &["off_cpu_share > 50%"], (4, &["undecided"]));
}

#[test]
fn a_limit_that_nothing_can_tell_is_refused_before_the_measurement() {
    let folder = Folder::new();
    let null = "run --ioengine=null --size=1m";
    let guest = "guest run --kernel debian:6.1 --rw=read";
    let cases: [(&str, &str, &[&str]); 9] = [
        (null, "speed > 3", &["'speed' is not a metric", "latency_p99 (ns)", "iops (I/O/s)"]),
        (null, "iops < -5%", &["'iops < -5%'", "--stored", "or limit the value"]),
        (null, "latency_p99 > 200", &["expected a limit", "'latency_p99 > 200us'"]),
        ("ftq --cpu", "late_share > +1%", &["expected a limit", "'late_share > 1%'"]),
        ("ftq --cpu --parse-only", "iops < 1", &["'iops' is not a metric", "longest_stall_seconds (s)"]),
        ("blast", "packets_per_second < -3%", &["--stored"]),
        (guest, "instructions_per_io > +0.5%", &["--stored", "several kernels"]),
        (guest, "cycles_per_io > 3k", &["'cycles_per_io' is not a metric", "instructions_per_io (instructions/I/O)"]),
        ("cost", "seconds > fast", &["expected a limit", "'seconds > 200us'"]),
    ];
    at_once(cases, |(words, limit, named)| {
        let ended = folder.iotoll(words).word("--fail-on").word(limit);
        let ended = if words == "cost" { ended.word_list("-- true").run() } else { ended.run() };
        ended.refused(2, &[&["--fail-on"], named].concat());
    });
    assert!(folder.listing().is_empty(), "{:?}", folder.listing());
}
