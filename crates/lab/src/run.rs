//! `iotoll run`: measures a plan into a record.

use crate::demand;
use crate::error::{Error, Result};
use crate::interruption::Interruption;
use crate::meter::{Owners, TaskScan, Work};
use crate::page_cache::{CachedFiles, own_storage_read};
use crate::placing::{self, Placing};
use crate::preparation::{self, invalidate, warn_of_holes, warn_of_unlinking};
use crate::progress::{Observer, Progress, iops};
use crate::service::{Folders, LONGEST_FILL, Services};
use crate::session::{Session, Settings};
use crate::store::UnfinishedWindows;
use crate::watch::{Step, Subject, watch};
use crate::whereabouts::{PlacementWatch, Workload};
use crate::worker_pool::WorkerPool;
use crate::workload::job_copy::JobCopy;
use crate::workload::target::Created;
use model::page_cache::{CacheRecord, is_buffered};
use model::placement::Whereabouts;
use model::plan::service::Service;
use model::plan::{Phase, Plan};
use model::record::{Done, Execution, IoInterval, Outcome, PhaseRecord, Record, Source, Stretch};
use model::unit::{Bytes, Nanos};
use std::time::Duration;

/// Measures a plan. Files that it makes are noted in `created`, and kept when it ends well.
///
/// # Errors
/// When nothing could be measured: a refused or missing file, an engine that is not allowed here. A job that fails
/// later is in the record, with everything measured before.
pub fn run(plan: &Plan, settings: &Settings, created: &Created, observer: Observer) -> Result<Record> {
    demand::check(&plan.phases)?;
    let place = settings.place.as_ref();
    let servers = placing::servers_of(plan.phases.iter().flat_map(|phase| &phase.jobs));
    let placing = Placing::resolve(place, &servers)?;
    let folders = Folders::make(&settings.services)?;
    let mut services =
        Services::start(&settings.services, place, LONGEST_FILL, &settings.interruption, &mut |service| {
            observer(Progress::Starting { service });
        })?;
    // Again, because it depends on where the servers are that run now.
    let placing = if services.started().is_empty() { placing } else { Placing::resolve(place, &servers)? };
    let measured = measure(plan, settings, services.started(), &placing, created, observer);
    let record = services.conclude(measured, |record| &mut record.outcome)?;
    folders.close()?;
    if record.outcome == Outcome::Completed {
        created.keep();
    }
    Ok(record)
}

/// The same beside services that run.
fn measure(
    plan: &Plan,
    settings: &Settings,
    services: &[Service],
    placing: &Placing,
    created: &Created,
    observer: Observer,
) -> Result<Record> {
    let mut session = Session::open(settings, Source::Run(plan.clone()), services)?;
    session.record.warnings.extend(plan.warnings.iter().cloned());
    let phases = prepare(plan, settings, created, observer)?;
    warn_of_holes(phases.iter().flat_map(|(_, copies)| copies), &mut session.record.warnings);
    let copies = phases.iter().map(|(_, copies)| copies.as_slice());
    warn_of_unlinking(copies, created, &mut session.record.warnings);
    session.watch_background(observer);
    for (number, (phase, copies)) in phases.iter().enumerate() {
        if session.interrupted() || session.record.outcome != Outcome::Completed {
            break;
        }
        let running = (number, phases.len());
        match measure_phase(phase, copies, placing, &mut session, running, observer) {
            Ok((execution, failure)) => {
                session.keep_execution(number, &execution);
                session.record.phases.push(PhaseRecord { executions: vec![execution] });
                if let Some(failure) = failure {
                    session.note_outcome(Outcome::Failed(failure.to_string()));
                }
            }
            Err(error) if session.record.phases.is_empty() => return Err(error),
            // The cost of the phases before it is known.
            Err(error) => session.note_outcome(Outcome::Failed(error.to_string())),
        }
    }
    if session.record.phases.is_empty() {
        return Err(Error::Interrupted("before the first I/O".to_owned()));
    }
    session.watch_background(observer);
    Ok(session.close())
}

/// Measures one phase, the `number`th of `count`. Returns what its jobs did, and the first failure.
///
/// # Errors
/// When it cannot start.
fn measure_phase(
    phase: &Phase,
    copies: &[JobCopy],
    placing: &Placing,
    session: &mut Session,
    (number, count): (usize, usize),
    observer: Observer,
) -> Result<(Execution, Option<Error>)> {
    // When the job starts, not earlier: an earlier phase may use the same file from memory.
    copies.iter().try_for_each(invalidate)?;
    let pool = WorkerPool::start(copies, placing, session.clock())?;
    let interruption = &session.settings.interruption;
    let total = planned_length(phase);
    let placement_watch = PlacementWatch::new(Workload::Threads(pool.thread_ids()));
    let windows = session.unfinished_windows(number);
    let mut subject = Running { pool, interruption, observer, number, count, total, placement_watch, windows };
    let files = CachedFiles::of(copies);
    let cached = (!files.is_empty()).then(|| files.look());
    let before = TaskScan::now();
    let mut stretch = watch(&mut session.meters, &mut subject);
    subject.placement_watch.note_servers(&mut stretch.snapshots);
    let page_cache = cached.map(|before| CacheRecord {
        dropped: copies.iter().any(|copy| is_buffered(copy.plan) && copy.plan.invalidates()),
        before,
        after: files.look(),
    });
    let owners = Owners { workers: subject.pool.thread_ids(), command: None };
    let tasks = TaskScan::now().since(&before, &owners);
    let (jobs, failure) = subject.pool.join();
    let stretch = Stretch { tasks: Some(tasks), ..stretch };
    let io_interval = IoInterval::of_jobs(phase, &stretch);
    Ok((Execution { jobs, stretch, io_interval, page_cache, ..Execution::default() }, failure))
}

type Prepared<'a> = Vec<(&'a Phase, Vec<JobCopy<'a>>)>;

/// Every phase with its files.
fn prepare<'a>(plan: &'a Plan, settings: &Settings, created: &Created, observer: Observer) -> Result<Prepared<'a>> {
    let mut phases = Vec::new();
    for phase in &plan.phases {
        phases.push((phase, preparation::prepare(phase, created, &settings.interruption, observer)?));
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
        (duration.runtime > Nanos(0)).then(|| (job.start_delay + duration.ramp + duration.runtime).duration())
    };
    phase.jobs.iter().map(length).collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// A running phase.
struct Running<'a> {
    pool: WorkerPool,
    interruption: &'a Interruption,
    observer: Observer<'a>,
    number: usize,
    count: usize,
    total: Option<Duration>,
    placement_watch: PlacementWatch,
    windows: UnfinishedWindows,
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
