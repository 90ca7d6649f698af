//! A measurement from the first canary to the complete record: the common part of `run` and `cost`.

use crate::calibration::Calibration;
use crate::canary;
use crate::error::Result;
use crate::host;
use crate::interruption::Interruption;
use crate::meter::{MeterSet, NoWork, Owners, Selection, TaskScan, Work};
use crate::probe::ProbeSet;
use crate::progress::{Observer, Progress};
use crate::service::ServiceSettings;
use crate::store::{Unfinished, UnfinishedWindows};
use crate::watch::{Step, Subject, watch};
use model::envelope::{Envelope, Kind};
use model::kind::cost::Part;
use model::origin::CommandLine;
use model::placement::Place;
use model::plan::service::Service;
use model::probe::Probe;
use model::record::{Done, Execution, Outcome, Record, Source, Stretch};
use model::unit::{Hertz, Nanos};
use std::sync::Arc;
use std::time::Duration;

/// How to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Meters that may run.
    pub meters: Selection,
    /// Probes that are read at the same time.
    pub probes: Vec<Probe>,
    /// How long to measure the machine without the workload, before and again after.
    pub background: Duration,
    /// A request to end and keep the readings.
    pub interruption: Arc<Interruption>,
    /// The command line, for the record.
    pub command_line: CommandLine,
    /// `--place`, if given.
    pub place: Option<Place>,
    /// Servers that are started for it.
    pub services: ServiceSettings,
    /// Where the record is saved while it grows.
    pub unfinished: Unfinished,
}

/// A measurement in progress: the common part of `run` and `cost`.
pub(crate) struct Session<'a> {
    pub(crate) meters: MeterSet,
    pub(crate) record: Record,
    pub(crate) settings: &'a Settings,
    calibration: Calibration,
}

impl<'a> Session<'a> {
    /// Opens the meters, and begins the record. `services` are those that run.
    pub(crate) fn open(settings: &'a Settings, source: Source, services: &[Service]) -> Result<Self> {
        let calibration = Calibration::begin();
        sys::process::raise_open_file_limit();
        let probes = ProbeSet::open(&settings.probes)?;
        let meters = MeterSet::open(settings.meters.clone())?.beside(probes);
        let record = Record {
            envelope: Envelope::new(Kind::Cost, host::now(), settings.command_line.clone()),
            source,
            host: host::with_storage(Vec::new(), 0.0, "not measured yet"),
            meters: meters.statuses().to_vec(),
            probes: meters.probes().descriptors(),
            canaries: vec![canary::run()],
            background: Vec::new(),
            phases: Vec::new(),
            outcome: Outcome::Completed,
            warnings: Vec::new(),
            place: settings.place.clone(),
            services: services.to_vec(),
        };
        let mut begun = record.clone();
        (begun.host.tsc_hertz, begun.host.tsc_source) = calibration.end();
        settings.unfinished.begin(&begun);
        Ok(Self { meters, record, settings, calibration })
    }

    /// Rate of the time-stamp counter over the session so far.
    pub(crate) fn clock(&self) -> Hertz {
        Hertz(self.calibration.end().0)
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.settings.interruption.is_requested()
    }

    /// Measures the machine without the workload.
    pub(crate) fn watch_background(&mut self, observer: Observer) {
        if self.interrupted() {
            return;
        }
        let mut idle = Idle {
            total: self.settings.background,
            deadline: std::time::Instant::now(),
            interruption: &self.settings.interruption,
            observer,
            before: None,
        };
        let mut stretch = watch(&mut self.meters, &mut idle);
        stretch.tasks = idle.before.map(|before| TaskScan::now().since(&before, &Owners::default()));
        self.keep(Some(&stretch), None);
        self.record.background.push(stretch);
    }

    /// Saves an execution of a phase at once, so that it is not lost if iotoll is killed.
    pub(crate) fn keep_execution(&mut self, phase: usize, execution: &Execution) {
        if self.record.host.storage.is_empty() {
            self.note_storage();
        }
        self.keep(None, Some((phase, execution)));
    }

    /// Saves the windows of the next execution of a phase while it runs, likewise.
    pub(crate) fn unfinished_windows(&self, phase: usize) -> UnfinishedWindows {
        UnfinishedWindows::new(&self.settings.unfinished, phase, self.calibration)
    }

    fn keep(&self, background: Option<&Stretch>, execution: Option<(usize, &Execution)>) {
        self.settings.unfinished.add(|| Part {
            background: background.cloned(),
            execution: execution.map(|(phase, execution)| (phase, execution.clone())),
            tsc_hertz: self.clock().0,
            storage: self.record.host.storage.clone(),
            warnings: self.record.warnings.clone(),
        });
    }

    /// Notes the outcome; the first one that is not Completed stays.
    pub(crate) fn note_outcome(&mut self, outcome: Outcome) {
        if self.record.outcome == Outcome::Completed {
            self.record.outcome = outcome;
        }
    }

    /// Notes what holds the files: after the workload, when all of them exist, and before anything is unmounted.
    fn note_storage(&mut self) {
        self.record.host.storage = match &self.record.source {
            Source::Run(plan) => host::storage::of_plan(plan),
            Source::Cost { command, .. } => host::storage::of_command(command),
        };
    }

    /// Completes the record.
    pub(crate) fn close(mut self) -> Record {
        self.note_storage();
        self.record.canaries.push(canary::run());
        (self.record.host.tsc_hertz, self.record.host.tsc_source) = self.calibration.end();
        if self.interrupted() {
            self.note_outcome(Outcome::Interrupted);
        }
        self.record
    }
}

/// A workload that does nothing for a while.
struct Idle<'a> {
    total: Duration,
    deadline: std::time::Instant,
    interruption: &'a Interruption,
    observer: Observer<'a>,
    /// All tasks at the start of the first window.
    before: Option<TaskScan>,
}

impl Work for Idle<'_> {
    fn done(&self) -> Option<Done> {
        NoWork.done()
    }
    fn thread_nanos(&self) -> Option<Nanos> {
        NoWork.thread_nanos()
    }
}

impl Subject for Idle<'_> {
    fn begin(&mut self) {
        self.deadline = std::time::Instant::now() + self.total.saturating_sub(self.settle());
        self.before = Some(TaskScan::now());
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let left = self.deadline.saturating_duration_since(std::time::Instant::now());
        std::thread::sleep(timeout.min(left));
        left <= timeout || self.interruption.is_requested()
    }

    fn settle(&self) -> Duration {
        /// A program that starts at the same time (`iotoll … | jq`), or the workload's last writes, take about this
        /// long; but most of the time must be left for measuring.
        const TRANSIENT: Duration = Duration::from_millis(300);
        TRANSIENT.min(self.total / 3)
    }

    fn step(&mut self, step: Step) {
        (self.observer)(Progress::Background { elapsed: step.elapsed, total: self.total });
    }
}
