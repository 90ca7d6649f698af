//! A finding or a diagnosis as JSON: schemas `iotoll.run/1` and `iotoll.compare/1`.

use serde::Serialize;

/// Indented JSON with a newline at its end. What is not a finite number is `null`.
pub fn json<T: Serialize>(finding: &T) -> String {
    match serde_json::to_string_pretty(finding) {
        Ok(text) => escaped(text) + "\n",
        // Findings hold nothing that JSON cannot say; a script that reads this sees no schema.
        Err(error) => format!("{}\n", serde_json::json!({ "error": error.to_string() })),
    }
}

/// JSON's own rules let control characters beyond ASCII stand, and they too can move a cursor. They are only ever within
/// strings, so an escape means the same.
fn escaped(text: String) -> String {
    let stands = |letter: char| letter.is_control() && letter != '\n';
    if !text.contains(stands) {
        return text;
    }
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, letter| {
        if stands(letter) {
            escaped += &format!("\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;
    use crate::cost::fixture;
    use model::comparison::CompareFinding;
    use model::finding::RunFinding;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn value(finding: &impl Serialize) -> Value {
        serde_json::from_str(&json(finding)).unwrap()
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
        for (name, finding) in compare::fixture::all() {
            let value = value(&finding);
            assert_eq!(value["schema"], "iotoll.compare/1", "{name}");
            for key in ["seed", "rounds", "seconds", "arms", "cells", "environment", "warnings"] {
                assert!(value.get(key).is_some(), "{name}: {key}");
            }
        }
    }

    #[test]
    fn a_metric_of_a_comparison_has_the_promised_keys() {
        let value = value(&compare::fixture::options());
        let cell = &value["cells"][0];
        assert!(cell["cell"].is_object() && cell["arm"] == "candidate");
        let metric = &cell["metrics"]["cycles_per_io"];
        for key in ["baseline", "candidate", "change", "low", "high", "mde80"] {
            assert!(metric[key].is_number(), "{key}");
        }
        assert_eq!((&metric["detected"], &metric["verdict"]), (&true.into(), &"worse".into()));
    }

    /// Keys at any depth, but not those that are names of something else: metrics, meters, options.
    fn keys(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    found.insert(key.clone());
                    match (key.as_str(), value) {
                        ("by_meter" | "cell" | "at" | "plan" | "cpus", _) => {}
                        ("metrics", Value::Object(named)) => named.values().for_each(|value| keys(value, found)),
                        _ => keys(value, found),
                    }
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_key_stands_in_the_readme() {
        let readme = include_str!("../../../README.md");
        let mut found = BTreeSet::new();
        fixture::all().iter().for_each(|(_, finding)| keys(&value(finding), &mut found));
        compare::fixture::all().iter().for_each(|(_, finding)| keys(&value(finding), &mut found));
        let missing: Vec<&String> = found.iter().filter(|key| !readme.contains(&format!("`{key}`"))).collect();
        assert!(found.len() > 100 && missing.is_empty(), "{missing:?} of {}", found.len());
    }

    #[test]
    fn a_missing_number_is_null() {
        let value = value(&fixture::cost_without_ios());
        let phase = &value["phases"][0];
        assert!(phase["cycles_per_io"].is_null() && phase["accounts"][0]["cycles_per_io"].is_null());
        assert_eq!(phase["by_meter_detail"][0]["reason"], "the number of I/Os is unknown");
    }

    #[test]
    fn no_control_character_stands() {
        assert_eq!(json(&"\u{1b}[2J\u{9b}2J\u{7f}\n"), "\"\\u001b[2J\\u009b2J\\u007f\\n\"\n");
        assert_eq!(value(&"\u{9b}2J"), "\u{9b}2J");
    }

    #[test]
    fn a_finding_survives_json() {
        let (run, comparison) = (json(&fixture::psync_4k()), json(&compare::fixture::sweep()));
        assert_eq!(json(&serde_json::from_str::<RunFinding>(&run).unwrap()), run);
        assert_eq!(json(&serde_json::from_str::<CompareFinding>(&comparison).unwrap()), comparison);
    }
}
