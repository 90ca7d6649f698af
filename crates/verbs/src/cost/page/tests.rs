//! The cost report of changed fixtures, and one screen of all. `format` has the texts.

use super::*;
use crate::{Finding, Format};
use model::finding::Figure;
use model::stats::Estimate;
use model::warning::{Code, Warning};
use report::{Ink, text};

fn terminal(finding: &RunFinding, ink: Ink, columns: usize) -> String {
    Format::Table.render(finding, ink, columns)
}

fn sheet(finding: &RunFinding) -> String {
    terminal(finding, Ink::Plain, 100)
}

fn glance(finding: &RunFinding) -> String {
    text::glance(&finding.document(), Ink::Plain, 100, "The rest: --full")
}

#[test]
fn a_sheet_is_one_screen() {
    for (name, finding) in fixture::all() {
        let (text, further) = (glance(&finding), finding.phases.len().saturating_sub(1));
        // The hostile one has everything that can be asked for.
        assert!(name == "hostile" || text.lines().count() <= 24 + 6 * further, "{name}:\n{text}");
    }
}

#[test]
fn one_screen_has_three_caveats_of_one_line_each_and_what_to_do() {
    let mut finding = fixture::named("psync_4k");
    let (long, short) = (
        "other processes (rustc, cc1) used 71.2 % of the machine beside the load; they are left out by name. ",
        "b: run longer",
    );
    let caveat = |code, message: &str| Warning::new(code, message);
    finding.head.warnings = vec![
        caveat(Code::BusyBackground, &long.repeat(3)),
        caveat(Code::NoInterval, short),
        caveat(Code::MetersDisagree, &"x".repeat(200)),
        caveat(Code::FewSamples, "c"),
        caveat(Code::CanaryMoved, "d"),
    ];
    let text = glance(&finding);
    let caveats: Vec<&str> = text.lines().filter(|line| line.starts_with('!')).collect();
    assert_eq!(caveats.len(), 4, "{text}");
    assert!(caveats[0].starts_with("!  xxx") && caveats[0].ends_with("…; see the meters (--full)"), "{text}");
    assert_eq!(caveats[1], format!("!  {short}"));
    assert_eq!(caveats[2], "!  other processes used 71.2 % of the machine beside the load; stop other programs");
    assert_eq!(caveats[3], "!  2 more: --full");
    assert_eq!(sheet(&finding).lines().filter(|line| line.starts_with('!')).count(), 5, "all are in the whole sheet");
    let named = "ext4-dax 4k write, debian:6.12: the change is within the spread of the replicates, which differ only in layout and timing";
    finding.head.warnings.push(caveat(Code::WithinLayouts, named));
    finding.head.warnings.retain(|it| it.code == Code::WithinLayouts);
    let text = glance(&finding);
    assert!(text.contains("the change is within the spread") && text.contains("…; use more --replicates"), "{text}");
}

#[test]
fn a_cost_within_noise_of_0_is_about_0() {
    let mut finding = fixture::named("psync_4k");
    let phase = &mut finding.phases[0];
    let cost = Estimate { value: -12.0, low: Some(-310.0), high: Some(286.0) };
    phase.figures.set(Metric::CyclesPerIo, Some(cost));
    let text = sheet(&finding);
    assert!(text.contains("≈ 0 cycles/IO   [-310, 286]"), "{text}");
}

#[test]
fn switches_that_are_not_known_are_a_dash_with_their_interval_and_the_reason() {
    let mut finding = fixture::named("psync_4k");
    let estimate = Some(Estimate { value: 1.3, low: Some(-0.4), high: Some(3.0) });
    let figure = Figure { estimate, why_not: Some("not different from 0; the load's own".to_owned()) };
    finding.phases[0].figures = [(Metric::ContextSwitchesPerIo, figure)].into_iter().collect();
    for text in [Format::Table, Format::Mail, Format::Html].map(|format| format.render(&finding, Ink::Plain, 100)) {
        assert!(!text.contains("≈ 0"), "{text}");
        assert!(text.contains("Context switches: not different from 0"), "{text}");
    }
    let text = sheet(&finding);
    assert!(text.contains("— context switches/IO   [-0.40, 3.00]"), "{text}");
}

#[test]
fn a_mail_shows_no_common_rate_of_two_regimes() {
    let mut finding = fixture::named("stepped");
    finding.phases[0].figures.set(Metric::Iops, Some(Estimate::bare(111e3)));
    let text = Format::Mail.render(&finding, Ink::Plain, 72);
    assert!(text.contains("Two regimes") && !text.contains("111 k"), "{text}");
}

#[test]
fn a_job_of_two_regimes_has_no_common_rate_and_mean() {
    let mut finding = fixture::named("stepped");
    finding.merged_jobs[0].all.iops = 111e3;
    finding.merged_jobs[0].read.latency_ns.mean = Some(5550.0);
    let text = sheet(&finding);
    assert!(!text.contains("111 k") && !text.contains("5.55 µs"), "{text}");
    assert!(text.contains("percentiles are of all I/Os of all regimes"), "{text}");
}

#[test]
fn one_kind_of_cycle_is_named() {
    let mut finding = fixture::named("psync_4k");
    assert!(sheet(&finding).contains("guest reference cycles: TSC 2.596 GHz × CPU time"));
    finding.phases.iter_mut().for_each(|phase| phase.headline_meter = Some("pmu".to_owned()));
    assert!(sheet(&finding).contains("counted by the PMU"));
}

/// A cost by name has an interval where no meter has windows enough for one.
#[test]
fn the_interval_of_a_cost_by_name_is_not_denied() {
    let mut finding = fixture::named("no_interval");
    let phase = &mut finding.phases[0];
    phase.figures.set(Metric::Cycles, None);
    (phase.others.known_by_name, phase.spread.interval_from) = (true, "the spread of accounts".to_owned());
    // Lines are broken anywhere.
    let words = |finding: &RunFinding| sheet(finding).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&finding).contains("no interval: the spread of accounts"), "{}", words(&finding));
    let cost = Estimate { value: 6910.0, low: Some(1.0), high: Some(9e9) };
    finding.phases[0].figures.set(Metric::CyclesPerIo, Some(cost));
    assert!(words(&finding).contains("interval from the spread of accounts"), "{}", words(&finding));
}

/// `cost --bytes`.
#[test]
fn ios_that_are_unknown_beside_bytes_are_a_dash() {
    let row = |finding: &RunFinding| {
        let text = sheet(finding);
        let row = text.lines().skip_while(|line| !line.starts_with("Jobs")).nth(1).unwrap_or_default().to_owned();
        row.matches('—').count()
    };
    let mut finding = fixture::named("psync_4k");
    let known = row(&finding);
    (finding.merged_jobs[0].all.ios, finding.merged_jobs[0].all.iops) = (0, 0.0);
    assert_eq!(row(&finding), known + 2);
}

#[test]
fn two_rates_of_a_command_that_waited_are_named() {
    let mut finding = fixture::named("udp_like");
    finding.counted_by = Some("iperf3".to_owned());
    let job = &mut finding.merged_jobs[0];
    (job.engine, job.wall_seconds) = ("iperf3".to_owned(), finding.phases[0].wall_seconds / 5.0);
    let text = sheet(&finding).replace('\u{a0}', " ");
    assert!(text.contains("284 k IOPS over all 10.0 s"), "{text}");
    assert!(text.contains("rates over the time that iperf3 reports for the job (2.00 s)"), "{text}");
    let mail = Format::Mail.render(&finding, Ink::Plain, 72).replace('\u{a0}', " ");
    assert!(mail.contains("284 k IOPS over all 10.0 s"), "{mail}");
    finding.merged_jobs[0].wall_seconds = finding.phases[0].wall_seconds;
    let text = sheet(&finding);
    assert!(!text.contains("over all") && !text.contains("rates over"), "{text}");
}

#[test]
fn the_most_frequent_events_are_rows_and_noise_is_one_line() {
    let text = Format::Table.render(&fixture::named("beside_a_compiler"), Ink::Plain, 100);
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{text}"));
    let row: Vec<&str> = line("syscalls:pread64").split_whitespace().collect();
    assert_eq!(row, ["syscalls:pread64", "1.00", "[1.00,", "1.00]", "system", "call"]);
    assert!(line("net:net_dev_xmit").contains("≈ 0"), "the user named it");
    assert!(text.find("syscalls:pread64") < text.find("sched:sched_switch"), "the most frequent is first");
    assert!(!text.contains("timer:timer_start"), "noise");
    assert!(text.contains("not shown: 1 below 0.001 or not different from 0"), "{text}");
    assert!(text.contains("counting took up to 1.2 % of one CPU"), "{text}");
    let none = Format::Table.render(&fixture::named("psync_4k"), Ink::Plain, 100);
    assert!(!none.contains("Events per I/O"), "{none}");
}
