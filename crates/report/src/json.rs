//! A [`RunFinding`] as JSON, schema `iotoll.run/1`.

use model::finding::RunFinding;

/// Indented JSON with a newline at its end. What is not a finite number is `null`.
pub fn json(finding: &RunFinding) -> String {
    match serde_json::to_string_pretty(finding) {
        Ok(text) => text + "\n",
        // Findings hold nothing that JSON cannot say; a script that reads this sees no schema.
        Err(error) => format!("{}\n", serde_json::json!({ "error": error.to_string() })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_finding_is_json_with_the_promised_keys() {
        for (name, finding) in fixture::all() {
            let value: serde_json::Value = serde_json::from_str(&json(&finding)).unwrap();
            assert_eq!(value["schema"], "iotoll.run/1", "{name}");
            for key in ["host", "meters", "background", "phases", "jobs", "warnings"] {
                assert!(value.get(key).is_some(), "{name}: {key}");
            }
        }
    }

    #[test]
    fn a_missing_number_is_null() {
        let value: serde_json::Value = serde_json::from_str(&json(&fixture::cost_without_ios())).unwrap();
        let phase = &value["phases"][0];
        assert!(phase["cycles_per_io"].is_null() && phase["accounts"][0]["cycles_per_io"].is_null());
        assert_eq!(phase["by_meter_detail"][0]["reason"], "the number of I/Os is unknown");
    }

    #[test]
    fn a_finding_survives_json() {
        let finding = fixture::psync_4k();
        let read: RunFinding = serde_json::from_str(&json(&finding)).unwrap();
        assert_eq!(json(&read), json(&finding));
    }
}
