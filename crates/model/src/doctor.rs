//! The diagnosis of `iotoll doctor` as data: what a machine can measure, and how precisely.
//!
//! The checks are the list that Tom Talpey gave for cycles per byte (seed 000: C-states, turbo, power management and
//! hyperthreads off, a constant clock), extended with other causes of changing numbers. Each check says why it matters
//! and, if it can be fixed, which command fixes it.

mod topic;

pub use topic::Topic;

use crate::reading::Reading;
use crate::record::{Canaries, Host, Meter, MeterStatus};
use crate::unit::Nanos;
use crate::warning::Warning;
use serde::{Deserialize, Serialize};

/// The schema name of a serialized diagnosis.
pub const SCHEMA: &str = "iotoll.doctor/1";

/// The whole diagnosis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Diagnosis {
    /// [`SCHEMA`].
    pub schema: String,
    /// What the machine can measure, in one to three sentences.
    pub summary: String,
    pub host: Host,
    /// The meters: what they see, or why they are unavailable.
    pub meters: Vec<MeterStatus>,
    /// The checks, in the order in which they ran.
    pub checks: Vec<Check>,
    /// What the machine did without a workload.
    pub background: Background,
    pub canaries: Canaries,
    /// Caveats, for scripts.
    pub warnings: Vec<Warning>,
}

impl Diagnosis {
    /// Creates a diagnosis and its summary.
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

    /// The checks in one state, in order.
    pub fn checks_in(&self, state: State) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.state == state)
    }
}

/// How busy the machine was without a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// How long it was measured.
    pub watched_nanos: Nanos,
    /// Busy fraction of the time of all CPUs.
    pub busy_fraction: Reading<f64>,
    /// Fraction of the time of all CPUs that the hypervisor stole.
    pub steal_fraction: Reading<f64>,
    /// The same fraction since boot.
    pub steal_since_boot_fraction: Reading<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked.
    pub topic: Topic,
    pub state: State,
    /// What was found.
    pub found: String,
    /// How it affects the numbers.
    pub why_it_matters: String,
    /// The command or step that fixes it, or who can fix it.
    pub mend: Option<String>,
}

impl Check {
    /// Creates a check without a fix.
    pub fn new(topic: Topic, state: State, found: impl Into<String>) -> Self {
        Self { topic, state, found: found.into(), why_it_matters: topic.why_it_matters().to_owned(), mend: None }
    }

    pub fn mend(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Good,
    /// It changes what the numbers mean, or may do so, but is not a fault.
    Note,
    /// It makes the numbers worse and can be fixed.
    Poor,
    /// It could not be determined.
    Unknown,
}

fn summary(host: &Host, meters: &[MeterStatus], checks: &[Check]) -> String {
    let cycles = match &host.hypervisor {
        Some(hypervisor) => format!(
            " These are cycles of this guest's reference clock: the work of {hypervisor} is \
             not included."
        ),
        None => String::new(),
    };
    let findings = match checks.iter().filter(|check| check.state == State::Poor).count() {
        0 => "No problem was found.".to_owned(),
        1 => "One problem makes its numbers worse; see below for the fix.".to_owned(),
        count => format!("{count} problems make its numbers worse; see below for the fixes."),
    };
    match capability(meters) {
        Some(capability) => format!("This machine can measure {capability}.{cycles} {findings}"),
        None => {
            "This machine cannot measure cycles: no meter is available. See below for the reasons and fixes.".to_owned()
        }
    }
}

fn capability(meters: &[MeterStatus]) -> Option<String> {
    let runs = |meter: Meter| meters.iter().any(|row| row.meter == meter && row.status.taken().is_some());
    let known = |meter: Meter| Some((meter, meter.descriptor().expected_error?));
    if let Some((meter, error)) = Meter::by_trust().filter(|meter| runs(*meter)).find_map(known) {
        let (name, percent) = (meter.name(), error.waking_percent);
        return Some(format!("cycles per I/O to about ±{percent} % in 10 s if otherwise idle ({name} meter)"));
    }
    if runs(Meter::Pmu) {
        return Some("cycles per I/O with its hardware counter".to_owned());
    }
    if runs(Meter::Soaker) {
        return Some("cycles per I/O only with the soaker meter, which disturbs loads that sleep".to_owned());
    }
    runs(Meter::Thread).then(|| {
        "only the CPU time of the workload's own threads, without what interrupts, kernel threads and \
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
    fn the_summary_names_the_headline_meter() {
        let host = Host::default();
        let meters = [missing(Meter::Pmu), status(Meter::ProcStat), status(Meter::Idle), status(Meter::Thread)];
        let text = summary(&host, &meters, &[]);
        assert!(text.starts_with("This machine can measure cycles per I/O to about ±2.2 % in 10 s"), "{text}");
        assert!(text.contains("idle meter"), "{text}");
        let clocks = [status(Meter::Pmu), status(Meter::Idle), status(Meter::TimerList)];
        assert!(summary(&host, &clocks, &[]).contains("±2.5 % in 10 s if otherwise idle (timer_list meter)"));
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
    fn the_summary_names_the_hypervisor_and_counts_problems() {
        let host = Host { hypervisor: Some("KVM".to_owned()), ..Host::default() };
        let poor = Check::new(Topic::Turbo, State::Poor, "on");
        let text = summary(&host, &[status(Meter::Idle)], &[poor.clone(), poor]);
        assert!(text.contains("the work of KVM") && text.contains("2 problems make its numbers worse"), "{text}");
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
