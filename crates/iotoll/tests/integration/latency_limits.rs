//! A latency that ends a job (`max_latency`).

use super::iotoll::{Folder, whole};
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
    for options in ["--max_latency=50", "--max_latency=50 --iodepth=4"] {
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
