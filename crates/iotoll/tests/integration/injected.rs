//! Busy work added to each I/O is calibrated, and the time that it really burns is reported.

use super::iotoll::{Folder, at_once, number};
use super::serving::Served;
use serde_json::Value;

/// The busy work of a job: requested and burnt.
fn injected(of: &Value) -> Option<(f64, f64)> {
    let injected = of.get("injected_ns").filter(|injected| !injected.is_null())?;
    Some((number(&injected["asked"]), number(&injected["burnt"])))
}

#[test]
fn burnt_time_is_reported_at_every_layer() {
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
        // Within the accuracy of a thread that shares its CPU.
        let right = |(asked, burnt): (f64, f64)| asked == 20_000.0 && (18_000.0..40_000.0).contains(&burnt);
        assert_eq!(injected(&job).map(right), burns.then_some(true), "{options}: {}", job["injected_ns"]);
    });
}

#[test]
fn the_sheet_reports_the_burnt_time_and_its_minimum() {
    let folder = Folder::new();
    let words = "run --full --background 200ms --no-save --quiet --name=a --ioengine=null --size=1m --number_ios=100 --inject_ns=1";
    let ended = folder.iotoll(words).run().done();
    assert!(
        ended.stdout.contains("a: inject_ns=1 burns ") && ended.stdout.contains("the shortest possible burn"),
        "{ended:?}"
    );
}

#[test]
fn an_arm_reports_its_burnt_time() {
    let folder = Folder::new();
    let words =
        "compare --budget 1s --no-save --quiet --format json --ioengine=null --size=1m --candidate inject_ns=20000";
    let ended = folder.iotoll(words).run().done();
    let arms = ended.json()["arms"].clone();
    let what = arms[1]["what"].as_str().unwrap_or_default();
    assert!(what.starts_with("inject_ns=20000 (burns ") && what.ends_with(" ns per I/O)"), "{what}");
    assert_eq!((injected(&arms[0]), injected(&arms[1]).map(|(asked, _)| asked)), (None, Some(20_000.0)));
}

#[test]
fn a_server_reports_the_burnt_time_of_each_thread() {
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
