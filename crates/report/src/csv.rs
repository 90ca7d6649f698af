//! The JSON of a finding as CSV (RFC 4180): a row for each value, under the same keys. An unknown value is an empty field.

use serde_json::{Map, Value};

/// `place` is where the value is: keys, and the names or numbers of what stands in a list.
const COLUMNS: [&str; 5] = ["place", "key", "value", "low", "high"];

/// Keys of what names a member of a list, the first that it has.
const NAMES: [&str; 7] = ["name", "jobs", "cell", "method", "symbol", "probe", "metric"];

/// The table with its header.
pub fn csv(json: &str) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    match serde_json::from_str(json) {
        Ok(Value::Object(finding)) => members("", &finding, &mut rows),
        Ok(Value::Array(parts)) => list("", &parts, &mut rows),
        _ => {}
    }
    let written = rows.iter().try_for_each(|row| writer.write_record(row));
    // Writing to memory cannot fail in practice; if it does, the result is an empty table.
    let bytes = if written.is_ok() { writer.into_inner().unwrap_or_default() } else { Vec::new() };
    String::from_utf8(bytes).unwrap_or_default()
}

fn list(place: &str, list: &[Value], rows: &mut Vec<[String; 5]>) {
    for (number, member) in list.iter().enumerate() {
        let at = format!("{place}[{number}{}]", name(member));
        match member {
            Value::Object(inside) => members(&at, inside, rows),
            Value::Array(inside) => self::list(&at, inside, rows),
            value => rows.push([at, String::new(), text(value), String::new(), String::new()]),
        }
    }
}

fn members(place: &str, of: &Map<String, Value>, rows: &mut Vec<[String; 5]>) {
    // The ends of an interval stand beside its value.
    let ends = |key: &str| {
        ["low", "high"].map(|end| {
            let alone = of.get_key_value(end).filter(|_| ["change", "value"].contains(&key));
            of.get_key_value(&format!("{key}_{end}")).or(alone)
        })
    };
    let beside: Vec<&String> = of.keys().flat_map(|key| ends(key)).flatten().map(|(key, _)| key).collect();
    for (key, value) in of.iter().filter(|(key, _)| !beside.contains(key)) {
        let inner = || format!("{place}{}{}", if place.is_empty() { "" } else { "." }, bare(key));
        match value {
            Value::Object(estimate)
                if estimate.contains_key("value")
                    && estimate.keys().all(|key| ["value", "low", "high"].contains(&key.as_str())) =>
            {
                let of = |key: &str| estimate.get(key).map(text).unwrap_or_default();
                rows.push([place.to_owned(), bare(key), of("value"), of("low"), of("high")]);
            }
            Value::Object(inside) => members(&inner(), inside, rows),
            Value::Array(inside) => list(&inner(), inside, rows),
            value => {
                let [low, high] = ends(key).map(|end| end.map(|(_, end)| text(end)).unwrap_or_default());
                rows.push([place.to_owned(), bare(key), text(value), low, high]);
            }
        }
    }
}

/// " softirq net_rx", if it has a name.
fn name(member: &Value) -> String {
    let names = |value: &Value| match value {
        Value::Array(several) => several.iter().map(text).collect::<Vec<_>>().join(" "),
        Value::Object(pairs) => {
            pairs.iter().map(|(name, value)| bare(name) + "=" + &text(value)).collect::<Vec<_>>().join(" ")
        }
        one => text(one),
    };
    let name = NAMES.iter().find_map(|key| member.get(key)).map(names);
    name.filter(|name| !name.is_empty()).map(|name| format!(" {name}")).unwrap_or_default()
}

/// Without quotes and without control characters, because the table may be shown on a terminal.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => bare(text),
        value => value.to_string(),
    }
}

pub fn bare(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
