//! Numbers in JSON, by path: `/phases/0/cycles_per_io`.
//!
//! A step is a key, a place, `*` for every element, or a filter: `[owner=workload]`, `[name~iou-]` for a name that contains the
//! text, or several: `[kind=task][owner=workload]`. The value is the sum of what is found; a first word says otherwise: `total` (0 if nothing is
//! known), `max`, `count`, or `hash` of the whole text.

use anyhow::Context;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// NaN if nothing is there or it is no number.
pub fn number(document: &Value, path: &str) -> f64 {
    let (how, path) = path.split_once(' ').unwrap_or(("sum", path));
    let mut found = vec![document];
    for step in path.split('/').skip(1) {
        found = found.into_iter().flat_map(|value| steps(value, step)).collect();
    }
    let numbers = found.iter().map(|value| value.as_f64().or(value.as_bool().map(f64::from)).unwrap_or(f64::NAN));
    match how {
        "count" => found.len() as f64,
        "hash" => {
            let mut hasher = DefaultHasher::new();
            found.iter().for_each(|value| value.to_string().hash(&mut hasher));
            // As many bits as are exact in a number.
            if found.is_empty() { f64::NAN } else { (hasher.finish() >> 12) as f64 }
        }
        "total" => numbers.filter(|number| !number.is_nan()).sum(),
        "max" => numbers.reduce(f64::max).unwrap_or(f64::NAN),
        _ => numbers.reduce(|one, other| one + other).unwrap_or(f64::NAN),
    }
}

fn steps<'a>(value: &'a Value, step: &str) -> Vec<&'a Value> {
    let all = || -> Vec<&Value> {
        match value {
            Value::Array(values) => values.iter().collect(),
            Value::Object(values) => values.values().collect(),
            _ => Vec::new(),
        }
    };
    let filters = step.strip_prefix('[').and_then(|step| step.strip_suffix(']'));
    let Some(filters) = filters.filter(|filters| filters.contains(['=', '~'])) else {
        let place = step.parse().ok().and_then(|place: usize| value.get(place));
        return if step == "*" { all() } else { place.or_else(|| value.get(step)).into_iter().collect() };
    };
    let fits = |value: &Value, filter: &str| {
        let (key, wanted) = filter.split_at(filter.find(['=', '~']).unwrap_or(filter.len()));
        let text = value[key].as_str().map_or_else(|| value[key].to_string(), str::to_owned);
        match wanted.strip_prefix('=') {
            Some(wanted) => text == wanted,
            None => text.contains(wanted.trim_start_matches('~')),
        }
    };
    all().into_iter().filter(|value| filters.split("][").all(|filter| fits(value, filter))).collect()
}

/// The JSON of a program's output, which may begin with notes (fio's does). Lines of a record are an array.
pub fn parse(text: &str) -> anyhow::Result<Value> {
    let begin = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|place| place + 1) };
    let json = text.get(begin.context("no JSON was printed")?..).unwrap_or_default();
    let values = serde_json::Deserializer::from_str(json).into_iter().collect::<Result<Vec<Value>, _>>()?;
    Ok(if let [value] = values.as_slice() { value.clone() } else { Value::Array(values) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_numbers() {
        let text = "note: both\n{\"a\": [{\"name\": \"one\", \"x\": 1, \"on\": true}, {\"name\": \"two\", \"x\": 2.5, \"on\": false}], \"n\": null}";
        let document = parse(text).unwrap();
        let of = |path: &str| number(&document, path);
        assert_eq!((of("/a/0/x"), of("/a/*/x"), of("max /a/*/x"), of("count /a/*")), (1.0, 3.5, 2.5, 2.0));
        assert_eq!(
            (of("/a/[name=two]/x"), of("/a/[name~o]/x"), of("/a/[name~o][on=true]/x"), of("/a/0/on")),
            (2.5, 3.5, 1.0, 1.0)
        );
        assert!(["/b", "/n", "/a/[name=x]/x", "/a/0/name"].iter().all(|path| of(path).is_nan()));
        assert!(of("hash /a/0") == of("hash /a/0") && of("hash /a/0") != of("hash /a/1"));
        assert_eq!(parse("{\"a\": 1}\n{\"a\": 2}\n").map(|it| number(&it, "/*/a")).unwrap(), 3.0);
        assert!(parse("nothing").is_err());
    }
}
