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

    /// Where a schema leads to: behind references and out of the forms of what may be null.
    fn forms<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return forms(root, &root["$defs"][name]);
        }
        let choices = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
        let mut all: Vec<&Value> = choices.flat_map(|choice| forms(root, choice)).collect();
        all.push(schema);
        all
    }

    /// Each key at each depth is one of the schema, and so of the reference that is generated from it.
    fn keys_are_known(root: &Value, schema: &Value, value: &Value, place: &str) -> usize {
        let forms = forms(root, schema);
        let first = |find: &dyn Fn(&Value) -> Option<Value>| forms.iter().find_map(|form| find(form));
        match value {
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                let known = first(&|form| form.get("items").cloned()).unwrap_or_else(|| panic!("{place} is no list"));
                items.iter().map(|item| keys_are_known(root, &known, item, place)).sum()
            }
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| {
                    let place = format!("{place}.{key}");
                    let named = first(&|form| form["properties"].get(key).cloned());
                    let map = first(&|form| {
                        let patterns = form["patternProperties"].as_object().and_then(|all| all.values().next());
                        patterns.or(form.get("additionalProperties")).filter(|value| value.is_object()).cloned()
                    });
                    let known = named.or(map).unwrap_or_else(|| panic!("{place} is not in the schema"));
                    1 + keys_are_known(root, &known, value, &place)
                })
                .sum(),
            _ => 0,
        }
    }

    fn schema<T: schemars::JsonSchema>() -> Value {
        let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
        settings.into_generator().into_root_schema_for::<T>().into()
    }

    #[test]
    fn every_key_is_in_the_schema() {
        let (run, comparison) = (schema::<RunFinding>(), schema::<CompareFinding>());
        let mut count = 0;
        for (name, finding) in fixture::all() {
            count += keys_are_known(&run, &run, &value(&finding), name);
        }
        for (name, finding) in compare::fixture::all() {
            count += keys_are_known(&comparison, &comparison, &value(&finding), name);
        }
        assert!(count > 1000, "{count}");
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
