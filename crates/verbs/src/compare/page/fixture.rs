//! Typical comparisons, for the tests of every format.

use crate::compare::CompareFinding;
use crate::compare::finding::SlicePoint;
use crate::pages::tests::examples::written;
use crate::pages::tests::hostile::filled;
use model::kind::Head;
use serde_json::{Value, json};
use std::sync::LazyLock;

const NAMES: [&str; 13] = [
    "empty",
    "options",
    "sweep",
    "inconclusive",
    "identical",
    "unmeasured",
    "executions",
    "three_arms",
    "stored",
    "stored_sweep",
    "probed",
    "explained",
    "explained_sweep",
];

/// All findings with their names.
pub fn all() -> Vec<(&'static str, CompareFinding)> {
    let hostile =
        [("hostile", hostile(f64::NAN, "\u{1b}[31m読み|<b>\n書き\u{7}")), ("hostile_numbers", hostile(1e300, "名"))];
    NAMES.into_iter().map(|name| (name, named(name))).chain(hostile).collect()
}

/// One of the findings, each of which says what it is about.
pub fn named(name: &str) -> CompareFinding {
    written(include_str!("fixture.json"), name, |finding| {
        finding["cells"].as_array_mut().into_iter().flatten().for_each(draw);
    })
}

/// A finding with `number` for all numbers and `text` for all names.
pub fn hostile(number: f64, text: &str) -> CompareFinding {
    let limits = crate::pages::limits::hostile(number, text);
    // Reading it takes longer than filling it.
    static WHOLE: LazyLock<CompareFinding> = LazyLock::new(|| named("everything"));
    let filled = filled(&*WHOLE, number, text);
    CompareFinding { head: Head { schema: WHOLE.head.schema.clone(), limits, ..filled.head }, ..filled }
}

/// The slices of a cell, of which only the number is written down.
fn draw(cell: &mut Value) {
    let change = cell["metrics"]["cycles_per_io"]["change"].as_f64().unwrap_or(0.0);
    let number = cell["slices"].as_u64().unwrap_or(0);
    cell["slices"] = json!(slices(change).take(number as usize).collect::<Vec<SlicePoint>>());
}

/// Slices of half a minute, the same in every test: a drift, noise, and occasional stalls.
fn slices(change: f64) -> impl Iterator<Item = SlicePoint> {
    let mut state = 20_251_009_u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5
    };
    (0..).map(move |index: usize| {
        let (seconds, baseline) = (0.05 * index as f64 + 0.3 * (index / 20) as f64, noise() > 0.0);
        let stall = if index % 97 == 13 { 1.25 } else { 1.0 };
        let cost = 6910.0 * (1.0 + 0.02 * (seconds / 7.0).sin() + 0.03 * noise()) * stall;
        let cost = if baseline { cost } else { cost * (1.0 + change) };
        let iops = 284_311.0 * 6910.0 / cost * (1.0 + 0.01 * noise());
        SlicePoint {
            seconds,
            round: index / 20,
            baseline,
            ios: Some(iops * 0.05),
            wall_seconds: Some(0.05),
            iops: Some(iops),
            cycles_per_io: Some(cost),
        }
    })
}
