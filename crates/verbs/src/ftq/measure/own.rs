//! Whose progress is read: a worker thread of iotoll, which does a job's I/O, or computes, without pause until the recording ends;
//! or a process (`foreign`).

use jobs::cached_files::set_cache;
use jobs::engine::tally::LiveCounters;
use jobs::worker_pool::{JobCopy, Joined, WorkerPool, lay_out};
use jobs::workload::target::warn_of_holes;
use lab::created::Created;
use lab::error::{Error, Result};
use lab::interruption::Interruption;
use lab::placing::Placing;
use lab::probe::{ProbeSet, WorkerTask};
use lab::progress::Observer;
use model::plan::{Access, EngineKind, JobPlan, Medium, Phase, Plan, Size, options};
use model::probe::{Kind, Probe};
use model::unit::{Bytes, Hertz, Nanos};
use model::warning::Warning;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

/// Multiplications of a step of `--cpu`, each of which needs the one before: about 2 µs, a small part of any quantum.
const STEP: u64 = 1000;

/// The subject of a recording.
pub(super) trait Subject {
    /// In words: "ioengine=psync rw=write bs=4k filename=/data/f".
    fn words(&self) -> &str;
    /// Its task, for probes of the worker.
    fn task(&self) -> WorkerTask;
    /// Where its amount is read. `access` chooses the directions of a foreign process.
    ///
    /// # Errors
    /// Refused, when its I/O cannot be seen.
    fn counted(&mut self, access: Access) -> Result<Counted>;
    /// Called now and then while it is recorded: finds what else belongs to it.
    fn look_around(&mut self) {}
    /// Lets it start, if it waits.
    fn begin(&mut self);
    /// Waits until it has ended by itself, or `timeout` has passed. Returns whether it has ended.
    fn wait(&mut self, timeout: Duration) -> bool;
    /// Ends it, if iotoll started it.
    fn end(self: Box<Self>) -> Ending;
}

/// How a subject ended.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// I/Os that it made, if it counts them.
    pub ios: Option<u64>,
}

/// An amount with its words for the record.
pub(super) struct Counted {
    /// Reads it; `None` if the worker or its counter is gone. Does not allocate.
    pub amount: Box<dyn FnMut() -> Option<u64> + Send>,
    /// Where it is read, in words.
    pub by: String,
    /// What is counted.
    pub unit: String,
}

/// The amount by a probe that the user named.
///
/// # Errors
/// Refused, when it cannot be read, or is not a counter.
pub(super) fn of_probe(probe: &Probe, task: WorkerTask) -> Result<Counted> {
    let descriptor = &probe.descriptor;
    if descriptor.kind != Kind::Counter {
        let name = &descriptor.name;
        return Err(Error::Refused(format!("--count {name}: is a gauge; name a counter, which only grows")));
    }
    let mut probes = ProbeSet::open_beside(std::slice::from_ref(probe), Some(task))?;
    let unit = if descriptor.unit.is_empty() { "counts" } else { &descriptor.unit };
    Ok(Counted {
        amount: Box::new(move || {
            let mut value = [None];
            probes.read_into(&mut value);
            value[0].map(|value| value as u64)
        }),
        by: format!("{} (probe {})", descriptor.meaning, descriptor.name),
        unit: unit.to_owned(),
    })
}

/// A worker thread that waits at its gate, or works.
pub(super) struct Own {
    pool: WorkerPool,
    counters: Arc<LiveCounters>,
    thread: u32,
    computes: bool,
    words: String,
}

/// What a worker thread needs besides its job.
pub(super) struct Surroundings<'a> {
    /// Its CPU; `None` if the job or the scheduler chooses.
    pub cpu: Option<u32>,
    /// Files that are made.
    pub created: &'a Created,
    pub interruption: &'a Interruption,
    /// Rate of the time-stamp counter, asked for when the files are there.
    pub clock: &'a dyn Fn() -> Hertz,
    pub warnings: &'a mut Vec<Warning>,
}

impl Own {
    /// A thread that does the I/O of a plan's only job.
    ///
    /// # Errors
    /// Refused, when the plan has not one job in one copy; or its file or engine cannot be opened.
    pub fn of_job(plan: &Plan, surroundings: Surroundings, observer: Observer) -> Result<Self> {
        let [Phase { jobs }] = plan.phases.as_slice() else { return Err(several("phases")) };
        let [job] = jobs.as_slice() else { return Err(several("jobs")) };
        if job.copies > 1 {
            return Err(several("copies (numjobs)"));
        }
        Self::start(job, false, in_words(job), surroundings, observer)
    }

    /// A thread that computes.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn computing(surroundings: Surroundings, observer: Observer) -> Result<Self> {
        let mut job = JobPlan { name: "steps".to_owned(), engine: EngineKind::Work, ..JobPlan::default() };
        job.own.work_steps = STEP;
        job.target.size = Some(Size::Bytes(Bytes(1 << 30)));
        let words = format!("a thread that computes, in steps of {STEP} multiplications");
        Self::start(&job, true, words, surroundings, observer)
    }

    fn start(
        job: &JobPlan,
        computes: bool,
        words: String,
        surroundings: Surroundings,
        observer: Observer,
    ) -> Result<Self> {
        let mut job = job.clone();
        if let (Some(cpu), true) = (surroundings.cpu, job.thread.cpus_allowed.is_empty()) {
            job.thread.cpus_allowed = vec![cpu];
        }
        // The recording ends it.
        job.duration.time_based = true;
        (job.duration.runtime, job.duration.ramp, job.together.start_delay) = (Nanos(0), Nanos(0), Nanos(0));
        let phase = Phase { jobs: vec![written_before(&job)] };
        let laid_out = lay_out(&phase, &|_, _| None, surroundings.created, surroundings.interruption, observer)?;
        let copies: Vec<JobCopy> = laid_out.into_iter().map(|copy| JobCopy { plan: &job, ..copy }).collect();
        warn_of_holes(&copies, surroundings.warnings);
        copies.iter().try_for_each(|copy| set_cache(copy, surroundings.interruption))?;
        let pool =
            WorkerPool::start(&copies, &Placing::default(), (surroundings.clock)(), 0, surroundings.interruption)?;
        let no_thread = || Error::Refused("the worker has no thread; please report this".to_owned());
        let thread = pool.thread_ids().first().copied().ok_or_else(no_thread)?;
        let counters = pool.live.first().cloned().ok_or_else(no_thread)?;
        Ok(Self { pool, counters, thread, computes, words })
    }
}

impl Subject for Own {
    fn words(&self) -> &str {
        &self.words
    }

    fn task(&self) -> WorkerTask {
        WorkerTask::Thread(self.thread)
    }

    fn counted(&mut self, _: Access) -> Result<Counted> {
        let counters = self.counters.clone();
        let (unit, by) = match self.computes {
            true => ("steps", "steps that it has completed"),
            false => ("bytes", "bytes of the I/Os that it has completed"),
        };
        let computes = self.computes;
        let amount = move || Some(if computes { counters.ios() } else { counters.bytes() });
        Ok(Counted { amount: Box::new(amount), by: by.to_owned(), unit: unit.to_owned() })
    }

    fn begin(&mut self) {
        self.pool.open_gate();
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        self.pool.wait(timeout)
    }

    fn end(mut self: Box<Self>) -> Ending {
        self.pool.stop();
        // An fsync may take long; without its end the failure would be unknown.
        while !self.pool.wait(Duration::from_secs(1)) {}
        let Joined { records, failure, .. } = self.pool.join();
        let ios = records.iter().map(|left| &left.record).map(|job| job.read.ios + job.write.ios + job.trim.ios).sum();
        Ending { failure: failure.map(|error| error.to_string()), ios: Some(ios) }
    }
}

/// The job as its file is made: of a file that is missing or short, all that is made is written and is on the disk before the first
/// reading, as for a reader. A writer of blocks that were never written would record how they are allocated.
fn written_before(job: &JobPlan) -> JobPlan {
    let is_file = |path: &String| fs::metadata(path).map_or(true, |found| found.is_file());
    let fills = job.engine.medium() == Medium::Files && job.access == Access::Write;
    let access = if fills && job.target.files.iter().all(is_file) { Access::ReadWrite } else { job.access };
    JobPlan { access, ..job.clone() }
}

fn several(what: &str) -> Error {
    Error::Refused(format!("a recording has one worker, but this job has several {what}; give it one"))
}

/// What it does and where, in fio's words, without how long: the recording ends it.
fn in_words(job: &JobPlan) -> String {
    let endless = JobPlan { duration: model::plan::Duration::default(), ..job.clone() };
    let words = options::shown(&endless, &["ioengine", "rw", "bs"]).into_iter();
    words.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}
