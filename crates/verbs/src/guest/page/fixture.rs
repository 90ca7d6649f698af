//! Typical measurements of guests, for the tests of every format: recorded, and studied here.

use crate::guest::plan::Published;
use crate::guest::record::{GuestRecord, Header, KernelIdentity};
use crate::guest::{GuestFinding, GuestPlan, study};
use model::kind::Recorded;
use model::record::Outcome;
use model::stats::Estimate;
use model::warning::{Code, Warning};
use std::collections::BTreeMap;

const SIZES: &str = include_str!("records/sizes.jsonl");

/// All findings with their names.
pub fn all() -> Vec<(&'static str, GuestFinding)> {
    vec![
        ("one", one()),
        ("two_kernels", two_kernels()),
        ("ten_jobs", ten_jobs()),
        ("sweep", sweep()),
        ("sizes", sizes()),
        ("interrupted", interrupted()),
        ("single_replicate", single_replicate()),
        ("empty", empty()),
        ("hostile", hostile(f64::NAN, "\u{1b}[31m読み|<b>\n書き\u{7}")),
        ("hostile_numbers", hostile(1e300, "名")),
    ]
}

fn recorded(lines: &str) -> GuestFinding {
    study(&record(lines))
}

fn record(lines: &str) -> GuestRecord {
    let mut lines = lines.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let envelope = lines.next().and_then(|line| serde_json::from_value(line).ok()).expect("an envelope");
    let lines: Result<_, _> = lines.map(serde_json::from_value).collect();
    GuestRecord::assemble(envelope, lines.expect("lines of a record")).expect("a record")
}

/// One job on one kernel, by function.
pub fn one() -> GuestFinding {
    recorded(include_str!("records/one.jsonl"))
}

/// The cost of a kernel's two years for one NFS write over RDMA.
pub fn two_kernels() -> GuestFinding {
    recorded(include_str!("records/two_kernels.jsonl"))
}

/// Ten jobs on nine stacks, two kernels.
pub fn ten_jobs() -> GuestFinding {
    recorded(include_str!("records/ten_jobs.jsonl"))
}

/// Five sizes by five thresholds of the client.
pub fn sweep() -> GuestFinding {
    recorded(include_str!("records/sweep.jsonl"))
}

/// Sizes, and nothing else: they are the arms.
pub fn sizes() -> GuestFinding {
    recorded(SIZES)
}

/// The last kernel was not measured, and the others once or twice.
pub fn interrupted() -> GuestFinding {
    recorded(include_str!("records/interrupted.jsonl"))
}

/// Two kernels measured once: no interval, no verdict.
pub fn single_replicate() -> GuestFinding {
    recorded(include_str!("records/single_replicate.jsonl"))
}

/// Nothing was planned.
pub fn empty() -> GuestFinding {
    let header = record(SIZES).header;
    let header = Header { plan: GuestPlan::default(), kernels: BTreeMap::new(), ..header };
    study(&GuestRecord { header, measured: Vec::new(), end: None })
}

/// Every number is this, every name this text.
pub fn hostile(number: f64, text: &str) -> GuestFinding {
    let mut finding = two_kernels();
    let all = Estimate { value: number, low: Some(number), high: Some(-number) };
    finding.head.title = text.to_owned();
    finding.head.limits = crate::pages::limits::hostile(number, text);
    finding.compared = Some(text.to_owned());
    finding.arms = vec![text.to_owned(), format!("{text}={text}")];
    finding.margin = number;
    finding.emulator = text.to_owned();
    finding.seconds = Some(number);
    finding.head.outcome = Outcome::Failed(text.to_owned());
    finding.head.warnings = vec![Warning::new(Code::JobFailed, text)];
    finding.published = vec![Published { what: text.to_owned(), source: text.to_owned() }];
    finding.kernels = [(text.to_owned(), KernelIdentity { release: text.to_owned(), hash: text.to_owned() })].into();
    for point in &mut finding.points {
        point.place.job = text.to_owned();
        point.arm = text.to_owned();
        point.place.cell = [(text.to_owned(), text.to_owned())].into();
        point.path_proof = [(text.to_owned(), i64::MIN)].into();
        point.instructions_per_io = Some(all);
        for function in &mut point.functions {
            function.name = text.to_owned();
            function.instructions_per_io = number;
            function.change = Some(number);
        }
        if let Some(change) = &mut point.change {
            change.change = all;
            change.difference = number;
            for moved in &mut change.moved {
                moved.name = text.to_owned();
                moved.candidate = number;
            }
        }
    }
    finding
}
