//! `iotoll history` of records that this program made.

use super::iotoll::{Folder, whole};
use super::machine::needs;
use serde_json::{Value, json};
use std::process::Command;

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
    let table = folder.iotoll("history --full runs").run();
    assert!(table.stdout.contains("no change of") && table.stdout.contains("runs/other"), "{}", table.stdout);
    // A damaged one is left out and named.
    folder.write("runs/c/record.jsonl", "{}\n");
    let ended = folder.iotoll("history runs --format json").run().done();
    assert!(ended.stderr.contains("left out: runs/c/record.jsonl"), "{}", ended.stderr);
    assert_eq!(ended.json()["experiments"][0]["records"].as_array().unwrap().len(), 2);
}

/// The script of the recipe: a change is reported once, in whichever night it shows, also if later records move it.
#[test]
fn the_nightly_recipe_reports_each_change_once() {
    needs!("python3");
    let folder = Folder::new();
    let recipe = include_str!("../../../../docs/recipes/nightly.md");
    let script = recipe.split_once("```python\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    folder.write("late.py", script);
    let night = |records: u32, found: &[(u32, f64)]| {
        let records: Vec<Value> = (0..records).map(|record| json!({"path": format!("nightly/{record}")})).collect();
        let change = |(record, p): &(u32, f64)| json!({"record": record, "p_value": p, "change": {"value": 0.03}});
        let changes: Vec<Value> = found.iter().map(change).collect();
        let series = json!([{"metric": "cycles_per_io", "cell": "", "arm": "", "changes": changes}]);
        let history = json!({"experiments": [{"records": records, "series": series}]});
        folder.write("history.json", history.to_string());
        let script = ["late.py", "history.json", "reported.json"];
        let ended = Command::new("python3").args(script).current_dir(folder.path("")).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    let quiet = (Some(0), String::new());
    assert_eq!(night(20, &[]), quiet);
    assert_eq!(night(30, &[(20, 0.002)]), quiet, "not evident for who looks each night");
    assert_eq!(night(31, &[(20, 0.001)]), (Some(1), "cycles_per_io  since nightly/20: +3.0 %\n".to_owned()));
    assert_eq!(night(32, &[(22, 0.001)]), quiet);
    assert_eq!(night(40, &[(22, 0.001), (33, 0.001)]).0, Some(1));
    assert_eq!(night(41, &[(22, 0.001), (33, 0.001)]), quiet);
}
