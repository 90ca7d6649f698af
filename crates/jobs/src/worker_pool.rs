//! The copies of the jobs of a phase, with their files; and their workers: one thread for each, started together, kept until the last clock
//! is read.

use crate::engine;
use crate::engine::tally::LiveCounters;
use crate::engine::worker::{Control, Worker, Written};
use crate::io_log::IoLog;
use crate::replaying;
use crate::thread_usage;
use crate::workload::payload::Payload;
use crate::workload::replay::Replay;
use crate::workload::request_source::RequestSource;
use crate::workload::target::Target;
use lab::created::Created;
use lab::error::{Error, Result};
use lab::interruption::Interruption;
use lab::meter::{Owners, Work};
use lab::placing::Placing;
use lab::progress::{Observer, Progress};
use model::ThreadUsage;
use model::plan::{Ends, JobPlan, PathTxQueue, Phase, Together};
use model::record::{Direction, Done, JobRecord, Latency, StampError};
use model::unit::{Bytes, Hertz, Nanos, Ticks};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::buffer::AlignedBuffer;
use sys::clock::{ThreadClock, monotonic_nanos, own_thread_nanos};

/// One copy of a job with its files.
#[derive(Clone, Debug)]
pub struct JobCopy<'a> {
    pub plan: &'a JobPlan,
    /// Number of the copy.
    pub number: u32,
    pub targets: Vec<Target>,
    /// The trace that it replays, if it does.
    pub replay: Option<Arc<Replay>>,
}

/// Finds or makes every file of a phase; `replay` has the traces of jobs, by the number of the job and of the copy.
///
/// # Errors
/// A file that cannot be found, made or used as the job requires; an interruption.
pub fn lay_out<'a>(
    phase: &'a Phase,
    replay: &dyn Fn(usize, u32) -> Option<Arc<Replay>>,
    created: &Created,
    interruption: &Interruption,
    observer: Observer,
) -> Result<Vec<JobCopy<'a>>> {
    let mut progress = |path: &Path, done, total| {
        observer(Progress::LayingOut { path, done, total });
        !interruption.is_requested()
    };
    let mut copies = Vec::new();
    for (of_phase, job) in phase.jobs.iter().enumerate() {
        for number in 0..job.copies.max(1) {
            let replay = replay(of_phase, number);
            let targets = match &replay {
                Some(replay) => replaying::targets(job, replay, created, &mut progress)?,
                None => engine::prepare(job, number, created, &mut progress)?,
            };
            copies.push(JobCopy { plan: job, number, targets, replay });
        }
    }
    Ok(copies)
}

/// Stack of a worker: its loop needs a few KiB; engines keep their memory elsewhere.
const STACK_BYTES: usize = 256 << 10;

/// How often the start looks whether the measurement is to end.
const LOOK: Duration = Duration::from_millis(100);

enum News {
    /// A worker's engine is ready.
    Ready,
    /// A worker of the job of this number is done since this time; its thread waits for its release.
    Ended(usize, Nanos, Result<()>),
}

/// A job of the phase.
struct Job {
    together: Together,
    control: Arc<Control>,
}

/// What a worker leaves.
pub struct Left {
    pub record: JobRecord,
    /// What is to be read back.
    pub written: Option<Written>,
    /// Its log, and its number among the workers of the phase, from 0.
    pub log: Option<(usize, IoLog)>,
}

/// The workers of one phase.
pub struct WorkerPool {
    jobs: Vec<Job>,
    /// A job with `exit_what=all` has ended.
    ends_run: bool,
    /// Set when the workers may start, and when their threads may end.
    begin: Arc<OnceLock<()>>,
    release: Arc<OnceLock<()>>,
    news: Receiver<News>,
    pub live: Vec<Arc<LiveCounters>>,
    clocks: Arc<Mutex<Vec<(u32, ThreadClock)>>>,
    threads: Vec<JoinHandle<Left>>,
    working: usize,
    failure: Option<Error>,
    /// When the latest of those that are done ended.
    ended: Option<Nanos>,
}

/// What the workers leave.
pub struct Joined {
    /// Each with what is to be read back, and its log.
    pub records: Vec<Left>,
    /// The first failure.
    pub failure: Option<Error>,
    /// When the last worker ended.
    pub ended: Option<Nanos>,
}

impl WorkerPool {
    /// Starts a thread for each copy and waits until all engines are ready. Those whose job says so log their I/Os, each in this number of
    /// bytes. The interruption ends engines that wait for their server.
    ///
    /// # Errors
    /// When an engine cannot be opened; the other workers have ended by then.
    pub fn start(
        copies: &[JobCopy],
        placing: &Placing,
        clock: Hertz,
        log_bytes: u64,
        interruption: &Interruption,
    ) -> Result<Self> {
        let (tell, news) = channel();
        let mut pool = Self {
            jobs: Vec::new(),
            ends_run: false,
            begin: Arc::default(),
            release: Arc::default(),
            news,
            live: Vec::new(),
            clocks: Arc::default(),
            threads: Vec::new(),
            working: 0,
            failure: None,
            ended: None,
        };
        for (thread, copy) in copies.iter().enumerate() {
            // The copies of a job follow each other.
            if copy.number == 0 {
                pool.jobs.push(Job { together: copy.plan.together.clone(), control: Arc::default() });
            }
            let mut plan = copy.plan.clone();
            placing.apply(&mut plan, thread);
            let log = IoLog::new(&plan, clock, log_bytes)?;
            pool.spawn(copy, plan, clock, &tell, log.map(|log| (thread, log)))?;
        }
        let mut ready = 0;
        while ready < copies.len() {
            match pool.news.recv_timeout(LOOK) {
                Ok(News::Ready) => ready += 1,
                // An engine may wait for its server.
                Err(RecvTimeoutError::Timeout) if interruption.is_requested() => pool.stop(),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(News::Ended(_, _, Err(_))) if interruption.is_requested() => {
                    return Err(Error::Interrupted("before the first I/O".to_owned()));
                }
                Ok(News::Ended(_, _, Err(error))) => return Err(error),
                Ok(News::Ended(_, _, Ok(()))) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Refused("a worker ended before it started; please report this".to_owned()));
                }
            }
        }
        Ok(pool)
    }

    fn spawn(
        &mut self,
        copy: &JobCopy,
        plan: JobPlan,
        clock: Hertz,
        tell: &Sender<News>,
        log: Option<(usize, IoLog)>,
    ) -> Result<()> {
        let live = Arc::new(LiveCounters::default());
        let job = self.jobs.len().saturating_sub(1);
        let Some(of_job) = self.jobs.last() else { return Ok(()) };
        let mut worker = build_worker(copy, live.clone(), of_job.control.clone(), clock)?;
        let log_of = log.map(|(thread, log)| {
            worker.keep_log(log);
            thread
        });
        let (number, targets) = (copy.number, copy.targets.clone());
        let (begin, release, clocks, tell) =
            (self.begin.clone(), self.release.clone(), self.clocks.clone(), tell.clone());
        let thread = std::thread::Builder::new().name(format!("job {}", plan.name)).stack_size(STACK_BYTES);
        let thread = thread.spawn(move || {
            let ready = tell.clone();
            worker.reads_usage = true;
            worker.at_start(move || {
                if let Ok(mut clocks) = clocks.lock() {
                    clocks.push((sys::schedule::thread_id().unsigned_abs(), ThreadClock::of_caller()));
                }
                let _ = ready.send(News::Ready);
                begin.wait();
            });
            let copy = JobCopy { plan: &plan, number, targets, replay: None };
            let mut end = None;
            let opened = with_engine(&copy, |engine| {
                let outcome = engine(&mut worker);
                // What it takes to close the engine (30 ms for the kernel's AIO) is no part of the phase.
                end = Some(End::tell(outcome, job, &tell));
                Ok(())
            });
            // It was not opened, or panicked.
            let End { ended, usage_end, failed } = end.unwrap_or_else(|| End::tell(opened, job, &tell));
            release.wait();
            let thread_nanos = ended.since(worker.thread_begin);
            let usage = usage_end.zip(worker.usage_begin).map(|(end, begin)| end.since(begin));
            let well = failed.is_none();
            let record = JobRecord { usage, ..job_record(&plan, number, &worker, clock, thread_nanos, failed) };
            let log = log_of.zip(worker.take_log());
            Left { record, written: if well { worker.written() } else { None }, log }
        });
        let thread = thread.map_err(|error| Error::instrument("starting a worker thread", error))?;
        self.threads.push(thread);
        self.live.push(live);
        self.working += 1;
        Ok(())
    }

    /// Lets every worker start.
    pub fn open_gate(&self) {
        let _ = self.begin.set(());
    }

    /// Asks every worker to end after its I/Os in flight.
    pub fn stop(&self) {
        self.stop_those(|_| true);
    }

    fn stop_those(&self, which: impl Fn(&Job) -> bool) {
        self.jobs.iter().filter(|job| which(job)).for_each(|job| job.control.stop());
    }

    /// Whether no phase follows this one, because of `exit_what=all`.
    pub fn ends_run(&self) -> bool {
        self.ends_run
    }

    /// Waits until all workers are done, or `timeout` has passed. Returns whether all are done. When one fails, the
    /// others are asked to end: the cost is that of all together, and means nothing without one of them.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let deadline = std::time::Instant::now() + timeout;
        while self.working > 0 {
            match self.news.recv_timeout(deadline.saturating_duration_since(std::time::Instant::now())) {
                Ok(News::Ready) => {}
                Ok(News::Ended(job, at, outcome)) => {
                    self.ended = self.ended.max(Some(at));
                    self.working -= 1;
                    self.note_end(job);
                    if let Err(error) = outcome {
                        self.stop();
                        self.failure.get_or_insert(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => self.working = 0,
            }
        }
        true
    }

    /// A worker of this job is done: what ends with it ends.
    fn note_end(&mut self, number: usize) {
        let Some(job) = self.jobs.get(number) else { return };
        if !job.together.exit_all {
            return;
        }
        let group = job.together.group;
        match job.together.exit_what {
            Ends::Group => self.stop_those(|other| other.together.group == group),
            Ends::Phase => self.stop(),
            Ends::Run => {
                self.ends_run = true;
                self.stop();
            }
        }
    }

    /// Kernel thread ids of the workers.
    pub fn thread_ids(&self) -> BTreeSet<u32> {
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.iter().map(|(id, _)| *id).collect()
    }

    /// Whose the tasks of this process are.
    pub fn owners(&self) -> Owners {
        Owners { workers: self.thread_ids(), ..Owners::default() }
    }

    /// Ends the threads and collects what they leave.
    pub fn join(mut self) -> Joined {
        self.end();
        let records = self.threads.drain(..).filter_map(|thread| thread.join().ok()).collect();
        Joined { records, failure: self.failure.take(), ended: self.ended }
    }

    fn end(&self) {
        self.stop();
        self.open_gate();
        let _ = self.release.set(());
    }
}

/// How a worker ended its work.
struct End {
    /// CPU time of its thread until then.
    ended: Nanos,
    usage_end: Option<ThreadUsage>,
    failed: Option<String>,
}

impl End {
    /// Tells the pool that a worker is done.
    fn tell(outcome: Result<()>, job: usize, tell: &Sender<News>) -> Self {
        let end = Self {
            ended: Nanos(own_thread_nanos()),
            usage_end: thread_usage::own(),
            failed: outcome.as_ref().err().map(ToString::to_string),
        };
        let _ = tell.send(News::Ended(job, Nanos(monotonic_nanos()), outcome));
        end
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.end();
        for thread in self.threads.drain(..) {
            // A worker that panicked has already printed the reason.
            let _ = thread.join();
        }
    }
}

impl Work for WorkerPool {
    fn done(&self) -> Option<Done> {
        let mut done = Done::default();
        for live in &self.live {
            let (ios, bytes) = live.read();
            done.ios += ios;
            done.bytes += Bytes(bytes);
        }
        Some(done)
    }

    fn thread_nanos(&self) -> Option<Nanos> {
        let clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.iter().map(|(_, clock)| clock.nanos().ok().map(Nanos)).sum()
    }
}

/// A worker for a copy of a job: its requests are generated, but nothing is opened yet.
pub fn build_worker(copy: &JobCopy, live: Arc<LiveCounters>, control: Arc<Control>, clock: Hertz) -> Result<Worker> {
    let plan = copy.plan;
    let spans: Vec<_> = copy.targets.iter().map(|target| target.span).collect();
    // What a trace has is not drawn, and its files may have any length.
    let one_byte = JobPlan { block_sizes: Bytes(1).into(), ..JobPlan::default() };
    let drawn = if copy.replay.is_none() { plan } else { &one_byte };
    let source = RequestSource::new(drawn, &spans, copy.number).ok_or_else(|| {
        Error::refused(plan, "a file or export is smaller than one block; check size=, offset= and bs=")
    })?;
    let mut worker = Worker::new(plan, source, live, control, clock);
    if let Some(replay) = &copy.replay {
        worker.replay(plan, replay.clone());
    }
    if let Some(payload) = Payload::new(copy, clock) {
        worker.carry(plan, payload);
    }
    Ok(worker)
}

/// Opens a copy's engine in this thread, which becomes its worker, and passes it to `work`.
pub fn with_engine<T>(copy: &JobCopy, work: impl FnOnce(&mut engine::OpenEngine) -> Result<T>) -> Result<T> {
    let plan = copy.plan;
    // Locked until the work is done.
    let _locked = set_up_thread(plan)?;
    // Without this, the pool would wait forever for a worker that panicked. Its state is only read afterwards.
    let work = std::panic::AssertUnwindSafe(|| {
        // If threads share a file table, each system call takes and drops a reference to its file: 2 % of a cached 4
        // KiB pread here. If unsharing is refused, they share it; so do jobs that share a connection.
        if plan.path.tx_queue == PathTxQueue::None {
            let _ = sys::process::unshare_descriptors();
        }
        // Opened here, because a file must be closed in the table in which it was opened.
        work(&mut engine::open(copy)?)
    });
    std::panic::catch_unwind(work).unwrap_or_else(|payload| Err(panicked(&plan.name, payload.as_ref())))
}

/// Pins the calling thread to the CPUs of a job. Returns the memory that it locks while it runs.
fn set_up_thread(plan: &JobPlan) -> Result<Option<AlignedBuffer>> {
    let failed = |option: &'static str| move |error| Error::job(&plan.name, option, error);
    if !plan.thread.cpus_allowed.is_empty() {
        sys::schedule::pin_to(&plan.thread.cpus_allowed).map_err(failed("cpus_allowed"))?;
    }
    let locked = usize::try_from(plan.thread.locked_memory.0).unwrap_or(usize::MAX);
    let buffer = (locked > 0).then(|| AlignedBuffer::locked(locked));
    buffer.transpose().map_err(failed("lockmem (run as root, or raise ulimit -l)"))
}

/// The failure of a worker that panicked: a bug in iotoll, which the message helps to find.
fn panicked(job: &str, payload: &(dyn std::any::Any + Send)) -> Error {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    Error::job(job, "the worker panicked; please report this", std::io::Error::other(text.to_owned()))
}

fn job_record(
    plan: &JobPlan,
    copy: u32,
    worker: &Worker,
    clock: Hertz,
    thread_nanos: Nanos,
    failed: Option<String>,
) -> JobRecord {
    let tally = &worker.tally;
    let [read, write, trim] = tally.kinds.clone().map(|kind| Direction {
        ios: kind.latency.total(),
        bytes: Bytes(kind.bytes),
        short: kind.short,
        latency: if kind.latency.total() > 0 { Latency::Ticks(kind.latency) } else { Latency::None },
    });
    let stamps = tally.stamp_error_count;
    JobRecord {
        name: plan.name.clone(),
        copy,
        group: 0,
        mixed: None,
        lost: None,
        uncounted: false,
        group_reporting: plan.reporting.group,
        engine: plan.engine.name().to_owned(),
        read,
        write,
        trim,
        syncs: tally.syncs,
        verified: worker.verified(),
        errors: u64::from(failed.is_some()),
        error: failed,
        wall_nanos: clock.nanos(Ticks(tally.end_ticks.saturating_sub(tally.begin_ticks))),
        thread_nanos: Some(thread_nanos),
        usage: None,
        syscalls: worker.syscalls,
        stamp_error: (stamps > 0).then(|| StampError {
            mean_nanos: tally.stamp_error_sum as f64 / stamps as f64 * 1e9 / clock.0,
            max_nanos: clock.nanos(Ticks(tally.stamp_error_max)),
        }),
        stages: tally.stages.clone(),
        injected_ns: worker.injected(plan, clock),
        percentiles: plan.reporting.percentiles.clone(),
    }
}
