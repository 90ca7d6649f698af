//! Typical runs and commands, for the tests of every format.

use crate::pages::tests::examples::written;
use crate::pages::tests::hostile::filled;
use model::finding::{JobFinding, RunFinding};
use model::kind::Head;

const NAMES: [&str; 13] = [
    "empty",
    "psync_4k",
    "udp_like",
    "beside_a_compiler",
    "profiled",
    "probed",
    "cost_without_ios",
    "failed",
    "two_phases",
    "stepped",
    "no_interval",
    "stored",
    "meters_unavailable",
];

/// All findings with their names.
pub fn all() -> Vec<(&'static str, RunFinding)> {
    let others = [("many_jobs", many_jobs()), ("hostile", hostile(f64::NAN, "\u{1b}[31m読み\n書き\u{7}"))];
    NAMES.into_iter().map(|name| (name, named(name))).chain(others).collect()
}

/// One of the findings, each of which says what it is about.
pub fn named(name: &str) -> RunFinding {
    let mut finding: RunFinding = written(include_str!("fixture.json"), name, |_| {});
    if name == "cost_without_ios" {
        // JSON has no such number.
        finding.phases[0].accounts.iter_mut().for_each(|account| account.cycles_per_io = f64::NAN);
    }
    finding
}

/// More jobs in one phase than the report shows.
pub fn many_jobs() -> RunFinding {
    let mut finding = named("psync_4k");
    let job = finding.merged_jobs.remove(0);
    let names = (0..32).map(|index| format!("writer-{index:02}"));
    finding.merged_jobs = names.map(|name| JobFinding { name, cycles_per_io: None, ..job.clone() }).collect();
    finding.phases[0].jobs = finding.merged_jobs.iter().map(|job| job.name.clone()).collect();
    finding.head.title = "32 writers".to_owned();
    finding
}

/// A finding with `number` for all numbers and `text` for all names.
pub fn hostile(number: f64, text: &str) -> RunFinding {
    let limits = crate::pages::limits::hostile(number, text);
    let whole = named("everything");
    let filled = filled(&whole, number, text);
    RunFinding { head: Head { schema: whole.head.schema, limits, ..filled.head }, ..filled }
}
