//! `iotoll run`: measures a plan into a record.

use crate::cost::measure::sheet::Sheet;
use lab::demand;
use lab::error::{Error, Result};
use lab::interruption::Interruption;
use lab::io_log::{self, IoLog};
use lab::laying_out::{self, set_cache, warn_of_holes, warn_of_unlinking};
use lab::meter::{Owners, Work};
use lab::page_cache::{CachedFiles, own_storage_read};
use lab::placing;
use lab::progress::{Observer, Progress, iops};
use lab::read_back;
use lab::replaying::Replays;
use lab::session::{Session, Settings, outcome_of};
use lab::store::GrowingWindows;
use lab::watch::{Step, Subject, watch};
use lab::whereabouts::{PlacementWatch, Workload};
use lab::worker_pool::{Joined, WorkerPool};
use lab::workload::JobCopy;
use lab::workload::target::Created;
use model::experiment::Cell;
use model::page_cache::{CacheRecord, is_buffered};
use model::placement::Whereabouts;
use model::plan::{Phase, Plan};
use model::record::{Done, Execution, IoInterval, Outcome, PhaseRecord, Record, Source, Stretch};
use model::unit::{Bytes, Nanos};
use std::time::Duration;

pub use lab::file_roles::check as check_files;

/// Measures a plan, with the traces that its jobs replay. Files that it makes are noted in `created`, and kept when it ends well.
///
/// # Errors
/// When nothing could be measured: a refused or missing file, an engine that is not allowed here. A job that fails
/// later is in the record, with everything measured before.
pub fn run(
    plan: &Plan,
    replays: &Replays,
    settings: &Settings,
    created: &Created,
    observer: Observer,
) -> Result<Record> {
    demand::check(&plan.phases)?;
    let servers = placing::servers_of(plan.phases.iter().flat_map(|phase| &phase.jobs));
    let session = Session::open(settings, &servers, &mut |service| observer(Progress::Starting { service }))?;
    let mut measured = measure(plan, replays, &session, created, observer);
    session.close(measured.as_mut().map(|record| &mut record.outcome), created);
    measured
}

fn measure(plan: &Plan, replays: &Replays, session: &Session, created: &Created, observer: Observer) -> Result<Record> {
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
        phases.push((phase, laying_out::prepare(phase, &replay, created, interruption, observer)?));
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
