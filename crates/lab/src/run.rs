//! `iotoll run`: a plan becomes a record.

use crate::canary;
use crate::crew::{Copy, Crew};
use crate::error::{Error, Result};
use crate::host;
use crate::interruption::Interruption;
use crate::meter::{MeterSet, NoWork, Owners, Selection, TaskScan, Work};
use crate::page_cache::{CachedFiles, own_storage_read};
use crate::placing::{self, Placing};
use crate::preparation::{self, invalidate, warn_of_holes};
use crate::probe::ProbeSet;
use crate::watch::{Step, Subject, watch};
use crate::whereabouts::{Lookout, Workload};
use crate::workload::target::Created;
use model::kind::{Envelope, Kind};
use model::page_cache::{CacheRecord, is_buffered};
use model::placement::{Place, Whereabouts};
use model::plan::{Phase, Plan};
use model::probe::Probe;
use model::record::{Done, Execution, IoInterval, Outcome, PhaseRecord, Record, Source, Stretch};
use model::unit::{Bytes, Hertz, Nanos};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use sys::clock::Instant;

/// How to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which meters may run.
    pub meters: Selection,
    /// What is read beside them.
    pub probes: Vec<Probe>,
    /// How long the machine is watched without the workload, before and again after.
    pub background: Duration,
    /// Asked: end, and keep what was measured.
    pub interruption: Arc<Interruption>,
    /// The command line, for the record.
    pub command_line: Vec<String>,
    /// Where the load is to run, where that was said.
    pub place: Option<Place>,
}

/// How far a measurement has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A file is being written before it is read.
    LayingOut {
        /// Which.
        path: &'a Path,
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// A file is being read into the page cache.
    ReadingIn {
        /// Which.
        path: &'a Path,
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The machine is being watched without the workload.
    Background {
        /// How long so far.
        elapsed: Duration,
        /// How long in all.
        total: Duration,
    },
    /// The workload runs.
    Running {
        /// Phase or execution, from 0.
        number: usize,
        /// How many there are.
        count: usize,
        /// How long so far.
        elapsed: Duration,
        /// How long in all, when that is known.
        total: Option<Duration>,
        /// I/Os per second in the latest window.
        iops: Option<f64>,
    },
}

/// Told how far a measurement has come, several times a second.
pub type Observer<'a> = &'a mut dyn FnMut(Progress);

/// The rate of the time-stamp counter, measured against the kernel's clock.
pub struct Calibration {
    begun: Instant,
}

impl Calibration {
    /// Notes both clocks.
    pub fn begin() -> Self {
        Self { begun: Instant::now() }
    }

    /// The rate since then, in hertz, and how it was found.
    pub fn end(&self) -> (f64, String) {
        let hertz = Instant::now().hertz_since(self.begun).unwrap_or(1e9);
        (hertz, "measured against CLOCK_MONOTONIC".to_owned())
    }
}

/// A measurement under way: what `run` and `cost` share.
pub(crate) struct Session<'a> {
    pub(crate) meters: MeterSet,
    pub(crate) record: Record,
    pub(crate) settings: &'a Settings,
    calibration: Calibration,
}

impl<'a> Session<'a> {
    pub(crate) fn open(settings: &'a Settings, source: Source) -> Result<Self> {
        let calibration = Calibration::begin();
        sys::process::raise_open_file_limit();
        let probes = ProbeSet::open(&settings.probes)?;
        let meters = MeterSet::open(settings.meters.clone())?.beside(probes);
        let record = Record {
            envelope: Envelope::new(Kind::Cost, host::now(), settings.command_line.clone()),
            source,
            host: host::read(Path::new("/"), 0.0, "not measured yet"),
            meters: meters.statuses().to_vec(),
            probes: meters.probes().descriptors(),
            canaries: vec![canary::run()],
            background: Vec::new(),
            phases: Vec::new(),
            outcome: Outcome::Completed,
            warnings: Vec::new(),
            place: settings.place.clone(),
        };
        Ok(Self { meters, record, settings, calibration })
    }

    /// Rate of the time-stamp counter over all of the session so far.
    pub(crate) fn clock(&self) -> Hertz {
        Hertz(self.calibration.end().0)
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.settings.interruption.is_asked()
    }

    /// Watches the machine without the workload.
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
        self.record.background.push(stretch);
    }

    /// Notes how it ended; the worst news wins.
    pub(crate) fn note_outcome(&mut self, outcome: Outcome) {
        if self.record.outcome == Outcome::Completed {
            self.record.outcome = outcome;
        }
    }

    /// The record, complete.
    pub(crate) fn close(mut self) -> Record {
        self.record.canaries.push(canary::run());
        (self.record.host.tsc_hertz, self.record.host.tsc_source) = self.calibration.end();
        if self.interrupted() {
            self.note_outcome(Outcome::Interrupted);
        }
        self.record
    }
}

/// Nothing, for a while.
struct Idle<'a> {
    total: Duration,
    deadline: std::time::Instant,
    interruption: &'a Interruption,
    observer: Observer<'a>,
    /// Every task when the first window began.
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
        left <= timeout || self.interruption.is_asked()
    }

    fn settle(&self) -> Duration {
        /// A program that starts beside us (`iotoll … | jq`), or the workload's last writes, take about this
        /// long; but the larger part of the time is for watching.
        const TRANSIENT: Duration = Duration::from_millis(300);
        TRANSIENT.min(self.total / 3)
    }

    fn step(&mut self, step: Step) {
        (self.observer)(Progress::Background { elapsed: step.elapsed, total: self.total });
    }
}

/// I/Os per second in the latest window.
pub(crate) fn iops(step: &Step) -> Option<f64> {
    let (before, after) = step.window;
    let seconds = after.at_nanos.since(before.at_nanos).seconds();
    let ios = after.done?.ios.saturating_sub(before.done?.ios);
    (seconds > 0.0).then_some(ios as f64 / seconds)
}

/// Measures a plan. What it makes of files is noted in `created`, and kept when it ends well.
///
/// # Errors
/// When nothing could be measured at all: a refused or missing file, an engine that is not allowed here.
/// A job that fails later is in the record, with everything that was measured until then.
pub fn run(plan: &Plan, settings: &Settings, created: &Created, observer: Observer) -> Result<Record> {
    let jobs = plan.phases.iter().flat_map(|phase| &phase.jobs);
    let placing = Placing::resolve(settings.place.as_ref(), &placing::servers_of(jobs))?;
    let mut session = Session::open(settings, Source::Run(plan.clone()))?;
    session.record.warnings.extend(plan.warnings.iter().cloned());
    let phases = prepare(plan, settings, created, observer)?;
    warn_of_holes(phases.iter().flat_map(|(_, copies)| copies), &mut session.record.warnings);
    session.watch_background(observer);
    for (number, (phase, copies)) in phases.iter().enumerate() {
        if session.interrupted() || session.record.outcome != Outcome::Completed {
            break;
        }
        let running = (number, phases.len());
        match measure_phase(phase, copies, &placing, &mut session, running, observer) {
            Ok((execution, failure)) => {
                session.record.phases.push(PhaseRecord { executions: vec![execution] });
                if let Some(failure) = failure {
                    session.note_outcome(Outcome::Failed(failure.to_string()));
                }
            }
            Err(error) if session.record.phases.is_empty() => return Err(error),
            // What the phases before it cost is known.
            Err(error) => session.note_outcome(Outcome::Failed(error.to_string())),
        }
    }
    if session.record.phases.is_empty() {
        return Err(Error::Interrupted("before the first I/O".to_owned()));
    }
    session.watch_background(observer);
    let record = session.close();
    if record.outcome == Outcome::Completed {
        created.keep();
    }
    Ok(record)
}

/// One phase, the `number`th of `count`: what its jobs did, and which of them failed.
///
/// # Errors
/// When it cannot begin.
fn measure_phase(
    phase: &Phase,
    copies: &[Copy],
    placing: &Placing,
    session: &mut Session,
    (number, count): (usize, usize),
    observer: Observer,
) -> Result<(Execution, Option<Error>)> {
    // As a job begins, not before: the phase before may use the same file from memory.
    copies.iter().try_for_each(invalidate)?;
    let crew = Crew::muster(copies, placing, session.clock())?;
    let interruption = &session.settings.interruption;
    let total = planned_length(phase);
    let lookout = Lookout::new(Workload::Threads(crew.thread_ids()));
    let mut subject = Running { crew, interruption, observer, number, count, total, lookout };
    let files = CachedFiles::of(copies);
    let cached = (!files.is_empty()).then(|| files.look());
    let before = TaskScan::now();
    let mut stretch = watch(&mut session.meters, &mut subject);
    subject.lookout.note_servers(&mut stretch.snapshots);
    let page_cache = cached.map(|before| CacheRecord {
        dropped: copies.iter().any(|copy| is_buffered(copy.plan) && copy.plan.invalidates()),
        before,
        after: files.look(),
    });
    let owners = Owners { workers: subject.crew.thread_ids(), command: None };
    let tasks = TaskScan::now().since(&before, &owners);
    let (jobs, failure) = subject.crew.dismiss();
    let stretch = Stretch { tasks: Some(tasks), ..stretch };
    let io_interval = counted_interval(phase, &stretch);
    Ok((Execution { jobs, stretch, io_interval, page_cache, ..Execution::default() }, failure))
}

type Prepared<'a> = Vec<(&'a Phase, Vec<Copy<'a>>)>;

/// Every phase with its files.
fn prepare<'a>(plan: &'a Plan, settings: &Settings, created: &Created, observer: Observer) -> Result<Prepared<'a>> {
    let mut phases = Vec::new();
    for phase in &plan.phases {
        phases.push((phase, preparation::prepare(phase, created, &settings.interruption, observer)?));
    }
    if phases.iter().all(|(_, copies)| copies.is_empty()) {
        return Err(Error::Refused("there is no job to run: give --name and its options, or a job file".to_owned()));
    }
    Ok(phases)
}

/// The part of a phase that counts, where that is not all: after the ramps, and from when the first job is
/// to start.
fn counted_interval(phase: &Phase, stretch: &Stretch) -> Option<IoInterval> {
    let delay = phase.jobs.iter().map(|job| job.start_delay).min().unwrap_or_default();
    let ramped = phase.jobs.iter().filter(|job| job.duration.ramp > Nanos(0));
    let ramp = ramped.map(|job| job.start_delay + job.duration.ramp).max().unwrap_or_default();
    let uncounted = delay.max(ramp);
    let (first, last) = (stretch.snapshots.first()?, stretch.snapshots.last()?);
    let begin_nanos = first.at_nanos + uncounted;
    // A run that ended within its ramp has nothing that counts; then all of it is shown.
    let counts = uncounted > Nanos(0) && begin_nanos < last.at_nanos;
    counts.then_some(IoInterval { begin_nanos, end_nanos: last.at_nanos })
}

/// How long a phase will take, when its jobs say so.
fn planned_length(phase: &Phase) -> Option<Duration> {
    let length = |job: &model::plan::JobPlan| {
        let duration = job.duration;
        (duration.runtime > Nanos(0)).then(|| (job.start_delay + duration.ramp + duration.runtime).duration())
    };
    phase.jobs.iter().map(length).collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// A phase that runs.
struct Running<'a> {
    crew: Crew,
    interruption: &'a Interruption,
    observer: Observer<'a>,
    number: usize,
    count: usize,
    total: Option<Duration>,
    lookout: Lookout,
}

impl Work for Running<'_> {
    fn done(&self) -> Option<Done> {
        self.crew.done()
    }
    fn thread_nanos(&self) -> Option<Nanos> {
        self.crew.thread_nanos()
    }
    fn storage_read(&self) -> Option<Bytes> {
        own_storage_read()
    }
}

impl Subject for Running<'_> {
    fn begin(&mut self) {
        self.crew.go();
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        /// Longest time that Ctrl-C goes unnoticed.
        const GLANCE: Duration = Duration::from_millis(100);
        let mut left = timeout;
        loop {
            let nap = left.min(GLANCE);
            if self.crew.wait(nap) {
                return true;
            }
            if self.interruption.is_asked() {
                self.crew.stop();
            }
            left -= nap;
            if left.is_zero() {
                return false;
            }
        }
    }

    fn whereabouts(&mut self) -> Option<Box<Whereabouts>> {
        self.lookout.look(None)
    }

    fn step(&mut self, step: Step) {
        (self.observer)(Progress::Running {
            number: self.number,
            count: self.count,
            elapsed: step.elapsed,
            total: self.total,
            iops: iops(&step),
        });
    }
}
