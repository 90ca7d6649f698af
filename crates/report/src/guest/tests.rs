//! All fixtures on a terminal, in a mail and on a page: important lines, widths, and whole texts as snapshots.

use super::*;
use crate::document::{Row, Table};
use crate::text::page::fits_closely;
use crate::{Format, Ink};

fn terminal(finding: &GuestFinding, columns: usize) -> String {
    Format::Table.render(finding, Ink::Plain, columns)
}

#[test]
fn every_measurement_of_guests_fits_its_page() {
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
fn guests_as_they_are_read() {
    insta::assert_snapshot!("one_at_80", terminal(&fixture::one(), 80));
    insta::assert_snapshot!("two_kernels_at_80", terminal(&fixture::two_kernels(), 80));
    insta::assert_snapshot!("ten_jobs_at_80", terminal(&fixture::ten_jobs(), 80));
    insta::assert_snapshot!("ten_jobs_at_120", terminal(&fixture::ten_jobs(), 120));
    insta::assert_snapshot!("sweep_at_80", terminal(&fixture::sweep(), 80));
    insta::assert_snapshot!("sizes_at_80", terminal(&fixture::sizes(), 80));
    insta::assert_snapshot!("interrupted_at_80", terminal(&fixture::interrupted(), 80));
    insta::assert_snapshot!("single_replicate_at_80", terminal(&fixture::single_replicate(), 80));
    insta::assert_snapshot!("empty_at_80", terminal(&fixture::empty(), 80));
    insta::assert_snapshot!("two_kernels_as_a_mail", Format::Mail.render(&fixture::two_kernels(), Ink::Plain, 72));
}

/// Of the page only what the other formats do not have: the folds.
#[test]
fn a_page_has_a_fold_for_each_change() {
    let page = |finding: &GuestFinding| Format::Html.render(finding, Ink::Plain, 80);
    let jobs = page(&fixture::ten_jobs());
    assert_eq!(jobs.matches("<summary>tmpfs 4k read, debian:6.12</summary>").count(), 2, "moves and functions");
    assert!(jobs.contains("Largest changes") && jobs.contains("4,700 ± "), "{jobs}");
}

#[test]
fn the_rows_of_what_moved_sum_to_the_difference() {
    let finding = fixture::two_kernels();
    let changes = tables::changes(&finding);
    let (point, change) = changes.first().expect("a change");
    for most in [0, 1, 3, 100] {
        let table = tables::functions(&finding, point, most);
        let sum: f64 = differences(&table).iter().sum();
        assert!(table.rows.is_empty() || (sum - change.difference).abs() < 3.0, "{most}: {sum}");
        let table = tables::moved(&finding, point, change, most);
        let rows = differences(&table);
        let (all, parts) = rows.split_last().map_or((0.0, 0.0), |(all, parts)| (*all, parts.iter().sum()));
        assert!((all - parts).abs() < 3.0, "{most}: {all} {parts}");
        assert_eq!(all > 21_000.0, most > 0, "{most}: {all}");
    }
}

/// The numbers of the column of differences.
fn differences(table: &Table) -> Vec<f64> {
    let column = table.columns.iter().position(|column| column.head == "difference").unwrap();
    let of = |row: &Row| match row {
        Row::Cells(_, cells) => {
            let text = cells.get(column).map_or("", |cell| cell.text.as_str());
            text.replace(',', "").replace('−', "-").parse().ok()
        }
        _ => None,
    };
    table.rows.iter().filter_map(of).collect()
}

#[test]
fn what_moved_is_drawn_to_both_sides_on_a_page() {
    let page = Format::Html.render(&fixture::two_kernels(), Ink::Plain, 80);
    let bars = page.matches("<td class=\"strip diverging").count();
    assert!(
        bars > 2 && page.contains("margin-left:50.00%;width:50.00%"),
        "{bars} bars, the longest is the largest move"
    );
}
