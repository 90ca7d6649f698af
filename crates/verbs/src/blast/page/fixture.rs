//! Packets for the tests of every format, made up.

use crate::blast::BlastFinding;
use crate::pages::tests::examples::written;
use crate::pages::tests::hostile::filled;
use model::kind::Head;

const NAMES: [&str; 7] = ["one", "methods", "curve", "queues", "lossy", "explained", "empty"];

/// All findings with their names.
pub fn all() -> Vec<(&'static str, BlastFinding)> {
    let hostile = [
        ("hostile", hostile(f64::NAN, "\u{1b}[31mパケ|ット</script><b>\n\u{7}")),
        ("hostile_numbers", hostile(-1e300, "名")),
    ];
    NAMES.into_iter().map(|name| (name, named(name))).chain(hostile).collect()
}

/// One of the findings, each of which says what it is about.
pub fn named(name: &str) -> BlastFinding {
    written(include_str!("fixture.json"), name, |_| {})
}

/// A number and a text in all places that may hold anything.
fn hostile(number: f64, text: &str) -> BlastFinding {
    let limits = crate::pages::limits::hostile(number, text);
    let whole = filled(&named("everything"), number, text);
    BlastFinding { head: Head { limits, ..whole.head }, ..whole }
}
