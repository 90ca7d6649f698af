//! `iotoll history` of records that this program made.

use super::iotoll::{Folder, whole};
use serde_json::Value;

/// Measures the same small job into these folders.
fn measure(folder: &Folder, names: &[&str], options: &str) {
    for name in names {
        let words = format!("run --background 200ms --quiet --ioengine=null --size=1m --bs=4k --out {name} {options}");
        assert_eq!(folder.iotoll(&words).run().code, Some(0), "{words}");
    }
}

fn metrics(experiment: &Value) -> Vec<&str> {
    experiment["series"].as_array().unwrap().iter().map(|series| series["metric"].as_str().unwrap()).collect()
}

#[test]
fn records_of_one_command_line_are_one_experiment() {
    let folder = Folder::new();
    measure(&folder, &["runs/a", "runs/deep/b", "runs/c"], "--name=one");
    measure(&folder, &["runs/other"], "--name=two");
    folder.write("runs/c/note.txt", "no record");
    let found = folder.iotoll("history runs --format json").run().json();
    let experiments = found["experiments"].as_array().unwrap();
    assert_eq!((experiments.len(), &found["alone"]), (1, &serde_json::json!(["runs/other"])));
    let paths: Vec<&str> =
        experiments[0]["records"].as_array().unwrap().iter().map(|record| record["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["runs/a", "runs/deep/b", "runs/c"], "in order of time");
    assert!(metrics(&experiments[0]).contains(&"iops"), "{:?}", metrics(&experiments[0]));
    let iops = &experiments[0]["series"].as_array().unwrap().iter().find(|series| series["metric"] == "iops").unwrap();
    assert_eq!((iops["points"].as_array().unwrap().len(), whole(&iops["levels"][0]["records"])), (3, 3));
    let table = folder.iotoll("history runs").run();
    assert!(table.stdout.contains("no change of") && table.stdout.contains("runs/other"), "{}", table.stdout);
}

#[test]
fn a_damaged_record_is_left_out_and_named() {
    let folder = Folder::new();
    measure(&folder, &["a", "b", "c"], "--name=one");
    folder.write("b/record.jsonl", "{}\n");
    let ended = folder.iotoll("history . --format json").run();
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("left out: b/record.jsonl") || ended.stderr.contains("left out: ./b"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.json()["experiments"][0]["records"].as_array().unwrap().len(), 2);
}

#[test]
fn without_two_records_of_one_experiment_there_is_no_history() {
    let folder = Folder::new();
    folder.iotoll("history").run().refused(2, &["iotoll-runs"]);
    folder.iotoll("history nowhere").run().refused(2, &["nowhere"]);
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.iotoll("history empty").run().refused(2, &["no record"]);
    measure(&folder, &["a"], "--name=one");
    measure(&folder, &["b"], "--name=two");
    folder.iotoll("history a b").run().refused(2, &["no two of the 2 records", "same command line"]);
}
