//! Results in fio's formats: what fio's readers find in them, and fio's flags that ask for them.

use super::iotoll::{Folder, number, whole};
use super::machine::{has, needs, skip};
use serde_json::Value;

/// Small, with reads and writes, and more than one copy to merge.
const JOB: &str = "--name=a --filename=x --size=256k --rw=randrw --rwmixread=50 --bs=4k --numjobs=2 --group_reporting";

const MEASURED: &str = "run --meters idle --background 200ms --quiet";

/// What fio has and iotoll leaves out, because it does not measure it.
const LEFT_OUT: [&str; 3] = ["iodepth_level", "iodepth_submit", "iodepth_complete"];

/// The path and type of each number, text, list and object, but not those of maps whose keys depend on the measurement.
fn paths(value: &Value, path: &str, found: &mut Vec<(String, &'static str)>) {
    let kind = match value {
        Value::Object(_) => "object",
        Value::Array(_) => "list",
        Value::String(_) => "text",
        Value::Number(number) if number.is_f64() => "fraction",
        Value::Number(_) => "whole",
        Value::Bool(_) | Value::Null => "other",
    };
    found.push((path.to_owned(), kind));
    if path.ends_with("job options") || path.ends_with("bins") {
        return;
    }
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| paths(value, &format!("{path}/{key}"), found)),
        Value::Array(items) => items.first().into_iter().for_each(|item| paths(item, &format!("{path}/0"), found)),
        _ => {}
    }
}

fn of_fio(folder: &Folder, format: &str) -> String {
    folder.command(&format!("fio {JOB} --output-format={format} --disk_util=0")).run().done().stdout
}

#[test]
fn every_key_of_fio_has_its_place_and_type() {
    needs!("fio");
    let folder = Folder::with_file("x", 256 << 10);
    let theirs: Value = serde_json::from_str(&of_fio(&folder, "json+")).unwrap();
    let ours = folder.iotoll(&format!("{MEASURED} --no-save --format fio-json+ {JOB}")).run().done().json();
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    paths(&theirs, "", &mut expected);
    paths(&ours, "", &mut found);
    assert!(expected.len() > 200, "{expected:?}");
    for path in expected {
        let left_out = LEFT_OUT.iter().any(|key| path.0.contains(key));
        assert_eq!(found.contains(&path), !left_out, "{path:?} in {ours}");
    }
    let job = &ours["jobs"][0];
    assert_eq!(ours["jobs"].as_array().unwrap().len(), 1, "copies are merged");
    assert_eq!(whole(&job["read"]["io_bytes"]) + whole(&job["write"]["io_bytes"]), 2 * (256 << 10));
    let counts = job["read"]["clat_ns"]["bins"].as_object().unwrap().values().map(whole);
    assert_eq!(counts.sum::<u64>(), whole(&job["read"]["total_ios"]));
    // The shares of all ranges are all I/Os.
    let shares = ["latency_ns", "latency_us", "latency_ms"].map(|ranges| job[ranges].as_object().unwrap().values());
    let sum: f64 = shares.into_iter().flatten().map(number).sum();
    assert!((sum - 100.0).abs() < 1e-6, "{sum}");
    let terse = |text: &str| text.trim_end().split(';').count();
    let ours = folder.iotoll(&format!("{MEASURED} --no-save --minimal {JOB}")).run();
    assert_eq!(terse(&ours.stdout), terse(&of_fio(&folder, "terse")));
}

#[test]
fn a_report_has_the_same_numbers_in_every_format() {
    let folder = Folder::with_file("x", 256 << 10);
    let job = format!("{MEASURED} --out kept --output result --output-format=json {JOB}");
    let ended = folder.iotoll(&job).run().done();
    assert_eq!(ended.stdout, "");
    let written: Value = serde_json::from_slice(&folder.read("result")).unwrap();
    let again = folder.iotoll("report kept --format fio-json").run().json();
    assert_eq!(again, written);
    let finding = folder.iotoll("report kept --format json").run().json();
    let (fio, own) = (&written["jobs"][0], &finding["jobs"][0]);
    for direction in ["read", "write"] {
        let (fio, own) = (&fio[direction], &own[direction]);
        assert_eq!((&fio["total_ios"], &fio["io_bytes"], &fio["iops"]), (&own["ios"], &own["bytes"], &own["iops"]));
        assert_eq!(fio["clat_ns"]["mean"], own["latency_ns"]["mean"]);
        assert_eq!(whole(&fio["clat_ns"]["max"]), number(&own["latency_ns"]["max"]).round() as u64);
    }
    assert_eq!(fio["ctx"], own["usage"]["context_switches"]);
    assert_eq!(fio["cost"]["cycles_per_io"], finding["phases"][0]["cycles_per_io"]);
    let csv = |words: &str| folder.command(&format!("fio_jsonplus_clat2csv plus clat.csv {words}")).run().done();
    if has("fio_jsonplus_clat2csv") {
        folder.write("plus", folder.iotoll("report kept --format fio-json+").run().stdout);
        csv("");
        csv("--validate");
        assert!(folder.text("clat_job0.csv").lines().count() > 2);
    } else {
        skip("fio_jsonplus_clat2csv is not installed");
    }
}

#[test]
fn rates_over_time_are_sampled_where_they_are_one_job_s() {
    let folder = Folder::with_file("x", 256 << 10);
    let sampled = |more: &str| {
        let job =
            format!("{MEASURED} --no-save --format fio-json --filename=x --bs=4k --runtime=1500ms --time_based {more}");
        folder.iotoll(&job).run().json()["jobs"][0]["read"].clone()
    };
    let read = sampled("--rw=read");
    for (unit, spread) in [("bw", "bw_dev"), ("iops", "iops_stddev")] {
        let of = |key: &str| number(&read[format!("{unit}_{key}")]);
        assert!(of("samples") >= 1.0 && of("min") > 0.0, "{read}");
        // Smallest and largest are rounded.
        assert!(of("min") <= of("mean") + 1.0 && of("mean") <= of("max") + 1.0, "{read}");
        assert_eq!(number(&read[spread]) > 0.0, of("samples") > 1.0, "{read}");
    }
    assert_eq!(sampled("--rw=randrw")["bw_samples"], 0, "the directions are not told apart");
}

/// `iotoll cost -- fio` reads fio's JSON, and so this one.
#[test]
fn cost_reads_it_as_it_reads_fio_s() {
    let folder = Folder::with_file("x", 256 << 10);
    let job = format!("{MEASURED} --no-save --format fio-json {JOB}");
    let ended = folder.iotoll(&job).run();
    folder.write("result", &ended.stdout);
    folder.write("fio", "#!/bin/sh\ncat result\n");
    folder.command("chmod +x fio").run().done();
    let finding = folder.iotoll("cost --background 200ms --no-save --quiet --format json -- ./fio").run().json();
    let (read, job) = (&finding["jobs"][0]["read"], &ended.json()["jobs"][0]);
    assert_eq!((&read["ios"], &read["bytes"]), (&job["read"]["total_ios"], &job["read"]["io_bytes"]));
    assert_eq!(read["latency_ns"]["mean"], job["read"]["clat_ns"]["mean"]);
    assert_eq!(finding["jobs"][0]["engine"], "fio psync");
}
