//! For tests: findings of every kind.

use crate::pages::plan;
use crate::{Finding, doctor, history};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, LazyLock, Mutex};

pub type Example = (String, Box<dyn Finding + Send + Sync>);

/// All that can be shown: also what no record contains. The last three are that.
pub fn all() -> &'static [Example] {
    // Making them takes longer than showing one of them.
    static ALL: LazyLock<Vec<Example>> = LazyLock::new(|| {
        fn named<F: Finding + Send + Sync + 'static>(kind: &str, findings: Vec<(&str, F)>) -> Vec<Example> {
            findings.into_iter().map(|(own, finding)| (format!("{kind}_{own}"), Box::new(finding) as _)).collect()
        }
        macro_rules! of {
            ($($kind:ident)+) => { [$(named(stringify!($kind), crate::$kind::page::fixture::all())),+] };
        }
        let mut all: Vec<Example> = fixtures!(of).into_iter().flatten().collect();
        all.push(("doctor".to_owned(), Box::new(doctor::page::fixture())));
        all.push(("experiment".to_owned(), Box::new(plan::fixture())));
        all.push(("history".to_owned(), Box::new(history::page::fixture::upgraded())));
        all
    });
    &ALL
}

/// Findings of every kind of record.
pub fn measured() -> &'static [Example] {
    &all()[..all().len() - 3]
}

/// The finding of this name that is written down in `json`, among others. `prepare` may fill in what would be long there.
pub fn written<F: DeserializeOwned>(json: &'static str, name: &str, prepare: impl Fn(&mut Value)) -> F {
    // Reading a file takes longer than most of what is done with one of its findings.
    static READ: Mutex<Vec<(&str, Arc<Value>)>> = Mutex::new(Vec::new());
    let mut read = READ.lock().unwrap();
    let known = read.iter().find(|(text, _)| std::ptr::eq(*text, json)).map(|(_, all)| all.clone());
    let all = known.unwrap_or_else(|| {
        read.push((json, Arc::new(serde_json::from_str(json).expect("JSON"))));
        read.last().unwrap().1.clone()
    });
    drop(read);
    let mut finding = whole(&all, name);
    prepare(&mut finding);
    serde_json::from_value(finding).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// One of them: what it says itself, and what the one is that it is `like`.
fn whole(all: &Value, name: &str) -> Value {
    let own = &all[name];
    let mut finding = own["like"].as_str().map_or(Value::Null, |like| whole(all, like));
    change(&mut finding, own);
    finding
}

/// Changes the members of an object, or those places of a list. An object with the only key `=` stands in place of another one.
fn change(value: &mut Value, by: &Value) {
    match (&mut *value, by) {
        (_, Value::Object(by)) if by.contains_key("=") => *value = by["="].clone(),
        (Value::Object(members), Value::Object(by)) => {
            by.iter().for_each(|(key, by)| change(members.entry(key).or_insert(Value::Null), by));
        }
        (Value::Array(list), Value::Object(by)) => {
            by.iter().for_each(|(place, by)| change(&mut list[place.parse::<usize>().unwrap()], by));
        }
        _ => *value = by.clone(),
    }
}
