//! All fixtures in every format: widths, the lines that matter, and whole texts as snapshots.

use super::*;
use crate::text::page::fits_closely;
use crate::{Format, Ink};

fn terminal(finding: &BlastFinding, columns: usize) -> String {
    Format::Table.render(finding, Ink::Plain, columns)
}

#[test]
fn every_blast_fits_its_page() {
    for (name, finding) in fixture::all() {
        for columns in [60, 72, 80, 100, 120, 200] {
            for ink in [Ink::Plain, Ink::Colour] {
                let text = Format::Table.render(&finding, ink, columns);
                assert_eq!(fits_closely(&text, columns), Ok(()), "{name}");
            }
        }
    }
}

#[test]
fn blasts_as_they_are_read() {
    insta::assert_snapshot!("one_at_80", terminal(&fixture::named("one"), 80));
    insta::assert_snapshot!("methods_at_120", terminal(&fixture::named("methods"), 120));
    insta::assert_snapshot!("curve_at_100", terminal(&fixture::named("curve"), 100));
    insta::assert_snapshot!("lossy_at_80", terminal(&fixture::named("lossy"), 80));
    insta::assert_snapshot!("explained_at_100", terminal(&fixture::named("explained"), 100));
    insta::assert_snapshot!("empty_at_80", terminal(&fixture::named("empty"), 80));
    insta::assert_snapshot!("lossy_as_a_mail", Format::Mail.render(&fixture::named("lossy"), Ink::Plain, 72));
}

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
