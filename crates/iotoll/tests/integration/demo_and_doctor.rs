//! The verbs that take no job.

use super::iotoll::{Folder, number, whole};

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
fn demo_shows_two_costs_and_leaves_nothing() {
    let folder = Folder::new();
    let ended = folder.iotoll("demo --quiet --format json").run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let finding = ended.json();
    let phases = finding["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 2);
    assert!(phases.iter().all(|phase| number(&phase["cycles_per_io_gross"]) > 0.0), "{phases:?}");
    let jobs = finding["jobs"].as_array().unwrap();
    assert!(whole(&jobs[0]["read"]["ios"]) > 0 && whole(&jobs[1]["write"]["ios"]) > 0, "{jobs:?}");
    assert!(folder.listing().is_empty(), "{:?}", folder.listing());
}
