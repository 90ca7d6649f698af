//! A record of `run` or `cost` while it is measured: from the first canary to the last.

use lab::canary;
use lab::error::Result;
use lab::host;
use lab::interruption::Interruption;
use lab::meter::{MeterSet, Owners, TaskScan, Work};
use lab::progress::{Observer, Progress};
use lab::session::Session;
use lab::store::GrowingWindows;
use lab::watch::{Step, Subject, watch};
use model::kind::Recorded;
use model::record::lines::Part;
use model::record::{Execution, Outcome, Record, Source, Stretch};
use std::time::Duration;

/// A record that grows.
pub struct Sheet<'a> {
    pub meters: MeterSet,
    pub record: Record,
    pub session: &'a Session<'a>,
}

impl<'a> Sheet<'a> {
    /// Opens the meters, and begins the record.
    pub fn open(session: &'a Session, source: Source) -> Result<Self> {
        let meters = session.meters()?;
        let record = Record {
            envelope: session.envelope(Record::KIND),
            source,
            host: host::with_storage(Vec::new(), 0.0, "not measured yet"),
            meters: meters.statuses.clone(),
            probes: meters.probes.descriptors(),
            events: meters.events().cloned(),
            canaries: vec![canary::run()],
            background: Vec::new(),
            phases: Vec::new(),
            outcome: Outcome::Completed,
            warnings: Vec::new(),
            place: session.settings.place.clone(),
            services: session.services.started.clone(),
        };
        let mut begun = record.clone();
        (begun.host.tsc_hertz, begun.host.tsc_source) = session.calibration.end();
        session.settings.saver.begin_growing(&begun);
        Ok(Self { meters, record, session })
    }

    /// Whether nothing more is to be measured.
    pub fn has_ended(&self) -> bool {
        self.session.interrupted() || self.record.outcome != Outcome::Completed
    }

    /// Measures the machine without the workload.
    pub fn watch_background(&mut self, observer: Observer) {
        if self.session.interrupted() {
            return;
        }
        let mut idle = Idle {
            total: self.session.settings.background,
            deadline: std::time::Instant::now(),
            interruption: &self.session.settings.interruption,
            observer,
            before: self.meters.scan_tasks(),
        };
        let mut stretch = watch(&mut self.meters, &mut idle);
        stretch.tasks = Some(self.meters.scan_tasks().since(&idle.before, &Owners::default()));
        self.keep(Some(&stretch), None);
        self.record.background.push(stretch);
    }

    /// Saves an execution of a phase at once, so that it is not lost if iotoll is killed.
    pub fn keep_execution(&mut self, phase: usize, execution: &Execution) {
        if self.record.host.storage.is_empty() {
            self.note_storage();
        }
        self.keep(None, Some((phase, execution)));
    }

    /// Saves the windows of the next execution of a phase while it runs, likewise.
    pub fn growing_windows(&self, phase: usize) -> GrowingWindows {
        GrowingWindows::new(&self.session.settings.saver, phase, self.session.calibration)
    }

    fn keep(&self, background: Option<&Stretch>, execution: Option<(usize, &Execution)>) {
        self.session.settings.saver.grow("part", || Part {
            background: background.cloned(),
            execution: execution.map(|(phase, execution)| (phase, execution.clone())),
            tsc_hertz: self.session.clock().0,
            storage: self.record.host.storage.clone(),
            warnings: self.record.warnings.clone(),
        });
    }

    /// Notes the outcome; the first one that is not Completed stays.
    pub fn note_outcome(&mut self, outcome: Outcome) {
        if self.record.outcome == Outcome::Completed {
            self.record.outcome = outcome;
        }
    }

    /// Notes what holds the files: after the workload, when all of them exist, and before anything is unmounted.
    fn note_storage(&mut self) {
        let now = match &self.record.source {
            Source::Run(plan) => host::storage::of_plan(plan),
            Source::Cost { command, .. } => host::storage::of_command(command),
        };
        self.record.host.storage = now;
    }

    pub fn close(mut self) -> Record {
        self.note_storage();
        self.record.canaries.push(canary::run());
        (self.record.host.tsc_hertz, self.record.host.tsc_source) = self.session.calibration.end();
        if self.session.interrupted() {
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
    before: TaskScan,
}

impl Work for Idle<'_> {}

impl Subject for Idle<'_> {
    fn begin(&mut self) {
        self.deadline = std::time::Instant::now() + self.total.saturating_sub(self.settle());
        self.before = self.before.again();
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
