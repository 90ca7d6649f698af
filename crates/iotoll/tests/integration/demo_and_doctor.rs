//! The verbs without a job.

use super::iotoll::{Folder, number, whole};
use super::machine::skip_without_idle_time;
use serde_json::Value;

#[test]
fn doctor_says_what_this_machine_can_measure() {
    let folder = Folder::new();
    let table = folder.iotoll("doctor").run();
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""), "{table:?}");
    let meters = ["idle", "timer_list", "proc_stat", "soaker", "sampler", "thread", "pmu"];
    for word in meters {
        assert!(table.stdout.contains(word), "{word} is not in\n{}", table.stdout);
    }
    assert!(!table.stdout.contains('\u{1b}'), "colour where there is no terminal");
    let coloured = folder.iotoll("doctor --color always").run();
    assert!(coloured.code == Some(0) && coloured.stdout.contains("\u{1b}["), "{coloured:?}");
    assert!(!folder.iotoll("doctor --color never").run().stdout.contains('\u{1b}'));
    let json = folder.iotoll("doctor --format json").run();
    assert_eq!((json.code, json.stderr.as_str()), (Some(0), ""), "{json:?}");
    let diagnosis = json.json();
    let text = diagnosis.to_string();
    for word in meters {
        assert!(text.contains(&format!("\"{word}\"")), "{word} is not in {text}");
    }
    assert!(
        whole(&diagnosis["host"]["cpus"]) > 0 && number(&diagnosis["host"]["tsc_hertz"]) > 1e8,
        "{}",
        diagnosis["host"]
    );
    assert!(folder.listing().is_empty());
}

#[test]
fn demo_shows_two_costs_and_a_comparison_and_leaves_its_report_alone() {
    let folder = Folder::new();
    let ended = folder.iotoll("demo --quiet --format json --out report").run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let documents = serde_json::Deserializer::from_str(&ended.stdout).into_iter::<Value>();
    let documents: Vec<Value> = documents.collect::<Result<_, _>>().unwrap();
    let [finding, comparison] = documents.as_slice() else { panic!("{ended:?}") };
    let phases = finding["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    if !skip_without_idle_time(finding) {
        // Other tests may change a phase's rate while it runs; then it has regimes and no mean.
        let has_cost = |phase: &Value| phase["cycles_per_io_gross"].as_f64().is_some_and(|cost| cost > 0.0);
        let has_regimes = |phase: &Value| !phase["regimes"].as_array().unwrap().is_empty();
        assert!(phases.iter().all(|phase| has_cost(phase) || has_regimes(phase)), "{phases:?}");
    }
    let jobs = finding["jobs"].as_array().unwrap();
    assert!(whole(&jobs[0]["read"]["ios"]) > 0 && whole(&jobs[1]["write"]["ios"]) > 0, "{jobs:?}");
    assert!(whole(&comparison["rounds"]) >= 2, "{comparison}");
    assert_eq!(comparison["cells"][0]["arm"], "candidate");
    let left: Vec<String> = folder.listing().into_keys().collect();
    assert_eq!(left, ["report", "report/record.jsonl", "report/report.html"]);
    let page = std::fs::read_to_string(folder.path("report/report.html")).unwrap();
    assert!(page.contains("io_uring") && page.contains("cached reads"), "{page}");
    let again = folder.iotoll("report report --format json").run();
    assert_eq!(again.json()["seed"], comparison["seed"]);
}
