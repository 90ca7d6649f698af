//! The JSON that scripts rely on: every promised key exists with its type, and the numbers agree.

use super::iotoll::{Folder, number, warns, whole};
use super::machine::skip_without_idle_time;
use serde_json::Value;

/// Keys, each with its type. A type with a question mark may be null: unknown.
type Keys = &'static str;

const RUN: Keys = "schema:text host:object meters:list background:object phases:list jobs:list warnings:list";
const METER: Keys = "name:text available:truth";
const PHASE: Keys = "jobs:list ios:whole? cycles_per_io:number? cycles_per_io_low:number? cycles_per_io_high:number? \
    cycles_per_io_gross:number? cycles_per_byte:number? context_switches_per_io:number? by_meter:object \
    events_per_io:object probes:list";
const JOB: Keys = "name:text engine:text ios:whole bytes:whole errors:whole wall_seconds:number iops:number \
    bytes_per_second:number read:object write:object thread_cycles_per_io:number? ios_per_crossing:number? \
    latency_ns:object cycles_per_io:number?";
const LATENCY: Keys = "mean:number? p50:number? p90:number? p99:number? p999:number? p9999:number? max:number?";
const WARNING: Keys = "code:text message:text";

#[track_caller]
fn check(place: &str, value: &Value, keys: Keys) {
    for (key, kind) in keys.split_whitespace().filter_map(|key| key.split_once(':')) {
        let Some(found) = value.get(key) else { panic!("{place}.{key} is missing") };
        let right = match kind.trim_end_matches('?') {
            "text" => found.is_string(),
            "object" => found.is_object(),
            "list" => found.is_array(),
            "truth" => found.is_boolean(),
            "whole" => found.is_u64(),
            "number" => found.is_number(),
            other => panic!("no such type: {other}"),
        };
        assert!(right || (found.is_null() && kind.ends_with('?')), "{place}.{key} is no {kind}: {found}");
    }
}

#[track_caller]
fn check_all(place: &str, values: &Value, keys: Keys) {
    let values = values.as_array().unwrap();
    values.iter().enumerate().for_each(|(index, value)| check(&format!("{place}[{index}]"), value, keys));
}

/// All keys that DESIGN promises for `run` and `cost`.
#[track_caller]
fn keeps_the_contract(finding: &Value) {
    check("", finding, RUN);
    assert_eq!(finding["schema"], "iotoll.run/1");
    check_all("meters", &finding["meters"], METER);
    for meter in finding["meters"].as_array().unwrap() {
        let told = meter["available"] == true || meter["reason"].as_str().is_some_and(|reason| !reason.is_empty());
        assert!(told, "unavailable without a reason: {meter}");
    }
    check("background", &finding["background"], "busy_fraction:number?");
    check_all("phases", &finding["phases"], PHASE);
    for phase in finding["phases"].as_array().unwrap() {
        let by_meter = phase["by_meter"].as_object().unwrap();
        assert!(by_meter.values().all(|cost| cost.is_number() || cost.is_null()), "{by_meter:?}");
        assert!(phase["jobs"].as_array().unwrap().iter().all(Value::is_string), "{phase}");
    }
    check_all("jobs", &finding["jobs"], JOB);
    for job in finding["jobs"].as_array().unwrap() {
        check("latency_ns", &job["latency_ns"], LATENCY);
    }
    check_all("warnings", &finding["warnings"], WARNING);
}

#[test]
fn a_run_has_every_promised_key() {
    let folder = Folder::with_file("data", 1 << 20);
    let finding = folder.measured("run --name=r --filename=data --rw=randread --runtime=400ms --time_based");
    keeps_the_contract(&finding);
    let (phase, job) = (&finding["phases"][0], &finding["jobs"][0]);
    // Long enough for a cost, if the machine has any meter.
    if !skip_without_idle_time(&finding) {
        assert!(phase["cycles_per_io"].is_number() && phase["cycles_per_io_gross"].is_number(), "{phase}");
    }
    assert_eq!(job["cycles_per_io"], phase["cycles_per_io"]);
    assert_eq!((job["name"].as_str(), job["engine"].as_str()), (Some("r"), Some("psync")));
}

#[test]
fn a_cost_has_every_promised_key() {
    let folder = Folder::new();
    keeps_the_contract(&folder.measured("cost --ios 1000 --bytes 4m -- sleep 0.3"));
    // Its I/O is unknown: null, never 0, with a warning that gives the reason.
    let unknown = folder.measured("cost -- sleep 0.3");
    keeps_the_contract(&unknown);
    let phase = &unknown["phases"][0];
    for key in ["ios", "cycles_per_io", "cycles_per_io_gross", "cycles_per_byte", "context_switches_per_io"] {
        assert!(phase[key].is_null(), "{key}: {}", phase[key]);
    }
    let codes: Vec<&str> = unknown["warnings"].as_array().unwrap().iter().filter_map(|w| w["code"].as_str()).collect();
    assert!(codes.contains(&"work_unknown"), "{codes:?}");
}

#[test]
fn numbers_of_one_run_agree_with_each_other() {
    let folder = Folder::with_file("data", 1 << 20);
    let finding = folder.measured("run --name=r --filename=data --rw=randrw --bs=4k,8k --runtime=400ms --time_based");
    let (phase, job) = (&finding["phases"][0], &finding["jobs"][0]);
    let (read, write) = (&job["read"], &job["write"]);
    assert_eq!(whole(&job["ios"]), whole(&read["ios"]) + whole(&write["ios"]));
    assert_eq!(whole(&job["bytes"]), whole(&read["bytes"]) + whole(&write["bytes"]));
    assert_eq!(whole(&read["bytes"]), whole(&read["ios"]) * 4096);
    assert_eq!(whole(&write["bytes"]), whole(&write["ios"]) * 8192);
    assert_eq!(whole(&phase["ios"]), whole(&job["ios"]));
    let rate = number(&job["ios"]) / number(&job["wall_seconds"]);
    assert!((rate / number(&job["iops"]) - 1.0).abs() < 1e-6, "{rate} {}", job["iops"]);
    let latency = &job["latency_ns"];
    let ladder: Vec<f64> = ["p50", "p90", "p99", "max"].iter().map(|key| number(&latency[key])).collect();
    assert!(ladder.windows(2).all(|pair| pair[0] <= pair[1]) && ladder[0] > 0.0, "{ladder:?}");
    // Other tests may leave no idle time at all; then a reason is given instead of a cost.
    if phase["cycles_per_io"].is_null() {
        return assert!(warns(&finding, "busy_background", &["cannot be seen"]), "{}", finding["warnings"]);
    }
    // Then the cost is that of the load by its name, and what is subtracted as a level may be unknown.
    if phase["known_by_name"] == true {
        return assert!(number(&phase["cycles_per_io"]) > 0.0, "{phase}");
    }
    let (net, gross) = (number(&phase["cycles_per_io"]), number(&phase["cycles_per_io_gross"]));
    assert!(net <= gross && gross > 0.0, "net {net} gross {gross}");
}
