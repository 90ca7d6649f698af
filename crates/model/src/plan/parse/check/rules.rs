//! What options need and exclude: a row for each.

use super::Complaint;
use crate::plan::draft::Draft;
use crate::plan::job::{Access, EngineKind, InjectAt, JobPlan, Medium, VerifyMethod};
use crate::unit::Nanos;

/// What an option needs or excludes.
pub(super) struct Rule {
    /// The option to change.
    option: &'static str,
    /// Whether a job breaks the rule.
    broken: fn(&JobPlan, &Draft) -> bool,
    /// Why it is one, and what to do. `{engine}` stands for the job's engine.
    why: &'static str,
}

const fn refused(option: &'static str, broken: fn(&JobPlan, &Draft) -> bool) -> Rule {
    Rule { option, broken, why: "" }
}

impl Rule {
    const fn because(self, why: &'static str) -> Self {
        Self { why, ..self }
    }
}

/// What an engine needs, rates, and injected work.
pub(super) static FIRST: &[Rule] = &[
    refused("rr_peer", |job, _| job.engine == EngineKind::Rr && job.own.rr_peer.is_none())
        .because("ioengine=rr needs an echo server; add one, for example rr_peer=tcp://127.0.0.1:5007"),
    refused("uri", |job, _| job.engine.medium() == Medium::Remote && job.path.uri.is_none())
        .because("ioengine=nbd needs a server; add one, for example uri=nbd://127.0.0.1:10809"),
    // As in fio, a direction has one rate.
    refused("rate", |job, _| each_rate(job).any(|(ios, bytes)| ios > 0 && bytes > 0))
        .because("rate and rate_iops both limit the same direction; leave one of them out"),
    // Without a given cost, these engines would silently cost nothing.
    refused("spin_cycles", |job, draft| job.engine == EngineKind::Spin && !draft.has("spin_cycles"))
        .because("ioengine=spin needs a cost for each I/O, for example spin_cycles=1000"),
    refused("work_steps", |job, draft| job.engine == EngineKind::Work && !draft.has("work_steps"))
        .because("ioengine=work needs a cost for each I/O, for example work_steps=1000"),
    // Injected work that no layer executes would silently cost nothing.
    refused("inject_at", |_, draft| draft.has("inject_at") && !draft.has("inject_ns"))
        .because("it has no effect without inject_ns; add it, for example inject_ns=300"),
    refused("inject_every", |job, draft| job.inject.every > Nanos(0) && !draft.has("inject_ns"))
        .because("it has no effect without inject_ns; add it, for example inject_ns=500000"),
    refused("inject_every", |job, _| job.inject.every > Nanos(0) && job.inject.at != InjectAt::Submit)
        .because("it applies where the job issues I/O; leave inject_at out"),
    refused("inject_at", |job, _| job.inject.at == InjectAt::Wire && job.engine.medium() != Medium::Remote)
        .because("ioengine={engine} has no wire; use inject_at=submit, or ioengine=nbd"),
];

/// Files.
pub(super) static FILES: &[Rule] = &[
    refused("filename", |job, _| has_files(job) && job.target.files.iter().any(|name| name == "-")).because(
        "'-' means standard input or output to fio, which are no storage; use a file, './-' if that is its name",
    ),
    refused("create_on_open", |job, _| job.engine == EngineKind::Mmap && job.files.making.on_open).because(MAPPED),
];

/// Traces, and what is verified.
pub(super) static LAST: &[Rule] = &[
    refused("read_iolog", |job, _| job.replay.traces.iter().any(|trace| trace == "-"))
        .because("'-' means standard input to fio; use a file"),
    refused("read_iolog", |job, _| job.replay.is_in_force() && !has_files(job))
        .because("ioengine={engine} has no files whose requests it could replay; use another engine"),
    refused("read_iolog", |job, _| job.replay.is_in_force() && job.verify.method.is_some())
        .because("what a trace writes is not read back; leave verify out"),
    refused("verify", |job, _| job.verify.method == Some(VerifyMethod::Pattern) && job.verify.pattern.is_none())
        .because("verify=pattern needs one; add it, for example verify_pattern=0xdeadface"),
    refused("verify", |job, _| checks(job) && !holds_data(job))
        .because("ioengine={engine} keeps nothing that could be read back; use an engine with files"),
    refused("do_verify", |job, _| checks(job) && job.verify.after && job.access == Access::ReadWrite && has_rate(job))
        .because(
            "a mix of reads and writes with a rate cannot be read back, because time decides what it writes; use \
             do_verify=0, or leave the rate out",
        ),
];

const MAPPED: &str = "ioengine=mmap maps all files before the first I/O; leave it out, or use psync";
/// The first rule of these that a job breaks.
pub(super) fn broken(rules: &[Rule], draft: &Draft) -> Option<Complaint> {
    let rule = rules.iter().find(|rule| (rule.broken)(&draft.job, draft))?;
    Some((rule.option, rule.why.replace("{engine}", draft.job.engine.name())))
}

/// I/Os and bytes per second of each direction.
fn each_rate(job: &JobPlan) -> impl Iterator<Item = (u64, u64)> {
    job.pace.ios.each().into_iter().zip(job.pace.bytes.each().map(|bytes| bytes.0))
}

fn has_rate(job: &JobPlan) -> bool {
    each_rate(job).any(|(ios, bytes)| ios > 0 || bytes > 0)
}

fn has_files(job: &JobPlan) -> bool {
    job.engine.medium() == Medium::Files
}

fn checks(job: &JobPlan) -> bool {
    job.verify.method.is_some()
}

fn holds_data(job: &JobPlan) -> bool {
    matches!(job.engine.medium(), Medium::Files | Medium::Remote)
}
