//! What the texts of `format` do not show.

use super::*;
use crate::Format;
use report::Ink;

#[test]
fn the_answer_says_which_method_wins_and_whether_that_is_known() {
    let told: Vec<String> = headline(&fixture::named("methods")).iter().map(Sentence::whole).collect();
    assert!(told[0].contains("sent 245+0 kpps"), "{told:?}");
    assert!(told[1].starts_with("gso, 1 submitter delivers most: 4.40"), "{told:?}");
    assert!(!told[1].contains("chance"), "{told:?}");
    let mut doubtful = fixture::named("methods");
    doubtful.points[2].delivered_ratio = Some(Estimate { value: 1.01, low: Some(0.99), high: Some(1.03) });
    assert!(headline(&doubtful)[1].whole().contains("may be chance"));
}

#[test]
fn a_page_has_the_curve() {
    let page = Format::Html.render(&fixture::named("curve"), Ink::Plain, 80);
    assert!(page.contains("Delivered packets per second, by number of submitters"));
}
