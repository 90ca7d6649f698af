//! For tests: findings in which any number, name or list may be replaced by a value that no measurement gives.
//!
//! A finding is deserialized from its JSON by a deserializer that returns wrong values. Because it is called by type
//! for every field, it can return values that JSON cannot represent (NaN, infinity), and covers all fields.

mod markup;
mod wild;

use crate::pages::tests::markdown::foreign_tag;
use crate::pages::tests::{csv, fits, html as page};
use crate::{Finding, Format, compare, history};
use proptest::prelude::*;
use report::Ink;
use report::csv::bare;
use report::html::html;
use report::markdown::markdown;
use report::shell::is_hidden;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::Error;
use serde_json::Value;
use std::cell::Cell;
use wild::Wild;

/// Findings for each fixture. For a longer run: `IOTOLL_REPORT_HOSTILE=10000 cargo test hostile`.
const FINDINGS: u64 = 6;

const NUMBERS: [f64; 22] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.999_999_999_999_999_9,
    0.03,
    -0.031,
    5e-324,
    f64::MIN_POSITIVE,
    1e-12,
    f64::EPSILON,
    999.999_999_999_999_9,
    1e17,
    9.999_999_999_999_998e17,
    1e18,
    1.844_674_407_370_955_2e19,
    1e300,
    f64::MAX,
    f64::MIN,
];

/// Decides where a finding is wrong; the same in every run.
struct Fate {
    state: Cell<u64>,
    /// Wrong numbers and names per thousand.
    rate: u64,
    /// The same of lists, counts and all that says which part of a finding there is.
    shape: u64,
    /// Only a few values, so that related fields are often wrong in the same way.
    numbers: [f64; 3],
    text: String,
    /// How often the text stands in place of a sentence.
    times: usize,
}

impl Fate {
    fn new(seed: u64) -> Self {
        let state = Cell::new(seed);
        let mut fate = Self { state, rate: 0, shape: 0, numbers: [0.0; 3], text: String::new(), times: 1 };
        fate.rate = fate.one_of(&[5, 30, 200, 700]);
        fate.shape = fate.rate;
        fate.numbers = [(); 3].map(|()| match fate.below(4) {
            0 => f64::from_bits(fate.next()),
            // Close to each other, but not equal.
            1 => 6910.0 * (1.0 + fate.below(3) as f64 * f64::EPSILON),
            _ => fate.one_of(&NUMBERS),
        });
        // Long ones in few fields only, or a page has hundreds of megabytes.
        let times = if fate.rate <= 30 { 100 } else { 20 };
        let long = "a\u{1b}[31m\u{7}<b>|`\r\n\u{202e}読".repeat(times);
        fate.text = fate.one_of(&["", " ", "4k", "x=y", "\u{a0}", "0", "-", "\u{0}\u{9b}", &long]).to_owned();
        fate
    }

    fn next(&self) -> u64 {
        let state = self.state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.state.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn strikes(&self) -> bool {
        self.below(1000) < self.rate
    }

    fn bends(&self) -> bool {
        self.below(1000) < self.shape
    }

    fn number(&self, value: &Value) -> f64 {
        // JSON cannot represent it, so it was not a number.
        if self.strikes() { self.one_of(&self.numbers) } else { value.as_f64().unwrap_or(f64::NAN) }
    }

    fn text(&self, text: &str) -> String {
        let times = if text.len() > 25 { self.times } else { 1 };
        if self.strikes() { self.text.repeat(times) } else { text.to_owned() }
    }

    fn count(&self, value: &Value, most: u64) -> u64 {
        let wild = || self.one_of(&[0, 1, 2, most / 2, most - 1, most]);
        if self.bends() { wild() } else { value.as_u64().unwrap_or(0) }
    }

    /// `value` with some wrong fields; an error if its type has no such value.
    fn apply<T: DeserializeOwned>(&self, value: &Value) -> Result<T, Error> {
        T::deserialize(Wild { value, fate: self })
    }
}

/// The same with this number or its negative for all numbers, and this text for all names.
pub fn filled<F: Serialize + DeserializeOwned>(finding: &F, number: f64, text: &str) -> F {
    let numbers = [number, -number, number];
    let fate = Fate { state: Cell::new(0), rate: 1000, shape: 0, numbers, text: text.to_owned(), times: 9 };
    fate.apply(&serde_json::to_value(finding).unwrap()).expect("every number and name is valid")
}

/// All seeds of a test, for each fixture.
fn fates() -> impl Iterator<Item = Fate> {
    let asked = std::env::var("IOTOLL_REPORT_HOSTILE").ok().and_then(|number| number.parse().ok());
    (0..asked.unwrap_or(FINDINGS)).map(Fate::new)
}

/// Every text must be free of control characters except line breaks, and one for people of letters that change the direction
/// of a line.
fn controlled(format: Format, text: &str) -> Option<char> {
    let for_people = !matches!(format, Format::Json | Format::Csv) && !format.is_of_fio();
    text.chars().find(|letter| letter.is_control() && *letter != '\n' || for_people && is_hidden(*letter))
}

fn survives<F: Finding + Serialize + DeserializeOwned>(fixtures: Vec<(&str, F)>) {
    let mut rendered = 0;
    let fixed = fixtures.len();
    for (name, finding) in fixtures {
        let finding = serde_json::to_value(finding).unwrap();
        for (seed, fate) in fates().enumerate() {
            let Ok(finding) = fate.apply::<F>(&finding) else { continue };
            rendered += 1;
            // Of a finding that is not a run of jobs, fio's formats are its JSON again.
            let formats = Format::all().filter(|it| !it.is_of_fio() || finding.own_run().is_some());
            for format in formats {
                let text = format.render(&finding, Ink::Plain, 80);
                let at = format!("{name}, seed {seed} as {}", format.name());
                assert_eq!(controlled(format, &text), None, "{at}");
                let columns = match format {
                    Format::Table => 80,
                    Format::Mail => 72,
                    _ => usize::MAX,
                };
                // What can be pasted from a mail is as long as it is.
                let wrapped = text.lines().filter(|line| format != Format::Mail || !line.starts_with("    "));
                assert_eq!(fits(&wrapped.collect::<Vec<_>>().join("\n"), columns), Ok(()), "{at}");
                assert!(format != Format::Html || page::unbalanced(&text).is_none(), "{at}");
            }
        }
    }
    assert!(rendered > fixed, "{rendered} findings could be made");
}

#[test]
fn no_history_breaks_a_format() {
    survives(vec![("upgraded", history::page::fixture::upgraded())]);
}

mod no_finding_breaks_a_format {
    macro_rules! tests {
        ($($kind:ident)+) => { $(#[test] fn $kind() { super::survives(crate::$kind::page::fixture::all()); })+ };
    }
    fixtures!(tests);
}

proptest! {
    #[test]
    fn hostile_names_stay_text(number in any::<f64>(), text in any::<String>()) {
        const MARKUP: &str = "</b><script>";
        let name = format!("{text}{MARKUP}");
        let finding = compare::page::fixture::hostile(number, &name);
        let table = Format::Csv.render(&finding, Ink::Plain, 0);
        prop_assert_eq!(table.find('\u{1b}'), None);
        prop_assert!(csv::read(&table).iter().flatten().any(|field| *field == bare(&name)));
        let document = finding.document();
        let page = html(&document);
        prop_assert_eq!(page::unbalanced(&page), None);
        prop_assert!(!page.contains("<script"));
        let page = markdown(&document);
        prop_assert!(page.contains(r"\<script\>"), "it is shown: {}", page);
        prop_assert_eq!(foreign_tag(&page), None);
        let plain = markdown(&compare::page::fixture::hostile(number, MARKUP).document());
        prop_assert_eq!(page.lines().count(), plain.lines().count());
    }
}
