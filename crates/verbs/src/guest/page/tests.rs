//! All fixtures on a page: what the other formats do not have. `format` has the texts.

use super::*;
use crate::Format;
use report::Ink;
use report::document::{Row, Table};

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
