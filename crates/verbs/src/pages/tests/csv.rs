//! The CSV of findings has every number of their JSON.

use crate::pages::tests::examples;
use crate::{Format, compare, cost};
use report::Ink;
use serde_json::Value;

pub fn read(text: &str) -> Vec<Vec<String>> {
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect()
}

fn rows(finding: &dyn crate::Finding) -> Vec<Vec<String>> {
    read(&Format::Csv.render(finding, Ink::Plain, 0))
}

/// Numbers in a JSON value, wherever they are.
fn numbers(value: &Value) -> Vec<String> {
    match value {
        Value::Number(number) => vec![number.to_string()],
        Value::Array(list) => list.iter().flat_map(numbers).collect(),
        Value::Object(members) => members.values().flat_map(numbers).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_number_of_the_json_is_there() {
    for (name, finding) in examples::measured() {
        let rows = rows(&**finding);
        let fields: std::collections::HashSet<&String> = rows.iter().flatten().collect();
        let json = serde_json::from_str(&finding.json()).unwrap();
        let missing: Vec<String> = numbers(&json).into_iter().filter(|number| !fields.contains(number)).collect();
        assert!(missing.is_empty() && rows.iter().all(|row| row.len() == 5), "{name}: {missing:?}");
    }
}

#[test]
fn an_estimate_stands_beside_its_ends_and_a_place_has_its_name() {
    let has = |finding: &dyn crate::Finding, expected: [&str; 5]| {
        let rows = rows(finding);
        assert!(rows.iter().any(|row| *row == expected), "{expected:?} in {rows:#?}");
    };
    let run = cost::page::fixture::named("psync_4k");
    has(&run, ["phases[0 randread-4k].by_meter_detail[0 idle]", "cycles_per_io", "6910.0", "6840.0", "6980.0"]);
    let sweep = compare::page::fixture::named("explained");
    let of = sweep.cells[0].cost.accounts.iter().position(|account| account.name == "softirq net_rx").unwrap();
    has(&sweep, [&format!("cells[0].accounts[{of} softirq net_rx]"), "change", "-9.0", "-13.0", "-5.0"]);
}
