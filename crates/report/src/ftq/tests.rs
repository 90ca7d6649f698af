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
fn a_thread_that_stalls_is_named_beside_the_sum_and_no_share_of_time_exceeds_all_of_it() {
    let text = terminal(&fixture::named("one_thread"), 300);
    assert!(text.starts_with("No period of all threads together was found"), "{text}");
    assert!(text.contains("Every 2.00 s thread 4711 (io-10) stops for 300 ms"), "{text}");
    assert!(text.contains("34 more threads have shorter standstills."), "{text}");
    let waits = text.lines().find(|line| line.trim_start().starts_with("worker.run_delay")).unwrap();
    assert_eq!(
        waits.split("  ").filter(|word| !word.is_empty()).take(4).map(str::trim).collect::<Vec<_>>()[1..],
        ["68 %", "0 ns", "331 ms"]
    );
}

#[test]
fn a_step_of_the_rate_comes_first_and_no_mean_over_it_is_shown() {
    let text = terminal(&fixture::named("stepped"), 300);
    let first = text.lines().next().unwrap();
    assert_eq!(first, "The rate stepped from 411 MiB/s to 3.02 GiB/s at 3.217 s");
    assert!(text.contains("411 MiB/s at first") && text.contains("3.02 GiB/s from 3.217 s"), "{text}");
    let mean = words::rate(&fixture::named("stepped"), fixture::named("stepped").amount_per_second);
    assert!(!text.contains(&mean), "{mean} in {text}");
}

#[test]
fn a_page_has_the_pictures_and_works_without_a_network() {
    let text = page(&fixture::named("dirty_limit"));
    assert_eq!(text.matches("<div class=\"timeline\">").count(), 1);
    assert_eq!(text.matches("<svg class=\"chart\"").count(), 3, "spectrum, histogram, heat map");
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
