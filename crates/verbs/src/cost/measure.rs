//! Measures jobs (`iotoll run`) and commands (`iotoll cost`) into the same kind of record.

use jobs::cached_files::{CachedFiles, set_cache};
pub use jobs::file_roles::check as check_files;
use jobs::io_log::{self, IoLog};
use jobs::replaying::Replays;
use jobs::worker_pool::{self, JobCopy, Joined, WorkerPool};
use jobs::workload::target::{warn_of_holes, warn_of_unlinking};
use jobs::{demand, read_back};
use lab::command::{CommandPlan, Count, Counter, Executed, Surroundings, counted_by, execute};
use lab::created::Created;
use lab::error::{Error, Result};
use lab::guardian::processes::Processes;
use lab::interruption::Interruption;
use lab::meter::{MeterSet, Owners, TaskScan, Work};
use lab::page_cache::own_storage_read;
use lab::progress::{Observer, Progress, iops};
use lab::session::{Session, Settings, outcome_of};
use lab::store::GrowingWindows;
use lab::watch::{Step, Subject, watch};
use lab::whereabouts::{PlacementWatch, Workload};
use lab::{canary, host, network_namespace, placing};
use model::experiment::Cell;
use model::kind::Recorded;
use model::page_cache::{CacheRecord, is_buffered};
use model::placement::Whereabouts;
use model::plan::{Phase, Plan};
use model::probe::Probe;
use model::record::lines::Part;
use model::record::{Done, Execution, IoInterval, Outcome, PhaseRecord, Record, Source, Stretch};
use model::unit::{Bytes, Nanos};
use model::warning::add_once;
use std::time::Duration;

/// The jobs of a plan, with the traces that they replay.
pub struct Jobs<'a> {
    pub plan: &'a Plan,
    pub replays: Replays,
}

impl Jobs<'_> {
    pub fn measure(&self, settings: Settings, created: &Created, observer: Observer) -> Result<Record> {
        demand::check(&self.plan.phases)?;
        let servers = placing::servers_of(self.plan.phases.iter().flat_map(|phase| &phase.jobs));
        let session = Session::open(&settings, &servers, &mut |service| observer(Progress::Starting { service }))?;
        let mut measured = measure_jobs(self, &session, created, observer);
        session.close(measured.as_mut().map(|record| &mut record.outcome), created);
        measured
    }
}

fn measure_jobs(jobs: &Jobs, session: &Session, created: &Created, observer: Observer) -> Result<Record> {
    let &Jobs { plan, ref replays } = jobs;
    // Setup may have mounted or made their folders.
    check_files(plan, &[], None)?;
    let mut sheet = Sheet::open(session, Source::Run(plan.clone()))?;
    sheet.record.warnings.extend(plan.warnings.iter().cloned());
    let phases = lay_out(plan, replays, session, created, observer)?;
    warn_of_holes(phases.iter().flat_map(|(_, copies)| copies), &mut sheet.record.warnings);
    let copies = phases.iter().map(|(_, copies)| copies.as_slice());
    warn_of_unlinking(copies, created, &mut sheet.record.warnings);
    sheet.watch_background(observer);
    let log_bytes = io_log::share(plan);
    let (mut logs, mut first) = (Vec::new(), 1);
    let mut ended = false;
    for (number, (phase, copies)) in phases.iter().enumerate() {
        let first_of_phase = first;
        first += copies.len();
        if ended || sheet.has_ended() {
            break;
        }
        let running = (number, phases.len());
        let prepared = session.around.prepare(&Cell::default());
        match prepared.and_then(|()| measure_phase(phase, copies, &mut sheet, (running, log_bytes), observer)) {
            Ok(Measured { execution, failure, ends_run, logs: of_phase }) => {
                logs.extend(of_phase.into_iter().map(|(copy, log)| (first_of_phase + copy, log)));
                sheet.keep_execution(number, &execution);
                sheet.record.phases.push(PhaseRecord { executions: vec![execution] });
                if let Some(failure) = failure {
                    sheet.note_outcome(Outcome::Failed(failure.to_string()));
                }
                ended = ends_run;
            }
            Err(error) if sheet.record.phases.is_empty() => return Err(error),
            // The cost of the phases before it is known.
            Err(error) => sheet.note_outcome(outcome_of(&error)),
        }
    }
    if sheet.record.phases.is_empty() {
        return Err(Error::Interrupted("before the first I/O".to_owned()));
    }
    sheet.watch_background(observer);
    let (warnings, written) = io_log::files::write(plan, &logs);
    sheet.record.warnings.extend(warnings);
    if let Err(error) = written {
        sheet.note_outcome(outcome_of(&error));
    }
    Ok(sheet.close())
}

/// A phase that ran.
struct Measured {
    execution: Execution,
    /// The first failure of its jobs.
    failure: Option<Error>,
    /// No other phase follows, because a job says so.
    ends_run: bool,
    /// Those of its copies, each with the number of the copy.
    logs: Vec<(usize, IoLog)>,
}

/// Measures one phase, the `number`th of `count`. Each copy with a log has this number of bytes for it.
///
/// # Errors
/// When it cannot start.
fn measure_phase(
    phase: &Phase,
    copies: &[JobCopy],
    sheet: &mut Sheet,
    ((number, count), log_bytes): ((usize, usize), u64),
    observer: Observer,
) -> Result<Measured> {
    // When the job starts, not earlier: an earlier phase may use the same file from memory.
    copies.iter().try_for_each(|copy| set_cache(copy, &sheet.session.settings.interruption))?;
    let interruption = &sheet.session.settings.interruption;
    let (placing, clock) = (&sheet.session.placing, sheet.session.clock());
    let pool = WorkerPool::start(copies, placing, clock, log_bytes, interruption)?;
    let total = planned_length(phase);
    let placement_watch = PlacementWatch::new(Workload::Threads(pool.thread_ids()));
    let windows = sheet.growing_windows(number);
    let mut subject = Running { pool, interruption, observer, number, count, total, placement_watch, windows };
    let files = CachedFiles::of(copies);
    let cached = (!files.is_empty()).then(|| files.look());
    let before = sheet.meters.scan_tasks();
    let mut stretch = watch(&mut sheet.meters, &mut subject);
    subject.placement_watch.note_servers(&mut stretch.snapshots);
    let page_cache = cached.map(|before| CacheRecord {
        dropped: copies.iter().any(|copy| is_buffered(copy.plan) && copy.plan.invalidates()),
        before,
        after: files.look(),
    });
    let owners = subject.pool.owners();
    let tasks = sheet.meters.scan_tasks().since(&before, &owners);
    let ends_run = subject.pool.ends_run();
    let Joined { mut records, failure, ended } = subject.pool.join();
    let logs = records.iter_mut().filter_map(|left| left.log.take()).collect();
    // What was measured is over.
    let (jobs, wrong) = read_back::all(records, copies, sheet.session.clock(), interruption);
    let failure = failure.or(wrong);
    let stretch = Stretch { tasks: Some(tasks), ..stretch };
    let io_interval = IoInterval::of_jobs(phase, &stretch);
    let execution =
        Execution { jobs, stretch, io_interval, jobs_ended_nanos: ended, page_cache, ..Execution::default() };
    Ok(Measured { execution, failure, ends_run, logs })
}

type LaidOut<'a> = Vec<(&'a Phase, Vec<JobCopy<'a>>)>;

/// Every phase with its files.
fn lay_out<'a>(
    plan: &'a Plan,
    replays: &Replays,
    session: &Session,
    created: &Created,
    observer: Observer,
) -> Result<LaidOut<'a>> {
    let mut phases = Vec::new();
    for (number, phase) in plan.phases.iter().enumerate() {
        let replay = |job, copy| replays.of(number, job, copy);
        let interruption = &session.settings.interruption;
        phases.push((phase, worker_pool::lay_out(phase, &replay, created, interruption, observer)?));
    }
    if phases.iter().all(|(_, copies)| copies.is_empty()) {
        return Err(Error::Refused("no job to run; give --name and its options, or a job file".to_owned()));
    }
    Ok(phases)
}

/// How long a phase will take, if its jobs define it.
fn planned_length(phase: &Phase) -> Option<Duration> {
    let length = |job: &model::plan::JobPlan| {
        let duration = job.duration;
        (duration.runtime > Nanos(0)).then(|| (job.together.start_delay + duration.ramp + duration.runtime).duration())
    };
    phase.jobs.iter().map(length).collect::<Option<Vec<_>>>()?.into_iter().max()
}

struct Running<'a> {
    pool: WorkerPool,
    interruption: &'a Interruption,
    observer: Observer<'a>,
    number: usize,
    count: usize,
    total: Option<Duration>,
    placement_watch: PlacementWatch,
    windows: GrowingWindows,
}

impl Work for Running<'_> {
    fn done(&self) -> Option<Done> {
        self.pool.done()
    }
    fn thread_nanos(&self) -> Option<Nanos> {
        self.pool.thread_nanos()
    }
    fn storage_read(&self) -> Option<Bytes> {
        own_storage_read()
    }
    fn owners(&self) -> Owners {
        self.pool.owners()
    }
}

impl Subject for Running<'_> {
    fn begin(&mut self) {
        self.pool.open_gate();
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        /// Longest reaction time to Ctrl-C.
        const POLL_INTERVAL: Duration = Duration::from_millis(100);
        let mut left = timeout;
        loop {
            let nap = left.min(POLL_INTERVAL);
            if self.pool.wait(nap) {
                return true;
            }
            if self.interruption.is_requested() {
                self.pool.stop();
            }
            left -= nap;
            if left.is_zero() {
                return false;
            }
        }
    }

    fn whereabouts(&mut self) -> Option<Box<Whereabouts>> {
        self.placement_watch.look(None)
    }

    fn step(&mut self, step: Step) {
        self.windows.keep(&step);
        (self.observer)(Progress::Running {
            number: self.number,
            count: self.count,
            elapsed: step.elapsed,
            total: self.total,
            iops: iops(&step),
        });
    }
}

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

/// A command that fails is in the record; one that cannot be started is an error.
pub fn command(plan: &CommandPlan, settings: &Settings, created: &Created, observer: Observer) -> Result<Record> {
    let servers = placing::servers_named(&plan.command);
    let session = Session::open(settings, &servers, &mut |service| observer(Progress::Starting { service }))?;
    let mut measured = executions(plan, &session, observer);
    session.close(measured.as_mut().map(|record| &mut record.outcome), created);
    measured
}

fn executions(plan: &CommandPlan, session: &Session, observer: Observer) -> Result<Record> {
    let counted_by = counted_by(plan);
    let mut sheet = Sheet::open(session, Source::Cost { command: plan.command.clone(), counted_by })?;
    if let Count::Kernel(counter) = &plan.count {
        counter.read().map_err(|error| Error::Refused(format!("--count {counter}: {error}")))?;
    }
    sheet.watch_background(observer);
    let mut phase = PhaseRecord::default();
    // Processes that the command leaves running stay, also if iotoll is killed.
    let unguarded = Processes::default();
    for number in 0..plan.repeat.max(1) as usize {
        if sheet.has_ended() {
            break;
        }
        let windows = Some(sheet.growing_windows(0));
        let mut surroundings = Surroundings {
            windows,
            meters: &mut sheet.meters,
            interruption: &session.settings.interruption,
            warnings: &mut sheet.record.warnings,
            cpus: session.placing.of(0),
            processes: &unguarded,
        };
        let prepared = session.around.prepare(&Cell::default());
        let executed = prepared.and_then(|()| execute(plan, number, &mut surroundings, observer));
        let Executed { execution, failure, elsewhere } = match executed {
            Ok(executed) => executed,
            Err(error) if phase.executions.is_empty() => return Err(error),
            // The cost of the executions before it is known.
            Err(error) => {
                sheet.note_outcome(outcome_of(&error));
                break;
            }
        };
        let ours = of_our_network(plan, &session.settings.probes);
        if let Some(caveat) = network_namespace::caveat(&ours, &plan.command, elsewhere) {
            add_once(&mut sheet.record.warnings, caveat);
        }
        // An interrupted command often ends with a failure of its own.
        if let Some(failure) = failure.filter(|_| !session.interrupted()) {
            sheet.note_outcome(Outcome::Failed(failure));
        }
        sheet.keep_execution(0, &execution);
        phase.executions.push(execution);
    }
    if phase.executions.is_empty() {
        return Err(Error::Interrupted("before the command was started".to_owned()));
    }
    sheet.record.phases.push(phase);
    sheet.watch_background(observer);
    Ok(sheet.close())
}

/// What counts in iotoll's own network namespace.
fn of_our_network(plan: &CommandPlan, probes: &[Probe]) -> Vec<String> {
    let interface = match &plan.count {
        Count::Kernel(counter @ Counter::Probe(name)) if name.starts_with("net.") => Some(format!("--count {counter}")),
        Count::Kernel(counter @ Counter::Net(_)) => Some(format!("--count {counter}")),
        Count::Kernel(Counter::Block(_) | Counter::Probe(_)) | Count::Program | Count::Stated { .. } => None,
    };
    interface.into_iter().chain(network_namespace::flags_of_one(probes)).collect()
}
