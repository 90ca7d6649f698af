//! The keys that scripts may rely on.

use crate::compare;
use crate::compare::CompareFinding;
use crate::cost::page::fixture;
use crate::format::Json;
use model::finding::RunFinding;
use serde_json::Value;

fn value(finding: &impl Json) -> Value {
    serde_json::from_str(&finding.json()).unwrap()
}

#[test]
fn every_finding_is_json_with_the_promised_keys() {
    for (name, finding) in fixture::all() {
        let value = value(&finding);
        assert_eq!(value["schema"], "iotoll.run/1", "{name}");
        for key in ["host", "meters", "background", "phases", "jobs", "warnings"] {
            assert!(value.get(key).is_some(), "{name}: {key}");
        }
    }
    for (name, finding) in compare::page::fixture::all() {
        let value = value(&finding);
        assert_eq!(value["schema"], "iotoll.compare/1", "{name}");
        for key in ["seed", "rounds", "seconds", "arms", "cells", "environment", "warnings"] {
            assert!(value.get(key).is_some(), "{name}: {key}");
        }
    }
}

#[test]
fn a_metric_of_a_comparison_has_the_promised_keys() {
    let value = value(&compare::page::fixture::named("options"));
    let cell = &value["cells"][0];
    assert!(cell["cell"].is_object() && cell["arm"] == "candidate");
    let metric = &cell["metrics"]["cycles_per_io"];
    for key in ["baseline", "candidate", "change", "low", "high", "mde80"] {
        assert!(metric[key].is_number(), "{key}");
    }
    assert_eq!((&metric["detected"], &metric["verdict"]), (&true.into(), &"worse".into()));
}

#[test]
fn a_missing_number_is_null() {
    let value = value(&fixture::named("cost_without_ios"));
    let phase = &value["phases"][0];
    assert!(phase["cycles_per_io"].is_null() && phase["accounts"][0]["cycles_per_io"].is_null());
    assert_eq!(phase["by_meter_detail"][0]["reason"], "the number of I/Os is unknown");
}

#[test]
fn a_finding_survives_json() {
    let (run, comparison) = (fixture::named("psync_4k"), compare::page::fixture::named("sweep"));
    assert_eq!(serde_json::from_value::<RunFinding>(value(&run)).unwrap().json(), run.json());
    assert_eq!(serde_json::from_value::<CompareFinding>(value(&comparison)).unwrap().json(), comparison.json());
}
