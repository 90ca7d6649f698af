//! The JSON of iperf3. With `--bidir`, versions 3.7 to 3.10 give the sums of both directions the same name, and a map would
//! keep the last. Here the second one gets the name that later versions give it.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// What later versions append to the names of the sums of the second direction.
pub(super) const SECOND: &str = "_bidir_reverse";

/// The texts that it printed one after the other.
///
/// # Errors
/// When there is none, or one is broken.
pub(super) fn texts(text: &str) -> Result<Vec<Value>, String> {
    let texts = serde_json::Deserializer::from_str(text).into_iter::<Whole>();
    let texts: Vec<Value> = texts
        .map(|text| text.map(|Whole(value)| value))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("its JSON is broken: {error}"))?;
    if texts.is_empty() { Err("its JSON is empty".to_owned()) } else { Ok(texts) }
}

/// A value that keeps both members of the same name.
struct Whole(Value);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Members).map(Self)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        while let Some(Whole(value)) = values.next_element()? {
            found.push(value);
        }
        Ok(Value::Array(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some((name, Whole(value))) = members.next_entry::<String, Whole>()? {
            let name = if found.contains_key(&name) { name + SECOND } else { name };
            found.insert(name, value);
        }
        Ok(Value::Object(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_of_one_name_are_both_kept() {
        let found =
            texts(r#"{"sum": {"bytes": 1}, "sum": {"bytes": 2}, "x": [null, true, -1, 0.5, "y"]} {"z": 3}"#).unwrap();
        assert_eq!(found[0]["sum"]["bytes"], 1);
        assert_eq!(found[0]["sum_bidir_reverse"]["bytes"], 2);
        assert_eq!(found[0]["x"], serde_json::json!([null, true, -1, 0.5, "y"]));
        assert_eq!(found[1]["z"], 3);
        assert!(texts("").is_err() && texts("{").is_err() && texts("iperf3: error").is_err());
    }
}
