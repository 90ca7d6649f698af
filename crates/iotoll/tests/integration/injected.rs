//! Busy work that is added to each I/O is calibrated, and what it really burns is said.

use super::iotoll::{Folder, at_once, number};
use super::serving::Served;
use serde_json::Value;

/// What a job says of its busy work: what was asked for, and what is burnt.
fn injected(of: &Value) -> Option<(f64, f64)> {
    let injected = of.get("injected_ns").filter(|injected| !injected.is_null())?;
    Some((number(&injected["asked"]), number(&injected["burnt"])))
}

#[test]
fn what_is_burnt_is_said_wherever_it_is_burnt() {
    let served = Served::new("--backend memory:8m --listen 127.0.0.1:0");
    let nbd = format!("ioengine=nbd --uri={}", served.uri);
    let cases = [
        ("ioengine=null --inject_ns=20000", true),
        ("ioengine=null --iodepth=8 --inject_ns=20000", true),
        ("ioengine=null", false),
        (&format!("{nbd} --inject_ns=20000 --inject_at=wire"), true),
        (&format!("{nbd} --inject_ns=20000 --inject_at=wire --path_null=wire"), false),
    ];
    at_once(cases, |(options, burns)| {
        let words = format!("run --name=a --size=1m --bs=4k --number_ios=100 --{options}");
        let job = served.folder.measured(&words)["jobs"][0].clone();
        // Within what a thread that shares its CPU with others can tell.
        let right = |(asked, burnt): (f64, f64)| asked == 20_000.0 && (18_000.0..40_000.0).contains(&burnt);
        assert_eq!(injected(&job).map(right), burns.then_some(true), "{options}: {}", job["injected_ns"]);
    });
}

#[test]
fn a_sheet_says_what_is_burnt_and_that_less_cannot_be() {
    let folder = Folder::new();
    let words =
        "run --background 200ms --no-save --quiet --name=a --ioengine=null --size=1m --number_ios=100 --inject_ns=1";
    let ended = folder.iotoll(words).run();
    ended.done();
    assert!(ended.stdout.contains("a: inject_ns=1 burns ") && ended.stdout.contains("no burn is shorter"), "{ended:?}");
}

#[test]
fn an_arm_says_what_it_burns() {
    let folder = Folder::new();
    let words =
        "compare --budget 1s --no-save --quiet --format json --ioengine=null --size=1m --candidate inject_ns=20000";
    let ended = folder.iotoll(words).run();
    ended.done();
    let arms = ended.json()["arms"].clone();
    let what = arms[1]["what"].as_str().unwrap_or_default();
    assert!(what.starts_with("inject_ns=20000 (burns ") && what.ends_with(" ns per I/O)"), "{what}");
    assert_eq!((injected(&arms[0]), injected(&arms[1]).map(|(asked, _)| asked)), (None, Some(20_000.0)));
}

#[test]
fn a_server_says_what_each_of_its_threads_burns() {
    let says = |options: &str| {
        let served = Served::new(&format!("--backend memory:8m --listen 127.0.0.1:0 --threads 2 {options}"));
        let words = format!("run --name=a --ioengine=nbd --uri={} --bs=4k --number_ios=10", served.uri);
        served.folder.measured(&words);
        let (_, ended) = served.terminated();
        ended.stderr.lines().filter(|line| line.contains("a thread burns") && line.contains("per request")).count()
    };
    assert_eq!(says("--inject-ns 5000"), 2);
    assert_eq!(says(""), 0);
}
