//! The diagnosis of `iotoll doctor` as data: what a machine can measure, and how precisely.
//!
//! The checks are the list that Tom Talpey gave for cycles per byte (seed 000: C-states, turbo, power management and
//! hyperthreads off, a constant clock), extended with other causes of changing numbers. Each check says why it matters
//! and, if it can be fixed, which command fixes it.

mod topic;

pub use topic::Topic;

use crate::reading::Reading;
use crate::record::{Canaries, Host, Meter, MeterStatus, Snapshot, Stretch};
use crate::stats::{Neighbours, Pair, ratio_of_sums};
use crate::study::Context;
use crate::study::caveats::NEVER_IDLE;
use crate::study::windows::{Window, windows};
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
    /// What it would resolve; `None` if no meter of the whole machine can be read.
    pub resolution: Option<Resolution>,
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
        resolution: Option<Resolution>,
        canaries: Canaries,
        warnings: Vec<Warning>,
    ) -> Self {
        let summary = summary(&host, (&meters, resolution), &checks, &background);
        Self { schema: SCHEMA.to_owned(), summary, host, meters, checks, background, resolution, canaries, warnings }
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

/// What the meters of a machine resolve of a load that keeps one CPU busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// The meter.
    pub meter: Meter,
    /// Half of the width of a 95 % interval of the cycles per unit of work after 10 s, as a fraction of them.
    pub half_width_fraction: f64,
}

impl Resolution {
    /// From counters that were read in equal steps while such a load ran: if the machine stays as it was then, errors fall with the root of
    /// the time.
    pub fn of(host: &Host, seen: &[Snapshot]) -> Option<Self> {
        const SECONDS: f64 = 10.0;
        /// The quantile of the normal distribution for 95 %.
        const NORMAL: f64 = 1.96;
        let context = Context::of(host);
        let stretch = Stretch { snapshots: seen.to_vec(), ..Stretch::default() };
        let meters = Meter::by_trust().filter(|meter| meter.counts_time() && !meter.disturbs());
        let (meter, windows) = meters
            .map(|meter| (meter, windows(&stretch, meter, None, &context)))
            .find(|(_, windows)| !windows.is_empty())?;
        let pair = |window: &Window| Pair {
            numerator: window.cycles,
            denominator: window.done.map_or(0.0, |done| done.ios as f64),
        };
        let ratio = ratio_of_sums(&windows.iter().map(pair).collect::<Vec<_>>(), Neighbours::Alike)?;
        let seconds: f64 = windows.iter().map(Window::seconds).sum();
        let standard_error = ratio.error?.standard_error * (seconds / SECONDS).sqrt();
        Some(Self { meter, half_width_fraction: NORMAL * standard_error / ratio.value })
    }
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

fn summary(
    host: &Host,
    (meters, resolution): (&[MeterStatus], Option<Resolution>),
    checks: &[Check],
    background: &Background,
) -> String {
    /// A busier machine comes first: nothing else matters as much.
    const BUSY: f64 = 0.2;
    let busy = background.busy_fraction.taken().copied().filter(|busy| *busy > BUSY);
    let now = busy.map(|busy| format!("This machine is {:.0} % busy now: stop what runs. ", busy * 100.0));
    let now = now.unwrap_or_default();
    if busy.is_some_and(|busy| busy > NEVER_IDLE) {
        return now
            + "Until then no idle clock shows what a load costs; the accounts do, by the names of its tasks, where they can be kept.";
    }
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
    match capability(meters, resolution) {
        Some(capability) => format!("{now}This machine can measure {capability}.{cycles} {findings}"),
        None => {
            "This machine cannot measure cycles: no meter is available. See below for the reasons and fixes.".to_owned()
        }
    }
}

fn capability(meters: &[MeterStatus], resolution: Option<Resolution>) -> Option<String> {
    let runs = |meter: Meter| meters.iter().any(|row| row.meter == meter && row.status.taken().is_some());
    if let Some(Resolution { meter, half_width_fraction }) = resolution {
        return Some(format!(
            "cycles per I/O of a load that keeps one CPU busy to about ±{:.2} % in 10 s ({} meter), if it stays as it is",
            half_width_fraction * 100.0,
            meter.name()
        ));
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
    use crate::record::{Count, Done};
    use crate::unit::Bytes;

    fn status(meter: Meter) -> MeterStatus {
        MeterStatus { meter, status: Reading::Taken("runs".to_owned()) }
    }

    fn background(busy: f64) -> Background {
        let none = || Reading::unavailable("made up");
        Background {
            watched_nanos: Nanos(1),
            busy_fraction: Reading::Taken(busy),
            steal_fraction: none(),
            steal_since_boot_fraction: none(),
        }
    }

    fn missing(meter: Meter) -> MeterStatus {
        MeterStatus { meter, status: Reading::unavailable("not here") }
    }

    #[test]
    fn the_summary_says_what_was_resolved() {
        let host = Host { cpus: 2, tsc_hertz: 1e9, ..Host::default() };
        // One of two CPUs is busy, and the idle clock is off by up to 100 µs in each 10 ms: by a hundredth of the busy time.
        let seen = |error: u64| -> Vec<Snapshot> {
            let snapshot = |step: u64| {
                let wrong = if step.is_multiple_of(3) { error } else { 0 };
                let count = Count { at_nanos: Nanos(step * 10_000_000), cpus: 2, total: step * 10_000_000 + wrong };
                let done = Some(Done { ios: step * 1000, bytes: Bytes(0) });
                Snapshot {
                    at_nanos: count.at_nanos,
                    counts: [(Meter::Idle, count)].into(),
                    done,
                    ..Snapshot::default()
                }
            };
            (0..31).map(snapshot).collect()
        };
        let Resolution { meter, half_width_fraction } = Resolution::of(&host, &seen(100_000)).unwrap();
        assert_eq!(meter, Meter::Idle);
        assert!((1e-4..1e-2).contains(&half_width_fraction), "{half_width_fraction}");
        let ten_times = Resolution::of(&host, &seen(1_000_000)).unwrap().half_width_fraction / half_width_fraction;
        assert!((ten_times - 10.0).abs() < 0.5, "{ten_times}");
        assert_eq!(Resolution::of(&host, &[]), None);
        let resolution = Some(Resolution { meter, half_width_fraction: 0.0123 });
        let text = summary(&host, (&[status(Meter::Idle)], resolution), &[], &background(0.05));
        assert!(text.contains("keeps one CPU busy to about ±1.23 % in 10 s (idle meter)"), "{text}");
        assert!(summary(&host, (&[status(Meter::Pmu)], None), &[], &background(0.05)).contains("hardware counter"));
    }

    #[test]
    fn thread_clocks_alone_do_not_measure_the_machine() {
        let text =
            summary(&Host::default(), (&[status(Meter::Thread), missing(Meter::Idle)], None), &[], &background(0.05));
        assert!(text.contains("only the CPU time of the workload's own threads"), "{text}");
        let text = summary(&Host::default(), (&[missing(Meter::Thread)], None), &[], &background(0.05));
        assert!(text.contains("cannot measure"), "{text}");
    }

    #[test]
    fn the_summary_names_the_hypervisor_and_counts_problems() {
        let host = Host { hypervisor: Some("KVM".to_owned()), ..Host::default() };
        let poor = Check::new(Topic::Turbo, State::Poor, "on");
        let resolution = Some(Resolution { meter: Meter::Idle, half_width_fraction: 0.01 });
        let text = summary(&host, (&[status(Meter::Idle)], resolution), &[poor.clone(), poor], &background(0.5));
        assert!(text.starts_with("This machine is 50 % busy now: stop what runs. This machine can measure"), "{text}");
        let never_idle = summary(&host, (&[status(Meter::Idle)], resolution), &[], &background(0.99));
        assert!(never_idle.contains("99 % busy") && !never_idle.contains("can measure"), "{never_idle}");
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
