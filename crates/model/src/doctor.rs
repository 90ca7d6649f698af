//! What a machine can measure and how well, as data: the diagnosis of `iotoll doctor`.
//!
//! The list of what to look at is the one that Tom Talpey gave for cycles per byte (seed 000: C-states,
//! turbo, power management and hyperthreads off, a constant clock), with what has been found since to
//! move such numbers. Every finding says why it matters and, when it can be mended, by which command.

mod topic;

pub use topic::Topic;

use crate::reading::Reading;
use crate::record::{Canaries, Host, Meter, MeterStatus};
use crate::unit::Nanos;
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

/// The schema name in every serialized diagnosis.
pub const SCHEMA: &str = "iotoll.doctor/1";

/// All that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Diagnosis {
    /// [`SCHEMA`].
    pub schema: String,
    /// What the machine can measure, in a sentence or three.
    pub summary: String,
    /// The machine.
    pub host: Host,
    /// What counts cycles here and how well, and what cannot.
    pub meters: Vec<MeterStatus>,
    /// What moves the numbers, in the order in which it was looked at.
    pub checks: Vec<Check>,
    /// What the machine did by itself meanwhile.
    pub background: Background,
    /// Speeds of a stated set of operations.
    pub canaries: Canaries,
    /// Caveats for scripts.
    pub warnings: Vec<Warning>,
}

impl Diagnosis {
    /// A diagnosis with its summary.
    pub fn new(
        host: Host,
        meters: Vec<MeterStatus>,
        checks: Vec<Check>,
        background: Background,
        canaries: Canaries,
        warnings: Vec<Warning>,
    ) -> Self {
        let summary = summary(&host, &meters, &checks);
        Self { schema: SCHEMA.to_owned(), summary, host, meters, checks, background, canaries, warnings }
    }

    /// The checks in one state, in their order.
    pub fn checks_in(&self, state: State) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.state == state)
    }
}

/// How busy the machine was while it was only looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// For how long it was watched.
    pub watched_nanos: Nanos,
    /// Busy part of the time of all CPUs.
    pub busy_fraction: Reading<f64>,
    /// Part of the time of all CPUs that the hypervisor took away.
    pub steal_fraction: Reading<f64>,
    /// The same since the machine booted.
    pub steal_since_boot_fraction: Reading<f64>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What.
    pub topic: Topic,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What it does to the numbers.
    pub why_it_matters: String,
    /// The command or the step that mends it, or who could.
    pub mend: Option<String>,
}

impl Check {
    /// A finding without a mend.
    pub fn new(topic: Topic, state: State, found: impl Into<String>) -> Self {
        Self { topic, state, found: found.into(), why_it_matters: topic.why_it_matters().to_owned(), mend: None }
    }

    /// The same finding with what mends it.
    pub fn mend(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// It changes what the numbers mean, or may; it is not wrong.
    Note,
    /// It makes the numbers worse and can be mended.
    Poor,
    /// It cannot be seen from here.
    Unknown,
}

fn summary(host: &Host, meters: &[MeterStatus], checks: &[Check]) -> String {
    let cycles = match &host.hypervisor {
        Some(hypervisor) => format!(
            " These are cycles of this guest's reference clock: what {hypervisor} does underneath is \
             not in them."
        ),
        None => String::new(),
    };
    let findings = match checks.iter().filter(|check| check.state == State::Poor).count() {
        0 => "Nothing was found that makes its numbers worse.".to_owned(),
        1 => "One thing makes its numbers worse; how to mend it is below.".to_owned(),
        count => format!("{count} things make its numbers worse; how to mend each is below."),
    };
    match capability(meters) {
        Some(capability) => format!("This machine can measure {capability}.{cycles} {findings}"),
        None => "This machine cannot measure cycles: no meter can run. The reasons and mends are below.".to_owned(),
    }
}

fn capability(meters: &[MeterStatus]) -> Option<String> {
    let runs = |meter: Meter| meters.iter().any(|row| row.meter == meter && row.status.taken().is_some());
    let known = |meter: Meter| Some((meter, meter.descriptor().expected_error?));
    if let Some((meter, error)) = Meter::by_trust().filter(|meter| runs(*meter)).find_map(known) {
        let (name, percent) = (meter.name(), error.waking_percent);
        return Some(format!("cycles per I/O to about ±{percent} % in 10 s when it is quiet ({name} meter)"));
    }
    if runs(Meter::Pmu) {
        return Some("cycles per I/O with its hardware counter".to_owned());
    }
    if runs(Meter::Soaker) {
        return Some("cycles per I/O only with the soaker meter, which disturbs loads that sleep".to_owned());
    }
    runs(Meter::Thread).then(|| {
        "only the CPU time of the workload's own threads, not what interrupts, kernel threads and \
         servers do for them"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(meter: Meter) -> MeterStatus {
        MeterStatus { meter, status: Reading::Taken("runs".to_owned()) }
    }

    fn missing(meter: Meter) -> MeterStatus {
        MeterStatus { meter, status: Reading::unavailable("not here") }
    }

    #[test]
    fn the_meter_that_speaks_is_in_the_summary() {
        let host = Host::default();
        let meters = [missing(Meter::Pmu), status(Meter::ProcStat), status(Meter::Idle), status(Meter::Thread)];
        let text = summary(&host, &meters, &[]);
        assert!(text.starts_with("This machine can measure cycles per I/O to about ±2.2 % in 10 s"), "{text}");
        assert!(text.contains("idle meter"), "{text}");
        let clocks = [status(Meter::Pmu), status(Meter::Idle), status(Meter::TimerList)];
        assert!(summary(&host, &clocks, &[]).contains("±2.5 % in 10 s when it is quiet (timer_list meter)"));
        assert!(summary(&host, &[status(Meter::ProcStat)], &[]).contains("±4.6 %"));
        assert!(summary(&host, &[status(Meter::Pmu)], &[]).contains("hardware counter"));
    }

    #[test]
    fn thread_clocks_alone_do_not_measure_the_machine() {
        let text = summary(&Host::default(), &[status(Meter::Thread), missing(Meter::Idle)], &[]);
        assert!(text.contains("only the CPU time of the workload's own threads"), "{text}");
        let text = summary(&Host::default(), &[missing(Meter::Thread)], &[]);
        assert!(text.contains("cannot measure"), "{text}");
    }

    #[test]
    fn a_guest_is_told_what_its_cycles_leave_out_and_poor_things_are_counted() {
        let host = Host { hypervisor: Some("KVM".to_owned()), ..Host::default() };
        let poor = Check::new(Topic::Turbo, State::Poor, "on");
        let text = summary(&host, &[status(Meter::Idle)], &[poor.clone(), poor]);
        assert!(
            text.contains("what KVM does underneath") && text.contains("2 things make its numbers worse"),
            "{text}"
        );
    }

    #[test]
    fn serialized_names_are_stable() {
        let check = Check::new(Topic::IoUring, State::Unknown, "?");
        let value = serde_json::to_value(&check).unwrap();
        assert_eq!(value["topic"], "io_uring");
        assert_eq!(value["state"], "unknown");
        assert_eq!(value["mend"], serde_json::Value::Null);
    }
}
