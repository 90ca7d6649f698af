//! Markup in each string of each finding: no text from outside becomes markup of a report.

use crate::pages::tests::markdown::foreign_tag;
use crate::{Finding, Format, doctor, history};
use report::Ink;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// A tag that runs a script, and the same behind all that could end what is around it.
const MARKUP: [&str; 2] =
    ["<img src=x onerror=alert(1)>", "`\\</code></pre>-->\n\n```\n<img src=x onerror=alert(1)>| \\`<!--"];

/// Strings that are replaced at the same time, because most of the time is spent on pages.
const AT_ONCE: usize = 24;

/// Entries of a list whose strings are replaced: the others are like them.
const ENTRIES: usize = 2;

/// A step from a value to one inside it.
#[derive(Clone)]
enum Step {
    Key(String),
    Entry(usize),
    /// Not further inside: the key itself.
    Name(String),
}

/// The ways to all strings inside `value`, names of entries included.
fn ways(value: &Value, way: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    let mut inside = |step, value: &Value| {
        way.push(step);
        ways(value, way, found);
        way.pop();
    };
    match value {
        Value::String(_) => found.push(way.clone()),
        Value::Array(entries) => {
            entries.iter().take(ENTRIES).enumerate().for_each(|(place, entry)| inside(Step::Entry(place), entry));
        }
        Value::Object(entries) => {
            entries.iter().for_each(|(name, entry)| inside(Step::Key(name.clone()), entry));
            found.extend(entries.keys().map(|name| [way.as_slice(), &[Step::Name(name.clone())]].concat()));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces the string at the end of a way.
fn replace(value: &mut Value, way: &[Step], text: &str) {
    match (way, value) {
        ([], Value::String(old)) => text.clone_into(old),
        ([Step::Key(name), rest @ ..], Value::Object(entries)) => replace(&mut entries[name], rest, text),
        ([Step::Entry(place), rest @ ..], Value::Array(entries)) => replace(&mut entries[*place], rest, text),
        ([Step::Name(name)], Value::Object(entries)) => {
            let entry = entries.remove(name).unwrap();
            entries.insert(text.to_owned(), entry);
        }
        _ => unreachable!("a way leads to a string"),
    }
}

fn shown(way: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Key(name) => format!(".{name}"),
        Step::Entry(place) => format!("[{place}]"),
        Step::Name(name) => format!(".{name} (the name)"),
    };
    way.iter().map(step).collect()
}

/// A finding as JSON, with some of its strings replaced; `None` if its type has no such value.
fn with<F: DeserializeOwned>(value: &Value, ways: &[Vec<Step>], text: &str) -> Option<F> {
    let mut value = value.clone();
    // Names of one place must differ.
    ways.iter().enumerate().for_each(|(number, way)| replace(&mut value, way, &format!("{text}{number}")));
    serde_json::from_value(value).ok()
}

fn stays_text<F: Finding + Serialize + DeserializeOwned + Send>(fixtures: Vec<(&str, F)>) {
    let fixtures = fixtures.into_iter().filter(|(name, _)| !name.starts_with("hostile"));
    // Not names of fields, nor words that must be one of a few. What can be replaced in one finding can be in another.
    let mut can_be: BTreeMap<String, bool> = BTreeMap::new();
    let replaceable = fixtures.filter_map(|(name, finding)| {
        let value = serde_json::to_value(finding).unwrap();
        // JSON has no NaN, so such a finding cannot be read again.
        with::<F>(&value, &[], "")?;
        let mut found = Vec::new();
        ways(&value, &mut Vec::new(), &mut found);
        // The innermost first: behind another name, a way would lead nowhere.
        found.sort_by_key(|way| std::cmp::Reverse(way.len()));
        found.retain(|way| {
            let one = || with::<F>(&value, std::slice::from_ref(way), MARKUP[0]).is_some();
            *can_be.entry(shown(way)).or_insert_with(one)
        });
        Some((name, value, found))
    });
    let fixtures: Vec<_> = replaceable.collect();
    assert!(fixtures.iter().map(|(_, _, found)| found.len()).sum::<usize>() > 20);
    std::thread::scope(|scope| {
        for (name, value, found) in &fixtures {
            scope.spawn(move || found.chunks(AT_ONCE).for_each(|some| some_strings_stay_text::<F>(name, value, some)));
        }
    });
}

fn some_strings_stay_text<F: Finding + DeserializeOwned>(name: &str, value: &Value, some: &[Vec<Step>]) {
    let at = || some.iter().map(|way| shown(way)).collect::<Vec<_>>().join(", ");
    for text in MARKUP {
        let finding = with::<F>(value, some, text).unwrap_or_else(|| panic!("{name}: {}", at()));
        let page = Format::Markdown.render(&finding, Ink::Plain, 80);
        assert_eq!(foreign_tag(&page), None, "{name}: one of {}", at());
        if text == MARKUP[0] {
            let page = Format::Html.render(&finding, Ink::Plain, 80);
            assert!(!page.contains("<img"), "{name}: one of {}", at());
        }
    }
}

#[test]
fn no_string_of_a_history_becomes_markup() {
    stays_text(vec![("upgraded", history::page::fixture::upgraded())]);
}

#[test]
fn no_string_of_a_diagnosis_becomes_markup() {
    stays_text(vec![("doctor", doctor::page::fixture())]);
}

mod no_string_becomes_markup {
    macro_rules! tests {
        ($($kind:ident)+) => { $(#[test] fn $kind() { super::stays_text(crate::$kind::page::fixture::all()); })+ };
    }
    fixtures!(tests);
}
