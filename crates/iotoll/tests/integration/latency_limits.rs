//! Limits of latencies: one that ends a job (`max_latency`), and one that its queue depth follows (`latency_target`).

use super::iotoll::{Folder, number, whole};
use super::machine::{has, skip};
use serde_json::Value;
use std::process::Command;

/// Ticks of the time-stamp counter that take at least 100 µs: no counter is faster than 10 GHz.
const TICKS: &str = "1000000";

/// What fio reports of a job; it may fail.
fn of_fio(folder: &Folder, options: &str) -> Value {
    let words = format!("--name=a --filename=x --size=256k {options} --output-format=json --output=fio.json");
    Command::new("fio").args(words.split(' ')).current_dir(folder.path("")).output().unwrap();
    serde_json::from_slice::<Value>(&folder.read("fio.json")).unwrap()["jobs"][0].clone()
}

#[test]
fn an_io_that_takes_too_long_ends_the_job_with_fio_s_error() {
    let folder = Folder::with_file("x", 8 << 20);
    let spin = format!("--ioengine=spin --spin_cycles={TICKS} --size=1t --number_ios=1000");
    for options in
        ["--max_latency=50", "--max_latency=50 --iodepth=4", "--max_latency=50 --io_submit_mode=offload --iodepth=4"]
    {
        let words = format!("run --background 200ms --no-save --quiet --format fio-json --name=a {spin} {options}");
        let ended = folder.iotoll(&words).run();
        assert_eq!(ended.code, Some(1), "{options}: {ended:?}");
        let job = &ended.json()["jobs"][0];
        let said = job["error_text"].as_str().unwrap();
        assert!(said.contains("max_latency=50us, but a read took"), "{options}: {said}");
        assert_eq!(whole(&job["error"]), 110, "{options}: {said}");
        assert!(whole(&job["read"]["total_ios"]) < 100, "{options}: {job}");
    }
    // No limit of this direction, and one that even a busy machine keeps.
    for options in ["--max_latency=0,50", "--max_latency=50s"] {
        let job = folder.measured(&format!("run --name=a {spin} --number_ios=3 {options}"))["jobs"][0].clone();
        assert_eq!((whole(&job["ios"]), &job["error"]), (3, &Value::Null), "{options}");
    }
    if !has("fio") {
        return skip("an_io_that_takes_too_long_ends_the_job_with_fio_s_error", "fio is not installed");
    }
    let options = "--rw=read --bs=4m --size=8m --max_latency=2";
    assert_eq!(whole(&of_fio(&folder, options)["error"]), 110);
    let ended = folder
        .iotoll(&format!("run --background 200ms --no-save --quiet --format fio-json --name=a --filename=x {options}"))
        .run();
    assert_eq!((ended.code, whole(&ended.json()["jobs"][0]["error"])), (Some(1), 110));
}

/// Each I/O of engine spin keeps the thread busy, so that one waits for all before it: the latency is at least that of as many I/Os as are in
/// flight.
#[test]
fn the_depth_that_is_found_keeps_the_target() {
    let folder = Folder::new();
    let target = "--latency_target=4ms --latency_window=50ms --latency_percentile=50 --runtime=5 --time_based";
    let finding =
        folder.measured(&format!("run --name=a --ioengine=spin --spin_cycles={TICKS} --size=1t --iodepth=64 {target}"));
    let (job, search) = (&finding["jobs"][0], &finding["jobs"][0]["depth_search"]);
    // 40 I/Os of 100 µs are within it, and 41 are not; a slower counter or a busy machine leaves fewer.
    let depth = whole(&search["depth"]);
    assert!((1..=40).contains(&depth) && search["highest"] == search["depth"], "{search}");
    if search["found"] != true {
        return skip("the_depth_that_is_found_keeps_the_target", "the machine was too busy for the search to end");
    }
    // A machine that other programs share leaves fewer, but more than one.
    assert!(depth > 1, "{search}");
    assert!(number(&search["percent_within"]) >= 50.0, "{search}");
    assert!(number(&job["latency_ns"]["p50"]) <= 4.04e6, "the results are of that depth: {job}");
    assert!(number(&job["wall_seconds"]) < 4.0, "{job}");
    assert!(finding["warnings"].to_string().contains("all queue depths that latency_target tried"), "{finding}");
}

#[test]
fn a_target_that_any_depth_keeps_gives_iodepth_as_in_fio() {
    let folder = Folder::with_file("x", 256 << 10);
    let options = "--ioengine=null --iodepth=16 --latency_target=20s --latency_window=20ms --latency_percentile=99.5 --runtime=20 --time_based";
    let words = format!(
        "run --background 200ms --no-save --quiet --format fio-json --name=a --filename=x --size=256k {options}"
    );
    let ours = folder.iotoll(&words).run();
    ours.done();
    let ours = ours.json()["jobs"][0].clone();
    assert_eq!(whole(&ours["latency_depth"]), 16);
    assert!(whole(&ours["job_runtime"]) < 10_000, "the search ends the job: {ours}");
    if !has("fio") {
        return skip("a_target_that_any_depth_keeps_gives_iodepth_as_in_fio", "fio is not installed");
    }
    let fio = of_fio(&folder, options);
    for key in ["latency_depth", "latency_target", "latency_window", "latency_percentile"] {
        assert_eq!(number(&fio[key]), number(&ours[key]), "{key}");
    }
}

#[test]
fn a_target_that_depth_1_misses_fails_the_job_or_is_said() {
    let folder = Folder::new();
    let job = format!(
        "--name=a --ioengine=spin --spin_cycles={TICKS} --size=1t --iodepth=8 --latency_target=50us --latency_window=50ms"
    );
    let ended = folder.iotoll(&format!("run --background 200ms --no-save --quiet --format json {job}")).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = ended.json()["jobs"][0]["error"].to_string();
    assert!(said.contains("latency_target at queue depth 1") && said.contains("os error 110"), "{said}");
    let job = format!("{job} --latency_percentile=50 --runtime=300ms --time_based");
    let finding = folder.measured(&format!("run {job}"));
    let search = &finding["jobs"][0]["depth_search"];
    assert_eq!(
        (whole(&search["depth"]), &search["found"], number(&search["percent_within"])),
        (1, &Value::Bool(false), 0.0)
    );
    let sheet = folder.iotoll(&format!("run --full --background 200ms --no-save --quiet {job}")).run();
    assert!(sheet.stdout.contains("the search for a queue depth was not over at 1"), "{}", sheet.stdout);
}
