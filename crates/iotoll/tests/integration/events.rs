//! `--events`: counts per I/O whose truth is known, also as changes, names that are refused, and what is left without the right.

use super::iotoll::{Folder, items, number};
use super::machine::{is_root, needs, skip};
use serde_json::Value;

/// Why nothing was counted; `None` if something was, and a line if it cannot be here.
#[track_caller]
fn is_skipped(finding: &Value) -> bool {
    let reason = finding["phases"][0]["events_reason"].as_str();
    let cannot = reason.filter(|reason| reason.contains("kernel"));
    cannot.inspect(|reason| skip(reason)).is_some()
}

/// The default events are in the record and on the sheet, unless the user chooses meters or wants none.
#[test]
fn the_default_events_are_counted_unless_the_user_wants_less() {
    let folder = Folder::with_file("data", 4 << 20);
    let job = "--filename=data --rw=randread --bs=4k --direct=1 --time_based";
    for less in ["--events none", "--meters thread"] {
        let finding = folder.costed(&format!("run {job} --runtime=300ms {less}"));
        assert_eq!(finding["events"], Value::Array(Vec::new()), "{less}");
    }
    let mut reasons = Vec::new();
    for attempt in 0..4 {
        let kept = format!("kept{attempt}");
        let sheet = folder.iotoll(&format!("run --full --quiet --out {kept} {job} --runtime=1500ms")).run();
        assert_eq!(sheet.code, Some(0), "{}", sheet.stderr);
        let finding = folder.iotoll(&format!("report {kept} --format json")).run().json();
        if is_skipped(&finding) {
            return;
        }
        let events = finding["events"].as_array().unwrap();
        let names: Vec<&str> = events.iter().filter_map(|event| event["name"].as_str()).collect();
        assert!(names.contains(&"syscalls:*") && names.contains(&"sched:sched_switch"), "{names:?}");
        if let Some(reason) = finding["phases"][0]["events_reason"].as_str() {
            // Tests beside it make its rate step, or keep it from reading the background in time.
            reasons.push(reason.to_owned());
            continue;
        }
        assert!(sheet.stdout.contains("Events per I/O"), "{}", sheet.stdout);
        let events = finding["phases"][0]["events_per_io"].as_object().unwrap();
        assert!(events.contains_key("syscalls:pread64") && events.contains_key("block:block_bio_queue"), "{events:?}");
        let again = folder.iotoll(&format!("report --full {kept}")).run();
        assert!(again.stdout.contains("Events per I/O"), "{}", again.stdout);
        return;
    }
    panic!("never counted: {reasons:?}");
}

/// What takes the right to count away from root.
const LESS: [&str; 3] = ["setpriv", "--inh-caps=-all", "--bounding-set=-bpf,-perfmon,-sys_admin"];

#[test]
fn without_the_right_the_rest_is_measured_and_one_line_says_why() {
    needs!("setpriv");
    let folder = Folder::with_file("data", 4 << 20);
    let under = if is_root() { &LESS[..] } else { &[] };
    let of = |words: &str| folder.iotoll(words).under(under).run().json();
    let told = |finding: &Value| {
        items(&finding["warnings"]).filter(|it| it["message"].as_str().unwrap().contains("no events per I/O")).count()
    };
    let lacks = |reason: &Value| reason.as_str().is_some_and(|why| why.contains("CAP_BPF") || why.contains("kernel"));
    let job = "run --quiet --no-save --format json --filename=data --rw=randread --time_based --runtime=500ms";
    let finding = of(&format!("{job} --events net,syscalls"));
    assert_eq!((items(&finding["events"]).count(), told(&finding)), (0, 1), "{finding}");
    let phase = &finding["phases"][0];
    assert!(lacks(&phase["events_reason"]) && number(&phase["iops"]) > 0.0, "{phase}");
    // Those that nobody asked for are left out without a word; the accounts have the same reason.
    assert_eq!(told(&of(job)), 0);
    let finding = of(&format!("{COMPARE} --aa --budget 2s --events net,syscalls"));
    assert!(told(&finding) == 1 && lacks(&finding["events_reason"]), "{}", finding["warnings"]);
    assert!(number(&finding["rounds"]) >= 2.0, "nothing else is lost");
    let none = folder.iotoll(&format!("{COMPARE} --aa --budget 1s --events none")).run().json();
    assert_eq!((&none["events"], &none["events_reason"]), (&Value::Array(Vec::new()), &Value::Null));
}

const COMPARE: &str = "compare --quiet --no-save --format json --filename=data --rw=randread --bs=4k --invalidate=0";

/// The events of the only cell, by name; `None` where nothing can be counted.
#[track_caller]
fn compared(finding: &Value) -> Option<Vec<Value>> {
    let reason = finding["events_reason"].as_str().filter(|reason| reason.contains("kernel"));
    if let Some(reason) = reason {
        skip(reason);
        return None;
    }
    Some(finding["cells"][0]["events"].as_array().unwrap().clone())
}

/// libaio submits each I/O by io_submit, psync none. Nobody calls uname: a count that finds everything would find that too.
#[test]
fn a_comparison_finds_the_system_call_of_one_arm() {
    let folder = Folder::with_file("data", 4 << 20);
    let arms = "--budget 8s --baseline ioengine=psync --candidate ioengine=libaio";
    let words = format!("{COMPARE} {arms} --events syscalls:io_submit,syscalls:uname");
    let mut seen = Vec::new();
    // Events are of the whole machine, and another test may use libaio for a while.
    for _ in 0..4 {
        let finding = folder.iotoll(&words).run().json();
        let Some(events) = compared(&finding) else { return };
        let names: Vec<&str> = events.iter().filter_map(|event| event["name"].as_str()).collect();
        let expected = ["syscalls:io_submit", "syscalls:uname"];
        assert_eq!(names, expected, "those that the user named, and what changed is first");
        let [submits, others] = [&events[0], &events[1]];
        let (change, baseline) = (&submits["change"], number(&submits["baseline"]["value"]));
        let [low, value, high] = ["low", "value", "high"].map(|key| number(&change[key]));
        assert!(low <= value && value <= high, "{change}");
        let detected = [submits, others].map(|event| event["detected"].as_bool());
        assert_eq!(detected, [Some(true), Some(false)], "{events:?}");
        assert!(number(&finding["counted_rounds"]) >= 3.0 && number(&finding["event_family"]["comparisons"]) == 2.0);
        seen.push(submits.to_string());
        if (value - 1.0).abs() < 0.001 && baseline.abs() < 0.001 {
            return;
        }
    }
    panic!("never one for each I/O of one arm: {seen:?}");
}

mod long {
    use super::*;

    /// Commands that take turns, and whole executions of them. No other test reads by this call.
    #[test]
    fn commands_are_counted_in_slices_and_executions() {
        needs!("fio");
        let folder = Folder::with_file("data", 4 << 20);
        let job = "--name=j --filename=data --rw=randread --bs=4k --invalidate=0 --size=4m";
        let fio = |engine: &str, length: &str| format!("fio {job} --ioengine={engine} {length}");
        for (turns, length) in [
            ("--slices 50ms --count task:read --budget 15s", "--time_based --runtime=60"),
            ("--slices off --budget 30s", "--time_based --runtime=400ms"),
        ] {
            let words =
                format!("compare --quiet --no-save --format json --precision 40% {turns} --events syscalls:readv");
            let (baseline, candidate) = (fio("psync", length), fio("vsync", length));
            let iotoll = ["--baseline-cmd", &baseline, "--candidate-cmd", &candidate].into_iter();
            let finding = iotoll.fold(folder.iotoll(&words), |iotoll, word| iotoll.word(word)).run().json();
            let Some(events) = compared(&finding) else { return };
            let [event] = events.as_slice() else { panic!("{turns}: {events:?} {}", finding["events_reason"]) };
            let change = number(&event["change"]["value"]);
            // Other tests make the rate of an execution uneven, and three rounds prove little then.
            let (detects, most) = if turns.contains("off") { (true, 3.0) } else { (event["detected"] == true, 1.3) };
            assert!(detects && (1.0 / most..most).contains(&change), "{turns}: {event}");
            assert!(number(&event["baseline"]["value"]).abs() < 0.1, "{turns}: {event}");
        }
    }
}
