//! Numbers and names; and all fixtures on a page: what the other formats do not have. `format` has the texts.

use super::*;
use crate::Format;
use report::Ink;
use report::document::Row as TableRow;

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
    let changes = changes(&finding);
    let (point, change) = changes.first().expect("a change");
    for most in [0, 1, 3, 100] {
        let table = moved::functions_table(&finding, point, most);
        let sum: f64 = differences(&table).iter().sum();
        assert!(table.rows.is_empty() || (sum - change.difference).abs() < 3.0, "{most}: {sum}");
        let table = moved::moves_table(&finding, point, change, most);
        let rows = differences(&table);
        let (all, parts) = rows.split_last().map_or((0.0, 0.0), |(all, parts)| (*all, parts.iter().sum()));
        assert!((all - parts).abs() < 3.0, "{most}: {all} {parts}");
        assert_eq!(all > 21_000.0, most > 0, "{most}: {all}");
    }
}

/// The numbers of the column of differences.
fn differences(table: &Table) -> Vec<f64> {
    let column = table.columns.iter().position(|column| column.head == "difference").unwrap();
    let of = |row: &TableRow| match row {
        TableRow::Cells(_, cells) => {
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

#[test]
fn instructions_are_exact_and_grouped() {
    assert_eq!(instructions(131_312.4), "131,312");
    assert_eq!(instructions(17.34), "17.3");
    assert_eq!(signed(-1240.0), "−1,240");
    assert_eq!(signed(3.04), "+3.0");
    assert_eq!(whole(-1_234_567), "−1,234,567");
    assert_eq!(instructions(f64::NAN), MISSING);
    assert_eq!(instructions(1e300), "1.00e300");
}

#[test]
fn arms_are_named_by_what_distinguishes_them() {
    let mut finding = fixture::empty();
    finding.compared = Some("kernel".to_owned());
    let mut named = |arms: &[&str]| {
        finding.arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
        arms.iter().map(|name| finding.arm_name(name)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(named(&["debian:6.1", "debian:6.12"]), "debian:6.1 debian:6.12");
    assert_eq!(named(&["/k/a/bzImage", "/k/b/bzImage"]), "/k/a/bzImage /k/b/bzImage");
    assert_eq!(named(&["debian:6.1", "/home/me/linux"]), "debian:6.1 linux");
    finding.compared = Some("sysctl:sunrpc.max".to_owned());
    assert_eq!(
        (finding.arm_name("max=1024"), arm_head(&finding, "max=1024")),
        ("max=1024".to_owned(), "1024".to_owned())
    );
}
