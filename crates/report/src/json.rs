//! A finding or a diagnosis as JSON: schemas `iotoll.run/1` and `iotoll.compare/1`.

use crate::shell::is_hidden;
use serde::Serialize;

/// Indented JSON with a final newline. Numbers that are not finite become `null`.
pub fn json<T: Serialize>(finding: &T) -> String {
    match serde_json::to_string_pretty(finding) {
        Ok(text) => escaped(text) + "\n",
        // Unreachable: findings contain nothing that JSON cannot represent. A script that reads this sees no schema.
        Err(error) => format!("{}\n", serde_json::json!({ "error": error.to_string() })),
    }
}

/// JSON allows control characters beyond ASCII, and those that change the direction of a line. They only occur in strings, so escaping them
/// does not change the meaning.
fn escaped(text: String) -> String {
    let stands = |letter: char| (letter.is_control() || is_hidden(letter)) && letter != '\n';
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
    fn what_changes_the_direction_of_a_line_is_escaped() {
        assert_eq!(json(&"a\u{202e}b\u{2028}\u{85}"), "\"a\\u202eb\\u2028\\u0085\"\n");
    }

    #[test]
    fn a_metric_of_a_comparison_has_the_promised_keys() {
        let value = value(&compare::fixture::named("options"));
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
    fn no_control_character_remains() {
        assert_eq!(json(&"\u{1b}[2J\u{9b}2J\u{7f}\n"), "\"\\u001b[2J\\u009b2J\\u007f\\n\"\n");
        assert_eq!(value(&"\u{9b}2J"), "\u{9b}2J");
    }

    #[test]
    fn a_finding_survives_json() {
        let (run, comparison) = (json(&fixture::named("psync_4k")), json(&compare::fixture::named("sweep")));
        assert_eq!(json(&serde_json::from_str::<RunFinding>(&run).unwrap()), run);
        assert_eq!(json(&serde_json::from_str::<CompareFinding>(&comparison).unwrap()), comparison);
    }
}
