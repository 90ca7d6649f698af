//! What the texts of `format` do not show.

use super::*;
use crate::Format;
use report::Ink;

fn terminal(finding: &FtqFinding, columns: usize) -> String {
    Format::Table.render(finding, Ink::Plain, columns)
}

fn page(finding: &FtqFinding) -> String {
    Format::Html.render(finding, Ink::Plain, 80)
}

#[test]
fn no_mean_over_a_step_of_the_rate_is_shown() {
    let text = terminal(&fixture::named("stepped"), 300);
    assert!(text.contains("411 MiB/s at first") && text.contains("3.02 GiB/s from 3.217 s"), "{text}");
    let mean = words::rate(&fixture::named("stepped"), fixture::named("stepped").amount_per_second);
    assert!(!text.contains(&mean), "{mean} in {text}");
}

#[test]
fn a_page_has_the_timeline_and_works_without_a_network() {
    let text = page(&fixture::named("dirty_limit"));
    assert_eq!(text.matches("<div class=\"timeline\">").count(), 1);
    assert_eq!(text.matches("<script>").count(), 2, "uPlot, and what draws");
    assert!(text.contains("script-src 'unsafe-inline'") && text.contains("default-src 'none'"));
    // 61,363 readings of five series and their times, six bytes each.
    assert!(text.len() < 2_400_000, "{} bytes", text.len());
}

#[test]
fn a_page_without_readings_has_no_script() {
    let text = page(&fixture::named("empty"));
    assert!(!text.contains("<script") && !text.contains("script-src") && !text.contains("u-legend"), "{text}");
}
