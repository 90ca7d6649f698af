//! Profiles: planted functions and instructions are found, as parts of the cost.

use super::iotoll::{Folder, number};
use super::machine::{skip, skip_without_idle_time};
use serde_json::Value;
use std::process::Command;

/// Compiles it; the compiler is the one that links this program.
fn planted(folder: &Folder) -> String {
    folder.write("planted.c", include_str!("programs/planted.c"));
    let [program, source] = ["planted", "planted.c"].map(|name| folder.path(name));
    let status = Command::new("cc").args(["-O1", "-o"]).args([&program, &source]).status().unwrap();
    assert!(status.success());
    program.to_str().unwrap().to_owned()
}

/// The first phase; `None` where nothing can be sampled, or the cost is unknown.
#[track_caller]
fn phase(finding: &Value) -> Option<Value> {
    let meters = finding["meters"].as_array().unwrap();
    let sampler = meters.iter().find(|meter| meter["name"] == "sampler").unwrap();
    if let Some(reason) = sampler["reason"].as_str() {
        skip(reason);
        return None;
    }
    if skip_without_idle_time(finding) {
        return None;
    }
    Some(finding["phases"][0].clone())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_planted_lock_is_the_largest_function_and_its_line() {
    let folder = Folder::new();
    let program = planted(&folder);
    let words = format!("cost --quiet --profile --out record --format json --ios 1000000 -- {program}");
    let finding = folder.iotoll(&words).run().json();
    let Some(phase) = phase(&finding) else { return };
    let symbols = phase["symbols"].as_array().unwrap();
    let of_program = |symbol: &&Value| symbol["module"] == "planted";
    let own: Vec<&Value> = symbols.iter().filter(of_program).collect();
    assert_eq!(own[0]["symbol"], "planted_lock", "{own:?}");
    // The lock takes about ten times as long as the addition to memory beside it; other functions of the program take nearly nothing.
    let cycles = |symbol: &str| {
        own.iter().filter(|it| it["symbol"] == symbol).map(|it| number(&it["cycles_per_io"]["value"])).sum::<f64>()
    };
    assert!(cycles("planted_lock") > 2.0 * cycles("planted_adds"), "{own:?}");
    // Each function is a part of its account, if accounts are exact.
    let mut accounts = phase["accounts"].as_array().unwrap().iter();
    let workload = accounts.find(|account| account["owner"] == "workload" && account["kind"] == "task");
    if let Some(workload) = workload {
        let of_it = symbols.iter().filter(|symbol| symbol["account"] == workload["name"]);
        let sum = of_it.map(|symbol| number(&symbol["cycles_per_io"]["value"])).sum::<f64>();
        let all = number(&workload["cycles_per_io"]);
        assert!((sum / all - 1.0).abs() < 0.02, "{workload} {sum}");
        assert!(cycles("planted_lock") + cycles("planted_adds") > 0.8 * all, "{own:?}");
    }
    assert!(number(&phase["profile"]["whole_stacks_fraction"]) > 0.95, "{}", phase["profile"]);
    let annotated = folder.iotoll("report record --annotate planted_lo --format json").run().json();
    let lines = annotated[0]["lines"].as_array().unwrap();
    let cycles = |line: &&Value| (number(&line["cycles_per_io"]) * 1e6) as i64;
    let largest = lines.iter().max_by_key(cycles).unwrap();
    assert!(largest["instruction"].as_str().unwrap().starts_with("lock inc"), "{lines:?}");
    let folded = String::from_utf8(folder.read("record/profile.folded")).unwrap();
    assert!(folded.lines().any(|line| line.contains(";main;planted_lock ")), "{folded}");
    let page = String::from_utf8(folder.read("record/report.html")).unwrap();
    assert!(page.contains("src=\"data:image/svg+xml,"));
}

/// Processes that begin in a window, and mostly end in it.
#[test]
fn functions_of_children_are_the_commands() {
    let folder = Folder::new();
    let program = planted(&folder);
    let script = format!("i=0; while [ $i -lt 80 ]; do {program} 30; i=$((i+1)); done");
    let words = "cost --quiet --profile --no-save --format json --ios 1000 -- sh -c";
    let finding = folder.iotoll(words).word(script).run().json();
    let Some(phase) = phase(&finding) else { return };
    let samples = |fits: &dyn Fn(&Value) -> bool| {
        let symbols = phase["symbols"].as_array().unwrap().iter().filter(|symbol| fits(symbol));
        symbols.map(|symbol| number(&symbol["samples"])).sum::<f64>()
    };
    let own = samples(&|symbol| symbol["module"] == "planted");
    assert!(own > 100.0 && own > 0.5 * samples(&|_| true), "{}", phase["symbols"]);
}

#[test]
fn functions_that_are_not_known_are_refused_in_one_line() {
    let folder = Folder::new();
    folder.iotoll("run --quiet --out record --rw=read --bs=4k --size=1m").run().done();
    let refused = folder.iotoll("report record --annotate vfs_read").run();
    refused.refused(2, &["--annotate: the record has no instructions"]);
    folder
        .iotoll("ftq --quiet --out quanta --target new --rw=write --bs=4k --size=8m --quantum 1ms --duration 300ms")
        .run()
        .done();
    let refused = folder.iotoll("report quanta --annotate vfs_read").run();
    refused.refused(2, &["only run and cost sample functions (--profile)"]);
}

#[test]
fn a_change_is_found_in_the_function_that_was_planted() {
    let folder = Folder::new();
    let words = "compare --quiet --no-save --profile --format json --ioengine=null --rw=read --bs=4k --size=64m \
                 --baseline inject_ns=0 --candidate inject_ns=2000 --budget 12s";
    let finding = folder.iotoll(words).run().json();
    let sampler = finding["meters"].as_array().into_iter().flatten().find(|meter| meter["name"] == "sampler");
    if let Some(reason) = sampler.and_then(|meter| meter["reason"].as_str()) {
        return skip(reason);
    }
    let symbols = finding["cells"][0]["symbols"].as_array().unwrap();
    let changed: Vec<&Value> = symbols.iter().filter(|symbol| symbol["detected"] == true).collect();
    let change = |symbol: &Value| number(&symbol["change_cycles_per_io"]["value"]);
    assert_eq!(changed.first().map(|symbol| &symbol["module"]), Some(&Value::from("iotoll")), "{symbols:?}");
    // What burns is a few functions, whose names depend on how they were compiled; together they are most of the change.
    let all: f64 = symbols.iter().map(change).sum();
    let burning: f64 = changed.iter().filter(|symbol| symbol["module"] == "iotoll").map(|symbol| change(symbol)).sum();
    assert!(all > 0.0 && burning > 0.7 * all, "{symbols:?}");
}
