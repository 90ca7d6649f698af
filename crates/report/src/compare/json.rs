//! A [`CompareFinding`] as JSON, schema `iotoll.compare/1`.

use model::comparison::CompareFinding;

/// Indented JSON with a newline at its end. What is not a finite number is `null`.
pub fn json(finding: &CompareFinding) -> String {
    match serde_json::to_string_pretty(finding) {
        Ok(text) => text + "\n",
        // Findings hold nothing that JSON cannot say; a script that reads this sees no schema.
        Err(error) => format!("{}\n", serde_json::json!({ "error": error.to_string() })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::fixture;

    #[test]
    fn every_finding_is_json_with_the_promised_keys() {
        for (name, finding) in fixture::all() {
            let value: serde_json::Value = serde_json::from_str(&json(&finding)).unwrap();
            assert_eq!(value["schema"], "iotoll.compare/1", "{name}");
            for key in ["seed", "rounds", "seconds", "arms", "cells", "environment", "warnings"] {
                assert!(value.get(key).is_some(), "{name}: {key}");
            }
        }
    }

    #[test]
    fn a_metric_has_the_promised_keys() {
        let value: serde_json::Value = serde_json::from_str(&json(&fixture::options())).unwrap();
        let cell = &value["cells"][0];
        assert!(cell["cell"].is_object() && cell["arm"] == "candidate");
        let metric = &cell["metrics"]["cycles_per_io"];
        for key in ["baseline", "candidate", "change", "low", "high", "mde80"] {
            assert!(metric[key].is_number(), "{key}");
        }
        assert_eq!((&metric["detected"], &metric["verdict"]), (&true.into(), &"worse".into()));
    }

    #[test]
    fn a_finding_survives_json() {
        let finding = fixture::sweep();
        let read: CompareFinding = serde_json::from_str(&json(&finding)).unwrap();
        assert_eq!(json(&read), json(&finding));
    }
}
