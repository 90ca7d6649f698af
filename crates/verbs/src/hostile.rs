//! For tests: records as an attacker or a damaged disk might leave them.
//!
//! Takes a record as JSON and changes a few places of it. The result may not be a valid record.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

/// Integers at the limits of types and sums.
const WHOLE: [u64; 8] = [0, 1, 2, u32::MAX as u64, 1 << 44, 1 << 63, u64::MAX - 1, u64::MAX];
/// Floating-point numbers at the limits.
const REAL: [f64; 8] = [0.0, -0.0, -1.0, 0.5, 1e308, -1e308, 5e-324, 1e-9];

/// Number of changed records of each kind; `./check --long` has more of them.
pub(crate) fn changes() -> u64 {
    if std::env::var_os("IOTOLL_REPORT_HOSTILE").is_some() { 500 } else { 100 }
}

/// Changes records in places that depend on a seed.
pub(crate) struct Vandal {
    record: Value,
    /// Every place in the record, as a JSON pointer.
    places: Vec<String>,
}

impl Vandal {
    pub(crate) fn new(record: &impl serde::Serialize) -> Self {
        let record = serde_json::to_value(record).unwrap();
        let mut places = Vec::new();
        collect(&record, String::new(), &mut places);
        Self { record, places }
    }

    /// The record with one to four changed places.
    pub(crate) fn changed(&self, seed: u64) -> Value {
        let random = &mut Pcg64Mcg::seed_from_u64(seed);
        let mut record = self.record.clone();
        for _ in 0..=below(random, 4) {
            let place = &self.places[below(random, self.places.len())];
            let number = (WHOLE[below(random, WHOLE.len())], REAL[below(random, REAL.len())]);
            match below(random, 3) {
                // Changes the same field everywhere: sums overflow only if many values are large.
                0 => {
                    let field = place.rsplit('/').next().unwrap_or_default();
                    let same = self.places.iter().filter(|other| other.rsplit('/').next() == Some(field));
                    for value in same {
                        change(&mut record, value, |value| set(value, number));
                    }
                }
                _ => change(&mut record, place, |value| match value {
                    Value::Array(items) => cut(items, random),
                    other => set(other, number),
                }),
            }
        }
        record
    }
}

fn below(random: &mut Pcg64Mcg, limit: usize) -> usize {
    (random.next_u64() % limit as u64) as usize
}

fn collect(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| collect(item, format!("{place}/{index}"), places));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| collect(field, format!("{place}/{name}"), places));
        }
        _ => {}
    }
    places.push(place);
}

/// Does nothing if an earlier change removed the place.
fn change(record: &mut Value, place: &str, how: impl FnOnce(&mut Value)) {
    if let Some(value) = record.pointer_mut(place) {
        how(value);
    }
}

/// Keeps the type of a number, so that most records can still be parsed.
fn set(value: &mut Value, (whole, real): (u64, f64)) {
    *value = match value {
        Value::Number(number) if number.is_f64() => json!(real),
        Value::Number(_) => json!(whole),
        Value::Bool(truth) => json!(!*truth),
        Value::String(_) => json!(""),
        Value::Null | Value::Array(_) | Value::Object(_) => Value::Null,
    };
}

fn cut(items: &mut Vec<Value>, random: &mut Pcg64Mcg) {
    let place = below(random, items.len() + 1);
    match below(random, 4) {
        0 => items.clear(),
        1 => items.truncate(place),
        2 => items.reverse(),
        _ => items.extend(items.get(place).cloned()),
    }
}
