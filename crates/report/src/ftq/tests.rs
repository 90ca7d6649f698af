//! All fixtures on a terminal, in a mail and on a page: important lines, widths, and whole texts as snapshots.

use super::*;
use crate::text::page::fits_closely;
use crate::{Format, Ink};

fn terminal(finding: &FtqFinding, columns: usize) -> String {
    Format::Table.render(finding, Ink::Plain, columns)
}

fn page(finding: &FtqFinding) -> String {
    Format::Html.render(finding, Ink::Plain, 80)
}

#[test]
fn every_recording_fits_its_page() {
    for (name, finding) in fixture::all() {
        for columns in [60, 80, 100, 200] {
            for ink in [Ink::Plain, Ink::Colour] {
                let text = Format::Table.render(&finding, ink, columns);
                assert_eq!(fits_closely(&text, columns), Ok(()), "{name}");
            }
        }
        assert_eq!(fits_closely(&Format::Mail.render(&finding, Ink::Plain, 72), 72), Ok(()), "{name}");
    }
}

#[test]
fn recordings_as_they_are_read() {
    insta::assert_snapshot!("dirty_limit_at_80", terminal(&fixture::named("dirty_limit"), 80));
    insta::assert_snapshot!("dirty_limit_at_120", terminal(&fixture::named("dirty_limit"), 120));
    insta::assert_snapshot!("quiet_at_80", terminal(&fixture::named("quiet"), 80));
    insta::assert_snapshot!("compared_at_80", terminal(&fixture::named("compared"), 80));
    insta::assert_snapshot!("interrupted_at_80", terminal(&fixture::named("interrupted"), 80));
    insta::assert_snapshot!("cpu_at_80", terminal(&fixture::named("cpu"), 80));
    insta::assert_snapshot!("many_periods_at_80", terminal(&fixture::named("many_periods"), 80));
    insta::assert_snapshot!("empty_at_80", terminal(&fixture::named("empty"), 80));
    insta::assert_snapshot!(
        "dirty_limit_as_a_mail",
        Format::Mail.render(&fixture::named("dirty_limit"), Ink::Plain, 72)
    );
    insta::assert_snapshot!(
        "dirty_limit_as_markdown",
        Format::Markdown.render(&fixture::named("dirty_limit"), Ink::Plain, 72)
    );
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

#[test]
fn a_probe_that_was_lost_says_when() {
    let text = terminal(&fixture::named("interrupted"), 100);
    assert!(text.contains("could not be read after 1.234 s") && text.contains("— never read"), "{text}");
}
